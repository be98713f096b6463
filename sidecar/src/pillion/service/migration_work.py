"""One commit of a migration, or of its roll-back, in the making."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.operations import Migration, Operation
    from pillion.domain.scope import FactKey
    from pillion.service.applier import Applier
    from pillion.service.draft import Draft


@dataclass(slots=True)
class MigrationWork:
    """What one commit reads and wants written, and how much it may.

    Attributes:
        draft: The commit.
        applier: What keeps the indexes of its memories.
        keys: Of the partition.
        operation: The migration or the roll-back, as it was before.
        now: The time of the commit.
        room: Records that may still be changed.
        rows: Rows that were.
        settled: Timelines with nothing left to change.
    """

    draft: Draft
    applier: Applier
    keys: KeySpace
    operation: Operation
    now: int
    room: int
    rows: int = 0
    settled: set[FactKey] = field(default_factory=set)

    @property
    def migration(self) -> Migration:
        """What the operation is to do."""
        return self.operation.migration


def put_memory(work: MigrationWork, old: Memory, new: Memory) -> None:
    """Write a memory with another value, and what follows from its text."""
    work.applier.records.update(new)
    if new.text != old.text:
        work.applier.records.text_changed(new)
    work.applier.candidates.follow(old, new)
