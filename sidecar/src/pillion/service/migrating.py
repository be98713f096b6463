"""Carrying a migration out: some facts a commit, and live writers win.

Each commit depends on the operation's record, on every memory that it changes and on the heads of
their timelines, which every writer of a timeline writes. Where a live writer was faster the batch
is planned again, smaller. ``roll_back`` takes back what was written here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec, registry_codec
from pillion_storage.keys import (
    INSTANT_BYTES,
    instant_of,
    memory_key,
    prefix_end,
    undo_key,
    undo_range,
)

from pillion.domain.memory import MemoryStatus
from pillion.domain.migrations import migrated
from pillion.domain.operations import OperationState
from pillion.domain.rendering import render_fact
from pillion.service.asleep import displaced_from, sleeps_of, taken_follows
from pillion.service.attribute_rows import AttributeRows
from pillion.service.catalogue import schema_of
from pillion.service.migration_work import MigrationWork, put_memory
from pillion.service.roll_back import RollBack

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.migrations import Step
    from pillion.domain.operations import Operation
    from pillion.domain.scope import FactKey
    from pillion.domain.values import Value
    from pillion.service.draft import Draft
    from pillion.service.operating import Part
    from pillion.service.partitions import KeySpaces
    from pillion.service.registry import CheckedSchema, Registry

TIDY_ROWS: Final = 1000
# Rows of one timeline that are read at a time.
SCAN_ROWS: Final = 500


def value_for(memory: Memory, checked: CheckedSchema, steps: Sequence[Step]) -> Value | None:
    """Return what a fact's value becomes; None: it does not fit."""
    if memory.value is None:
        return None
    made = migrated(memory.value, steps)
    if made is None or not checked.admits(replace(memory, value=made)):
        return None
    return made


