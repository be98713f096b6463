"""The options that many calls share, as typed keyword arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pillion_client.enums import (
        ConflictPolicy,
        EmbeddingMode,
        EpisodeIndexing,
        ExtractionMode,
        MemoryKind,
        MemoryStatus,
        SourceKind,
        ValidityFilter,
    )
    from pillion_client.models import Partition, SubjectLike
    from pillion_client.mutations import Guard, VectorLike
    from pillion_client.selection import TimeWindow


class CallOptions(TypedDict, total=False):
    """Where, and how long to wait. Absent: what the client was made with."""

    partition: Partition
    deadline_seconds: float


class WriteOptions(CallOptions, total=False):
    """How to write.

    ``request_id``: 1 to 64 bytes; absent: a new UUID. ``guards``: what must hold of other
    records. ``validate_only``: check everything, change nothing.
    """

    request_id: str
    guards: Sequence[Guard]
    embedding: EmbeddingMode | str
    validate_only: bool


class ReadOptions(CallOptions, total=False):
    """How fresh, and which instants of the two clocks.

    ``as_of``: what was so then (valid time). ``known_at``: what Pillion knew then (recorded
    time), or ``exact_revision``: that state. ``at_least_revision``: wait for this revision.
    """

    as_of: datetime | None
    known_at: datetime | None
    exact_revision: int | None
    at_least_revision: int | None


class ConditionOptions(TypedDict, total=False):
    """Single conditions of a filter, for reads that need no ``Filter``; see there."""

    subjects: Sequence[SubjectLike]
    contexts: Sequence[str]
    all_contexts: bool
    kinds: Sequence[MemoryKind | str]
    statuses: Sequence[MemoryStatus | str]
    attributes: Sequence[str]
    labels_all: Sequence[str]
    labels_any: Sequence[str]
    labels_none: Sequence[str]
    created: TimeWindow | None
    valid_from: TimeWindow | None
    importance_min: float
    confidence_min: float
    source_kinds: Sequence[SourceKind | str]
    episode_ids: Sequence[str]
    session_ids: Sequence[str]
    include_retracted: bool
    include_expired: bool
    validity: ValidityFilter | str


class WatchOptions(ConditionOptions, total=False):
    """Where to watch, and which records take part."""

    partition: Partition


class SelectOptions(ReadOptions, ConditionOptions, total=False):
    """How to read, and which memories take part."""


class StatementOptions(WriteOptions, total=False):
    """What facts and untyped memories have in common; see ``mutations.StatementFields``."""

    id: str | None
    context: str
    vector: VectorLike | None
    importance: float | None
    confidence: float | None
    status: MemoryStatus | str
    pinned: bool
    pii_labels: tuple[str, ...]
    labels: tuple[str, ...]
    derived_from: tuple[str, ...]
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    retention_class: str | None
    session_id: str | None
    schema_version: int


class FactOptions(StatementOptions, total=False):
    """Everything about a fact but its key, value, source and precondition."""

    text: str | None
    conflict_policy: ConflictPolicy | str


class EpisodeOptions(WriteOptions, total=False):
    """Everything about an episode but its subject, content and source kind."""

    id: str | None
    context: str
    media_type: str | None
    author: str | None
    occurred_at: datetime | None
    session_id: str | None
    external_ref: str | None
    labels: tuple[str, ...]
    retention_class: str | None
    expires_at: datetime | None
    importance: float | None
    vector: VectorLike | None
    indexing: EpisodeIndexing | str
    extraction: ExtractionMode | str
