"""Reads inside one snapshot: point reads, scans, the feed and the versions of a key.

The live version of a key is in ``current``. A read below the head also asks ``history``, whose
rows for one key sort newest first, so that one seek finds the version that was live back then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pillion_storage.api import Change, Entry, Features, KeyVersion, Row
from pillion_storage.errors import Corrupt, HistoryGone
from pillion_storage.lmdb import records
from pillion_storage.paging import count_fitting
from pillion_storage.schema import ARCHIVE, FEED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import lmdb

    from pillion_storage.lmdb.environment import Databases
    from pillion_storage.lmdb.records import Ended, HeadRow, TokenRow


class View(NamedTuple):
    """A partition as one snapshot has it. Not to be used after the snapshot ended."""

    txn: lmdb.Transaction[bytes]
    databases: Databases
    head: HeadRow

    @property
    def prefix(self) -> bytes:
        """What the partition's keys begin with."""
        return self.head.prefix


def read_entries(view: View, keys: Collection[bytes], at: int) -> dict[bytes, Entry]:
    """Read keys at a kept revision. Missing ones are absent."""
    prefix_bytes = len(view.prefix)
    with view.txn.cursor(view.databases.current) as cursor:
        found = cursor.getmulti([view.prefix + key for key in keys])
    unpack = records.unpack_current
    entries = {full[prefix_bytes:]: unpack(full, row) for full, row in found}
    if at == view.head.revision:
        return entries
    past = {}
    with view.txn.cursor(view.databases.history) as history:
        for key in keys:
            entry = entries.get(key)
            if entry is None or entry.version > at:
                entry = _ended_entry(view, history, key, at)
            if entry is not None:
                past[key] = entry
    return past


def _ended_entry(
    view: View,
    history: lmdb.Cursor[bytes],
    key: bytes,
    at: int,
) -> Entry | None:
    """Give the ended version of a key that was live at a revision."""
    full = view.prefix + key
    if not history.set_range_dup(full, records.history_seek(at)):
        return None
    ended = records.unpack_history(full, history.value())
    if ended.ended <= at:
        return None
    return Entry(ended.version, _archived_value(view, ended))


def _archived_value(view: View, ended: Ended) -> bytes:
    archive_key = ended.archive_key(view.prefix)
    row = view.txn.get(archive_key, db=view.databases.archive)
    if row is None:
        raise Corrupt(records.describe(ARCHIVE, archive_key), "missing")
    return records.unpack_archived(archive_key, row).value


def read_token(view: View, token_id: bytes) -> TokenRow | None:
    """Read the first outcome of a token."""
    key = view.prefix + token_id
    row = view.txn.get(key, db=view.databases.tokens)
    return None if row is None else records.unpack_token(key, row)


def scan_rows(
    view: View,
    start: bytes,
    end: bytes,
    at: int,
    *,
    reverse: bool,
) -> Iterator[Row]:
    """Iterate over the rows of [start, end) at a kept revision. Lazy, as is the view."""
    low, high = view.prefix + start, view.prefix + end
    with view.txn.cursor(view.databases.current) as current:
        if at == view.head.revision:
            yield from _live_rows(current, low, high, reverse=reverse)
        else:
            yield from _past_rows(view, current, (low, high), at, reverse=reverse)


def _live_rows(
    cursor: lmdb.Cursor[bytes], low: bytes, high: bytes, *, reverse: bool
) -> Iterator[Row]:
    prefix_bytes = records.U32.size
    advance = enter_range(cursor, low, high, reverse=reverse)
    while advance is not None:
        full, row = cursor.item()
        if not low <= full < high:
            return
        entry = records.unpack_current(full, row)
        yield Row(full[prefix_bytes:], entry.version, entry.value)
        if not advance():
            return


def live_records(
    view: View, start: bytes, end: bytes, limit: int, bytes_max: int
) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
    """Give the records of [start, end) as they lie in ``current``, unchecked, and where to go on.

    At most ``limit``, and no more once they come to ``bytes_max``.
    """
    high = view.prefix + end
    found: list[tuple[bytes, bytes]] = []
    total = 0
    with view.txn.cursor(view.databases.current) as cursor:
        if not cursor.set_range(view.prefix + start):
            return found, None
        for pair in cursor.iternext():
            key = pair[0]
            if key >= high:
                break
            if total >= bytes_max or len(found) == limit:
                return found, key[len(view.prefix) :]
            found.append(pair)
            total += len(pair[1])
    return found, None


