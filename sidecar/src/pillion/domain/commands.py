"""What the use cases take and give back, beside queries and mutations. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from pillion.domain.limits import CLUSTER_SIZE_DEFAULT
from pillion.domain.mutations import EmbeddingMode

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.errors import PillionError
    from pillion.domain.memory import Memory
    from pillion.domain.mutations import Guard, Mutation, MutationResult
    from pillion.domain.scope import FactKey, Partition, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteCommand:
    """A Write. ``body_digest`` tells a retry from another request with the same request_id."""

    mutations: tuple[Mutation, ...]
    guards: tuple[Guard, ...] = ()
    request_id: str = ""
    body_digest: bytes = b""
    embedding_mode: EmbeddingMode = EmbeddingMode.QUEUED
    validate_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteAnswer:
    """What a Write did."""

    revision: int
    results: tuple[MutationResult, ...]
    recorded_at: int
    replayed: bool
    vectors_pending: int


@dataclass(frozen=True, slots=True)
class ImportRejection:
    """An item of an import that was refused, by its place in the batch."""

    index: int
    error: PillionError


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportAck:
    """A batch of an import is durable. ``wait_ms`` > 0 asks the caller to slow down."""

    revision: int
    written: int
    existing: int
    rejections: tuple[ImportRejection, ...]
    vectors_pending: int
    wait_ms: int = 0


class ForgetMode(IntEnum):
    """How to forget. Numbers as in the contract."""

    EXPIRE = 1
    RETRACT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCommand:
    """A Forget by ids, by subject (``contexts`` None: every context) or by fact key."""

    mode: ForgetMode
    ids: tuple[UUID, ...] = ()
    subject: Subject | None = None
    contexts: frozenset[str] | None = None
    fact: FactKey | None = None
    dry_run: bool = False
    request_id: str = ""
    body_digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What a Forget did, or in a dry run would do."""

    memories: int
    episodes: int
    derived: int
    sample_ids: tuple[UUID, ...]
    dry_run: bool
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateCommand:
    """A consolidation of one subject's episodic memories older than ``before`` (None: a week)."""

    subject: Subject
    context: str = ""
    before: int | None = None
    summarizer: str = "extractive"
    cluster_size_min: int = CLUSTER_SIZE_DEFAULT
    dry_run: bool = False
    request_id: str = ""
    body_digest: bytes = b""


class SkipReason(IntEnum):
    """Why consolidation leaves a cluster alone. Numbers as in the contract."""

    LOSES_DETAILS = 1
    CHANGED = 2
    TOO_SMALL = 3


@dataclass(frozen=True, slots=True)
class SkippedCluster:
    """A cluster that was left alone, and how many explicit details would have been lost."""

    memory_ids: tuple[UUID, ...]
    reason: SkipReason
    lost_details: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidateReport:
    """What a consolidation did, or in a dry run would do."""

    clusters: int
    created: tuple[Memory, ...]
    consolidated: int
    skipped: tuple[SkippedCluster, ...]
    promoted: tuple[UUID, ...]
    dry_run: bool
    more: bool
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatistics:
    """The store as a whole, in bytes and counts."""

    kind: str
    disk_bytes: int
    disk_bytes_max: int
    commits: int
    flushes: int
    queue_depth: int
    format_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatistics:
    """One partition, in bytes and counts."""

    partition: Partition
    revision: int
    memories: int
    episodes: int
    records: int
    record_bytes: int
    resident: bool
    resident_bytes: int
    vectors_pending: int
    vectors_failed: int
    indexed_vectors: int
    index_lag: int
    embedder: EmbedderIdentity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What ``stats`` tells."""

    store: StoreStatistics
    partitions: tuple[PartitionStatistics, ...]
    uptime_us: int
    resident_bytes: int
