"""Checks of arguments against a store's bounds: one place, so that all backends agree."""

from __future__ import annotations

from collections.abc import Collection

from pillion_storage.api import Batch, Features, Partition
from pillion_storage.errors import (
    BatchTooLarge,
    FutureRevision,
    HistoryGone,
    InvalidBatch,
    InvalidRange,
    KeyTooLong,
    ValueTooLong,
)


def check_partition(partition: Partition, features: Features) -> None:
    """Refuse names that are empty, too long in UTF-8, or not encodable."""
    for what, name, bytes_max in (
        ("namespace", partition.namespace, features.namespace_bytes_max),
        ("tenant", partition.tenant, features.tenant_bytes_max),
    ):
        try:
            length = len(name.encode())
        except UnicodeEncodeError as error:
            raise InvalidBatch(f"the {what} is not valid Unicode") from error
        if not 0 < length <= bytes_max:
            raise InvalidBatch(f"the {what} has {length} bytes in UTF-8; 1 to {bytes_max} fit")


def check_key(key: bytes, features: Features) -> None:
    """Refuse an empty or too long key."""
    if not key:
        raise InvalidBatch("a key can't be empty")
    if len(key) > features.key_bytes_max:
        raise KeyTooLong(f"the key has {len(key)} bytes; {features.key_bytes_max} fit")


def check_keys(keys: Collection[bytes], keys_max: int, features: Features) -> None:
    """Refuse a list of keys that is too long or has an invalid key."""
    if len(keys) > keys_max:
        raise BatchTooLarge(f"{len(keys)} keys; {keys_max} fit in one call")
    for key in keys:
        check_key(key, features)


def check_batch(batch: Batch, features: Features) -> int:
    """Refuse a batch that breaks a bound or contradicts itself; return its size in bytes."""
    puts, deletes, expect = batch.puts, batch.deletes, batch.expect
    operations = len(puts) + len(deletes)
    if operations > features.batch_ops_max or len(expect) > features.batch_ops_max:
        raise BatchTooLarge(
            f"{operations} operations and {len(expect)} expectations; "
            f"{features.batch_ops_max} of each fit"
        )
    key_max, value_max = features.key_bytes_max, features.value_bytes_max
    size = 0
    for key, value in puts.items():
        if not 0 < len(key) <= key_max:
            check_key(key, features)
        if len(value) > value_max:
            raise ValueTooLong(f"a value has {len(value)} bytes; {value_max} fit")
        size += len(key) + len(value)
    for key in deletes:
        check_key(key, features)
        if key in puts:
            raise InvalidBatch("a key can't be put and deleted in one batch")
        size += len(key)
    for key, version in expect.items():
        if not 0 < len(key) <= key_max:
            check_key(key, features)
        if version < 0:
            raise InvalidBatch("an expected version can't be negative; 0 means absent")
        size += len(key)
    size += len(batch.note)
    if len(batch.note) > features.note_bytes_max:
        raise ValueTooLong(f"the note has {len(batch.note)} bytes; {features.note_bytes_max} fit")
    if batch.token is not None:
        size += _check_token(batch.token.id, batch.token.memo, features)
    if size > features.batch_bytes_max:
        raise BatchTooLarge(f"the batch has {size} bytes; {features.batch_bytes_max} fit")
    return size


def _check_token(token_id: bytes, memo: bytes, features: Features) -> int:
    if not 0 < len(token_id) <= features.token_bytes_max:
        raise InvalidBatch(
            f"the token has {len(token_id)} bytes; 1 to {features.token_bytes_max} fit"
        )
    if len(memo) > features.memo_bytes_max:
        raise ValueTooLong(f"the memo has {len(memo)} bytes; {features.memo_bytes_max} fit")
    return len(token_id) + len(memo)


def check_limit(limit: int, features: Features) -> None:
    """Refuse a page limit outside 1..page_rows_max."""
    if not 1 <= limit <= features.page_rows_max:
        raise InvalidRange(f"limit {limit} is outside 1..{features.page_rows_max}")


def check_range(start: bytes, end: bytes, limit: int, features: Features) -> None:
    """Refuse a scan range that is reversed or has too long bounds, or a bad limit."""
    check_limit(limit, features)
    if start > end:
        raise InvalidRange("start is after end; to go backwards say reverse=True")
    if max(len(start), len(end)) > features.key_bytes_max + 1:
        raise InvalidRange(f"a bound is longer than {features.key_bytes_max + 1} bytes")


def check_revision(at: int | None, oldest: int, head: int) -> int:
    """Give the revision to read at; refuse one that is not kept or doesn't exist yet."""
    if at is None:
        return head
    if at > head:
        raise FutureRevision(at, head)
    if at < oldest:
        raise HistoryGone(at, oldest)
    return at
