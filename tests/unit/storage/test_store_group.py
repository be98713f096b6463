"""One group: its batches see each other as if each had committed alone, and when it is answered."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from functools import partial

import pytest
from pillion_storage.api import (
    Batch,
    Committed,
    Conflict,
    KeyStillLive,
    Partition,
    StoreFailed,
    StoreFull,
    StoreSettings,
    Token,
)
from pillion_storage.lmdb import open_store, writer
from pillion_storage.lmdb.upkeep import TrimBounds, purge_step, trim_step
from pillion_storage.ram import open_store as open_ram_store
from pillion_storage.verify import verify

P = Partition("n", "t")


def put(value, **more):
    return Batch(puts={b"a": value}, **more)


def delete(**more):
    return Batch(deletes=[b"a"], **more)


GROUPS = {
    "put, put": [put(b"1"), put(b"2"), put(b"2")],
    "put, delete, put": [put(b"1"), delete(), put(b"3"), delete(), delete()],
    "versions within the group": [
        put(b"1", expect={b"a": 0}),
        delete(expect={b"a": 1}),
        put(b"3", expect={b"a": 0}),
        put(b"4", expect={b"a": 3}),
    ],
    "a conflict in the middle": [
        put(b"1"),
        put(b"no", expect={b"a": 0}, token=Token(b"lost", b"")),
        put(b"2", expect={b"a": 1}),
        put(b"3", token=Token(b"lost", b"now")),
    ],
    "a token twice": [
        put(b"1", token=Token(b"once", b"memo")),
        put(b"2"),
        put(b"3", expect={b"a": 9}, token=Token(b"once", b"other")),
        delete(token=Token(b"twice", b"")),
        delete(token=Token(b"twice", b"")),
    ],
    "many keys of one batch": [
        Batch(puts={b"%d" % n: b"old" for n in range(20)}),
        Batch(puts={b"%d" % n: b"new" for n in range(0, 20, 2)}, deletes=[b"1", b"3", b"x"]),
        Batch(deletes=[b"%d" % n for n in range(20)]),
    ],
}


@pytest.mark.parametrize("before", [[], [put(b"0"), delete(), put(b"00")]], ids=["new", "used"])
@pytest.mark.parametrize("batches", GROUPS.values(), ids=GROUPS.keys())
def test_a_group_does_what_its_batches_do_one_by_one(store, settings, held, before, batches):
    alone = open_ram_store(StoreSettings())
    for batch in before:
        assert same(store.commit(P, batch)) == same(alone.commit(P, batch))
    with held():
        futures = [store.submit(P, batch) for batch in batches]
        groups = store.stats().groups
    together = [same(future.result(60.0)) for future in futures]
    assert together == [same(alone.commit(P, batch)) for batch in batches]
    assert store.stats().groups - groups == 2  # the holding job, then all of them
    assert store.partition_stats(P) == alone.partition_stats(P)
    for revision in range(alone.head(P).revision + 1):
        assert store.scan(P, b"", b"\xff", limit=99, at=revision) == alone.scan(
            P, b"", b"\xff", limit=99, at=revision
        )
    store.close()
    assert verify(settings.directory).clean


def same(outcome):
    """What must be equal: all but the time."""
    if isinstance(outcome, Conflict):
        return outcome
    return outcome.revision, outcome.replayed, outcome.memo


def test_purge_and_trim_see_the_commits_of_their_group(store, settings, held):
    purge = partial(purge_step, partition=P, keys=[b"a"])
    trim = partial(trim_step, partition=P, bounds=TrimBounds(7, 4, 0))
    other = Batch(puts={b"b": b"1"})
    with held():
        first = [store.submit(P, batch) for batch in (put(b"1"), put(b"2"), other)]
        refused = store._writer.submit(purge, frees_space=True)
        second = [store.submit(P, batch) for batch in (delete(), other)]
        purged = store._writer.submit(purge, frees_space=True)
        third = [store.submit(P, batch) for batch in (put(b"6"), put(b"7"))]
        trimmed = store._writer.submit(trim, frees_space=True)
        last = store.submit(P, put(b"8", expect={b"a": 7}))
        groups = store.stats().groups
    revisions = [future.result(60.0).revision for future in (*first, *second, *third, last)]
    assert revisions == list(range(1, 9))
    with pytest.raises(KeyStillLive):
        refused.result(60.0)
    assert purged.result() == (2, True)
    report, done = trimmed.result()
    # The first value of b, ended by 5, and that of a, ended by 7.
    assert (report.versions, report.changes, done) == (2, 3, True)
    assert store.stats().groups - groups == 2
    assert [version.value for version in store.versions(P, b"a")] == [b"7", b"8"]
    assert [change.revision for change in store.changes(P, 3, limit=9).changes] == [4, 5, 6, 7, 8]
    store.close()
    assert verify(settings.directory).clean


def test_a_batch_that_does_not_fit_doubles_nothing_of_its_group(settings):
    store = open_store(replace(settings, size_bytes_max=1 << 20))
    release = threading.Event()
    too_much = Batch(puts={b"%d" % n: b"v" * 60_000 for n in range(40)})
    store._writer.submit(lambda _: release.wait(60.0))
    before = store.submit(P, put(b"1", token=Token(b"before", b"memo")))
    full = store.submit(P, too_much)
    after = store.submit(P, put(b"2", expect={b"a": 1}, token=Token(b"after", b"")))
    release.set()
    assert before.result(60.0).revision == 1
    assert not before.result().replayed
    with pytest.raises(StoreFull):
        full.result(60.0)
    assert after.result(60.0).revision == 2
    assert store.stats().commits == 2
    assert store.partition_stats(P).kept_versions == 1
    store.close()
    assert verify(settings.directory).clean


@pytest.fixture
def one_by_one(monkeypatch):
    """Let each job be a group of its own, and no clock cut an answer's wait short."""
    monkeypatch.setattr(writer, "_GROUP_JOBS_MAX", 1)
    monkeypatch.setattr(writer, "_ANSWER_DELAY_SECONDS", 3600.0)


