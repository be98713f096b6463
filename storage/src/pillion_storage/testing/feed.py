"""The change feed: gapless, in order, resumable; and ``wait``."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pillion_storage.api import Batch, Change, ChangeKind, FutureRevision
from pillion_storage.testing.base import ConformanceBase, raises


class FeedConformance(ConformanceBase):
    """``changes`` and ``wait``."""

    def test_each_commit_is_one_change_in_order(self) -> None:
        self.clock.now_us = 5
        self.done(Batch(puts={b"b": b"1", b"a": b"1"}, note=b"who"))
        self.clock.now_us = 9
        self.done(Batch(puts={b"c": b"1"}, deletes=[b"b", b"absent"]))
        page = self.store.changes(self.partition, 0, limit=10)
        assert page.changes == (
            Change(1, 5, ((b"a", ChangeKind.PUT), (b"b", ChangeKind.PUT)), b"who"),
            Change(2, 9, ((b"b", ChangeKind.DELETE), (b"c", ChangeKind.PUT)), b""),
        )
        assert (page.oldest_revision, page.head_revision) == (1, 2)

    def test_a_reader_resumes_where_it_stopped(self) -> None:
        for number in range(10):
            self.put(b"%d" % number, b"")
            self.store.commit(self.other, Batch(puts={b"theirs": b""}))
        seen: list[int] = []
        after = 0
        while True:
            page = self.store.changes(self.partition, after, limit=3)
            if not page.changes:
                break
            seen += [change.revision for change in page.changes]
            assert all(key != b"theirs" for c in page.changes for key, _ in c.keys)
            after = seen[-1]
        assert seen == list(range(1, 11))
        assert self.store.changes(self.partition, 10, limit=3).changes == ()

    def test_an_unknown_partition_has_an_empty_feed(self) -> None:
        page = self.store.changes(self.partition, 0, limit=1)
        assert (page.changes, page.oldest_revision, page.head_revision) == ((), 1, 0)

    def test_a_cursor_from_the_future_is_refused(self) -> None:
        self.put(b"a", b"")
        with raises(FutureRevision):
            self.store.changes(self.partition, 2, limit=1)

    def test_wait_returns_at_once_when_there_is_something(self) -> None:
        self.put(b"a", b"")
        assert self.store.wait(self.partition, 0, 0.0)
        assert self.store.wait(self.partition, 0, 60.0)

    def test_wait_times_out_when_there_is_nothing(self) -> None:
        assert not self.store.wait(self.partition, 0, 0.0)
        self.put(b"a", b"")
        assert not self.store.wait(self.partition, 1, 0.01)

    def test_wait_is_woken_by_a_commit_to_its_partition(self) -> None:
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(self.store.wait, self.partition, 2, 60.0) for _ in range(2)]
            for _ in range(3):
                self.store.commit(self.other, Batch())
                self.put(b"a", b"")
            assert all(future.result(60.0) for future in waiting)
