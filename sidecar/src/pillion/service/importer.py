"""Import: one commit a batch, with each bad item refused on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillion_storage.api import Committed

from pillion.domain.commands import ImportAck, ImportRejection
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_count, check_partition
from pillion.domain.limits import COMMIT_TRIES_MAX, IMPORT_BATCH_MAX
from pillion.domain.mutations import AddMemory, CaptureEpisode, PutFact
from pillion.domain.validation import check_mutation
from pillion.service.vectors import pending_added
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_storage.api import Store

    from pillion.domain.mutations import EmbeddingMode, Mutation
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.applier import Applier
    from pillion.service.draft import Draft
    from pillion.service.pending import PendingVectors
    from pillion.service.vectors import MadeVectors
    from pillion.service.writer import Writer

# Beyond this many vectors to make, an import is asked to pause: search over what came in would
# lag by minutes, and the queue's records would outgrow the memories themselves.
PENDING_SOFT_MAX = 20_000
PENDING_WAIT_MS = 1_000


class Importer:
    """Takes batches of new facts, memories and episodes."""

    def __init__(
        self,
        *,
        store: Store,
        writer: Writer,
        pending: PendingVectors,
    ) -> None:
        self._store = store
        self._writer = writer
        self._pending = pending

    def import_batch(
        self,
        partition: Partition,
        items: Sequence[Mutation | PillionError],
        embedding_mode: EmbeddingMode,
        deadline: Deadline,
    ) -> ImportAck:
        """Commit a batch: every good item, on disk when this returns.

        It is one transaction, or a few where large items outgrow one. An item may come as the
        error that kept it from being read, so that it is counted in its place. An item whose id
        is there already is counted as existing: a second run of the same import writes nothing
        twice.
        """
        check_partition(partition)
        check_count("items", len(items), IMPORT_BATCH_MAX)
        good: list[tuple[int, Mutation]] = []
        rejections: list[ImportRejection] = []
        for index, item in enumerate(items):
            try:
                good.append((index, _importable(item)))
            except PillionError as error:
                rejections.append(ImportRejection(index, error))
        made = self._writer.make_vectors((item for _, item in good), embedding_mode, deadline)
        done = _Done(rejections=rejections)
        self._commit(partition, good, made, deadline, done)
        pending = self._pending.count(partition)
        return ImportAck(
            revision=done.revision,
            written=done.written,
            existing=done.existing,
            rejections=tuple(sorted(done.rejections, key=lambda one: one.index)),
            vectors_pending=pending,
            wait_ms=PENDING_WAIT_MS if pending > PENDING_SOFT_MAX else 0,
        )

    def _commit(
        self,
        partition: Partition,
        items: Sequence[tuple[int, Mutation]],
        made: MadeVectors,
        deadline: Deadline,
        done: _Done,
    ) -> None:
        """Commit some items at once, or in halves when that is more than one commit takes."""
        for _ in range(COMMIT_TRIES_MAX):
            deadline.check()
            draft, applier = self._writer.open_draft(partition, made)
            applied = _apply_each(draft, applier, items)
            if draft.outgrown and len(items) > 1:
                half = len(items) // 2
                self._commit(partition, items[:half], made, deadline, done)
                self._commit(partition, items[half:], made, deadline, done)
                return
            if draft.is_empty:
                done.add(applied, done.revision)
                return
            outcome = self._store.commit(partition, draft.batch(None))
            if isinstance(outcome, Committed):
                self._pending.add(partition, pending_added(draft))
                done.add(applied, outcome.revision)
                return
        raise changed_too_often()


@dataclass(slots=True)
class _Done:
    """What an import did so far; ``revision`` 0: nothing was written yet."""

    rejections: list[ImportRejection]
    written: int = 0
    existing: int = 0
    revision: int = 0

    def add(self, applied: tuple[int, int, list[ImportRejection]], revision: int) -> None:
        self.written += applied[0]
        self.existing += applied[1]
        self.rejections += applied[2]
        self.revision = revision


def _importable(item: Mutation | PillionError) -> Mutation:
    if isinstance(item, PillionError):
        raise item
    if not isinstance(item, PutFact | AddMemory | CaptureEpisode):
        raise PillionError.of_field(
            "kind", "an import takes put_fact, add_memory and capture_episode only"
        )
    check_mutation(item)
    return item


def _apply_each(
    draft: Draft, applier: Applier, items: Sequence[tuple[int, Mutation]]
) -> tuple[int, int, list[ImportRejection]]:
    """Apply each item, undoing those that are refused; return written, existing and refused."""
    written = existing = 0
    refused = []
    for index, item in items:
        mark = draft.savepoint()
        try:
            applier.apply(item)
        except PillionError as error:
            draft.roll_back(mark)
            if error.reason is Reason.ALREADY_EXISTS and "id" in error.metadata:
                existing += 1
            else:
                refused.append(ImportRejection(index, error))
        else:
            written += 1
    return written, existing, refused
