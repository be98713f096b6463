"""Promotion outside a write: the candidates of one subject that enough episodes state by now.

A write promotes as it repeats a candidate. What is left for this: candidates that a statement of
the same instant held up then, and those that the setting kept back when they were stated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage.api import Committed
from pillion_storage.keys import SubjectRecord, id_of, prefix_end

from pillion.domain.limits import COMMIT_TRIES_MAX
from pillion.domain.mutations import Outcome
from pillion.domain.promotion import is_due
from pillion.service.reading import RecordReader
from pillion.service.vectors import MadeVectors
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces
    from pillion.service.writer import Writer

SCAN_ROWS: Final = 500
# Each is a commit of its own; more of them go with the next call.
PROMOTED_MAX: Final = 100


class Promoter:
    """Promotes candidates."""

    def __init__(
        self, *, store: Store, keys: KeySpaces, clock: Clock, writer: Writer, promote_after: int
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._writer = writer
        self._promote_after = promote_after

    def promote(
        self,
        partition: Partition,
        subject: Subject,
        context: str,
        deadline: Deadline,
        *,
        dry_run: bool,
    ) -> tuple[tuple[UUID, ...], bool]:
        """Return which candidates were (or in a dry run would be) promoted, and if more remain."""
        promoted: list[UUID] = []
        for candidate in self._due(partition, subject, context, deadline):
            if len(promoted) == PROMOTED_MAX:
                return tuple(promoted), True
            deadline.check()
            if self._promote_one(partition, candidate.id, dry_run=dry_run):
                promoted.append(candidate.id)
        return tuple(promoted), False

    def _due(
        self, partition: Partition, subject: Subject, context: str, deadline: Deadline
    ) -> Iterator[Memory]:
        revision = self._store.head(partition).revision
        keys = self._keys.at(partition, revision)
        reader = RecordReader(self._store, partition, keys)
        prefix = keys.subject_range(subject, SubjectRecord.MEMORY)
        now = self._clock.now_us()
        start: bytes | None = prefix
        while start is not None:
            deadline.check()
            page = self._store.scan(
                partition, start, prefix_end(prefix), limit=SCAN_ROWS, at=revision, keys_only=True
            )
            ids = [id_of(row.key) for row in page.rows]
            memories, _ = reader.bare_memories(ids, revision)
            for one in memories.values():
                if one.context == context and self._is_due(one, now):
                    yield one
            start = page.next_start

    def _is_due(self, memory: Memory, now: int) -> bool:
        return is_due(memory, self._promote_after) and memory.recallable_at(now)

    def _promote_one(self, partition: Partition, memory_id: UUID, *, dry_run: bool) -> bool:
        for _ in range(COMMIT_TRIES_MAX):
            draft, applier = self._writer.open_draft(partition, MadeVectors(), commits=not dry_run)
            candidate = applier.records.find_memory(memory_id)
            if candidate is None or not self._is_due(candidate, self._clock.now_us()):
                return False  # somebody was faster
            result = applier.candidates.promote(candidate)
            if result is None or result.outcome is Outcome.KEPT_EXISTING:
                return False
            if dry_run or isinstance(self._store.commit(partition, draft.batch(None)), Committed):
                return True
        raise changed_too_often()
