"""Retention classes: how long what bears a class is kept. An operator's policy, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError
from pillion.domain.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from pillion.domain.memory import Episode


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionClass:
    """What an operator decided about a class.

    Attributes:
        owner: Who answers for it.
        review_on: When it is to be looked at again; past it the class still holds.
        keep_for: From recording on, in microseconds; None: without end.
    """

    owner: str
    review_on: date | None = None
    keep_for: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionClasses:
    """Every class that is configured, by name."""

    by_name: Mapping[str, RetentionClass] = field(default_factory=dict)

    def named(self, name: str) -> RetentionClass:
        """Return a class.

        Raises:
            PillionError: INVALID_FIELD: it is not configured, so nobody said how long it is kept.
        """
        found = self.by_name.get(name)
        if found is None:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise PillionError.of_field(
                "selector.retention_class", f"no such class is configured; known: {known}"
            )
        return found

    def ended_before(self, name: str, now: int) -> int | None:
        """Return the instant up to which what was recorded is past its time; None: nothing is.

        Raises:
            PillionError: INVALID_FIELD: as in ``named``.
        """
        keep_for = self.named(name).keep_for
        return None if keep_for is None else now - keep_for


NO_CLASSES: Final = RetentionClasses()


def recorded_at(record: Memory | Episode) -> int:
    """Return when a record was first recorded: what retention counts from."""
    return record.created_at if isinstance(record, Memory) else record.recorded_at
