"""Looking: what the calls say, of one moment, whatever is committed meanwhile."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

import threading
from functools import partial

from pillion_storage.api import Batch, Entry, HeadView, InvalidBatch, InvalidRange, Row, StoreClosed
from pillion_storage.testing.base import ConformanceBase, raises
from pillion_storage.testing.scans import TRICKY_KEYS

Seen = tuple[int, Entry | None, Row | None]


def _see(view: HeadView) -> Seen:
    return view.revision, view.get(b"a"), view.last(b"", b"z")


def _get(view: HeadView, *, key: bytes) -> Entry | None:
    return view.get(key)


def _last(view: HeadView, *, start: bytes, end: bytes) -> Row | None:
    return view.last(start, end)


class ViewConformance(ConformanceBase):
    """``look``."""

    def test_a_look_says_what_read_and_scan_say(self) -> None:
        for key in TRICKY_KEYS:
            self.put(key, key[:3])
        self.delete(TRICKY_KEYS[3])
        self.put(TRICKY_KEYS[4], b"again")
        bounds = sorted({b"", *TRICKY_KEYS, *(key + b"\0" for key in TRICKY_KEYS)})
        ranges = [(start, end) for start in bounds for end in bounds if start <= end]

        def everything(view: HeadView) -> tuple[int, list[Entry | None], list[Row | None]]:
            return (
                view.revision,
                [view.get(key) for key in TRICKY_KEYS],
                [view.last(start, end) for start, end in ranges],
            )

        revision, entries, rows = self.store.look(self.partition, everything)
        found = self.store.read(self.partition, TRICKY_KEYS)
        assert revision == found.revision
        assert entries == [found.entries.get(key) for key in TRICKY_KEYS]
        for (start, end), row in zip(ranges, rows, strict=True):
            page = self.store.scan(self.partition, start, end, limit=1, reverse=True)
            assert row == (page.rows[0] if page.rows else None)

    def test_a_look_stays_at_its_moment(self) -> None:
        self.put(b"a", b"1")
        begun, written = threading.Event(), threading.Event()

        def write() -> None:
            begun.wait()
            self.done(Batch(puts={b"a": b"2", b"b": b"3"}))
            written.set()

        def look(view: HeadView) -> Seen:
            begun.set()
            written.wait(0.05)  # a store may make writers wait instead
            return _see(view)

        writer = threading.Thread(target=write)
        writer.start()
        assert self.store.look(self.partition, look) == (
            1,
            Entry(1, b"1"),
            Row(b"a", 1, b"1"),
        )
        writer.join()
        assert self.store.look(self.partition, _see) == (2, Entry(2, b"2"), Row(b"b", 2, b"3"))

    def test_a_look_at_nothing_sees_nothing_of_others(self) -> None:
        self.put(b"a", b"1")
        assert self.store.look(self.other, _see) == (0, None, None)
        assert self.store.partitions() == [self.partition]
        self.store.partition_secret(self.other)
        assert self.store.look(self.other, _see) == (0, None, None)

    def test_a_look_refuses_what_the_calls_refuse(self) -> None:
        self.put(b"a", b"1")
        for key in (b"", b"k" * 481):
            with raises(InvalidBatch):
                self.store.look(self.partition, partial(_get, key=key))
        for start, end in ((b"b", b"a"), (b"", b"k" * 482)):
            with raises(InvalidRange):
                self.store.look(self.partition, partial(_last, start=start, end=end))

    def test_a_look_that_fails_is_over(self) -> None:
        self.put(b"a", b"1")

        def fail(_: HeadView) -> None:
            raise ZeroDivisionError

        for _ in range(300):  # more than an engine has places for readers, or one lock
            try:
                self.store.look(self.partition, fail)
            except ZeroDivisionError:
                continue
        assert self.put(b"b", b"2") == 2

    def test_a_closed_store_is_not_looked_at(self) -> None:
        self.store.close()
        with raises(StoreClosed):
            self.store.look(self.partition, _see)
