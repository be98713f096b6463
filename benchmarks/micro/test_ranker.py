"""The ranker's scans beside a bare read of the same bytes, and whole searches.

Each benchmark records in `extra_info` the ratio that the design asks for; both sides are measured
in the same run, in turns, so that a busy machine slows both. Run it from the repository's root:

    pytest benchmarks/micro/test_ranker.py --benchmark-json=ranker.json
"""

import time
from collections.abc import Callable
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
import pillion_ranker as ranker
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.harness import clustered

DIMENSION = 384
NOW = 1_800_000_000_000_000
DAY = 86_400_000_000
ROUNDS = 40
CONTEXT = 77


@cache
def table_of(rows: int) -> ranker.Table:
    """A table of random unit vectors; a hundred subjects, ages up to a year."""
    rng = np.random.default_rng(7)
    table = ranker.Table(DIMENSION)
    for start in range(0, rows, 10_000):
        n = min(10_000, rows - start)
        times = NOW - rng.integers(0, 365 * DAY, n)
        zeros = np.zeros(n, np.uint64)
        table.upsert(
            ids=rng.integers(1, 256, (n, 16), dtype=np.uint8),
            created=times,
            last_used=times,
            valid_from=times,
            valid_to=np.full(n, ranker.TIME_OPEN),
            recorded=times,
            expires=np.full(n, ranker.TIME_OPEN),
            importance=rng.random(n, dtype=np.float32),
            confidence=np.ones(n, np.float32),
            kind=rng.integers(1, 6, n, dtype=np.uint8),
            status=np.full(n, ranker.STATUS_STATED, np.uint8),
            flags=np.zeros(n, np.uint16),
            subject=rng.integers(0, 100, n, dtype=np.uint64),
            context=zeros,
            attribute=zeros,
            label_offsets=np.zeros(n + 1, np.uint32),
            label_hashes=np.zeros(0, np.uint64),
            has_vector=np.ones(n, np.bool_),
            vectors=rng.standard_normal((n, DIMENSION), dtype=np.float32),
        )
    return table


@cache
def clustered_table(rows: int) -> tuple[ranker.Table, np.ndarray[Any, np.dtype[np.float32]]]:
    """A table as a server has it: clustered vectors, recent, one context. And ten queries."""
    vectors = clustered(rows + 10, DIMENSION, seed=1)
    rng = np.random.default_rng(7)
    times = NOW - np.arange(rows, 0, -1) * 60_000
    table = ranker.Table(DIMENSION)
    table.upsert(
        ids=rng.integers(1, 256, (rows, 16), dtype=np.uint8),
        **dict.fromkeys(("created", "last_used", "valid_from", "recorded"), times),
        **dict.fromkeys(("valid_to", "expires"), np.full(rows, ranker.TIME_OPEN)),
        importance=np.full(rows, 0.5, np.float32),
        confidence=np.ones(rows, np.float32),
        kind=np.full(rows, ranker.KIND_EPISODIC, np.uint8),
        status=np.full(rows, ranker.STATUS_STATED, np.uint8),
        flags=np.zeros(rows, np.uint16),
        subject=rng.integers(0, 100, rows, dtype=np.uint64),
        context=np.full(rows, CONTEXT, np.uint64),
        attribute=np.zeros(rows, np.uint64),
        label_offsets=np.zeros(rows + 1, np.uint32),
        label_hashes=np.zeros(0, np.uint64),
        has_vector=np.ones(rows, np.bool_),
        vectors=vectors[:rows],
    )
    return table, vectors[rows:]


def query() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(8).standard_normal(DIMENSION, dtype=np.float32)


