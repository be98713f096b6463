"""Reindex: a partition's vectors made anew, and what is in memory of it built anew.

A partition has one vector space (docs/adr/0008), and this process one embedder, which cannot make
queries for another's vectors. So where the space changes, the old vectors go first, then the space
is another, and the queue of vectors (``q`` records) fills it: searches go on by words and by the
vectors that are there, and say how many are pending (docs/adr/0025). Where it stays, each vector
serves until the new one takes its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import (
    EMBEDDER_KEY,
    after,
    id_of,
    memory_key,
    pending_key,
    prefix_end,
    vector_key,
)

from pillion.domain.errors import PillionError, Reason
from pillion.domain.operations import OperationState
from pillion.domain.reindexing import REINDEX, Reindexing, ReindexPhase
from pillion.service.beginning import free_slot
from pillion.service.vectors import CLIENT_SPACE, PENDING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import Store

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.operations import Operation, Work
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.beginning import Beginner
    from pillion.service.draft import Draft
    from pillion.service.operating import Part
    from pillion.service.pending import PendingVectors
    from pillion.service.residents import Residents

MEMORIES: Final = b"m"
# The index of memories by creation, whose rows hold nothing: to count by.
BY_CREATION: Final = b"c"
COUNT_STEP: Final = 10_000
# Texts that are queued for each record of a step's room: a record of the queue is small.
QUEUED_PER_ROOM: Final = 8
# How long one step looks whether the index has settled.
SETTLE_SECONDS: Final = 1.0


class Reindexer:
    """Begins Reindex, and does its work.

    Args:
        store: Where the partitions are.
        residents: What is in memory.
        pending: How many vectors each partition waits for.
        server: Who makes vectors here; None: nobody.
        make_some: Makes some of a partition's queued vectors, the oldest first; returns how many
            records of the queue are gone.
        beginner: Begins operations.
    """

    def __init__(
        self,
        *,
        store: Store,
        residents: Residents,
        pending: PendingVectors,
        server: EmbedderIdentity | None,
        make_some: Callable[[Partition], int],
        beginner: Beginner,
    ) -> None:
        self._store = store
        self._residents = residents
        self._pending = pending
        self._server = server
        self._make_some = make_some
        self._beginner = beginner

    def reindex(self, partition: Partition, deadline: Deadline, *, re_embed: bool) -> Operation:
        """Begin to build a partition's index anew, and with ``re_embed`` every vector too.

        Raises:
            PillionError: ALREADY_RUNNING; EMBEDDER_MISMATCH when vectors are to be made and
                clients send this partition's, or the server makes none.
        """

        def planned(draft: Draft) -> tuple[Work, int]:
            if not re_embed:
                return Reindexing(phase=ReindexPhase.INDEX), 0
            target = self._target(draft)
            held = draft.get(EMBEDDER_KEY)
            moves = held is not None and not codec.decode_embedder(held).same_space(target)
            if held is None:  # from now on no client's vectors are taken
                draft.put(EMBEDDER_KEY, codec.encode_embedder(target))
            work = Reindexing(phase=ReindexPhase.QUEUE, target=target, moves=moves)
            return work, self._count(partition, deadline)

        return self._beginner.begin(partition, REINDEX, planned, deadline, alone=True)

    def _target(self, draft: Draft) -> EmbedderIdentity:
        held = draft.get(EMBEDDER_KEY)
        if held is not None and codec.decode_embedder(held).name == CLIENT_SPACE:
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                "this partition's vectors were sent by clients, and are never replaced: write its "
                "texts to another tenant to have them embedded here",
                metadata={"embedder": CLIENT_SPACE},
            )
        if self._server is None:
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                "this server makes no vectors: start it with the embedder that shall make them",
            )
        return self._server

    def _count(self, partition: Partition, deadline: Deadline) -> int:
        total = 0
        start: bytes | None = BY_CREATION
        while start is not None:
            deadline.check()
            page = self._store.scan(
                partition, start, prefix_end(BY_CREATION), limit=COUNT_STEP, keys_only=True
            )
            total += len(page.rows)
            start = page.next_start
        return total

    # --- the work --------------------------------------------------------------------------

    def step(self, part: Part) -> Operation:
        """Do a bounded part of a Reindex; see ``Doer``."""
        work = _work_of(part.operation)
        if work.target is not None and work.target != self._server:
            # Restarted with another embedder: the texts stay queued for whoever makes them.
            raise PillionError(
                Reason.EMBEDDER_MISMATCH, "the server no longer has the embedder that this is for"
            )
        match work.phase:
            case ReindexPhase.QUEUE:
                made = self._queued(part, work)
            case ReindexPhase.MAKE:
                made = self._made(part, work)
            case ReindexPhase.INDEX:
                self._residents.rebuild(part.draft.partition)
                made = replace(work, phase=ReindexPhase.SETTLE)
            case ReindexPhase.SETTLE:
                resident = self._residents.peek(part.draft.partition)
                if resident is None or resident.view.ann.wait_settled(SETTLE_SECONDS):
                    return part.operation.ended(OperationState.SUCCEEDED, part.now)
                made = work
        return replace(part.operation, work=made)

    def _queued(self, part: Part, work: Reindexing) -> Reindexing:
        """Queue some texts; with the last of them the partition has the target's space."""
        draft = part.draft
        draft.get(EMBEDDER_KEY)  # whoever changes the space meanwhile is seen
        page = self._store.scan(
            draft.partition,
            after(memory_key(work.cursor)) if work.cursor is not None else MEMORIES,
            prefix_end(MEMORIES),
            limit=part.room * QUEUED_PER_ROOM,
            at=draft.revision,
            keys_only=True,
        )
        ids = [id_of(row.key) for row in page.rows]
        draft.preload([pending_key(one) for one in ids])
        for one in ids:
            draft.put(pending_key(one))
            if work.moves:
                draft.delete(vector_key(one))
        made = replace(
            work, memories=work.memories + len(ids), cursor=ids[-1] if ids else work.cursor
        )
        if page.next_start is not None:
            return made
        if work.moves and work.target is not None:
            draft.put(EMBEDDER_KEY, codec.encode_embedder(work.target))
        return replace(made, phase=ReindexPhase.MAKE)

    def _made(self, part: Part, work: Reindexing) -> Reindexing:
        partition = part.draft.partition
        self._pending.resume(partition)  # its queue is for this embedder now, if it was not before
        self._make_some(partition)
        queue = self._store.scan(partition, PENDING, prefix_end(PENDING), limit=1, keys_only=True)
        last = work.cursor
        if last is None or not queue.rows or queue.rows[0].key > pending_key(last):
            return replace(work, phase=ReindexPhase.INDEX, made=work.memories)
        left = self._pending.count(partition)
        return replace(work, made=min(max(work.made, work.memories - left), work.memories))

    def may_stop(self, operation: Operation) -> bool:
        """Return True: vectors that are queued by then are made all the same.

        Not while vectors of another space go, half of which would be missing.
        """
        work = _work_of(operation)
        return not (work.moves and work.phase is ReindexPhase.QUEUE and work.cursor is not None)

    def ended(self, draft: Draft, operation: Operation) -> None:
        """Let another Reindex begin."""
        free_slot(draft, operation)


def _work_of(operation: Operation) -> Reindexing:
    if not isinstance(operation.work, Reindexing):
        raise TypeError(f"{operation.verb} is no Reindex")
    return operation.work