def answered_during_the_next(store, held):
    with held():
        first = store.submit(P, put(b"1"))
        seen = store._writer.submit(lambda _: first.done())
    assert first.result(60.0).revision == 1
    return seen.result(60.0)


@pytest.mark.usefixtures("one_by_one")
def test_an_answer_waits_while_the_next_group_is_applied(store, held):
    assert not answered_during_the_next(store, held)


@pytest.mark.usefixtures("one_by_one")
def test_an_answer_that_waited_long_enough_comes_before_the_next_job(store, held, monkeypatch):
    monkeypatch.setattr(writer, "_ANSWER_DELAY_SECONDS", -1.0)
    assert answered_during_the_next(store, held)


@pytest.mark.usefixtures("one_by_one")
def test_what_is_answered_can_be_read(store, held):
    seen = []
    with held():
        first = store.submit(P, put(b"1"))
        first.add_done_callback(lambda _: seen.append(store.read(P, [b"a"]).entries[b"a"].value))
        second = store.submit(P, put(b"2"))
    assert second.result(60.0).revision == 2
    assert seen == [b"1"]  # not yet what the group has that is being flushed


class Bug(BaseException):
    """Nothing that the writer reckons with."""


@pytest.mark.usefixtures("one_by_one")
@pytest.mark.parametrize(("error", "told"), [(ZeroDivisionError,) * 2, (Bug, StoreFailed)])
def test_a_group_that_fails_does_not_keep_the_answers_of_the_one_before(
    store, held, caplog, error, told
):
    seen = []

    def fail(_unit):
        raise error

    with caplog.at_level(logging.CRITICAL + 1), held():
        first = store.submit(P, put(b"1"))
        failing = store._writer.submit(fail)
        failing.add_done_callback(lambda _: seen.append(first.done()))
    assert isinstance(first.result(60.0), Committed)
    with pytest.raises(told):
        failing.result(60.0)
    assert seen == [True]


def test_trouble_after_the_commit_does_not_apply_a_batch_twice(store, monkeypatch, caplog):
    def fail(_partitions):
        raise ZeroDivisionError

    monkeypatch.setattr(store._writer, "_on_commit", fail)
    with caplog.at_level(logging.CRITICAL + 1):
        outcome = store.commit(P, put(b"1"))
    assert isinstance(outcome, Committed)
    assert (outcome.revision, store.head(P).revision) == (1, 1)
    assert len(store.versions(P, b"a")) == 1
