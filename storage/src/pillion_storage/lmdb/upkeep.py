"""Forgetting: trim and purge, in steps small enough not to hold up other writers.

A step says whether it was the last. What readers may rely on (``oldest_history``) is raised in
the first step, before any row goes, so an unclean stop between steps leaves rows that nobody can
see and that the next trim takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillion_storage.api import Partition, TrimReport
from pillion_storage.errors import KeyStillLive
from pillion_storage.lmdb import records
from pillion_storage.lmdb.records import Ended, HeadRow

if TYPE_CHECKING:
    from collections.abc import Collection

    from pillion_storage.lmdb.unit import Unit

_STEP_ROWS = 500


@dataclass(slots=True)
class TrimBounds:
    """What to forget; see ``Store.trim``."""

    history_before: int
    feed_before: int
    tokens_before_us: int


def trim_step(unit: Unit, partition: Partition, bounds: TrimBounds) -> tuple[TrimReport, bool]:
    """Forget a little; return what went, and whether that was all."""
    head = unit.head(partition)
    if head is None:
        return TrimReport(0, 0, 0, 0), True
    head.oldest_history = max(head.oldest_history, min(bounds.history_before, head.revision))
    room = _STEP_ROWS
    versions, memos = _trim_history(unit, head, room)
    room -= versions
    changes = _trim_feed(unit, head, bounds.feed_before, room)
    room -= changes
    tokens = _trim_tokens(unit, head, bounds.tokens_before_us, room)
    return TrimReport(versions, changes, tokens, memos), tokens < room


def _trim_history(unit: Unit, head: HeadRow, rows_max: int) -> tuple[int, int]:
    versions = memos = 0
    databases = unit.databases
    with unit.txn.cursor(databases.archive) as cursor:
        found = cursor.set_range(head.prefix)
        while found and versions < rows_max:
            archive_key, row = cursor.item()
            if not archive_key.startswith(head.prefix):
                break
            ended, ordinal = records.unpack_archive_key(archive_key)
            if ended > head.oldest_history:
                break
            archived = records.unpack_archived(archive_key, row)
            full = head.prefix + archived.key
            reference = Ended(archived.version, ended, ordinal)
            unit.txn.delete(full, records.pack_history(full, reference), db=databases.history)
            found = cursor.delete() and bool(cursor.key())
            memos += forget_version(unit, head, reference, archived)
            versions += 1
    return versions, memos


def forget_version(unit: Unit, head: HeadRow, reference: Ended, archived: records.Archived) -> int:
    """Count a version out, and drop the memos of the commits that wrote and deleted it."""
    head.kept_versions -= 1
    head.kept_bytes -= len(archived.key) + len(archived.value)
    memos = _drop_memo(unit, head, archived.version)
    if archived.deleted:
        memos += _drop_memo(unit, head, reference.ended)
    return memos


def _drop_memo(unit: Unit, head: HeadRow, revision: int) -> int:
    txn, databases = unit.txn, unit.databases
    order_key = head.prefix + records.U64.pack(revision)
    order_row = txn.get(order_key, db=databases.token_order)
    if order_row is None:
        return 0
    key = head.prefix + records.unpack_token_order(order_key, order_row)
    row = txn.get(key, db=databases.tokens)
    token = None if row is None else records.unpack_token(key, row)
    if token is None or token.memo is None:
        return 0
    txn.put(key, records.pack_token(key, token._replace(memo=None)), db=databases.tokens)
    return 1


def _trim_feed(unit: Unit, head: HeadRow, feed_before: int, rows_max: int) -> int:
    first = head.oldest_change
    last = min(feed_before, head.revision + 1, first + rows_max)
    for revision in range(first, last):
        feed_key = head.prefix + records.U64.pack(revision)
        row = unit.txn.pop(feed_key, db=unit.databases.feed)
        if row is not None:  # a damaged feed must not stop its own trimming
            head.before_feed_recorded_at = records.unpack_change(feed_key, row).recorded_at
        head.oldest_change = revision + 1
    return max(0, last - first)


def _trim_tokens(unit: Unit, head: HeadRow, before_us: int, rows_max: int) -> int:
    tokens = 0
    txn, databases = unit.txn, unit.databases
    with txn.cursor(databases.token_order) as cursor:
        found = cursor.set_range(head.prefix)
        while found and tokens < rows_max:
            order_key, order_row = cursor.item()
            if not order_key.startswith(head.prefix):
                break
            key = head.prefix + records.unpack_token_order(order_key, order_row)
            row = txn.get(key, db=databases.tokens)
            if row is not None and records.unpack_token(key, row).recorded_at >= before_us:
                break
            txn.delete(key, db=databases.tokens)
            found = cursor.delete() and bool(cursor.key())
            tokens += 1
    head.tokens -= tokens
    return tokens


def purge_step(
    unit: Unit, partition: Partition, keys: Collection[bytes]
) -> tuple[int, bool] | KeyStillLive:
    """Remove some ended versions of deleted keys; return how many, and whether that was all."""
    head = unit.head(partition)
    if head is None:
        return 0, True
    txn, databases = unit.txn, unit.databases
    live = {key for key in keys if txn.get(head.prefix + key, db=databases.current) is not None}
    if live:
        return KeyStillLive(live)
    removed = 0
    with txn.cursor(databases.history) as cursor:
        for key in keys:
            full = head.prefix + key
            while cursor.set_key(full):
                if removed == _STEP_ROWS:
                    return removed, False
                reference = records.unpack_history(full, cursor.value())
                archive_key = reference.archive_key(head.prefix)
                row = txn.pop(archive_key, db=databases.archive)
                cursor.delete()
                if row is not None:
                    archived = records.unpack_archived(archive_key, row)
                    forget_version(unit, head, reference, archived)
                removed += 1
    return removed, True
