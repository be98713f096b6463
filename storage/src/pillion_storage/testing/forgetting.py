"""Trim and purge: what goes, what stays, what readers are told."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from pillion_storage.api import (
    Batch,
    Committed,
    HistoryGone,
    KeyStillLive,
    Token,
    TrimReport,
)
from pillion_storage.testing.base import ConformanceBase, raises
from pillion_storage.testing.scans import TRICKY_KEYS


class ForgettingConformance(ConformanceBase):
    """``trim`` and ``purge``."""

    def trim(self, *, history: int = 0, feed: int = 0, tokens_us: int = 0) -> TrimReport:
        return self.store.trim(
            self.partition, history_before=history, feed_before=feed, tokens_before_us=tokens_us
        )

    def memo(self, token: bytes) -> bytes | None:
        outcome = self.store.commit(self.partition, Batch(token=Token(token)))
        assert isinstance(outcome, Committed)
        assert outcome.replayed
        return outcome.memo

    def test_trimmed_history_is_refused_and_kept_history_stays_exact(self) -> None:
        for number in range(1, 9):
            self.done(Batch(puts=dict.fromkeys(TRICKY_KEYS, b"%d" % number)))
        self.done(Batch(deletes=TRICKY_KEYS))
        expected = {at: self.rows(at=at) for at in range(5, 10)}
        report = self.trim(history=5)
        assert report.versions == 4 * len(TRICKY_KEYS)
        assert {at: self.rows(at=at) for at in range(5, 10)} == expected
        for at in range(5):
            with raises(HistoryGone) as caught:
                self.value(b"a", at=at)
            assert isinstance(caught[0], HistoryGone)
            assert caught[0].oldest == 5
        assert self.store.versions(self.partition, b"a")[0].version == 5
        assert self.trim(history=5) == TrimReport(0, 0, 0, 0)
        assert self.store.partition_stats(self.partition).oldest_history == 5

    def test_trimming_is_complete_however_much_there_is(self) -> None:
        keys = [b"%04d" % n for n in range(700)]
        for _ in range(3):
            self.done(Batch(puts=dict.fromkeys(keys, b"v"), token=Token(b"only")))
            self.put(b"again", b"v")
            self.done(Batch(deletes=keys))
        self.store.commit(self.other, Batch(puts={b"theirs": b"1"}))
        self.store.commit(self.other, Batch(puts={b"theirs": b"2"}))
        head = self.store.head(self.partition).revision
        self.trim(history=head, feed=head + 1, tokens_us=10**15)
        stats = self.store.partition_stats(self.partition)
        assert (stats.kept_versions, stats.kept_bytes, stats.tokens) == (0, 0, 0)
        assert self.store.partition_stats(self.other).kept_versions == 1
        assert len(self.store.changes(self.other, 0, limit=5).changes) == 2

    def test_bounds_beyond_the_head_are_cut_to_it(self) -> None:
        self.put(b"a", b"1")
        self.put(b"a", b"2")
        assert self.trim(history=99, feed=99) == TrimReport(1, 2, 0, 0)
        assert self.value(b"a", at=2) == b"2"
        page = self.store.changes(self.partition, 2, limit=5)
        assert (page.changes, page.oldest_revision, page.head_revision) == ((), 3, 2)
        assert self.put(b"a", b"3") == 3
        assert self.store.changes(self.partition, 2, limit=5).oldest_revision == 3

    def test_a_reader_behind_the_trimmed_feed_is_told(self) -> None:
        for now in (1000, 2000, 3000, 4000):
            self.clock.now_us = now
            self.put(b"a", b"1")
        assert self.trim(feed=3).changes == 2
        with raises(HistoryGone):
            self.store.changes(self.partition, 1, limit=5)
        page = self.store.changes(self.partition, 2, limit=5)
        assert [change.revision for change in page.changes] == [3, 4]
        assert page.oldest_revision == 3
        assert self.store.revision_at(self.partition, 3500) == 3
        assert self.store.revision_at(self.partition, 2000) == 2
        with raises(HistoryGone):
            self.store.revision_at(self.partition, 1999)

    def test_old_tokens_are_forgotten_by_age(self) -> None:
        for now, token in ((10, b"old"), (20, b"new")):
            self.clock.now_us = now
            self.store.commit(self.partition, Batch(token=Token(token, b"m")))
        assert self.trim(tokens_us=20).tokens == 1
        assert self.memo(b"new") == b"m"
        outcome = self.store.commit(self.partition, Batch(token=Token(b"old")))
        assert isinstance(outcome, Committed)
        assert not outcome.replayed

    def test_an_unknown_partition_has_nothing_to_forget(self) -> None:
        assert self.trim(history=5, feed=5, tokens_us=5) == TrimReport(0, 0, 0, 0)
        assert self.store.purge(self.partition, [b"a"]) == 0
        assert self.store.partitions() == []

    def test_purge_takes_deleted_keys_out_of_the_past(self) -> None:
        for number in range(1, 4):
            self.done(Batch(puts=dict.fromkeys(TRICKY_KEYS, b"%d" % number)))
        self.delete(b"a")
        assert self.store.purge(self.partition, [b"a", b"a", b"never"]) == 3
        assert self.store.purge(self.partition, [b"a"]) == 0
        assert self.store.versions(self.partition, b"a") == []
        for at in range(5):
            assert self.value(b"a", at=at) is None
            assert all(row.key != b"a" for row in self.rows(at=at))
        assert self.value(b"a\0", at=1) == b"1"
        assert self.store.head(self.partition).revision == 4
        assert len(self.store.changes(self.partition, 0, limit=9).changes) == 4
        kept = self.store.partition_stats(self.partition).kept_versions
        assert kept == 2 * (len(TRICKY_KEYS) - 1)

    def test_purge_of_a_long_history_is_complete(self) -> None:
        for number in range(1200):
            self.store.submit(self.partition, Batch(puts={b"a": b"%d" % number}))
        self.delete(b"a")
        assert self.store.purge(self.partition, [b"a"]) == 1200
        assert self.store.partition_stats(self.partition).kept_bytes == 0

    def test_a_live_key_stops_the_whole_purge(self) -> None:
        for _ in range(2):
            self.done(Batch(puts={b"gone": b"1", b"here": b"1"}))
        self.delete(b"gone")
        with raises(KeyStillLive) as caught:
            self.store.purge(self.partition, [b"gone", b"here"])
        assert isinstance(caught[0], KeyStillLive)
        assert caught[0].keys == (b"here",)
        assert self.value(b"gone", at=1) == b"1"

    def test_purge_drops_the_memos_of_commits_that_touched_the_key(self) -> None:
        batches = {
            b"wrote": Batch(puts={b"a": b"1"}),
            b"replaced": Batch(puts={b"a": b"2"}),
            b"elsewhere": Batch(puts={b"b": b"2"}),
            b"deleted": Batch(deletes=[b"a"]),
        }
        for token, batch in batches.items():
            with_token = Batch(batch.puts, batch.deletes, token=Token(token, b"memo"))
            self.store.commit(self.partition, with_token)
        self.store.purge(self.partition, [b"a"])
        memos = {token: self.memo(token) for token in batches}
        assert memos == {
            b"wrote": None,
            b"replaced": None,
            b"elsewhere": b"memo",
            b"deleted": None,
        }

    def test_memos_go_with_the_versions_that_would_lead_purge_to_them(self) -> None:
        for token, value in ((b"first", b"1"), (b"second", b"2"), (b"third", b"3")):
            batch = Batch(puts={b"a": value}, token=Token(token, b"memo"))
            self.store.commit(self.partition, batch)
        assert self.trim(history=2) == TrimReport(1, 0, 0, 1)
        assert self.memo(b"first") is None
        assert self.memo(b"second") == b"memo"
        self.delete(b"a")
        self.store.purge(self.partition, [b"a"])
        assert self.memo(b"second") is None
        assert self.memo(b"third") is None
