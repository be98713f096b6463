"""Bounds: what fits exactly is taken, one more is refused, and nothing is done then."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    BatchTooLarge,
    InvalidBatch,
    InvalidRange,
    KeyTooLong,
    Partition,
    StoreError,
    Token,
    ValueTooLong,
)
from pillion_storage.testing.base import ConformanceBase, raises


class BoundsConformance(ConformanceBase):
    """The bounds in ``Features``."""

    def test_the_largest_of_everything_fits(self) -> None:
        features = self.store.features
        key = b"k" * features.key_bytes_max
        value = b"v" * features.value_bytes_max
        batch = Batch(
            puts={key: value},
            token=Token(b"t" * features.token_bytes_max, b"m" * features.memo_bytes_max),
            note=b"n" * features.note_bytes_max,
        )
        self.done(batch)
        self.done(Batch(puts={key: b""}))
        assert self.value(key, at=1) == value
        names = Partition("n" * features.namespace_bytes_max, "t" * features.tenant_bytes_max)
        self.store.commit(names, Batch(puts={key: value}))
        assert self.store.partitions() == sorted([self.partition, names])

    def test_a_batch_of_the_most_operations_fits(self) -> None:
        most = self.store.features.batch_ops_max
        keys = [b"%06d" % number for number in range(most)]
        self.done(Batch(puts=dict.fromkeys(keys, b""), expect=dict.fromkeys(keys, 0)))
        self.done(Batch(deletes=keys, expect=dict.fromkeys(keys, 1)))
        change = self.store.changes(self.partition, 1, limit=1).changes[0]
        assert [key for key, _ in change.keys] == keys

    def test_a_batch_of_the_most_bytes_fits_and_one_more_does_not(self) -> None:
        features = self.store.features
        value = b"v" * features.value_bytes_max
        puts: dict[bytes, bytes] = {}
        left = features.batch_bytes_max
        while left > 4 + len(value):
            puts[b"%04d" % len(puts)] = value
            left -= 4 + len(value)
        puts[b"last"] = b"v" * (left - 4)
        with raises(BatchTooLarge):
            self.store.commit(self.partition, Batch(puts=puts, note=b"n"))
        self.done(Batch(puts=puts))

    def test_what_is_too_large_is_refused_and_nothing_happens(self) -> None:
        features = self.store.features
        key = b"k" * (features.key_bytes_max + 1)
        value = b"v" * (features.value_bytes_max + 1)
        many = [b"%06d" % number for number in range(features.batch_ops_max + 1)]
        cases: list[tuple[type[StoreError], Batch]] = [
            (KeyTooLong, Batch(puts={b"a": b"", key: b""})),
            (KeyTooLong, Batch(deletes=[key])),
            (KeyTooLong, Batch(expect={key: 0})),
            (ValueTooLong, Batch(puts={b"a": value})),
            (ValueTooLong, Batch(note=b"n" * (features.note_bytes_max + 1))),
            (ValueTooLong, Batch(token=Token(b"t", b"m" * (features.memo_bytes_max + 1)))),
            (InvalidBatch, Batch(token=Token(b"t" * (features.token_bytes_max + 1)))),
            (BatchTooLarge, Batch(puts=dict.fromkeys(many, b""))),
            (BatchTooLarge, Batch(deletes=many)),
            (BatchTooLarge, Batch(expect=dict.fromkeys(many, 0))),
            (InvalidBatch, Batch(puts={b"": b""})),
            (InvalidBatch, Batch(token=Token(b""))),
            (InvalidBatch, Batch(puts={b"a": b""}, deletes=[b"a"])),
            (InvalidBatch, Batch(expect={b"a": -1})),
        ]
        for kind, batch in cases:
            with raises(kind):
                self.store.commit(self.partition, batch)
            with raises(kind):
                self.store.submit(self.partition, batch)
        assert self.store.partitions() == []

    def test_invalid_partitions_are_refused_by_reads_and_writes(self) -> None:
        features = self.store.features
        bad = [
            Partition("", "t"),
            Partition("n", ""),
            Partition("n" * (features.namespace_bytes_max + 1), "t"),
            Partition("n", "é" * (features.tenant_bytes_max // 2 + 1)),
            Partition("n", "\ud800"),
        ]
        for partition in bad:
            with raises(InvalidBatch):
                self.store.commit(partition, Batch())
            with raises(InvalidBatch):
                self.store.read(partition, [b"a"])

    def test_invalid_reads_are_refused(self) -> None:
        features = self.store.features
        with raises(InvalidBatch):
            self.store.read(self.partition, [b""])
        with raises(KeyTooLong):
            self.store.read(self.partition, [b"k" * (features.key_bytes_max + 1)])
        with raises(BatchTooLarge):
            self.store.read(
                self.partition, [b"%06d" % n for n in range(features.read_keys_max + 1)]
            )
        for limit in (0, -1, features.page_rows_max + 1):
            with raises(InvalidRange):
                self.store.scan(self.partition, b"", KEY_SPACE_END, limit=limit)
            with raises(InvalidRange):
                self.store.changes(self.partition, 0, limit=limit)
        with raises(InvalidRange):
            self.store.scan(self.partition, b"b", b"a", limit=1)
        with raises(InvalidRange):
            self.store.scan(self.partition, b"", KEY_SPACE_END + b"\xff", limit=1)
