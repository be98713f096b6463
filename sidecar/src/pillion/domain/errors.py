"""Every way a call can fail, as one exception with a published reason.

``PillionError`` carries a ``Reason``; the reasons are those of the contract's ``ErrorReason``, and
a test holds the two lists equal. Which status code a reason travels with is the edge's business
(``pillion.transport.status``), where another test holds the map total.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Reason(StrEnum):
    """Why a call failed. Names are those of ``ErrorReason`` without its prefix."""

    INVALID_FIELD = "INVALID_FIELD"
    PRECONDITION_MISSING = "PRECONDITION_MISSING"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    DIMENSION_MISMATCH = "DIMENSION_MISMATCH"
    NOT_FINITE = "NOT_FINITE"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    PAGE_TOKEN_INVALID = "PAGE_TOKEN_INVALID"  # noqa: S105  (a name, not a secret)
    SCHEMA_VIOLATION = "SCHEMA_VIOLATION"
    INTERVAL_EMPTY = "INTERVAL_EMPTY"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    ALREADY_RUNNING = "ALREADY_RUNNING"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    FACT_CONFLICT = "FACT_CONFLICT"
    NOT_FOUND = "NOT_FOUND"
    EMBEDDER_MISMATCH = "EMBEDDER_MISMATCH"
    SEALED = "SEALED"
    ALREADY_ENDED = "ALREADY_ENDED"
    ATTRIBUTE_UNREGISTERED = "ATTRIBUTE_UNREGISTERED"
    FORCE_REQUIRED = "FORCE_REQUIRED"
    ERASURE_UNPROVEN = "ERASURE_UNPROVEN"
    HISTORY_GONE = "HISTORY_GONE"
    FUTURE_REVISION = "FUTURE_REVISION"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    STORE_FULL = "STORE_FULL"
    OVERLOADED = "OVERLOADED"
    UNAVAILABLE = "UNAVAILABLE"
    PLUGIN_UNAVAILABLE = "PLUGIN_UNAVAILABLE"
    CORRUPT = "CORRUPT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    NOT_SERVED = "NOT_SERVED"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One field at fault: its path in the request and what to do about it."""

    field: str
    description: str


class PillionError(Exception):
    """A call that failed for a published reason.

    Attributes:
        reason: Why, for programs.
        message: What to do about it, for people. Never holds content of memories.
        violations: The fields at fault, if any.
        metadata: Small facts for programs, for example the current version.
        retry_after_ms: When to try again, in milliseconds; None: the error says nothing of it.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        violations: Sequence[FieldViolation] = (),
        metadata: Mapping[str, str] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.violations = tuple(violations)
        self.metadata = dict(metadata or {})
        self.retry_after_ms = retry_after_ms

    @classmethod
    def of_field(cls, field: str, description: str, reason: Reason = Reason.INVALID_FIELD) -> Self:
        """Return the error for one field at fault."""
        return cls(
            reason, f"{field}: {description}", violations=[FieldViolation(field, description)]
        )

    def within(self, prefix: str, **metadata: str) -> PillionError:
        """Return the same error with its fields put below ``prefix`` (``mutations[3]``)."""
        moved = [
            FieldViolation(f"{prefix}.{violation.field}", violation.description)
            for violation in self.violations
        ]
        return PillionError(
            self.reason,
            f"{prefix}: {self.message}",
            violations=moved,
            metadata={**self.metadata, **metadata},
            retry_after_ms=self.retry_after_ms,
        )
