"""Long work: its records, who waits for it, and which of it is to be gone on with."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from pillion_storage import codec, operations_codec
from pillion_storage.api import Committed
from pillion_storage.keys import ID_BYTES, OPERATIONS, id_of, operation_key, prefix_end

from pillion.domain import limits
from pillion.domain.errors import PillionError
from pillion.domain.field_checks import check_partition
from pillion.domain.operations import Operation, OperationState
from pillion.service.draft import Draft
from pillion.service.page_tokens import PageToken, digest_of
from pillion.service.records import not_found
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline

# A wait ends this much before its deadline, so that the answer arrives; and it looks this often
# whether the caller is still there.
ANSWER_SECONDS: Final = 0.2
LOOK_SECONDS: Final = 2.0


def find_operation(draft: Draft, operation_id: UUID) -> Operation | None:
    """Return an operation as a draft sees it, or None."""
    data = draft.get(operation_key(operation_id))
    return operations_codec.decode_operation(operation_id, data) if data is not None else None


def put_operation(draft: Draft, operation: Operation) -> None:
    """Write an operation in a draft."""
    draft.put(operation_key(operation.id), operations_codec.encode_operation(operation))


class RunningOperations:
    """The operations that are to be gone on with, and a bell for whoever does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bell = threading.Condition()
        self._running: dict[tuple[Partition, UUID], None] = {}
        self._awake = False

    def load(self) -> None:
        """Find what an earlier process left unfinished."""
        for partition in self._store.partitions():
            start: bytes | None = OPERATIONS
            while start is not None:
                page = self._store.scan(
                    partition, start, prefix_end(OPERATIONS), limit=limits.PAGE_SIZE_MAX
                )
                for row in page.rows:
                    operation = operations_codec.decode_operation(id_of(row.key), row.value)
                    if operation.state is OperationState.RUNNING:
                        self.add(partition, operation.id)
                start = page.next_start

    def add(self, partition: Partition, operation_id: UUID) -> None:
        """Have an operation gone on with."""
        with self._bell:
            self._running[partition, operation_id] = None
            self._bell.notify()

    def drop(self, partition: Partition, operation_id: UUID) -> None:
        """An operation has ended."""
        with self._bell:
            self._running.pop((partition, operation_id), None)

    def wait(self, timeout_seconds: float) -> list[tuple[Partition, UUID]]:
        """Return what there is to do, waiting for something if there is nothing."""
        with self._bell:
            if not self._awake and not self._running:
                self._bell.wait(timeout_seconds)
            return list(self._running)

    def wake(self) -> None:
        """Never wait again."""
        with self._bell:
            self._awake = True
            self._bell.notify_all()


class Stopper(Protocol):
    """What a verb has to say when an operation of it is cancelled (`service.operating.Doer`)."""

    def may_stop(self, operation: Operation) -> bool:
        """Return whether a running operation may be cancelled."""
        ...

    def ended(self, draft: Draft, operation: Operation) -> None:
        """Put into the commit that ends an operation what follows from it."""
        ...


class Operations:
    """Shows operations, waits for them, and stops them."""

    def __init__(self, *, store: Store, clock: Clock, stoppers: Mapping[str, Stopper]) -> None:
        self._store = store
        self._clock = clock
        self._stoppers = stoppers

    def get(self, partition: Partition, name: str) -> Operation:
        """Return an operation.

        Raises:
            PillionError: NOT_FOUND, also once its record was dropped.
        """
        check_partition(partition)
        found = find_operation(Draft(self._store, partition), operation_id_of(name))
        if found is None:
            raise not_found("operation", name)
        return found

    def page(
        self, partition: Partition, *, page_size: int, page_token: str
    ) -> tuple[list[Operation], str]:
        """Return operations, the latest first, and the next page's token, if any.

        Raises:
            PillionError: PAGE_TOKEN_INVALID; INVALID_FIELD for a negative size.
        """
        check_partition(partition)
        if page_size < 0:
            raise PillionError.of_field("page_size", "must not be negative")
        head = self._store.head(partition).revision
        digest = digest_of("operations")
        token = PageToken(head, 0, b"", digest)
        if page_token:
            token = PageToken.decode(
                page_token, digest, head, prefix=OPERATIONS, place_bytes=ID_BYTES
            )
        page = self._store.scan(
            partition,
            OPERATIONS,
            token.after or prefix_end(OPERATIONS),
            limit=min(page_size or limits.PAGE_SIZE_DEFAULT, limits.OPERATIONS_PAGE_MAX),
            reverse=True,
            at=token.revision,
        )
        found = [operations_codec.decode_operation(id_of(row.key), row.value) for row in page.rows]
        if page.next_start is None or not found:
            return found, ""
        return found, replace(token, after=operation_key(found[-1].id)).encode()

    def wait(self, partition: Partition, name: str, deadline: Deadline) -> Operation:
        """Return an operation once it has ended, or as it is when the deadline is near.

        Raises:
            PillionError: NOT_FOUND; CANCELLED when the caller is gone.
        """
        while True:
            revision = self._store.head(partition).revision
            found = self.get(partition, name)
            left = deadline.remaining_seconds() - ANSWER_SECONDS
            if found.state is not OperationState.RUNNING or left <= 0:
                return found
            deadline.check()
            self._store.wait(partition, revision, min(left, LOOK_SECONDS))

    def cancel(self, partition: Partition, name: str, deadline: Deadline) -> Operation:
        """Stop an operation. What it has committed stays.

        One that has ended, or is past being stopped, stays as it is.

        Raises:
            PillionError: NOT_FOUND.
        """
        self.get(partition, name)
        for _ in range(limits.COMMIT_TRIES_MAX):
            deadline.check()
            draft = Draft(self._store, partition)
            found = find_operation(draft, operation_id_of(name))
            if found is None:
                raise not_found("operation", name)
            verb = self._stoppers[found.verb]
            if found.state is not OperationState.RUNNING or not verb.may_stop(found):
                return found
            ended = found.ended(OperationState.CANCELLED, self._clock.now_us())
            put_operation(draft, ended)
            verb.ended(draft, ended)
            if isinstance(self._store.commit(partition, draft.batch(None)), Committed):
                return ended
        raise changed_too_often()


def operation_id_of(name: str) -> UUID:
    """Return the id that an operation's name stands for.

    Raises:
        PillionError: NOT_FOUND: the server never gave such a name.
    """
    try:
        made = UUID(name)
    except ValueError:
        made = None
    if made is None or str(made) != name:
        raise not_found("operation", "of this name")
    return made


def memo_of(body_digest: bytes, operation: Operation, *more: object) -> bytes:
    """Return what a retry of the call that began an operation finds."""
    return codec.pack([body_digest, operation.id.bytes, *more])
