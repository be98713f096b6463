"""Commits: atomic, versioned, conditional, isolated between partitions."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from pillion_storage.api import Batch, Committed, Conflict, Entry, Head, Partition
from pillion_storage.testing.base import ConformanceBase


class CommitConformance(ConformanceBase):
    """``commit``, ``read`` and ``head``."""

    def test_an_unknown_partition_is_empty_at_revision_0(self) -> None:
        read = self.store.read(self.partition, [b"a"])
        assert (read.revision, read.entries) == (0, {})
        assert self.store.head(self.partition) == Head(0, 0)
        assert self.rows() == []
        assert self.store.partitions() == []

    def test_revisions_are_gapless_and_are_the_versions_of_what_they_wrote(self) -> None:
        assert self.put(b"a", b"1") == 1
        assert self.done(Batch(puts={b"b": b"2", b"c": b"3"})) == 2
        assert self.put(b"a", b"4") == 3
        read = self.store.read(self.partition, [b"a", b"b", b"c", b"missing", b"a"])
        assert read.revision == 3
        assert read.entries == {
            b"a": Entry(3, b"4"),
            b"b": Entry(2, b"2"),
            b"c": Entry(2, b"3"),
        }

    def test_a_failed_expectation_changes_nothing_and_names_every_failure(self) -> None:
        self.put(b"a", b"1")
        self.put(b"b", b"2")
        batch = Batch(
            puts={b"a": b"x", b"new": b"x"},
            deletes=[b"b"],
            expect={b"a": 1, b"b": 1, b"new": 7, b"only-expected": 0},
        )
        outcome = self.store.commit(self.partition, batch)
        assert outcome == Conflict({b"b": 2, b"new": 0})
        assert self.store.head(self.partition).revision == 2
        assert [(row.key, row.value) for row in self.rows()] == [(b"a", b"1"), (b"b", b"2")]

    def test_a_conflict_on_an_unknown_partition_does_not_create_it(self) -> None:
        outcome = self.store.commit(self.partition, Batch(puts={b"a": b"1"}, expect={b"a": 4}))
        assert outcome == Conflict({b"a": 0})
        assert self.store.partitions() == []

    def test_met_expectations_let_the_batch_through(self) -> None:
        self.put(b"a", b"1")
        batch = Batch(puts={b"a": b"2"}, expect={b"a": 1, b"absent": 0})
        assert self.done(batch) == 2
        assert self.value(b"a") == b"2"

    def test_absent_is_expected_as_0_after_a_delete_too(self) -> None:
        self.put(b"a", b"1")
        self.delete(b"a")
        stale = self.store.commit(self.partition, Batch(puts={b"a": b"x"}, expect={b"a": 1}))
        assert stale == Conflict({b"a": 0})
        assert self.done(Batch(puts={b"a": b"2"}, expect={b"a": 0})) == 3

    def test_a_version_never_repeats(self) -> None:
        versions = set()
        for _ in range(3):
            versions.add(self.put(b"a", b"same"))
            self.delete(b"a")
        assert len(versions) == 3

    def test_an_equal_value_is_a_new_version(self) -> None:
        self.put(b"a", b"1")
        self.put(b"a", b"1")
        assert self.store.read(self.partition, [b"a"]).entries[b"a"].version == 2

    def test_an_empty_batch_and_a_delete_of_nothing_take_a_revision(self) -> None:
        assert self.done(Batch()) == 1
        assert self.delete(b"never-there") == 2
        page = self.store.changes(self.partition, 0, limit=10)
        assert [change.keys for change in page.changes] == [(), ()]

    def test_an_empty_value_is_not_an_absent_key(self) -> None:
        self.put(b"a", b"")
        assert self.value(b"a") == b""
        self.delete(b"a")
        assert self.value(b"a") is None

    def test_partitions_know_nothing_of_each_other(self) -> None:
        tricky = [
            self.partition,
            self.other,
            Partition("te", "stacme"),
            Partition("test", "acm"),
            Partition("Test", "acme"),
            Partition("test", "acme\0"),
            Partition("tést", "ácme"),
        ]
        for number, partition in enumerate(tricky):
            batch = Batch(puts={b"k": b"%d" % number}, expect={b"k": 0})
            outcome = self.store.commit(partition, batch)
            assert isinstance(outcome, Committed)
            assert outcome.revision == 1
        for number, partition in enumerate(tricky):
            page = self.store.scan(partition, b"", b"\xff", limit=10)
            assert [row.value for row in page.rows] == [b"%d" % number]
        assert self.store.partitions() == sorted(tricky)

    def test_recorded_time_increases_even_if_the_clock_does_not(self) -> None:
        times = []
        for now in (1000, 5000, 2000, 0, 6000):
            self.clock.now_us = now
            outcome = self.store.commit(self.partition, Batch(puts={b"a": b"1"}))
            assert isinstance(outcome, Committed)
            times.append(outcome.recorded_at)
        assert times == [1000, 5000, 5001, 5002, 6000]
        assert self.store.head(self.partition) == Head(5, 6000)

    def test_the_secret_is_made_once_and_is_the_partitions_own(self) -> None:
        secret = self.store.partition_secret(self.partition)
        assert len(secret) == 32
        self.put(b"a", b"1")
        assert self.store.partition_secret(self.partition) == secret
        assert self.store.partition_secret(self.other) != secret
        assert self.store.partitions() == [self.partition, self.other]
        assert self.store.head(self.other).revision == 0

    def test_counters_follow_what_is_kept(self) -> None:
        self.done(Batch(puts={b"a": b"123", b"bb": b"4"}))
        self.put(b"a", b"12345")
        self.delete(b"bb")
        stats = self.store.partition_stats(self.partition)
        each = self.store.features.value_overhead_bytes
        assert (stats.live_keys, stats.live_bytes) == (1, 6 + each)
        assert (stats.kept_versions, stats.kept_bytes) == (2, 7 + 2 * each)
        whole = self.store.stats()
        assert (whole.partitions, whole.live_keys, whole.commits) == (1, 1, 3)
