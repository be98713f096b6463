"""What follows from an erasure: what goes too, what loses a part, what never was. Pure.

To erase is to make it never have been here. Whatever was made of an erased record goes with it;
whatever only cites one stays and loses the citation, in its recorded past as well.

    a record that ...                                        what becomes of it
    was stated by an erased episode, or recalls it           goes
    was derived from an erased record (a summary, say)       goes; its other sources may be
                                                             consolidated again
    refers by its value to an erased subject                 goes
    is a guess that nothing but erased words vouched for     goes
    was also stated, or was confirmed, by an erased episode  stays without that
    points at an erased record                               stays without the pointer
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion.domain.memory import (
    EndReason,
    Memory,
    MemoryStatus,
    Recurrence,
    SourceKind,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from pillion.domain.memory import Episode
    from pillion.domain.scope import Partition, Subject


class Fate(IntEnum):
    """What becomes of a record."""

    STAYS = 1
    CHANGES = 2
    GOES = 3


def fate_of(
    memory: Memory,
    gone: AbstractSet[UUID],
    *,
    subject: Subject | None = None,
    promote_after: int = 0,
) -> Fate:
    """Return what becomes of a memory once some records never were.

    Args:
        memory: One that is not among them.
        gone: The ids of memories and episodes that go.
        subject: Whom nothing shall be left of; None: nobody.
        promote_after: Distinct episodes that vouch for a guess; 0: only a user does.
    """
    if subject is not None and subject in (memory.subject, memory.value_subject):
        return Fate.GOES
    if memory.source.episode_id in gone or any(one in gone for one in memory.derived_from):
        return Fate.GOES
    left = without(memory, gone)
    if left is memory:
        return Fate.STAYS
    return Fate.CHANGES if _vouched(memory, left, promote_after) else Fate.GOES


def _vouched(before: Memory, left: Memory, promote_after: int) -> bool:
    """Return whether an established guess is still established by what is left."""
    if before.source.kind is not SourceKind.INFERENCE or before.status is MemoryStatus.CANDIDATE:
        return True
    if before.confirmation is None and len(before.recurrence.episode_ids) == len(
        left.recurrence.episode_ids
    ):
        return True
    if left.confirmation is not None:
        return True
    first = (left.source.episode_id,) if left.source.episode_id is not None else ()
    return 0 < promote_after <= len({*first, *left.recurrence.episode_ids})


def without(memory: Memory, gone: AbstractSet[UUID]) -> Memory:
    """Return a memory that stays as it is, or was, without what some records added to it.

    The same memory where they added nothing.
    """
    changes: dict[str, object] = {}
    told = memory.recurrence
    episodes = tuple(one for one in told.episode_ids if one not in gone)
    lost = len(told.episode_ids) - len(episodes)
    if lost:
        changes["recurrence"] = Recurrence(max(len(episodes), told.count - lost), episodes)
    confirmed = memory.confirmation
    if confirmed is not None and confirmed.episode_id in gone:
        changes["confirmation"] = None
        if memory.status is MemoryStatus.CONFIRMED:
            changes["status"] = MemoryStatus.STATED
    for pointer in ("consolidated_into", "supersedes", "superseded_by"):
        if getattr(memory, pointer) in gone:
            changes[pointer] = None
    if "superseded_by" in changes and memory.end_reason is EndReason.SUPERSEDED:
        changes["end_reason"] = EndReason.STATED
    return replace(memory, **changes) if changes else memory  # type: ignore[arg-type]


def is_copy(memory: Memory, other: Memory) -> bool:
    """Return whether two rows of a fact have all of their words in common.

    Where a statement shows again behind another one it has a row of its own there, with an id of
    its own.
    """
    return (
        memory.value == other.value and memory.text == other.text and memory.source == other.source
    )


def tombstones_of(episode: Episode) -> list[tuple[str, ...]]:
    """Return the names by which an erased source is known again; only keyed hashes are kept."""
    names = [
        ("episode", str(episode.id)),
        said_at(episode.subject, episode.content, episode.occurred_at),
    ]
    if episode.external_ref:
        names.append(referred_to(episode.subject, episode.external_ref))
    return names


def said_at(subject: Subject, content: str, occurred_at: int) -> tuple[str, ...]:
    """Return the name of what was said of a subject at an instant.

    The instant belongs to it: whoever says "yes" again says something new.
    """
    return ("said", subject.type, subject.id, content, str(occurred_at))


def referred_to(subject: Subject, external_ref: str) -> tuple[str, ...]:
    """Return the name of a source by its id in the system that it came from."""
    return ("reference", subject.type, subject.id, external_ref)


class Stage(IntEnum):
    """How far an erasure is. Numbers are part of the stored format."""

    PLANNED = 1  # what goes is written down
    DELETED = 2  # no record of it is current
    SCRUBBED = 3  # nor in history; what stays is sealed with other keys
    LOGGED = 4  # the ledger names it, and the keys that are to be destroyed
    DONE = 5  # verified; this is the receipt


# How bytes went.
KEY_DESTROYED: Final = "key_destroyed"
COMPACTED: Final = "compacted"
OVERWRITTEN: Final = "overwritten"


@dataclass(frozen=True, slots=True)
class Place:
    """A place that an erasure cleaned.

    Attributes:
        name: Which.
        removed: How many records, versions or files went from it.
        method: How their bytes went.
    """

    name: str
    removed: int
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """An erasure: how far it is, and at its end the receipt. Holds no content and no names.

    Attributes:
        id: Its id, and its receipt's.
        stage: How far it is.
        subject: The keyed hash of a subject of whom nothing shall be left; empty: of none.
        owners: The keyed hashes of the subjects whose content it touches.
        key_ids: The data keys that are to be destroyed.
        memories: Memories that were selected.
        episodes: Episodes that were selected.
        derived: Records that follow these.
        changed: Memories that stay and lose something.
        sample: Some ids of what goes.
        exempt: Some of what was selected and is held.
        unpreviewed: How much of what goes had changed since the preview.
        plan_rows: In how many records the plan is.
        journal_rows: In how many records the deleted keys are.
        places: What was removed, from where.
        verification: How it was verified; empty: it is not yet.
        ledger_entry: The hash of its entry in the ledger; empty: there is none yet.
        started_at: When it began.
        finished_at: When it was verified.
        revision: That of the commit after which nothing of it is current.
    """

    id: UUID
    stage: Stage
    started_at: int
    subject: bytes = b""
    owners: tuple[bytes, ...] = ()
    key_ids: tuple[bytes, ...] = ()
    memories: int = 0
    episodes: int = 0
    derived: int = 0
    changed: int = 0
    sample: tuple[UUID, ...] = ()
    exempt: tuple[UUID, ...] = ()
    unpreviewed: int = 0
    plan_rows: int = 0
    journal_rows: int = 0
    places: tuple[Place, ...] = ()
    verification: str = ""
    ledger_entry: bytes = b""
    finished_at: int = 0
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """A finished erasure, and where."""

    partition: Partition
    erasure: Erasure
