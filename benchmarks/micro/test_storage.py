"""The store's hot paths: durable writes through group commit, and point reads.

The comparison runs on the same disk in the same run: 64 threads that each wait for their own
durable write, once through the store and once with a transaction and an fsync of its own each.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import lmdb
import pytest
from pillion_storage.api import Batch, Partition, StoreSettings, Token
from pillion_storage.lmdb import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pillion_storage.lmdb.store import LmdbStore
    from pytest_benchmark.fixture import BenchmarkFixture

WRITERS = 64
WRITES_EACH = 100
VALUE = b"v" * 256
P = Partition("bench", "tenant")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    store = open_store(StoreSettings(directory=tmp_path / "store"))
    yield store
    store.close()


def in_threads(write: Callable[[int, int], None]) -> float:
    """Let every thread write its share, each write after the one before; return writes/s."""
    start = threading.Barrier(WRITERS + 1)

    def run(thread: int) -> None:
        start.wait()
        for number in range(WRITES_EACH):
            write(thread, number)

    with ThreadPoolExecutor(WRITERS) as pool:
        futures = [pool.submit(run, thread) for thread in range(WRITERS)]
        start.wait()
        began = time.perf_counter()
        for future in futures:
            future.result()
        elapsed = time.perf_counter() - began
    return WRITERS * WRITES_EACH / elapsed


def test_durable_writes_of_64_threads(
    benchmark: BenchmarkFixture, store: LmdbStore, tmp_path: Path
) -> None:
    rounds = itertools.count()
    grouped_rates: list[float] = []
    alone_rates: list[float] = []

    with lmdb.open(str(tmp_path), map_size=1 << 30, lib_version=0) as env:

        def alone() -> None:
            """Before each round, for a shared disk is not the same from one second to the next."""
            base = next(rounds)

            def write(thread: int, number: int) -> None:
                with env.begin(write=True) as txn:
                    txn.put(b"%d/%d/%d" % (base, thread, number), VALUE)

            alone_rates.append(in_threads(write))

        def grouped() -> None:
            base = next(rounds)

            def write(thread: int, number: int) -> None:
                key = b"%d/%d/%d" % (base, thread, number)
                store.commit(P, Batch(puts={key: VALUE}))

            grouped_rates.append(in_threads(write))

        benchmark.pedantic(grouped, setup=alone, rounds=5, warmup_rounds=1)
    stats = store.stats()
    ratios = [grouped / alone for grouped, alone in zip(grouped_rates, alone_rates, strict=True)]
    benchmark.extra_info.update(
        grouped_writes_per_second=round(statistics.median(grouped_rates)),
        alone_writes_per_second=round(statistics.median(alone_rates)),
        ratio=round(statistics.median(ratios), 2),
        ratio_each_round=[round(ratio, 1) for ratio in ratios],
        batches_per_group=round(stats.commits / stats.groups, 1),
    )


def test_pipelined_writes_of_one_thread(benchmark: BenchmarkFixture, store: LmdbStore) -> None:
    """What the writer itself can do: nobody waits in between, so no thread switches."""
    numbers = itertools.count()

    def pipeline() -> None:
        futures = [
            store.submit(P, Batch(puts={b"%09d" % next(numbers): VALUE})) for _ in range(2000)
        ]
        futures[-1].result()

    benchmark.pedantic(pipeline, rounds=10, warmup_rounds=1)
    benchmark.extra_info["batches_per_second"] = round(2000 / benchmark.stats.stats.median)


def test_one_durable_write(benchmark: BenchmarkFixture, store: LmdbStore) -> None:
    numbers = itertools.count()
    benchmark(lambda: store.commit(P, Batch(puts={b"%09d" % next(numbers): VALUE})))


def test_one_durable_write_of_a_mutation(benchmark: BenchmarkFixture, store: LmdbStore) -> None:
    """Six keys, an expectation, a token with a memo: about what one mutation becomes."""
    numbers = itertools.count()

    def write() -> None:
        number = next(numbers)
        puts = {b"%d/%d" % (kind, number): VALUE for kind in range(6)}
        token = Token(b"%d" % number, b"m" * 100)
        store.commit(P, Batch(puts, expect={b"0/%d" % number: 0}, token=token, note=b"actor"))

    benchmark(write)


@pytest.mark.parametrize("at", [None, 100])
def test_read_of_10_keys(benchmark: BenchmarkFixture, store: LmdbStore, at: int | None) -> None:
    keys = [b"%09d" % number for number in range(1000)]
    for _ in range(101):
        store.submit(P, Batch(puts=dict.fromkeys(keys, VALUE)))
    store.commit(P, Batch())
    starts = itertools.cycle(range(0, 990, 7))

    def read() -> None:
        start = next(starts)
        found = store.read(P, keys[start : start + 10], at=at)
        assert len(found.entries) == 10

    benchmark(read)


def test_scan_of_100_rows(benchmark: BenchmarkFixture, store: LmdbStore) -> None:
    for first in range(0, 10_000, 1000):
        puts = {b"%09d" % n: VALUE for n in range(first, first + 1000)}
        store.commit(P, Batch(puts=puts))
    starts = itertools.cycle(range(0, 9000, 97))

    def scan() -> None:
        page = store.scan(P, b"%09d" % next(starts), b"\xff", limit=100)
        assert len(page.rows) == 100

    benchmark(scan)
