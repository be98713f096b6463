"""The changes that one ``write`` can hold, as values. All of a write happens, or nothing does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pillion_client.enums import (
    ConflictPolicy,
    EpisodeIndexing,
    ExtractionMode,
    MemoryKind,
    MemoryStatus,
    SourceKind,
)
from pillion_client.models import FactKey, Source, SubjectLike, Value, Vector
from pillion_client.preconditions import Precondition, must_exist, must_not_exist

if TYPE_CHECKING:
    from datetime import datetime

VectorLike: TypeAlias = Vector | Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFields:
    """What facts and untyped memories have in common. None: the server's default."""

    context: str = ""
    vector: VectorLike | None = None
    importance: float | None = None
    confidence: float | None = None
    status: MemoryStatus | str = MemoryStatus.UNSPECIFIED
    pinned: bool = False
    pii_labels: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    derived_from: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    retention_class: str | None = None
    session_id: str | None = None
    schema_version: int = 0


@dataclass(frozen=True, slots=True)
class PutFact(StatementFields):
    """States a fact on its key's timeline.

    Attributes:
        text: What is embedded and searched; None: rendered by the server from key and value.
        precondition: What must hold of the key.
        conflict_policy: What to do when another statement begins at the same instant.
    """

    subject: SubjectLike
    attribute: str
    value: Value
    source: Source
    precondition: Precondition
    text: str | None = None
    id: str | None = None
    conflict_policy: ConflictPolicy | str = ConflictPolicy.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class AddMemory(StatementFields):
    """Adds an untyped memory."""

    subject: SubjectLike
    text: str
    source: Source
    kind: MemoryKind | str = MemoryKind.EPISODIC
    id: str | None = None
    precondition: Precondition = must_not_exist


@dataclass(frozen=True, slots=True)
class CaptureEpisode:
    """Captures a raw source, and unless ``indexing`` says otherwise a memory that recalls it."""

    subject: SubjectLike
    content: str
    source_kind: SourceKind | str
    id: str | None = None
    context: str = ""
    media_type: str | None = None
    author: str | None = None
    occurred_at: datetime | None = None
    session_id: str | None = None
    external_ref: str | None = None
    labels: tuple[str, ...] = ()
    retention_class: str | None = None
    expires_at: datetime | None = None
    importance: float | None = None
    vector: VectorLike | None = None
    indexing: EpisodeIndexing | str = EpisodeIndexing.UNSPECIFIED
    extraction: ExtractionMode | str = ExtractionMode.UNSPECIFIED
    precondition: Precondition = must_not_exist


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes some fields of a memory: those in ``changes``; None as a value clears the field.

    The fields are text, importance, confidence, pinned, labels, pii_labels, expires_at,
    retention_class, session_id and vector.
    """

    memory_id: str
    changes: dict[str, object]
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class Confirm:
    """Records that a user confirmed a memory. The source's kind must be USER_CONFIRMATION."""

    memory_id: str
    source: Source
    precondition: Precondition = must_exist


@dataclass(frozen=True, slots=True)
class Retract:
    """Ends a memory (by id), or the row of a key, without a successor.

    The key of a set names the member.
    """

    target: str | FactKey
    precondition: Precondition
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Takes a retraction back."""

    memory_id: str
    precondition: Precondition


@dataclass(frozen=True, slots=True)
class CloseOpenItem:
    """Closes an open item."""

    memory_id: str
    closed_at: datetime | None = None
    precondition: Precondition = must_exist


Mutation: TypeAlias = (
    PutFact | AddMemory | CaptureEpisode | Patch | Confirm | Retract | Restore | CloseOpenItem
)
ImportItem: TypeAlias = PutFact | AddMemory | CaptureEpisode


@dataclass(frozen=True, slots=True)
class Guard:
    """What must hold of a record (a memory id or a fact key) that the write does not change."""

    target: str | FactKey
    precondition: Precondition
