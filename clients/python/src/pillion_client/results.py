"""What calls answer with, beyond the nouns of ``models``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from pillion_client.enums import ChangeKind, ClusterSkipReason, MutationOutcome, OperationState
    from pillion_client.models import Memory, Partition, Record, Subject


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What one mutation did.

    Attributes:
        id: The memory or episode that it made or changed.
        superseded_id: The row that it ended, if any.
        fact_version: For facts, the version of the key now; 0 otherwise.
        memory_id: For captured episodes, the EPISODIC memory that recalls it, if any.
        valid_to: For facts, until when the new row holds; None: open.
    """

    id: str
    version: int
    outcome: MutationOutcome
    superseded_id: str | None
    fact_version: int
    memory_id: str | None
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """What a write did. It is on disk.

    Attributes:
        revision: The revision of the commit; pass it as ``at_least_revision`` to read it back.
        replayed: True when this is the first answer to an earlier try with the same request_id.
        request_id: The id that the write was sent with.
    """

    revision: int
    results: tuple[MutationResult, ...]
    recorded_at: datetime | None
    replayed: bool
    vectors_pending: int
    request_id: str

    @property
    def only(self) -> MutationResult:
        """The result of a write with one mutation.

        Raises:
            ValueError: The write had several.
        """
        (result,) = self.results
        return result


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """The parts of a score, each 0 to 1 but the cosine (-1 to 1) and BM25 (not scaled)."""

    relevance: float
    recency: float
    importance: float
    cosine: float | None
    lexical: float | None


@dataclass(frozen=True, slots=True)
class Edge:
    """One edge of the graph: a fact whose value is a subject."""

    from_subject: Subject
    attribute: str
    to_subject: Subject
    memory_id: str
    version: int


@dataclass(frozen=True, slots=True)
class ErasedPlace:
    """One place that an erasure cleaned."""

    place: str
    removed: int
    method: str


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What was erased, from where, and how that was verified."""

    id: str
    partition: Partition
    erased_at: datetime | None
    revision: int
    places: tuple[ErasedPlace, ...]
    verification: str
    audit_entry_id: str | None


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What a forget did, or in a dry run would do.

    ``exempt_ids`` were selected and stay: they are under a legal hold. ``unpreviewed``: how many
    were new or changed since the ``preview_revision`` of the call.
    """

    memories: int
    episodes: int
    derived: int
    sample_ids: tuple[str, ...]
    exempt_ids: tuple[str, ...]
    dry_run: bool
    receipt: ErasureReceipt | None
    unpreviewed: int = 0


@dataclass(frozen=True, slots=True)
class SkippedCluster:
    """A cluster that consolidation left alone."""

    memory_ids: tuple[str, ...]
    reason: ClusterSkipReason
    lost_details: int


@dataclass(frozen=True, slots=True)
class ConsolidateReport:
    """What a consolidation did, or in a dry run would do. ``more``: call again to go on."""

    clusters: int
    created: tuple[Memory, ...]
    consolidated: int
    skipped: tuple[SkippedCluster, ...]
    promoted_ids: tuple[str, ...]
    dry_run: bool
    more: bool


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What a migration, or its roll-back, did; ``misfit_ids`` are the first 100."""

    attribute: str
    schema_version: int
    migrated: int
    misfits: int
    misfit_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """Long work that goes on after its call answered.

    ``migration`` and ``forget``: what one did, at its end.
    """

    name: str
    verb: str
    state: OperationState
    progress: float | None
    done_units: int
    total_units: int
    unit: str
    failure_reason: str | None
    started_at: datetime | None
    ended_at: datetime | None
    migration: MigrationReport | None = None
    forget: ForgetReport | None = None


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """Exactly one of ``report`` and ``operation`` is set; an operation when in the background."""

    report: ForgetReport | None
    operation: Operation | None
    revision: int


@dataclass(frozen=True, slots=True)
class ConsolidateResult:
    """Exactly one of ``report`` and ``operation`` is set; an operation when in the background."""

    report: ConsolidateReport | None
    operation: Operation | None
    revision: int


@dataclass(frozen=True, slots=True)
class ImportRejection:
    """An item that was refused. ``position`` counts from 0 over all items of the import."""

    position: int
    reason: str
    field: str | None
    message: str


@dataclass(frozen=True, slots=True)
class ImportAck:
    """A batch is durable.

    Attributes:
        first_position: The place of the batch's first item among all items, from 0.
        items: How many items the batch had: written + existing + rejections.
        revision: The revision that holds it; 0: nothing of it was written.
    """

    first_position: int
    items: int
    revision: int
    written: int
    existing: int
    rejections: tuple[ImportRejection, ...]
    vectors_pending: int


@dataclass(frozen=True, slots=True)
class RecordChange:
    """One change of one record.

    Attributes:
        kind: What the commit did to it. One that is UPDATED may be new to a filtered watch.
        id: Which memory or episode.
        record: The record as the commit left it, without its vector; None: it was removed.
    """

    kind: ChangeKind
    id: str
    record: Record | None


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One commit, or a heartbeat, which has no changes.

    Attributes:
        revision: Everything up to it was told: where to go on after a break.
        recorded_at: When the commit was recorded; None: a heartbeat.
        changes: What changed: episodes, then memories.
    """

    revision: int
    recorded_at: datetime | None
    changes: tuple[RecordChange, ...]


@dataclass(frozen=True, slots=True)
class EmbedderInfo:
    """An embedder, as stored with the vectors it made."""

    name: str
    version: str
    dimension: int
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """The limits that the server holds callers to. 0 and None: not published."""

    message_bytes_max: int
    mutations_max: int
    text_bytes_max: int
    results_max: int
    page_size_max: int
    batch_get_max: int
    default_deadline: timedelta | None
    request_id_window: timedelta | None
    request_id_count: int
    write_bytes_max: int
    history_window: timedelta | None


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What the server is. ``capabilities`` are lower-case names, for example "forget_erase"."""

    server_version: str
    contract: str
    capabilities: frozenset[str]
    limits: ServerLimits
    embedder: EmbedderInfo | None
    server_time: datetime | None
    started_at: datetime | None
    store: str


@dataclass(frozen=True, slots=True)
class StoreStats:
    """The store as a whole, since the server started."""

    kind: str
    disk_bytes: int
    disk_bytes_max: int
    commits: int
    flushes: int
    queue_depth: int
    format_version: int


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """One partition."""

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
    embedder: EmbedderInfo | None


@dataclass(frozen=True, slots=True)
class ServerStats:
    """How much is stored and what lags."""

    store: StoreStats
    partitions: tuple[PartitionStats, ...]
    uptime: timedelta | None
    resident_bytes: int
