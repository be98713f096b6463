"""Going on with long work of any verb: what a verb gives, and who calls it.

A verb is added by
1. a frozen ``Work`` in ``domain`` (what is to be done, how far it is; its result in the end), with
   its layout in ``pillion_storage.operations_codec`` and its report in ``transport.convert``;
2. a ``Doer``, given to the ``Operator`` of `service.assemble` under the verb;
3. a call that checks its request and ends in ``Beginner.begin`` (`service.beginning`).

What a step may do: read anything, and put into its draft what one commit takes. The record of how
far the operation is goes into the same commit, so what is done and what is said to be done never
part. A commit depends on that record: an operation that was cancelled, or goes on elsewhere, writes
nothing more. A step may be run again (a live writer was faster, the process died), so whatever it
does outside of its draft must bear being done twice.

What is resumed: after a start, however the last run ended, every RUNNING operation, from the work
that its last commit recorded. A PillionError of a step is of the caller's making and ends the
operation as FAILED; any other error is the machine's, and the step is tried again, later and later.

Rows under ``u`` + the operation's id are the operation's own notes. They go with its record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pillion_storage.api import Committed

from pillion.domain.errors import PillionError
from pillion.domain.operations import OperationState
from pillion.service.draft import Draft
from pillion.service.operations import find_operation, put_operation
from pillion.service.vectors import MadeVectors, pending_added

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.operations import Operation
    from pillion.domain.scope import Partition
    from pillion.ports import Clock
    from pillion.service.applier import Applier
    from pillion.service.pending import PendingVectors
    from pillion.service.writer import Writer

# Records that one commit changes at most, and what it is cut to where it does not go through.
SIZES: Final = (64, 16, 4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One commit of an operation in the making.

    Attributes:
        draft: What it reads and wants written.
        applier: What keeps the indexes of memories.
        operation: The operation as it was before.
        now: The time of the commit, in microseconds since the epoch.
        room: Records that the step should change at most.
    """

    draft: Draft
    applier: Applier
    operation: Operation
    now: int
    room: int


class Doer(Protocol):
    """Does the work of a verb."""

    def step(self, part: Part) -> Operation:
        """Put a bounded part of the work into a draft; return the operation as it is then.

        Returned as anything but RUNNING, the operation has ended. A step must come nearer to the
        end each time that its draft is committed.

        Raises:
            PillionError: It cannot be done, now or later: the operation FAILED.
        """
        ...

    def may_stop(self, operation: Operation) -> bool:
        """Return whether a running operation may be cancelled, leaving what it has done."""
        ...

    def ended(self, draft: Draft, operation: Operation) -> None:
        """Put into the commit that ends an operation, in whichever state, what follows from it."""
        ...


class Operator:
    """Goes on with operations, a commit at a time."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        writer: Writer,
        pending: PendingVectors,
        doers: Mapping[str, Doer],
    ) -> None:
        self._store = store
        self._clock = clock
        self._writer = writer
        self._pending = pending
        self._doers = doers

    def advance(self, partition: Partition, operation_id: UUID) -> bool:
        """Do a bounded part of an operation; return whether there is more to do."""
        for size in SIZES:
            draft, applier = self._writer.open_draft(partition, MadeVectors())
            operation = find_operation(draft, operation_id)
            if operation is None or operation.state is not OperationState.RUNNING:
                return False
            doer = self._doers[operation.verb]
            part = Part(
                draft=draft,
                applier=applier,
                operation=operation,
                now=self._clock.now_us(),
                room=size,
            )
            try:
                made = doer.step(part)
                put_operation(draft, made)
                if made.state is not OperationState.RUNNING:
                    doer.ended(draft, made)
                if draft.outgrown and size > 1:
                    continue
                batch = draft.batch(None)
            except PillionError as error:
                return not self._failed(partition, operation_id, error)
            if isinstance(self._store.commit(partition, batch), Committed):
                self._pending.add(partition, pending_added(draft))
                return made.state is OperationState.RUNNING
        return True  # live writers were faster: the next turn finds them done

    def _failed(self, partition: Partition, operation_id: UUID, error: PillionError) -> bool:
        """End an operation that cannot go on; return whether it has ended."""
        draft = Draft(self._store, partition)
        operation = find_operation(draft, operation_id)
        if operation is None or operation.state is not OperationState.RUNNING:
            return True
        made = operation.ended(OperationState.FAILED, self._clock.now_us(), error.reason.value)
        put_operation(draft, made)
        self._doers[made.verb].ended(draft, made)
        return isinstance(self._store.commit(partition, draft.batch(None)), Committed)
