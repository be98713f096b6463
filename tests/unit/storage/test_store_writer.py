"""The writer: groups, a full queue, jobs that fail, an engine that fails."""

from __future__ import annotations

import errno
import logging
import threading
from dataclasses import replace

import lmdb
import pytest
from pillion_storage.api import (
    Batch,
    Committed,
    Partition,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    StoreSettings,
)
from pillion_storage.lmdb import open_store, writer
from pillion_storage.verify import verify

P = Partition("n", "t")
ONE = Batch(puts={b"a": b"1"})


def test_what_waits_together_is_committed_together(store, held):
    with held():
        futures = [store.submit(P, ONE) for _ in range(100)]
        before = store.stats().groups
    assert [future.result(60.0).revision for future in futures] == list(range(1, 101))
    assert store.stats().groups - before == 2  # the holding job, then all hundred
    assert store.stats().commits == 100


def test_a_group_is_bounded_in_count_and_bytes(store, held):
    with held():
        many = [store.submit(P, ONE) for _ in range(writer._GROUP_JOBS_MAX + 1)]
        before = store.stats().groups
    many[-1].result(60.0)
    assert store.stats().groups - before == 3
    big = Batch(puts={b"%d" % n: b"v" * 65_000 for n in range(60)})
    per_group = writer._GROUP_BYTES_MAX // (65_000 * 60)
    with held():
        large = [store.submit(P, big) for _ in range(per_group * 2)]
        before = store.stats().groups
    assert all(isinstance(future.result(60.0), Committed) for future in large)
    assert store.stats().groups - before == 3


def test_a_full_queue_refuses_at_once_and_takes_more_later(settings):
    store = open_store(replace(settings, queue_batches_max=3))
    try:
        blocker = block_writer(store)
        futures = [store.submit(P, ONE) for _ in range(3)]
        with pytest.raises(StoreBusy, match="3 batches are waiting"):
            store.submit(P, ONE)
        blocker()
        assert [future.result(60.0).revision for future in futures] == [1, 2, 3]
        assert store.commit(P, ONE).revision == 4
    finally:
        store.close()


def test_the_queue_is_bounded_in_bytes_but_takes_one_of_any_size(settings):
    store = open_store(replace(settings, queue_bytes_max=1000))
    try:
        blocker = block_writer(store)
        large = store.submit(P, Batch(puts={b"a": b"v" * 5000}))
        with pytest.raises(StoreBusy):
            store.submit(P, ONE)
        blocker()
        assert large.result(60.0).revision == 1
        assert store.commit(P, ONE).revision == 2
    finally:
        store.close()


def block_writer(store):
    """Hold the writer inside a job until the returned function is called."""
    entered, release = threading.Event(), threading.Event()
    store._writer.submit(lambda _: (entered.set(), release.wait(60.0)))
    entered.wait(60.0)
    return release.set


def test_a_cancelled_batch_does_nothing(store, held):
    with held():
        first = store.submit(P, ONE)
        cancelled = store.submit(P, Batch(puts={b"cancelled": b"1"}))
        assert cancelled.cancel()
    assert first.result(60.0).revision == 1
    assert store.commit(P, ONE).revision == 2
    assert b"cancelled" not in store.read(P, [b"cancelled"]).entries


def test_a_job_that_breaks_half_way_takes_nothing_with_it(store, held, caplog):
    def poison(unit):
        head = unit.head(P) or unit.create(P)
        head.revision += 100
        unit.txn.put(head.prefix + b"half", b"there", db=unit.databases.current)
        raise ZeroDivisionError

    with caplog.at_level(logging.CRITICAL), held():
        before = store.submit(P, ONE)
        poisoned = store._writer.submit(poison)
        after = store.submit(P, ONE)
    assert before.result(60.0).revision == 1
    with pytest.raises(ZeroDivisionError):
        poisoned.result(60.0)
    assert after.result(60.0).revision == 2
    assert store.commit(P, ONE).revision == 3
    store.close()
    assert verify(store._settings.directory).clean


IO_ERROR = lmdb.Error("fsync")
IO_ERROR.code = errno.EIO


@pytest.mark.parametrize(
    "error",
    [IO_ERROR, lmdb.PanicError("begin"), lmdb.CorruptedError("get")],
    ids=lambda error: type(error).__name__,
)
def test_an_engine_that_fails_answers_everybody_and_takes_no_more(store, held, caplog, error):
    store.commit(P, ONE)

    def fail(_unit):
        raise error

    with caplog.at_level(logging.CRITICAL + 1), held():
        futures = [store.submit(P, ONE), store._writer.submit(fail), store.submit(P, ONE)]
    for future in futures:
        with pytest.raises(StoreFailed, match="reopen the store"):
            future.result(60.0)
    with pytest.raises(StoreFailed):
        store.commit(P, ONE)
    with pytest.raises(StoreFailed):
        store.probe()
    assert store.read(P, [b"a"]).revision == 1
    store.close()
    with pytest.raises(StoreClosed):
        store.read(P, [b"a"])


def test_a_group_of_conflicts_writes_nothing(store, held):
    store.commit(P, ONE)
    before = store._environment._env.info()["last_txnid"]
    outcome = store.commit(P, replace(ONE, expect={b"a": 9}))
    assert not isinstance(outcome, Committed)
    assert store._environment._env.info()["last_txnid"] == before


def test_every_commit_is_flushed(store):
    flags = store._environment._env.flags()
    assert flags["sync"]
    assert flags["metasync"]
    assert not flags["writemap"]
    assert not flags["map_async"]


def test_the_head_of_a_partition_in_use_costs_no_read(store, monkeypatch):
    store.commit(P, ONE)
    monkeypatch.setattr(store._environment, "snapshot", None)
    assert store.head(P).revision == 1


def test_the_defaults_are_sane():
    settings = StoreSettings()
    assert settings.size_bytes_initial <= settings.size_bytes_max
    assert abs(settings.clock_us() - settings.clock_us()) < 10**9
    assert len(settings.random_bytes(32)) == 32
