"""What a caller may ask a Write to do, and what became of it. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pillion.domain.memory import FOREVER

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
    from pillion.domain.scope import FactKey, Subject
    from pillion.domain.values import Value


class PreconditionKind(IntEnum):
    """What must hold of a target."""

    MUST_NOT_EXIST = 1
    VERSION_EQUALS = 2
    MUST_EXIST = 3
    UNCONDITIONAL = 4


@dataclass(frozen=True, slots=True)
class Precondition:
    """What must hold of a target for a mutation to happen; ``version`` for VERSION_EQUALS."""

    kind: PreconditionKind
    version: int = 0


class ConflictPolicy(IntEnum):
    """What to do when two statements of one key begin at the same instant and differ."""

    REJECT = 1
    PREFER_SOURCE = 2
    CORRECT = 3


class EmbeddingMode(IntEnum):
    """When the vectors that the server makes must be there."""

    QUEUED = 1
    INLINE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """A memory as a caller states it, before the server gives it times and ids.

    ``None`` means that the caller said nothing, and the server's default holds.
    """

    subject: Subject
    source: Source
    kind: MemoryKind
    id: UUID | None = None
    context: str = ""
    attribute: str = ""
    value: Value | None = None
    text: str = ""
    vector: bytes = b""  # little-endian float32
    importance: float | None = None
    confidence: float | None = None
    status: MemoryStatus | None = None
    pinned: bool = False
    pii_labels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    derived_from: tuple[UUID, ...] = ()
    valid_from: int | None = None
    valid_to: int | None = None
    expires_at: int | None = None
    retention_class: str = ""
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class PutFact:
    """State a fact on its key's timeline. No policy: the attribute's own, else REJECT."""

    fact: MemoryDraft
    precondition: Precondition
    conflict_policy: ConflictPolicy | None = None


@dataclass(frozen=True, slots=True)
class AddMemory:
    """Add an untyped memory."""

    memory: MemoryDraft
    precondition: Precondition


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureEpisode:
    """Capture a raw source and, when ``indexed``, an EPISODIC memory that recalls it."""

    subject: Subject
    content: str
    source_kind: SourceKind
    precondition: Precondition
    id: UUID | None = None
    context: str = ""
    media_type: str = "text/plain"
    author: str = ""
    occurred_at: int | None = None
    session_id: str = ""
    external_ref: str = ""
    labels: tuple[str, ...] = ()
    retention_class: str = ""
    expires_at: int | None = None
    indexed: bool = True
    importance: float | None = None
    vector: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPatch:
    """New values of the fields named in ``fields``; the others are ignored."""

    fields: frozenset[str]
    text: str = ""
    importance: float | None = None
    confidence: float | None = None
    pinned: bool = False
    labels: tuple[str, ...] = ()
    pii_labels: tuple[str, ...] = ()
    expires_at: int | None = None
    retention_class: str = ""
    session_id: str = ""
    vector: bytes = b""


PATCHABLE_FIELDS = frozenset(
    {
        "text",
        "importance",
        "confidence",
        "pinned",
        "labels",
        "pii_labels",
        "expires_at",
        "retention_class",
        "session_id",
        "vector",
    }
)


@dataclass(frozen=True, slots=True)
class PatchMemory:
    """Change some fields of a memory."""

    memory_id: UUID
    patch: MemoryPatch
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class ConfirmMemory:
    """Record that a user confirmed a memory."""

    memory_id: UUID
    source: Source
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class RetractMemory:
    """End a memory without a successor. Exactly one of ``memory_id`` and ``fact`` is set."""

    precondition: Precondition
    memory_id: UUID | None = None
    fact: FactKey | None = None
    valid_to: int | None = None


@dataclass(frozen=True, slots=True)
class RestoreMemory:
    """Take a memory's retraction back."""

    memory_id: UUID
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class CloseOpenItem:
    """Close an open item."""

    memory_id: UUID
    precondition: Precondition
    closed_at: int | None = None


Mutation = (
    PutFact
    | AddMemory
    | CaptureEpisode
    | PatchMemory
    | ConfirmMemory
    | RetractMemory
    | RestoreMemory
    | CloseOpenItem
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold of a record that the Write does not change itself."""

    precondition: Precondition
    memory_id: UUID | None = None
    fact: FactKey | None = None


class Outcome(IntEnum):
    """What became of a mutation. Numbers as in the contract."""

    CREATED = 1
    SUPERSEDED = 2
    INSERTED = 3
    EVIDENCE = 4
    CORRECTED = 5
    UPDATED = 6
    UNCHANGED = 7
    KEPT_EXISTING = 8


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What one mutation did.

    ``version`` and ``fact_version`` are -1 while the commit's revision is not known yet; the
    service fills them in, which is also how a replayed answer gets the first revision.
    """

    id: UUID
    outcome: Outcome
    version: int = -1
    superseded_id: UUID | None = None
    fact_version: int = 0
    memory_id: UUID | None = None
    valid_to: int = FOREVER