def enter_range(
    cursor: lmdb.Cursor[bytes], low: bytes, high: bytes, *, reverse: bool
) -> Callable[[], bool] | None:
    """Put a cursor on the first key of a range; give how to go on, or None if there is none.

    The caller compares keys with the range: this only finds where to begin.
    """
    if not reverse:
        return cursor.next_nodup if cursor.set_range(low) else None
    positioned = cursor.prev_nodup() if cursor.set_range(high) else cursor.last()
    return cursor.prev_nodup if positioned else None


def _keys(cursor: lmdb.Cursor[bytes], low: bytes, high: bytes, *, reverse: bool) -> Iterator[bytes]:
    advance = enter_range(cursor, low, high, reverse=reverse)
    while advance is not None and low <= (full := cursor.key()) < high:
        yield full
        if not advance():
            return


def _past_rows(
    view: View,
    current: lmdb.Cursor[bytes],
    bounds: tuple[bytes, bytes],
    at: int,
    *,
    reverse: bool,
) -> Iterator[Row]:
    """Merge the keys that live now with those that have a past."""
    prefix_bytes = len(view.prefix)
    choose = max if reverse else min
    with (
        view.txn.cursor(view.databases.history) as walk,
        view.txn.cursor(view.databases.history) as seek,
    ):
        live_keys = _keys(current, *bounds, reverse=reverse)
        past_keys = _keys(walk, *bounds, reverse=reverse)
        live, past = next(live_keys, None), next(past_keys, None)
        while live is not None or past is not None:
            full = choose(key for key in (live, past) if key is not None)
            entry = None
            if full == live:
                entry = records.unpack_current(full, current.value())
                live = next(live_keys, None)
            if full == past:
                past = next(past_keys, None)
            if entry is None or entry.version > at:
                entry = _ended_entry(view, seek, full[prefix_bytes:], at)
            if entry is not None:
                yield Row(full[prefix_bytes:], entry.version, entry.value)


def read_changes(view: View, after_revision: int) -> Iterator[Change]:
    """Iterate over the feed after a revision. Lazy: use it inside the snapshot."""
    expected = after_revision + 1
    with view.txn.cursor(view.databases.feed) as cursor:
        cursor.set_range(view.prefix + records.U64.pack(expected))
        for feed_key, row in cursor.iternext():
            if expected > view.head.revision:
                return
            if feed_key != view.prefix + records.U64.pack(expected):
                break
            yield records.unpack_change(feed_key, row)
            expected += 1
    if expected <= view.head.revision:
        missing = view.prefix + records.U64.pack(expected)
        raise Corrupt(records.describe(FEED, missing), "missing")


def revision_at(view: View, recorded_at: int) -> int:
    """Find the last revision recorded at or before a time: bisection, for the feed is in order."""
    if view.head.recorded_at <= recorded_at:
        return view.head.revision
    before = view.head.oldest_change - 1
    if before > 0 and recorded_at < view.head.before_feed_recorded_at:
        raise HistoryGone(before, view.head.oldest_change)
    low, high = before, view.head.revision  # the answer is at least low and below high
    while high - low > 1:
        middle = (low + high) // 2
        change = next(read_changes(view, middle - 1))
        if change.recorded_at <= recorded_at:
            low = middle
        else:
            high = middle
    return low


def key_versions(
    view: View, key: bytes, before: int | None, limit: int, features: Features
) -> list[KeyVersion]:
    """Give the newest versions of a key below ``before``, oldest first."""
    found: list[KeyVersion] = []

    def sizes() -> Iterator[int]:
        for version in _newest_first(view, key, before):
            found.append(version)
            yield len(version.value)

    fitting = count_fitting(sizes(), limit, features)
    return found[:fitting][::-1]


def _newest_first(view: View, key: bytes, before: int | None) -> Iterator[KeyVersion]:
    full = view.prefix + key
    row = view.txn.get(full, db=view.databases.current)
    if row is not None:
        entry = records.unpack_current(full, row)
        if before is None or entry.version < before:
            yield KeyVersion(entry.version, None, entry.value)
    newest = view.head.revision if before is None else before - 1
    with view.txn.cursor(view.databases.history) as cursor:
        if newest < 0 or not cursor.set_range_dup(full, records.history_seek(newest)):
            return
        for value in cursor.iternext_dup():
            ended = records.unpack_history(full, value)
            archived = _archived_value(view, ended)
            yield KeyVersion(ended.version, ended.ended, archived)
