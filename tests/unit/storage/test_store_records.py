"""Stored rows: round trips, checksums, key sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion_storage import schema
from pillion_storage.api import ChangeKind, Entry, Partition
from pillion_storage.errors import Corrupt
from pillion_storage.lmdb import records
from pillion_storage.lmdb.records import Archived, Ended, HeadRow, PartitionRow, TokenRow
from pillion_storage.lmdb.store import FEATURES

LMDB_KEY_BYTES_MAX = 511
PREFIX = records.U32.pack(7)
u64 = st.integers(0, 2**64 - 1)


@given(u64, st.binary(max_size=100), st.binary(min_size=1, max_size=480))
def test_current_rows_round_trip(version, value, key):
    row = records.pack_current(PREFIX + key, version, value)
    assert records.unpack_current(PREFIX + key, row) == Entry(version, value)


@given(u64, u64, st.integers(0, 2**16 - 1), st.binary(min_size=1, max_size=480))
def test_history_rows_round_trip(version, ended, ordinal, key):
    reference = Ended(version, ended, ordinal)
    row = records.pack_history(PREFIX + key, reference)
    assert records.unpack_history(PREFIX + key, row) == reference
    assert records.unpack_archive_key(reference.archive_key(PREFIX)) == (ended, ordinal)


@given(u64, u64)
def test_newer_versions_sort_first_and_a_seek_lands_on_the_last_at_or_below(version, at):
    row = records.pack_history(b"k", Ended(version, 0, 0))
    assert (row >= records.history_seek(at)) == (version <= at)


@given(u64, st.booleans(), st.binary(min_size=1, max_size=480), st.binary(max_size=100))
def test_archive_rows_round_trip(version, deleted, key, value):
    archive_key = Ended(1, 2, 3).archive_key(PREFIX)
    archived = Archived(version, deleted, key, value)
    row = records.pack_archived(archive_key, archived)
    assert records.unpack_archived(archive_key, row) == archived


@given(
    u64,
    st.binary(max_size=50),
    st.lists(st.tuples(st.binary(min_size=1, max_size=480), st.sampled_from([1, 2])), max_size=5),
)
def test_feed_rows_round_trip(recorded_at, note, keys):
    feed_key = PREFIX + records.U64.pack(9)
    change = records.unpack_change(feed_key, records.pack_change(feed_key, recorded_at, note, keys))
    assert (change.revision, change.recorded_at, change.note) == (9, recorded_at, note)
    assert change.keys == tuple((key, ChangeKind(kind)) for key, kind in keys)


@given(u64, u64, st.none() | st.binary(max_size=50))
def test_token_rows_round_trip_and_tell_no_memo_from_an_empty_one(revision, recorded_at, memo):
    row = TokenRow(revision, recorded_at, memo)
    assert records.unpack_token(b"t", records.pack_token(b"t", row)) == row


@given(st.lists(u64, min_size=10, max_size=10))
def test_head_rows_round_trip(numbers):
    head = HeadRow(PREFIX, *numbers)
    assert records.unpack_head(PREFIX, head.pack()) == head


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_partition_rows_round_trip(namespace, tenant):
    try:
        key = records.partition_key(Partition(namespace, tenant))
    except UnicodeEncodeError:
        return  # refused by bounds
    assert records.unpack_partition_key(key) == Partition(namespace, tenant)
    row = PartitionRow(5, 6, bytes(32))
    assert records.unpack_partition(key, records.pack_partition(key, row)) == row


def test_every_flipped_bit_is_found_and_the_row_is_named():
    key = PREFIX + b"key"
    row = records.pack_current(key, 3, b"some value")
    for bit in range(len(row) * 8):
        damaged = bytearray(row)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt, match=f"current row {key.hex()}"):
            records.unpack_current(key, bytes(damaged))


def test_a_row_under_another_key_or_in_another_database_is_found():
    row = records.seal(schema.CURRENT, b"key", b"content")
    with pytest.raises(Corrupt):
        records.unseal(schema.CURRENT, b"kez", row)
    with pytest.raises(Corrupt):
        records.unseal(schema.FEED, b"key", row)


def test_the_longest_keys_fit_into_lmdb():
    key = b"k" * FEATURES.key_bytes_max
    partition = Partition("n" * FEATURES.namespace_bytes_max, "t" * FEATURES.tenant_bytes_max)
    for stored in (
        PREFIX + key + b"\xff",  # the longest bound of a scan
        PREFIX + b"t" * FEATURES.token_bytes_max,
        records.partition_key(partition),
        records.pack_history(PREFIX + key, Ended(1, 2, 3)),  # duplicates have the same limit
    ):
        assert len(stored) <= LMDB_KEY_BYTES_MAX
