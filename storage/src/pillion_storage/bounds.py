"""Checks of arguments against a store's bounds: one place, so that all backends agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pillion_storage.errors import (
    BatchTooLarge,
    FutureRevision,
    HistoryGone,
    InvalidBatch,
    InvalidRange,
    KeyTooLong,
    ValueTooLong,
)
from pillion_storage.values import OWNER_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pillion_storage.api import Batch, Features, Partition, StoreSettings, Token


def bounds_of(features: Features, settings: StoreSettings) -> Features:
    """Give a backend's bounds: its usual ones, and the room that a layer above asked for."""
    room = settings.value_room_bytes
    if not room:
        return features
    memo_room = room * settings.memo_layers_max
    return replace(
        features,
        value_bytes_max=features.value_bytes_max + room,
        memo_bytes_max=features.memo_bytes_max + memo_room,
        note_bytes_max=features.note_bytes_max + room,
        batch_bytes_max=features.batch_bytes_max + room * (features.batch_ops_max + 1) + memo_room,
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
    operations = len(batch.puts) + len(batch.deletes)
    if max(operations, len(batch.expect)) > features.batch_ops_max:
        raise BatchTooLarge(
            f"{operations} operations and {len(batch.expect)} expectations; "
            f"{features.batch_ops_max} of each fit"
        )
    size = _check_values(batch.puts, features) + len(batch.note)
    for keys in (batch.puts, batch.deletes, batch.expect):
        for key in keys:
            length = len(key)
            if not 0 < length <= features.key_bytes_max:
                check_key(key, features)
            size += length
    if batch.deletes and not batch.puts.keys().isdisjoint(batch.deletes):
        raise InvalidBatch("a key can't be put and deleted in one batch")
    if batch.expect and min(batch.expect.values()) < 0:
        raise InvalidBatch("an expected version can't be negative; 0 means absent")
    if len(batch.note) > features.note_bytes_max:
        raise ValueTooLong(f"the note has {len(batch.note)} bytes; {features.note_bytes_max} fit")
    if batch.owners:
        _check_owners(batch)
    if batch.token is not None:
        size += _check_token(batch.token, features)
    if size > features.batch_bytes_max:
        raise BatchTooLarge(f"the batch has {size} bytes; {features.batch_bytes_max} fit")
    return size


def _check_owners(batch: Batch) -> None:
    if not batch.owners.keys() <= batch.puts.keys():
        raise InvalidBatch("only what is put can have an owner")
    for owner in set(batch.owners.values()):
        if not 0 < len(owner) <= OWNER_BYTES_MAX:
            raise InvalidBatch(f"an owner has {len(owner)} bytes; 1 to {OWNER_BYTES_MAX} fit")


def _check_values(puts: Mapping[bytes, bytes], features: Features) -> int:
    size = 0
    for value in puts.values():
        if len(value) > features.value_bytes_max:
            raise ValueTooLong(f"a value has {len(value)} bytes; {features.value_bytes_max} fit")
        size += len(value)
    return size


def check_token_id(token_id: bytes, features: Features) -> None:
    """Refuse a token id that is empty or too long."""
    if not 0 < len(token_id) <= features.token_bytes_max:
        raise InvalidBatch(
            f"the token has {len(token_id)} bytes; 1 to {features.token_bytes_max} fit"
        )


def _check_token(token: Token, features: Features) -> int:
    check_token_id(token.id, features)
    if len(token.memo) > features.memo_bytes_max:
        raise ValueTooLong(f"the memo has {len(token.memo)} bytes; {features.memo_bytes_max} fit")
    return len(token.id) + len(token.memo)


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


def check_after(after_revision: int, oldest: int, head: int) -> None:
    """Refuse to read the feed after a revision whose successor is not kept, or above the head."""
    if after_revision > head:
        raise FutureRevision(after_revision, head)
    if after_revision + 1 < oldest:
        raise HistoryGone(after_revision + 1, oldest)
