"""Taking a migration back: exactly what it wrote, where nobody changed that since.

``u`` rows say which version of which memory the migration wrote. The old value comes from history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pillion_storage import codec
from pillion_storage.keys import (
    INSTANT_BYTES,
    id_of,
    instant_of,
    memory_key,
    prefix_end,
    undo_range,
)

from pillion.domain.memory import FOREVER, MemoryStatus
from pillion.domain.operations import OperationState
from pillion.service.asleep import displaced_from, taken_follows, taken_from
from pillion.service.migration_work import MigrationWork, put_memory

if TYPE_CHECKING:
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.operations import Operation
    from pillion.domain.scope import FactKey


class RollBack:
    """Takes migrations back, a commit at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def undone(self, work: MigrationWork, target: UUID) -> Operation:
        """Take some of what a migration changed back; return how far the roll-back is then."""
        migration = work.migration
        prefix = undo_range(target)
        page = self._store.scan(
            work.draft.partition,
            prefix,
            prefix_end(prefix),
            limit=work.room,
            at=work.draft.revision,
            keys_only=True,
        )
        for row in page.rows:
            memory_id = id_of(row.key)
            if self._restored(work, memory_id, row.version):
                migration = replace(migration, migrated=migration.migrated + 1)
            else:
                migration = migration.with_misfit(memory_id)
            work.draft.get(row.key)
            work.draft.delete(row.key)
        made = replace(work.operation, work=migration)
        return made if page.rows else made.ended(OperationState.SUCCEEDED, work.now)

    def _restored(self, work: MigrationWork, memory_id: UUID, version: int) -> bool:
        """Give a memory the value that it had; False: others changed it since, so it stays."""
        records = work.applier.records
        memory = records.find_memory(memory_id)
        if memory is None or work.draft.version(memory_key(memory_id)) != version:
            return False
        before = self._before(work, memory_key(memory_id), version)
        if before is None:
            return False
        old = codec.decode_memory(memory_id, before, 0)
        back = replace(
            memory,
            value=old.value,
            text=old.text,
            schema_version=old.schema_version,
            updated_at=work.now,
        )
        put_memory(work, memory, back)
        if memory.status is MemoryStatus.CANDIDATE or not memory.on_timeline:
            return True
        key = memory.fact_key
        work.applier.timelines.touch_head(key)
        self._restore_entries(work, key, back)
        return True

    def _restore_entries(self, work: MigrationWork, key: FactKey, back: Memory) -> None:
        """Give a row's entry, and the evidence where it holds or was taken from, what they had.

        Only there is looked, so that a key of many rows goes back in one pass.
        """
        place = work.keys.entry(key, back.valid_from)
        data = work.draft.get(place)
        entry = codec.decode_entry(back.valid_from, data) if data is not None else None
        if entry is None or entry.memory_id != back.id or not entry.is_row or back.value is None:
            return
        owner = work.keys.subject(key.subject)
        moved = replace(entry, fingerprint=back.value.fingerprint)
        work.draft.put(place, codec.encode_segment(moved), owner=owner)
        self._restore_between(work, key, entry.valid_from, entry.valid_to, entry.fingerprint)
        taken = taken_from(work.draft, work.keys, key, entry)
        if taken is None:
            return
        taken_follows(work.draft, work.keys, key, entry, moved.fingerprint)
        self._restore_between(work, key, taken.start, taken.end, entry.fingerprint)
        for kept, stored in displaced_from(work.draft, work.keys, key, back.id):
            self._restore_evidence(work, kept, stored, back.id)

    def _restore_between(
        self, work: MigrationWork, key: FactKey, start: int, end: int, fingerprint: bytes
    ) -> None:
        """Give the evidence of a value in [start, end) what it had."""
        last = prefix_end(work.keys.entries(key)) if end == FOREVER else work.keys.entry(key, end)
        for place, data in list(work.draft.scan(work.keys.entry(key, start), last)):
            entry = codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data)
            if entry.is_evidence and entry.fingerprint == fingerprint:
                self._restore_evidence(work, place, data, entry.memory_id)

    def _restore_evidence(
        self, work: MigrationWork, place: bytes, data: bytes, row_id: UUID
    ) -> None:
        stated, _ = codec.decode_evidence_statement(row_id, data)
        if stated.schema_version != work.migration.schema_version:
            return
        before = self._before(work, place, work.draft.version(place))
        if before is None:
            return
        earlier, _ = codec.decode_evidence_statement(row_id, before)
        if earlier.schema_version < work.migration.schema_version:
            work.draft.put(place, before, owner=work.keys.subject(earlier.subject))

    def _before(self, work: MigrationWork, key: bytes, version: int) -> bytes | None:
        """Return what a record was before a version; None: it is no longer kept, or was not."""
        found = self._store.versions(work.draft.partition, key, before=version, limit=1)
        if not found or found[-1].ended != version:
            return None
        return found[-1].value
