"""One batch applied to a shared transaction: the only code that makes revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.api import Batch, ChangeKind, Committed, Conflict, Partition
from pillion_storage.lmdb import records
from pillion_storage.lmdb.reading import View, read_token
from pillion_storage.lmdb.records import Archived, Ended, HeadRow, TokenRow

if TYPE_CHECKING:
    from pillion_storage.lmdb.unit import Unit

_PUT = ChangeKind.PUT.value
_DELETE = ChangeKind.DELETE.value
# Per commit with a token, at most this many old tokens are forgotten: bounded work.
_FORGET_MAX = 4


def apply_batch(unit: Unit, partition: Partition, batch: Batch) -> Committed | Conflict:
    """Apply a checked batch. A conflict or a replay is decided before anything is written."""
    head = unit.head(partition)
    token = batch.token
    if head is None:
        failed = {key: 0 for key, version in batch.expect.items() if version != 0}
        if failed:
            return Conflict(failed)
        head = unit.create(partition)
    elif token is not None:
        first = read_token(View(unit.txn, unit.databases, head), token.id)
        if first is not None:
            return Committed(first.revision, first.recorded_at, replayed=True, memo=first.memo)

    prefix = head.prefix
    before = {}  # rows that the expectations made us read already
    if batch.expect:
        get, current = unit.txn.get, unit.databases.current
        failed = {}
        for key, expected in batch.expect.items():
            row = before[key] = get(prefix + key, db=current)
            version = 0 if row is None else records.unpack_current(prefix + key, row).version
            if version != expected:
                failed[key] = version
        if failed:
            return Conflict(failed)

    unit.commits += 1
    head.revision += 1
    head.recorded_at = unit.clock.stamp(head.recorded_at)
    changed = _write_keys(unit, head, batch, before)
    feed_key = prefix + records.U64.pack(head.revision)
    unit.txn.put(
        feed_key,
        records.pack_change(feed_key, head.recorded_at, batch.note, changed),
        db=unit.databases.feed,
    )
    if token is None:
        return Committed(head.revision, head.recorded_at, replayed=False, memo=None)
    _remember_token(unit, head, token.id, token.memo)
    return Committed(head.revision, head.recorded_at, replayed=False, memo=token.memo)


def _write_keys(
    unit: Unit, head: HeadRow, batch: Batch, before: dict[bytes, bytes | None]
) -> list[tuple[bytes, int]]:
    """Write puts and deletes in key order; return what changed, for the feed."""
    txn, current, prefix, revision = unit.txn, unit.databases.current, head.prefix, head.revision
    puts = batch.puts
    changed = []
    ordinal = 0
    for key in sorted({*puts, *batch.deletes} if batch.deletes else puts):
        full = prefix + key
        value = puts.get(key)
        if value is not None:
            row = records.pack_current(full, revision, value)
            if key in before:
                old = before[key]
                txn.put(full, row, db=current)
            else:
                old = txn.replace(full, row, db=current)
            head.live_keys += 1
            head.live_bytes += len(key) + len(value)
            changed.append((key, _PUT))
        else:
            old = txn.pop(full, db=current)
            if old is None:
                continue
            changed.append((key, _DELETE))
        if old is not None:
            _archive(unit, head, key, old, ordinal, deleted=value is None)
            ordinal += 1
    return changed


def _archive(
    unit: Unit, head: HeadRow, key: bytes, row: bytes, ordinal: int, *, deleted: bool
) -> None:
    full = head.prefix + key
    old = records.unpack_current(full, row)
    ended = Ended(old.version, head.revision, ordinal)
    archive_key = ended.archive_key(head.prefix)
    archived = Archived(old.version, deleted, key, old.value)
    unit.txn.put(
        archive_key, records.pack_archived(archive_key, archived), db=unit.databases.archive
    )
    unit.txn.put(full, records.pack_history(full, ended), db=unit.databases.history)
    size = len(key) + len(old.value)
    head.live_keys -= 1
    head.live_bytes -= size
    head.kept_versions += 1
    head.kept_bytes += size


def _remember_token(unit: Unit, head: HeadRow, token_id: bytes, memo: bytes) -> None:
    txn, databases = unit.txn, unit.databases
    key = head.prefix + token_id
    row = TokenRow(head.revision, head.recorded_at, memo)
    txn.put(key, records.pack_token(key, row), db=databases.tokens)
    order_key = head.prefix + records.U64.pack(head.revision)
    txn.put(order_key, records.pack_token_order(order_key, token_id), db=databases.token_order)
    head.tokens += 1
    forget = min(head.tokens - unit.settings.tokens_max, _FORGET_MAX)
    if forget > 0:
        with txn.cursor(databases.token_order) as cursor:
            cursor.set_range(head.prefix)
            for _ in range(forget):
                order_key, order_row = cursor.item()
                oldest = records.unpack_token_order(order_key, order_row)
                cursor.delete()
                txn.delete(head.prefix + oldest, db=databases.tokens)
                head.tokens -= 1
