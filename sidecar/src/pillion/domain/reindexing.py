"""Reindex: what it is to do, and how far it is. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.embedding import EmbedderIdentity

REINDEX: Final = "Reindex"


class ReindexPhase(IntEnum):
    """What a Reindex is at. Numbers as in the stored format."""

    QUEUE = 1  # every text is queued for a vector; where the space changes, old vectors go
    MAKE = 2  # the vectors are made
    INDEX = 3  # what is in memory is built anew
    SETTLE = 4  # the index takes up the vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindexing:
    """The work of a Reindex.

    Attributes:
        phase: What it is at.
        target: The embedder that makes every vector anew; None: vectors stay.
        moves: Vectors so far are of another space.
        cursor: The last memory that was queued; None: none yet, or none is to be.
        memories: Memories that it is about, as counted on the way.
        made: Of those, how many have their vector, or were refused one.
    """

    unit: ClassVar[str] = "memories"

    phase: ReindexPhase
    target: EmbedderIdentity | None = None
    moves: bool = False
    cursor: UUID | None = None
    memories: int = 0
    made: int = 0

    @property
    def done(self) -> int:
        """Memories that it is done with."""
        return self.made
