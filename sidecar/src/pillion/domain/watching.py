"""What a watch tells: which commits concern a consumer, and what each did to each record.

The rule, on which a replica can be built: a change is told when the scope of the filter admits
the record before or after the commit. The scope is the filter without what time or an ending
decides (validity, retracted, expired), so a record that was told once is told again when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion.domain.queries import Filter

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.queries import Found


class ChangeKind(IntEnum):
    """What happened to a record. Numbers as in the contract."""

    CREATED = 1
    UPDATED = 2
    REMOVED = 3


@dataclass(frozen=True, slots=True)
class RecordChange:
    """One change of one record; ``found`` is the record as the commit left it, None: removed."""

    kind: ChangeKind
    id: UUID
    found: Found | None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """What a stream says: everything up to ``revision`` was told.

    With changes it is a commit, recorded at ``recorded_at``; without, a heartbeat, or with
    ``resume`` the end of the stream.
    """

    revision: int
    recorded_at: int | None = None
    changes: tuple[RecordChange, ...] = ()
    resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchQuery:
    """What to watch. ``filter`` None: every record but candidates, in every context.

    ``after_revision`` 0: from the oldest commit kept.
    """

    after_revision: int
    filter: Filter | None
    heartbeat_seconds: float


_EVERY_CONTEXT: Final = Filter(contexts=None)


class Scope:
    """Which records a watch is about."""

    def __init__(self, asked: Filter | None) -> None:
        self._filter = replace(
            asked or _EVERY_CONTEXT,
            valid_only=False,
            include_retracted=True,
            include_expired=True,
        )
        # What only memories have keeps episodes out: they could not meet it.
        self._episodes = not self._filter.is_about_memories

    def admits(self, found: Found | None) -> bool:
        """Return whether the watch is about a record as it stands; None is no record."""
        if found is None:
            return False
        if found.memory is not None:
            return self._filter.admits(found.memory, 0, 0)
        return (
            self._episodes
            and found.episode is not None
            and self._filter.admits_episode(found.episode)
        )


def change_of(
    record_id: UUID, before: Found | None, after: Found | None, *, deleted: bool, scope: Scope
) -> RecordChange | None:
    """Return what a commit did to a record, as the watch tells it; None: it does not concern it.

    ``deleted`` says that the commit deleted the record. What it was may be gone from the past
    too; then nobody can tell whom it concerned, so its removal is told whatever the scope. A
    record that is absent though this commit wrote it was removed later, and that is told later.
    """
    if deleted:
        if before is None or scope.admits(before):
            return RecordChange(ChangeKind.REMOVED, record_id, None)
        return None
    if after is None or not (scope.admits(after) or scope.admits(before)):
        return None
    kind = ChangeKind.CREATED if before is None else ChangeKind.UPDATED
    return RecordChange(kind, record_id, after)
