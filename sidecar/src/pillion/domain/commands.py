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
    from pillion.domain.erasure import Receipt
    from pillion.domain.errors import PillionError
    from pillion.domain.forgetting import Selector
    from pillion.domain.memory import Memory
    from pillion.domain.mutations import Guard, Mutation, MutationResult
    from pillion.domain.scope import Partition, Subject


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
    ERASE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetCommand:
    """A Forget of everything that a selector admits.

    Attributes:
        mode: How.
        selector: What.
        dry_run: Only say what it would take.
        force: The selector may match everything.
        preview_revision: The revision of the dry run that this was decided by; 0: none.
        reason_code: Why: a code, never content.
        request_id: Of a retry the same; empty: none.
        body_digest: Tells a retry from another request of the same id.
    """

    mode: ForgetMode
    selector: Selector
    dry_run: bool = False
    force: bool = False
    preview_revision: int = 0
    reason_code: str = ""
    request_id: str = ""
    body_digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What a Forget did, or in a dry run would do.

    Attributes:
        memories: Memories that the selector named.
        episodes: Episodes that it named.
        derived: Memories that followed, since everything that they were made from is forgotten.
        sample_ids: Some of all of these.
        exempt_ids: Some of those that were named and stay: held.
        dry_run: Nothing was changed.
        revision: The one after it.
        unpreviewed: Of all of these, those that were new or changed since the preview.
    """

    memories: int
    episodes: int
    derived: int
    sample_ids: tuple[UUID, ...]
    dry_run: bool
    revision: int
    exempt_ids: tuple[UUID, ...] = ()
    unpreviewed: int = 0
    receipt: Receipt | None = None


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