class Migrating:
    """Does the work of migrations and their roll-backs, a commit at a time."""

    def __init__(self, *, store: Store, keys: KeySpaces, registry: Registry) -> None:
        self._store = store
        self._keys = keys
        self._registry = registry
        self._rows = AttributeRows(store)
        self._roll_back = RollBack(store)

    def step(self, part: Part) -> Operation:
        """Put a bounded part of a migration, or of its roll-back, into a draft."""
        work = MigrationWork(
            draft=part.draft,
            applier=part.applier,
            keys=self._keys.of(part.draft.partition),
            operation=part.operation,
            now=part.now,
            room=part.room,
        )
        if work.migration.closing:
            return self._tidied(work)
        if work.migration.undoes is not None:
            return self._roll_back.undone(work, work.migration.undoes)
        return self._migrated(work)

    def may_stop(self, operation: Operation) -> bool:
        """Return whether a migration may be cancelled: not once it cannot be taken back."""
        return not operation.migration.closing

    def ended(self, draft: Draft, operation: Operation) -> None:
        """Take an operation that has ended off its attribute, so that another may begin."""
        key = self._keys.of(draft.partition).registration(operation.migration.attribute)
        data = draft.get(key)
        if data is None:
            return
        registration = registry_codec.decode_registration(data)
        if registration.migration == operation.id.bytes:
            freed = replace(registration, migration=b"")
            draft.put(key, registry_codec.encode_registration(freed))

    # --- forward ---------------------------------------------------------------------------

    def _migrated(self, work: MigrationWork) -> Operation:
        migration = work.migration
        schema = schema_of(work.draft, work.keys, migration.attribute, migration.schema_version)
        checked = self._registry.compile(schema)
        pages = self._rows.of(
            work.draft.partition,
            work.keys,
            migration.attribute,
            work.draft.revision,
            after_id=migration.cursor,
            step=work.room,
        )
        memories: Sequence[Memory] = next(filter(None, pages), ())
        if not memories:
            return replace(work.operation, work=replace(migration, closing=True))
        for found in memories:
            if not self._settled(work, checked, found.id):
                break
            memory = work.applier.records.find_memory(found.id)
            if memory is not None and is_older(memory, migration.schema_version):
                migration = migration.with_misfit(found.id)
            migration = replace(migration, cursor=found.id)
        done = migration.migrated + work.rows
        return replace(work.operation, work=replace(migration, migrated=done))

    def _settled(self, work: MigrationWork, checked: CheckedSchema, memory_id: UUID) -> bool:
        """Migrate a memory with its whole timeline; return False when there was no room for it."""
        memory = work.applier.records.find_memory(memory_id)
        if memory is None or not is_older(memory, work.migration.schema_version):
            return True
        if memory.status is MemoryStatus.CANDIDATE:
            value = value_for(memory, checked, work.migration.steps)
            if value is None:
                return True
            if work.room < 1:
                return False
            self._put_row(work, memory, value)
            return True
        key = memory.fact_key
        if key not in work.settled and self._timeline(work, checked, key):
            work.settled.add(key)
        return key in work.settled

    def _timeline(self, work: MigrationWork, checked: CheckedSchema, key: FactKey) -> bool:
        prefix = work.keys.entries(key)
        owner = work.keys.subject(key.subject)
        work.draft.get(work.keys.head(key))
        entries = [
            (place, codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data), data)
            for place, data in work.draft.scan(prefix, prefix_end(prefix), step=SCAN_ROWS)
        ]
        older = self._older_rows(work, [one.memory_id for _, one, _ in entries if one.is_row])
        asleep = sleeps_of(work.draft, work.keys, key)
        for place, entry, data in entries:
            if not entry.is_row and not entry.is_evidence:
                continue  # a retraction has no value
            if entry.is_row:
                row = older.get(entry.memory_id)
                if row is None or value_for(row, checked, work.migration.steps) is None:
                    continue
                stated, vector = work.applier.records.memory(entry.memory_id), b""
            else:
                if any(one.holds(entry) for one in asleep.get(entry.fingerprint, ())):
                    continue  # it comes back with its row, which keeps its value
                stated, vector = codec.decode_evidence_statement(entry.memory_id, data)
            if stated.schema_version >= work.migration.schema_version:
                continue
            value = value_for(stated, checked, work.migration.steps)
            if value is None:
                continue
            if work.room < 1:
                return False
            moved = replace(entry, fingerprint=value.fingerprint)
            if entry.is_row:
                self._put_row(work, stated, value)
                work.draft.put(place, codec.encode_segment(moved), owner=owner)
                if taken_follows(work.draft, work.keys, key, entry, value.fingerprint):
                    self._displaced(work, checked, key, entry.memory_id)
                    asleep = sleeps_of(work.draft, work.keys, key)
            else:
                changed = _with_value(stated, value, work.migration.schema_version)
                work.draft.put(place, codec.encode_evidence(moved, changed, vector), owner=owner)
                work.room -= 1
            work.applier.timelines.touch_head(key)
        return True

    def _displaced(
        self, work: MigrationWork, checked: CheckedSchema, key: FactKey, row_id: UUID
    ) -> None:
        """Migrate the evidence that a row's retraction took and whose place is taken by now."""
        owner = work.keys.subject(key.subject)
        for place, data in displaced_from(work.draft, work.keys, key, row_id):
            entry = codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data)
            stated, vector = codec.decode_evidence_statement(row_id, data)
            value = value_for(stated, checked, work.migration.steps)
            if value is not None and stated.schema_version < work.migration.schema_version:
                changed = _with_value(stated, value, work.migration.schema_version)
                moved = replace(entry, fingerprint=value.fingerprint)
                work.draft.put(place, codec.encode_evidence(moved, changed, vector), owner=owner)

    def _older_rows(self, work: MigrationWork, ids: Sequence[UUID]) -> dict[UUID, Memory]:
        """Return the rows of a timeline that are of an older version, as they are stored.

        They are read past the draft: a commit depends on what it changes only, for a long timeline
        has more rows than a commit may depend on.
        """
        older = {}
        for begin in range(0, len(ids), SCAN_ROWS):
            wanted = {memory_key(one): one for one in ids[begin : begin + SCAN_ROWS]}
            found = self._store.read(
                work.draft.partition, list(wanted), at=work.draft.revision
            ).entries
            for key, entry in found.items():
                row = codec.decode_memory(wanted[key], entry.value, entry.version)
                if row.schema_version < work.migration.schema_version:
                    older[row.id] = row
        return older

    def _put_row(self, work: MigrationWork, memory: Memory, value: Value) -> None:
        made = _with_value(memory, value, work.migration.schema_version)
        put_memory(work, memory, replace(made, updated_at=work.now))
        work.draft.put(undo_key(work.operation.id, memory.id))
        work.room -= 1
        work.rows += 1

    # --- the end ---------------------------------------------------------------------------

    def _tidied(self, work: MigrationWork) -> Operation:
        """Drop what a roll-back would have needed; with the last of it, the operation ends."""
        prefix = undo_range(work.operation.id)
        page = self._store.scan(
            work.draft.partition, prefix, prefix_end(prefix), limit=TIDY_ROWS, keys_only=True
        )
        for row in page.rows:
            work.draft.delete(row.key)
        if page.rows:
            return work.operation
        return work.operation.ended(OperationState.SUCCEEDED, work.now)


def is_older(memory: Memory, schema_version: int) -> bool:
    """Return whether a fact is one that a migration to a version looks at."""
    held = memory.on_timeline or memory.status is MemoryStatus.CANDIDATE
    return held and memory.schema_version < schema_version


def _with_value(memory: Memory, value: Value, schema_version: int) -> Memory:
    """Return a fact with another value, told in its text where that told the value."""
    text = memory.text
    if memory.value is not None and text == render_fact(memory.fact_key, memory.value):
        text = render_fact(memory.fact_key, value)
    return replace(memory, value=value, text=text, schema_version=schema_version)
