"""Everything a call can raise, as one tree; switch on the class or on ``reason``, not the text.

    PillionError
    ├── InvalidArgument          a field is missing, malformed or out of range
    ├── Aborted
    │   ├── VersionMismatch      somebody wrote first: read again, decide again
    │   └── AlreadyRunning       the same operation is at work
    ├── AlreadyExists            must_not_exist was asked and it exists
    │   └── FactConflict         another statement begins at the same instant
    ├── NotFound
    ├── FailedPrecondition       the state of the store forbids it
    ├── OutOfRange               before the kept history, or a revision not reached
    ├── ResourceExhausted
    │   ├── QuotaExceeded        the tenant's quota is used up
    │   ├── StoreFull            the disk or the store is full
    │   ├── Overloaded           too much is waiting: retry after ``retry_after_seconds``
    │   └── MessageTooLarge      more than one message may hold
    ├── Unavailable              starting, draining, or a plug-in did not answer
    │   └── NoServer             nothing answers at the target
    ├── DataLoss                 a stored record failed its checksum
    ├── Unauthenticated
    ├── PermissionDenied
    ├── DeadlineExceeded         a commit in flight may still have happened
    ├── Cancelled                a commit in flight may still have happened
    ├── NotServed                see ``info().capabilities``
    └── Internal                 a bug

Input that is refused before anything is sent (a time without an offset, a NaN) is a plain
``ValueError``. In asyncio, cancelling the task raises ``asyncio.CancelledError`` as ever.
"""
# Names are the contract's; the tree says that they are errors.
# ruff: noqa: N818

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from grpc import StatusCode

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field at fault: its path in the request and what to do about it."""

    field: str
    description: str


class PillionError(Exception):
    """A call that failed.

    Attributes:
        message: What to do about it, for people.
        code: The gRPC status code.
        reason: The ``ErrorReason``'s name without its prefix; "" when the server named none.
        metadata: Small facts for programs.
        field_violations: The fields at fault, if any.
        retry_after_seconds: When to try again; None: the error says nothing of it.
        attempts: How often ``update_fact`` began before it gave up with this error; else 1.
    """

    default_code: ClassVar[StatusCode] = StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: StatusCode | None = None,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        field_violations: tuple[FieldViolation, ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.field_violations = field_violations
        self.retry_after_seconds = retry_after_seconds
        self.attempts = 1


class InvalidArgument(PillionError):
    """A field is missing, malformed or out of range; ``field_violations`` names each."""

    default_code = StatusCode.INVALID_ARGUMENT


class Aborted(PillionError):
    """Something else got there first."""

    default_code = StatusCode.ABORTED


class VersionMismatch(Aborted):
    """The version is not the current one. Read again and decide again; a blind retry is wrong."""

    @property
    def key(self) -> str | None:
        """What the precondition was about, as the server names it."""
        return self.metadata.get("key")

    @property
    def expected(self) -> int | None:
        """The version that the write asked for."""
        return _number(self.metadata.get("expected_version"))

    @property
    def current(self) -> int | None:
        """The version that is there. 0: nothing is; None: the server did not say."""
        return _number(self.metadata.get("current_version"))


class AlreadyRunning(Aborted):
    """The same operation is already running in this partition."""


class AlreadyExists(PillionError):
    """``must_not_exist`` was asked and it exists."""

    default_code = StatusCode.ALREADY_EXISTS

    @property
    def current(self) -> int | None:
        """The version that is there. None: the server did not say."""
        return _number(self.metadata.get("current_version"))


class FactConflict(AlreadyExists):
    """Another statement begins at the same instant with another value."""


class NotFound(PillionError):
    """There is no such memory, episode, fact, operation or receipt in this partition."""

    default_code = StatusCode.NOT_FOUND


class FailedPrecondition(PillionError):
    """The state of the store forbids it; ``reason`` says which state."""

    default_code = StatusCode.FAILED_PRECONDITION


class OutOfRange(PillionError):
    """The revision or instant is older than the kept history, or not reached yet."""

    default_code = StatusCode.OUT_OF_RANGE


class ResourceExhausted(PillionError):
    """A limit is reached."""

    default_code = StatusCode.RESOURCE_EXHAUSTED


class QuotaExceeded(ResourceExhausted):
    """A tenant's quota is used up."""


class StoreFull(ResourceExhausted):
    """The disk or the configured size of the store is full."""


class Overloaded(ResourceExhausted):
    """Too much work is waiting; ``retry_after_seconds`` says when to try again."""


class MessageTooLarge(ResourceExhausted):
    """A request or an answer is larger than one message may be."""


class Unavailable(PillionError):
    """The server is starting or draining, or a plug-in of it did not answer."""

    default_code = StatusCode.UNAVAILABLE


class NoServer(Unavailable):
    """Nothing answers at the target."""


class DataLoss(PillionError):
    """A stored record failed its checksum."""

    default_code = StatusCode.DATA_LOSS


class Unauthenticated(PillionError):
    """There is no credential, or not a valid one."""

    default_code = StatusCode.UNAUTHENTICATED


class PermissionDenied(PillionError):
    """The credential does not reach this partition or verb."""

    default_code = StatusCode.PERMISSION_DENIED


class DeadlineExceeded(PillionError):
    """The deadline passed. A commit in flight may still have happened."""

    default_code = StatusCode.DEADLINE_EXCEEDED


class Cancelled(PillionError):
    """The call was cancelled. A commit in flight may still have happened."""

    default_code = StatusCode.CANCELLED


class NotServed(PillionError):
    """This server does not serve it; see ``info().capabilities``."""

    default_code = StatusCode.UNIMPLEMENTED


class Internal(PillionError):
    """A bug. The server's log has the details."""

    default_code = StatusCode.INTERNAL


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
