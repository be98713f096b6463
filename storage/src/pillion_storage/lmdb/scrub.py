"""Scrubbing: kept values, memos and notes changed in their places, a bounded step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage.lmdb import records
from pillion_storage.lmdb.records import Archived, Ended, HeadRow
from pillion_storage.lmdb.upkeep import forget_version
from pillion_storage.scrubbing import Kept, KeptKind, ScrubReport

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import Partition
    from pillion_storage.lmdb.unit import Unit

# Rows looked at, and changed, in one step: some milliseconds each.
STEP_ROWS: Final = 4000
STEP_CHANGES: Final = 400
_EMPTY_CURRENT: Final = len(records.pack_current(b"k", 1, b""))
_PREFIX_BYTES: Final = 4


@dataclass(slots=True)
class Place:
    """How far a scrubbing is: which of the databases, and the next key there."""

    database: int = 0
    start: bytes = b""


def scrub_step(
    unit: Unit, partition: Partition, change: Callable[[Kept], bytes | None], place: Place
) -> tuple[ScrubReport, Place | None]:
    """Scrub a little; return what was done, and where to go on (None: that was all).

    ``place`` is not changed: a step that is run a second time begins where it began before.
    """
    head = unit.head(partition)
    if head is None:
        return ScrubReport(), None
    step = _Step(unit, head, change)
    database, start = place.database, place.start
    while database < len(_DATABASES):
        following = _DATABASES[database](step, start or head.prefix)
        if following is not None:
            return step.report, Place(database, following)
        database, start = database + 1, b""
    return step.report, None


class _Step:
    def __init__(self, unit: Unit, head: HeadRow, change: Callable[[Kept], bytes | None]) -> None:
        self.unit = unit
        self.head = head
        self.change = change
        self.report = ScrubReport()
        self.looked_at = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time for others."""
        done = self.report.changed + self.report.dropped
        return self.looked_at >= STEP_ROWS or done >= STEP_CHANGES

    def count(self, *, changed: int = 0, dropped: int = 0) -> None:
        self.report += ScrubReport(changed, dropped)

    def current(self, start: bytes) -> bytes | None:
        """Scrub live values; return the key to go on with."""
        prefix, database = self.head.prefix, self.unit.databases.current
        with self.unit.txn.cursor(database) as cursor:
            found = cursor.set_range(start)
            while found:
                full, row = cursor.item()
                if not full.startswith(prefix):
                    return None
                if self.is_full:
                    return full
                self.looked_at += 1
                if len(row) > _EMPTY_CURRENT:
                    entry = records.unpack_current(full, row)
                    key = full[_PREFIX_BYTES:]
                    kept = Kept(KeptKind.VALUE, key, entry.version, entry.value, live=True)
                    value = self.change(kept)
                    if value is None:
                        raise ValueError("a live value is deleted by a commit, never by scrubbing")
                    if value is not entry.value:
                        new = records.pack_current(full, entry.version, value)
                        self.unit.txn.put(full, new, db=database)
                        self.head.live_bytes += len(value) - len(entry.value)
                        self.count(changed=1)
                        cursor.set_key(full)
                found = cursor.next()
        return None

    def archive(self, start: bytes) -> bytes | None:
        """Scrub ended values; return the key to go on with."""
        prefix, database = self.head.prefix, self.unit.databases.archive
        with self.unit.txn.cursor(database) as cursor:
            found = cursor.set_range(start)
            while found:
                full, row = cursor.item()
                if not full.startswith(prefix):
                    return None
                if self.is_full:
                    return full
                self.looked_at += 1
                archived = records.unpack_archived(full, row)
                value: bytes | None = archived.value
                if archived.value:
                    kept = Kept(
                        KeptKind.VALUE, archived.key, archived.version, archived.value, live=False
                    )
                    value = self.change(kept)
                if value is None:
                    self._drop(full, archived)
                    self.count(dropped=1)
                    found = cursor.set_range(full)
                    continue
                if value is not archived.value:
                    new = records.pack_archived(full, archived._replace(value=value))
                    self.unit.txn.put(full, new, db=database)
                    self.head.kept_bytes += len(value) - len(archived.value)
                    self.count(changed=1)
                    cursor.set_key(full)
                found = cursor.next()
        return None

    def _drop(self, archive_key: bytes, archived: Archived) -> None:
        """Take an ended version out; the one before it then ended by a delete."""
        txn, databases, head = self.unit.txn, self.unit.databases, self.head
        ended, ordinal = records.unpack_archive_key(archive_key)
        reference = Ended(archived.version, ended, ordinal)
        full = head.prefix + archived.key
        with txn.cursor(databases.history) as cursor:
            if cursor.set_key_dup(full, records.pack_history(full, reference)):
                older = cursor.next_dup()
                before = records.unpack_history(full, cursor.value()) if older else None
                if before is not None and before.ended == archived.version:
                    self._mark_deleted(before.archive_key(head.prefix))
        txn.delete(full, records.pack_history(full, reference), db=databases.history)
        txn.delete(archive_key, db=databases.archive)
        forget_version(self.unit, head, reference, archived)

    def _mark_deleted(self, archive_key: bytes) -> None:
        row = self.unit.txn.get(archive_key, db=self.unit.databases.archive)
        if row is not None:
            archived = records.unpack_archived(archive_key, row)._replace(deleted=True)
            new = records.pack_archived(archive_key, archived)
            self.unit.txn.put(archive_key, new, db=self.unit.databases.archive)

    def memos(self, start: bytes) -> bytes | None:
        """Scrub memos; return the key to go on with."""
        prefix, database = self.head.prefix, self.unit.databases.tokens
        with self.unit.txn.cursor(database) as cursor:
            found = cursor.set_range(start)
            while found:
                full, row = cursor.item()
                if not full.startswith(prefix):
                    return None
                if self.is_full:
                    return full
                self.looked_at += 1
                token = records.unpack_token(full, row)
                if token.memo:
                    key = full[_PREFIX_BYTES:]
                    memo = self.change(
                        Kept(KeptKind.MEMO, key, token.revision, token.memo, live=False)
                    )
                    if memo is not token.memo:
                        new = records.pack_token(full, token._replace(memo=memo))
                        self.unit.txn.put(full, new, db=database)
                        self.count(changed=memo is not None, dropped=memo is None)
                        cursor.set_key(full)
                found = cursor.next()
        return None

    def notes(self, start: bytes) -> bytes | None:
        """Scrub the notes of commits; return the key to go on with."""
        prefix, database = self.head.prefix, self.unit.databases.feed
        with self.unit.txn.cursor(database) as cursor:
            found = cursor.set_range(start)
            while found:
                full, row = cursor.item()
                if not full.startswith(prefix):
                    return None
                if self.is_full:
                    return full
                self.looked_at += 1
                if records.has_note(row):
                    told = records.unpack_change(full, row)
                    note = self.change(
                        Kept(KeptKind.NOTE, b"", told.revision, told.note, live=False)
                    )
                    if note is not told.note:
                        keys = [(key, kind.value) for key, kind in told.keys]
                        new = records.pack_change(full, told.recorded_at, note or b"", keys)
                        self.unit.txn.put(full, new, db=database)
                        self.count(changed=note is not None, dropped=note is None)
                        cursor.set_key(full)
                found = cursor.next()
        return None


_DATABASES: Final = (_Step.current, _Step.archive, _Step.memos, _Step.notes)