def times_in_turn(*calls: Callable[[], object]) -> list[float]:
    """The best time of each, taken in turns, in seconds."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for n, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[n] = min(best[n], time.perf_counter() - start)
    return best


def record(benchmark: BenchmarkFixture, **values: object) -> None:
    benchmark.extra_info.update(cpu_path=ranker.cpu_path(), dimension=DIMENSION, **values)


@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_scan_float32(benchmark: BenchmarkFixture, rows: int) -> None:
    table, vector = table_of(rows), query()
    scan, read = times_in_turn(lambda: table.bench_scan_f32(vector), table.bench_read_f32)
    record(benchmark, rows=rows, read_ms=read * 1e3, times_bare_read=scan / read)
    benchmark(table.bench_scan_f32, vector)


@pytest.mark.parametrize("rows", [10_000, 100_000])
def test_scan_int8(benchmark: BenchmarkFixture, rows: int) -> None:
    table, vector = table_of(rows), query()
    scan, read, float32 = times_in_turn(
        lambda: table.bench_scan_i8(vector),
        table.bench_read_i8,
        lambda: table.bench_scan_f32(vector),
    )
    record(
        benchmark,
        rows=rows,
        read_ms=read * 1e3,
        times_bare_read=scan / read,
        times_faster_than_float32=float32 / scan,
    )
    benchmark(table.bench_scan_i8, vector)


FILTERS = {
    "all": ranker.Filter(),
    "one_subject": ranker.Filter(subjects=[3]),
    "valid_now": ranker.Filter(valid_at=NOW, not_expired_at=NOW),
}


@pytest.mark.parametrize("rows", [10_000, 100_000])
@pytest.mark.parametrize("admitting", FILTERS)
def test_search(benchmark: BenchmarkFixture, rows: int, admitting: str) -> None:
    table = table_of(rows)
    asked: dict[str, Any] = {
        "query": query(),
        "now": NOW,
        "profile": ranker.Profile(),
        "filter": FILTERS[admitting],
        "k": 10,
    }
    pruned, exact = times_in_turn(
        lambda: table.search(**asked), lambda: table.search(**asked, exact_float=True)
    )
    hits = table.search(**asked)
    record(
        benchmark,
        rows=rows,
        admitted=hits.admitted,
        rescored=hits.rescored,
        times_faster_than_float32=exact / pruned,
    )
    benchmark(table.search, **asked)


@pytest.mark.parametrize("rows", [10_000, 100_000])
@pytest.mark.parametrize("k", [1, 10, 50])
def test_plain_search(benchmark: BenchmarkFixture, rows: int, k: int) -> None:
    """What a server asks for when a client gives no filter, beside the bare int8 scan."""
    table, queries = clustered_table(rows)
    asked: dict[str, Any] = {
        "now": NOW,
        "profile": ranker.Profile(),
        "filter": ranker.Filter(contexts=[CONTEXT], valid_at=NOW, not_expired_at=NOW),
        "k": k,
    }
    turn = cycle(queries)
    search, scan = times_in_turn(
        lambda: table.search(query=next(turn), **asked), lambda: table.bench_scan_i8(queries[0])
    )
    record(benchmark, rows=rows, k=k, scan_ms=scan * 1e3, times_bare_scan=search / scan)
    benchmark(lambda: table.search(query=next(turn), **asked).rows())


@pytest.mark.parametrize("rows", [10_000, 100_000])
@pytest.mark.parametrize("nearest", [64, 256])
def test_certified(benchmark: BenchmarkFixture, rows: int, nearest: int) -> None:
    """What scoring an index's nearest and whatever else could win costs, beside a whole search."""
    table, vector = table_of(rows), query()
    by_cosine = ranker.Profile(w_recency=0.0, w_importance=0.0, relevance_floor=-1.0)
    asked: dict[str, Any] = {
        "query": vector,
        "now": NOW,
        "profile": ranker.Profile(),
        "filter": ranker.Filter(),
        "k": 10,
    }
    near = table.search(**asked | {"profile": by_cosine, "k": nearest})
    proposal: dict[str, Any] = {
        "slots": near.slots,
        "horizon": float(near.cosine[-1]),
        "rows_max": rows,
    }
    certified, scan = times_in_turn(
        lambda: table.certify(**asked, **proposal), lambda: table.search(**asked)
    )
    hits = table.certify(**asked, **proposal)
    assert hits.rows() == table.search(**asked).rows()
    record(
        benchmark,
        rows=rows,
        nearest=nearest,
        examined=hits.examined,
        times_faster_than_scan=scan / certified,
    )
    benchmark(lambda: table.certify(**asked, **proposal))


def test_memory(benchmark: BenchmarkFixture) -> None:
    table = table_of(100_000)
    beyond_vectors = table.memory_bytes() / len(table) - DIMENSION * 5
    record(benchmark, rows=len(table), bytes_per_row_beyond_vectors=beyond_vectors)
    benchmark(table.memory_bytes)
    assert beyond_vectors < 160
