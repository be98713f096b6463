"""Scans: byte order, half-open ranges, pages, keys that are prefixes of one another."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from pillion_storage.api import KEY_SPACE_END, Batch, Row
from pillion_storage.testing.base import ConformanceBase

# Everything that sorts badly when a key is followed by something else in a bigger key.
_LONG = 480
TRICKY_KEYS = (
    b"\0",
    b"\0\0",
    b"\0" * _LONG,
    b"\0" * (_LONG - 1),
    b"a",
    b"a\0",
    b"a\0\0",
    b"a\0\0\0\0\0\0\0\0",
    b"a\0\xff",
    b"a\x01",
    b"a" + b"\0" * (_LONG - 1),
    b"a" + b"\0\xff" * 239,
    b"a\xff",
    b"a\xff\xff\xff\xff\xff\xff\xff\xff",
    b"b",
    b"\xff",
    b"\xff\xff",
    b"\xff" * (_LONG - 1),
    b"\xff" * _LONG,
)


class ScanConformance(ConformanceBase):
    """``scan`` and ``export``."""

    def fill(self) -> None:
        self.done(Batch(puts={key: key[-3:] for key in TRICKY_KEYS}))

    def test_rows_come_in_byte_order_whatever_the_page_size(self) -> None:
        self.fill()
        expected = [Row(key, 1, key[-3:]) for key in sorted(TRICKY_KEYS)]
        for limit in (1, 2, 5, len(TRICKY_KEYS), 1000):
            assert self.rows(limit=limit) == expected
            assert self.rows(limit=limit, reverse=True) == expected[::-1]

    def test_next_start_is_none_exactly_at_the_end(self) -> None:
        self.done(Batch(puts={b"a": b"", b"b": b"", b"c": b""}))
        first = self.store.scan(self.partition, b"", KEY_SPACE_END, limit=2)
        assert [row.key for row in first.rows] == [b"a", b"b"]
        assert first.next_start is not None
        last = self.store.scan(self.partition, first.next_start, KEY_SPACE_END, limit=1)
        assert ([row.key for row in last.rows], last.next_start) == ([b"c"], None)
        whole = self.store.scan(self.partition, b"", KEY_SPACE_END, limit=3)
        assert whole.next_start is None

    def test_ranges_are_half_open(self) -> None:
        self.fill()
        keys = sorted(TRICKY_KEYS)
        for low in (b"", *keys):
            for high in (*keys, KEY_SPACE_END):
                if low > high:
                    continue
                expected = [key for key in keys if low <= key < high]
                for reverse in (False, True):
                    page = self.store.scan(
                        self.partition, low, high, limit=100, reverse=reverse, keys_only=True
                    )
                    found = [row.key for row in page.rows]
                    assert found == (expected[::-1] if reverse else expected)

    def test_a_neighbouring_partition_never_shows(self) -> None:
        neighbour = Batch(puts=dict.fromkeys(TRICKY_KEYS, b"theirs"))
        self.store.commit(self.other, neighbour)
        self.fill()
        self.store.commit(self.other, neighbour)
        assert all(row.value != b"theirs" for row in self.rows())
        assert len(self.rows(reverse=True)) == len(TRICKY_KEYS)

    def test_keys_only_rows_have_versions_but_no_values(self) -> None:
        self.put(b"a", b"1")
        page = self.store.scan(self.partition, b"", KEY_SPACE_END, limit=5, keys_only=True)
        assert page.rows == (Row(b"a", 1, b""),)

    def test_a_page_ends_early_rather_than_growing_beyond_its_bytes(self) -> None:
        features = self.store.features
        value = b"v" * features.value_bytes_max
        count = features.page_bytes_max // features.value_bytes_max + 5
        for number in range(count):
            self.put(b"%04d" % number, value)
        page = self.store.scan(self.partition, b"", KEY_SPACE_END, limit=count)
        size = sum(len(row.key) + len(row.value) for row in page.rows)
        assert 0 < size <= features.page_bytes_max
        assert page.next_start is not None
        assert len(self.rows(limit=count)) == count
        assert len(self.rows(limit=count, reverse=True)) == count

    def test_pages_of_one_revision_ignore_later_commits(self) -> None:
        self.fill()
        page = self.store.scan(self.partition, b"", KEY_SPACE_END, limit=2)
        self.done(Batch(puts={b"a": b"new", b"between": b"new"}, deletes=[b"b"]))
        rows = list(page.rows)
        while page.next_start is not None:
            page = self.store.scan(
                self.partition, page.next_start, KEY_SPACE_END, limit=2, at=page.revision
            )
            rows += page.rows
        assert rows == [Row(key, 1, key[-3:]) for key in sorted(TRICKY_KEYS)]

    def test_export_is_of_one_revision_while_writers_go_on(self) -> None:
        count = 2500  # several pages
        for first in range(0, count, 500):
            puts = {b"%05d" % n: b"old" for n in range(first, first + 500)}
            self.done(Batch(puts=puts))
        rows: list[Row] = []
        for row in self.store.export(self.partition):
            if not rows:
                self.done(Batch(puts={b"%05d" % (count - 1): b"new", b"zzz": b"new"}))
            rows.append(row)
        assert [row.key for row in rows] == [b"%05d" % n for n in range(count)]
        assert {row.value for row in rows} == {b"old"}

    def test_an_empty_range_has_no_rows(self) -> None:
        self.put(b"a", b"1")
        page = self.store.scan(self.partition, b"a", b"a", limit=5)
        assert (page.rows, page.next_start) == ((), None)
