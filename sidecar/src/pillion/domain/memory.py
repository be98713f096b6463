"""The nouns: memories, episodes and their sources. Frozen values; a change is a new value.

Instants are microseconds since the Unix epoch in UTC. ``FOREVER`` is an open end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion.domain.scope import MAIN_CONTEXT, FactKey, Subject

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.values import Value

FOREVER: Final = 2**63 - 1
IMPORTANCE_DEFAULT: Final = 0.5
CONFIDENCE_DEFAULT: Final = 1.0


class MemoryKind(IntEnum):
    """What kind of memory it is. Numbers are those of the contract and of the stored format."""

    EPISODIC = 1
    SEMANTIC = 2
    PROCEDURAL = 3
    SESSION = 4
    OPEN_ITEM = 5


class MemoryStatus(IntEnum):
    """How far a memory is established. Numbers as in the contract and the stored format."""

    CANDIDATE = 1
    STATED = 2
    CONFIRMED = 3


class SourceKind(IntEnum):
    """Where a statement came from. Numbers as in the contract and the stored format."""

    USER_STATEMENT = 1
    USER_CONFIRMATION = 2
    TOOL_RESULT = 3
    DOCUMENT = 4
    INFERENCE = 5
    CONSOLIDATION = 6


class EndReason(IntEnum):
    """Why a row's interval has its end, or why it left the recorded present."""

    OPEN = 0
    STATED = 1  # the statement itself named valid_to, or the next row was already there
    SUPERSEDED = 2  # a later statement closed it
    RETRACTED = 3  # closed without a successor
    CORRECTED = 4  # another statement took its place: it is no longer on the timeline
    WITHDRAWN = 5  # retracted as never having been so: no longer on the timeline


@dataclass(frozen=True, slots=True)
class Source:
    """Who said something, in which episode and in which words."""

    kind: SourceKind
    episode_id: UUID | None = None
    quote: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How often a memory was stated again, and by which distinct episodes (oldest first)."""

    count: int = 0
    episode_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The unit of recall. With kind SEMANTIC and an attribute it is one row of a fact.

    ``version`` and ``fact_version`` are filled in by reads; 0 in a value that is being written.
    """

    id: UUID
    subject: Subject
    kind: MemoryKind
    text: str
    source: Source
    valid_from: int
    created_at: int
    updated_at: int
    context: str = MAIN_CONTEXT
    attribute: str = ""
    value: Value | None = None
    importance: float = IMPORTANCE_DEFAULT
    confidence: float = CONFIDENCE_DEFAULT
    status: MemoryStatus = MemoryStatus.STATED
    pinned: bool = False
    pii_labels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    derived_from: tuple[UUID, ...] = ()
    consolidated_into: UUID | None = None
    valid_to: int = FOREVER
    end_reason: EndReason = EndReason.OPEN
    superseded_by: UUID | None = None
    supersedes: UUID | None = None
    last_used_at: int = 0
    use_count: int = 0
    recurrence: Recurrence = Recurrence()
    confirmation: Source | None = None  # of the last ConfirmMemory
    expires_at: int = FOREVER
    expired_at: int = FOREVER  # when Forget took it out of recall
    retracted_at: int = FOREVER  # when the retraction was recorded
    closed_at: int = FOREVER  # open items
    retention_class: str = ""
    schema_version: int = 0
    in_set: bool = False  # the attribute is a set: the value has a timeline of its own
    session_id: str = ""
    vector_pending: bool = False
    version: int = 0
    fact_version: int = 0

    @property
    def is_fact(self) -> bool:
        """Whether it is a row of a fact's timeline."""
        return bool(self.attribute)

    @property
    def fact_key(self) -> FactKey:
        """The key of the timeline it is a row of, or would be. Only for facts."""
        member = self.value.fingerprint if self.in_set and self.value is not None else b""
        return FactKey(self.subject, self.context, self.attribute, member)

    @property
    def value_subject(self) -> Subject | None:
        """The subject that its value refers to, which makes the fact an edge; None: it is none."""
        if self.value is None or not isinstance(self.value.data, Subject):
            return None
        return self.value.data

    @property
    def episode_ids(self) -> tuple[UUID, ...]:
        """The episodes that it names: what stated it, stated it again, and confirmed it last.

        Beyond the bound of a recurrence the last confirmation is named all the same. An episode
        may come twice.
        """
        sources = (self.source,) if self.confirmation is None else (self.source, self.confirmation)
        said = tuple(one.episode_id for one in sources if one.episode_id is not None)
        return said + self.recurrence.episode_ids

    @property
    def on_timeline(self) -> bool:
        """Whether it is still part of the recorded present of its key."""
        return self.end_reason not in (EndReason.CORRECTED, EndReason.WITHDRAWN)

    def valid_at(self, instant: int) -> bool:
        """Return whether its interval holds the instant."""
        return self.on_timeline and self.valid_from <= instant < self.valid_to

    def recallable_at(self, instant: int) -> bool:
        """Return whether neither an expiry nor a Forget has taken it out of recall by then."""
        return instant < self.expires_at and self.expired_at == FOREVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A raw source as captured. Never edited; ``expired_at`` only hides it from listings."""

    id: UUID
    subject: Subject
    content: str
    source_kind: SourceKind
    occurred_at: int
    recorded_at: int
    context: str = MAIN_CONTEXT
    media_type: str = "text/plain"
    author: str = ""
    session_id: str = ""
    external_ref: str = ""
    labels: tuple[str, ...] = ()
    retention_class: str = ""
    expires_at: int = FOREVER
    expired_at: int = FOREVER
    memory_id: UUID | None = None
    version: int = 0
