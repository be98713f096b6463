"""History: reads at every kept revision are exact, deletes and re-creates included."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

import random

from pillion_storage.api import (
    Batch,
    FutureRevision,
    Head,
    HistoryGone,
    KeyVersion,
    NotSupported,
)
from pillion_storage.testing.base import ConformanceBase, raises
from pillion_storage.testing.scans import TRICKY_KEYS


class HistoryConformance(ConformanceBase):
    """``read`` and ``scan`` with ``at``, ``versions``, ``revision_at``."""

    def write_history(self) -> dict[int, dict[bytes, bytes]]:
        """Commit puts and deletes of tricky keys; return the state at each revision."""
        seed = 20_261_130
        choose = random.Random(seed)  # noqa: S311 -- test data
        states: dict[int, dict[bytes, bytes]] = {0: {}}
        for revision in range(1, 61):
            state = dict(states[revision - 1])
            keys = choose.sample(TRICKY_KEYS, 4)
            puts = dict.fromkeys(keys[:3], b"%d" % revision)
            state.update(puts)
            state.pop(keys[3], None)
            self.done(Batch(puts=puts, deletes=[keys[3]]))
            states[revision] = state
        return states

    def test_without_history_older_reads_are_refused(self) -> None:
        self.put(b"a", b"1")
        self.put(b"a", b"2")
        if self.store.features.history:
            assert self.value(b"a", at=1) == b"1"
        else:
            with raises(NotSupported):
                self.value(b"a", at=1)

    def test_reads_and_scans_at_every_revision_are_exact(self) -> None:
        if not self.store.features.history:
            return
        states = self.write_history()
        for revision, state in states.items():
            read = self.store.read(self.partition, TRICKY_KEYS, at=revision)
            assert read.revision == revision
            assert {key: entry.value for key, entry in read.entries.items()} == state
            for reverse in (False, True):
                rows = self.rows(at=revision, reverse=reverse)
                assert [row.key for row in rows] == sorted(state, reverse=reverse)
                assert {row.key: row.value for row in rows} == state
            assert all(entry.version <= revision for entry in read.entries.values())

    def test_the_past_does_not_change(self) -> None:
        if not self.store.features.history:
            return
        self.done(Batch(puts={b"a": b"1", b"b": b"1"}))
        before = self.rows(at=1)
        self.done(Batch(puts={b"a": b"2"}, deletes=[b"b"]))
        self.delete(b"a")
        self.put(b"b", b"3")
        assert self.rows(at=1) == before

    def test_versions_tell_the_whole_life_of_a_key(self) -> None:
        if not self.store.features.history:
            return
        self.put(b"a", b"1")
        self.put(b"a\0", b"another key")
        self.put(b"a", b"2")
        self.delete(b"a")
        self.put(b"unrelated", b"x")
        self.put(b"a", b"3")
        everything = [
            KeyVersion(1, 3, b"1"),
            KeyVersion(3, 4, b"2"),
            KeyVersion(6, None, b"3"),
        ]
        assert self.store.versions(self.partition, b"a") == everything
        assert self.store.versions(self.partition, b"a", limit=2) == everything[1:]
        assert self.store.versions(self.partition, b"a", before=6, limit=1) == everything[1:2]
        assert self.store.versions(self.partition, b"a", before=1) == []
        assert self.store.versions(self.partition, b"never") == []
        assert self.store.versions(self.other, b"a") == []

    def test_a_revision_above_the_head_is_refused(self) -> None:
        self.put(b"a", b"1")
        with raises(FutureRevision):
            self.value(b"a", at=2)
        with raises(FutureRevision):
            self.rows(at=2)
        with raises(FutureRevision):
            self.store.read(self.other, [b"a"], at=1)

    def test_a_negative_revision_is_refused(self) -> None:
        self.put(b"a", b"1")
        with raises(HistoryGone):
            self.value(b"a", at=-1)

    def test_revision_at_is_final_whatever_the_clock_does(self) -> None:
        self.clock.now_us = 5000
        self.put(b"a", b"1")
        assert self.store.revision_at(self.partition, 5000) == 1
        self.put(b"a", b"2")  # in the same microsecond
        assert self.store.revision_at(self.partition, 5000) == 1
        self.clock.now_us = 9000
        assert self.store.revision_at(self.partition, 8000) == 2
        self.clock.now_us = 6000  # set back
        self.put(b"a", b"3")
        assert self.store.revision_at(self.partition, 8000) == 2
        assert self.store.head(self.partition) == Head(3, 8001)
        assert self.store.revision_at(self.partition, 8001) == 3
        self.put(b"a", b"4")
        assert self.store.revision_at(self.partition, 8001) == 3

    def test_asking_about_the_future_does_not_move_recorded_time(self) -> None:
        self.clock.now_us = 1000
        self.put(b"a", b"1")
        assert self.store.revision_at(self.partition, 10**15) == 1
        self.clock.now_us = 2000
        self.put(b"a", b"2")
        assert self.store.head(self.partition) == Head(2, 2000)

    def test_revision_at_finds_the_last_one_recorded_by_then(self) -> None:
        self.clock.now_us = 0
        assert self.store.revision_at(self.partition, 10**15) == 0
        for now in (1000, 2000, 2000, 2000, 3000):
            self.clock.now_us = now
            self.put(b"a", b"1")
        expected = {0: 0, 999: 0, 1000: 1, 1999: 1, 2000: 2, 2001: 3, 2002: 4, 2999: 4, 3000: 5}
        found = {now: self.store.revision_at(self.partition, now) for now in expected}
        assert found == expected
