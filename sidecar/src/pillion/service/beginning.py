"""How an operation of any verb begins: once for a request id, and one at a time where it must.

That only one of a verb is at work in a partition is a record beside it (the setting
``aoperation:VERB``), written by the commit that begins one and deleted by the one that ends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec, operations_codec
from pillion_storage.api import Batch, Committed, Token
from pillion_storage.keys import (
    OPERATIONS,
    id_of,
    operation_key,
    operation_slot,
    prefix_end,
    undo_range,
)

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition, check_request_id
from pillion.domain.operations import Operation, OperationState
from pillion.service.answers import check_same_body
from pillion.service.draft import Draft
from pillion.service.operations import find_operation, memo_of, put_operation
from pillion.service.writer import changed_too_often, token_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import Store

    from pillion.domain.operations import Work
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline, IdSource
    from pillion.service.operations import RunningOperations

_SWEEP_ROWS: Final = 1000


class Beginner:
    """Begins operations, and drops the records of those that ended long ago."""

    def __init__(
        self, *, store: Store, clock: Clock, ids: IdSource, running: RunningOperations
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._running = running

    def begin(
        self,
        partition: Partition,
        verb: str,
        planned: Callable[[Draft], tuple[Work, int]],
        deadline: Deadline,
        *,
        alone: bool,
        request_id: str = "",
        body_digest: bytes = b"",
    ) -> Operation:
        """Begin an operation; its doer goes on with it at once.

        Args:
            partition: Where.
            verb: What its doer is known by.
            planned: Gives the work and its units in all (0: not known), read through a draft; what
                it puts there is committed with the operation. Called again for every try.
            deadline: Until when it is tried.
            alone: No other operation of the verb may be at work in the partition. Its doer's
                ``ended`` must then call ``free_slot``.
            request_id: The same once more begins nothing and returns the first operation.
            body_digest: Tells a retry from another request of the same id.

        Raises:
            PillionError: ALREADY_RUNNING; REQUEST_ID_REUSED; ALREADY_ENDED when a retry comes
                after the record was dropped; what ``planned`` raises.
        """
        check_partition(partition)
        check_request_id(request_id)
        token = token_id(verb, request_id) if request_id else b""
        earlier = self._store.find_token(partition, token) if token else None
        if earlier is not None:
            return self.replayed(partition, earlier, body_digest)
        self.sweep(partition)
        for _ in range(limits.COMMIT_TRIES_MAX):
            deadline.check()
            draft = Draft(self._store, partition)
            if alone:
                refuse_second(draft, verb)
            work, total = planned(draft)
            operation = Operation(
                id=self._ids.new_id(),
                verb=verb,
                state=OperationState.RUNNING,
                work=work,
                started_at=self._clock.now_us(),
                total=total,
            )
            put_operation(draft, operation)
            if alone:
                draft.put(operation_slot(verb), operation.id.bytes)
            kept = Token(token, memo_of(body_digest, operation)) if token else None
            outcome = self._store.commit(partition, draft.batch(kept))
            if isinstance(outcome, Committed):
                if outcome.replayed:
                    return self.replayed(partition, outcome, body_digest)
                self._running.add(partition, operation.id)
                return operation
        raise changed_too_often()

    def replayed(self, partition: Partition, earlier: Committed, body_digest: bytes) -> Operation:
        """Return the operation that an earlier request of the same id began.

        Raises:
            PillionError: REQUEST_ID_REUSED; ALREADY_ENDED: its record was dropped.
        """
        check_same_body(earlier.memo, body_digest)
        operation_id = UUID(bytes=codec.unpack(earlier.memo or b"")[1])
        operation = find_operation(Draft(self._store, partition), operation_id)
        if operation is None:  # it is swept once it has ended, never before
            raise PillionError(
                Reason.ALREADY_ENDED,
                f"this request began operation {operation_id}, which ended so long ago that its "
                "record was dropped; nothing was begun anew",
                metadata={"operation": str(operation_id)},
            )
        return operation

    def sweep(self, partition: Partition) -> None:
        """Drop records of operations that ended long ago, and what they left."""
        before = self._clock.now_us() - limits.OPERATION_KEPT_US
        page = self._store.scan(partition, OPERATIONS, prefix_end(OPERATIONS), limit=_SWEEP_ROWS)
        for row in page.rows:
            operation = operations_codec.decode_operation(id_of(row.key), row.value)
            if not 0 < operation.ended_at < before:
                continue
            prefix = undo_range(operation.id)
            left = self._store.scan(
                partition, prefix, prefix_end(prefix), limit=_SWEEP_ROWS, keys_only=True
            )
            gone = [one.key for one in left.rows]
            if left.next_start is None:
                gone.append(operation_key(operation.id))
            self._store.commit(partition, Batch(deletes=gone))


def refuse_second(draft: Draft, verb: str) -> None:
    """Refuse to begin an operation while another of its verb is at work.

    Raises:
        PillionError: ALREADY_RUNNING, naming it.
    """
    held = draft.get(operation_slot(verb))
    if held is None:
        return
    name = str(UUID(bytes=held))
    raise PillionError(
        Reason.ALREADY_RUNNING,
        f"operation {name} is doing this in this partition: wait for it, or cancel it",
        metadata={"operation": name},
    )


def free_slot(draft: Draft, operation: Operation) -> None:
    """Let another operation of the verb begin: this one has ended."""
    if draft.get(operation_slot(operation.verb)) == operation.id.bytes:
        draft.delete(operation_slot(operation.verb))
