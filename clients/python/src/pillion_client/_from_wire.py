"""From the contract's messages to Python values, as fast as Python goes: Search pays for this."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pillion_proto.memory.v1 import admin_service_pb2 as admin
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import schema_service_pb2, search_pb2, types_pb2

from pillion_client import enums, models, results, schemas
from pillion_client._to_wire import enum_members

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_from_timestamp = datetime.fromtimestamp

_MEMORY_KINDS: Final = enum_members(enums.MemoryKind)
_MEMORY_STATUSES: Final = enum_members(enums.MemoryStatus)
_SOURCE_KINDS: Final = enum_members(enums.SourceKind)
_OUTCOMES: Final = enum_members(enums.MutationOutcome)
_OPERATION_STATES: Final = enum_members(enums.OperationState)
_CHANGE_KINDS: Final = enum_members(enums.ChangeKind)
_SKIP_REASONS: Final = enum_members(enums.ClusterSkipReason)
_CARDINALITIES: Final = enum_members(enums.Cardinality)
_CONFLICT_POLICIES: Final = enum_members(enums.ConflictPolicy)


def instant(message: Timestamp) -> datetime:
    """Return the instant in UTC, to the microsecond."""
    nanos = message.nanos
    whole = _from_timestamp(message.seconds, UTC)
    return whole.replace(microsecond=nanos // 1000) if nanos else whole


def _optional_instant(message: Any, field: str) -> datetime | None:  # noqa: ANN401  (any message)
    return instant(getattr(message, field)) if message.HasField(field) else None


def span(message: Duration) -> timedelta:
    """Return the span, to the microsecond."""
    return timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def partition(message: types_pb2.Partition) -> models.Partition:
    """Return the partition; what is absent is "default", as the contract says."""
    return models.Partition(message.namespace or "default", message.tenant or "default")


def subject(message: types_pb2.Subject) -> models.Subject:
    """Return the subject."""
    return models.Subject(message.type, message.id)


def value(message: types_pb2.Value) -> models.Value:
    """Return a fact's value as the Python type that it stands for."""
    match message.WhichOneof("kind"):
        case "time_value":
            return instant(message.time_value)
        case "subject_value":
            return subject(message.subject_value)
        case "json_value":
            decoded: models.JsonValue = json.loads(message.json_value)
            return decoded
        case None:
            return None
        case plain:
            scalar: str | int | float | bool = getattr(message, plain)
            return scalar


def vector(data: bytes) -> models.Vector | None:
    """Return the vector, read-only, without copying; None when there is none."""
    return np.frombuffer(data, dtype="<f4") if data else None


def source(message: types_pb2.Source) -> models.Source:
    """Return where a statement came from."""
    return models.Source(
        _SOURCE_KINDS.get(message.kind, enums.SourceKind.UNSPECIFIED),
        message.episode_id or None,
        message.quote or None,
        message.author or None,
    )


_ABSENT_RECURRENCE: Final = models.Recurrence()


def memory(message: types_pb2.Memory) -> models.Memory:
    """Return the memory. Positional arguments, in the order of the model: this is the hot path."""
    has = message.HasField
    return models.Memory(
        message.id,
        partition(message.partition),
        subject(message.subject),
        message.context,
        _MEMORY_KINDS.get(message.kind, enums.MemoryKind.UNSPECIFIED),
        message.attribute or None,
        value(message.value) if has("value") else None,
        message.text,
        vector(message.vector),
        message.importance,
        message.confidence,
        _MEMORY_STATUSES.get(message.status, enums.MemoryStatus.UNSPECIFIED),
        message.pinned,
        tuple(message.pii_labels),
        tuple(message.labels),
        source(message.source),
        tuple(message.derived_from),
        message.consolidated_into or None,
        instant(message.valid_from) if has("valid_from") else None,
        instant(message.valid_to) if has("valid_to") else None,
        instant(message.recorded_at) if has("recorded_at") else None,
        message.superseded_by or None,
        message.supersedes or None,
        instant(message.created_at) if has("created_at") else None,
        instant(message.updated_at) if has("updated_at") else None,
        instant(message.last_used_at) if has("last_used_at") else None,
        message.use_count,
        _recurrence(message.recurrence) if has("recurrence") else _ABSENT_RECURRENCE,
        instant(message.expires_at) if has("expires_at") else None,
        message.retention_class or None,
        message.schema_version,
        message.version,
        message.fact_version,
        instant(message.retracted_at) if has("retracted_at") else None,
        instant(message.closed_at) if has("closed_at") else None,
        message.vector_pending,
        message.session_id or None,
        message.legal_hold,
        source(message.confirmation) if has("confirmation") else None,
    )


def _recurrence(message: types_pb2.Recurrence) -> models.Recurrence:
    return models.Recurrence(message.count, tuple(message.episode_ids))


def episode(message: types_pb2.Episode) -> models.Episode:
    """Return the episode."""
    return models.Episode(
        id=message.id,
        partition=partition(message.partition),
        subject=subject(message.subject),
        context=message.context,
        content=message.content,
        media_type=message.media_type or "text/plain",
        source_kind=_SOURCE_KINDS.get(message.source_kind, enums.SourceKind.UNSPECIFIED),
        author=message.author or None,
        occurred_at=_optional_instant(message, "occurred_at"),
        session_id=message.session_id or None,
        external_ref=message.external_ref or None,
        labels=tuple(message.labels),
        retention_class=message.retention_class or None,
        expires_at=_optional_instant(message, "expires_at"),
        recorded_at=_optional_instant(message, "recorded_at"),
        version=message.version,
        memory_id=message.memory_id or None,
    )


def record(message: service.Record) -> models.Record | None:
    """Return the memory or episode; None when the record is of a kind that we do not know."""
    match message.WhichOneof("kind"):
        case "memory":
            return memory(message.memory)
        case "episode":
            return episode(message.episode)
    return None


def history_entry(message: service.HistoryEntry) -> models.HistoryEntry:
    """Return one version of one row."""
    return models.HistoryEntry(
        memory=memory(message.memory),
        recorded_from_revision=message.recorded_from_revision,
        recorded_to_revision=message.recorded_to_revision or None,
        recorded_from=_optional_instant(message, "recorded_from"),
        recorded_to=_optional_instant(message, "recorded_to"),
    )


def watch_event(message: service.WatchResponse) -> results.WatchEvent:
    """Return one message of a watch."""
    return results.WatchEvent(
        revision=message.revision,
        recorded_at=_optional_instant(message, "recorded_at"),
        changes=tuple(
            results.RecordChange(
                kind=_CHANGE_KINDS.get(change.kind, enums.ChangeKind.UNSPECIFIED),
                id=change.id,
                record=record(change.record) if change.HasField("record") else None,
            )
            for change in message.changes
        ),
    )


def write_result(message: service.WriteResponse, request_id: str) -> results.WriteResult:
    """Return what a write did."""
    return results.WriteResult(
        revision=message.revision,
        results=tuple(
            results.MutationResult(
                id=result.id,
                version=result.version,
                outcome=_OUTCOMES.get(result.outcome, enums.MutationOutcome.UNSPECIFIED),
                superseded_id=result.superseded_id or None,
                fact_version=result.fact_version,
                memory_id=result.memory_id or None,
                valid_to=_optional_instant(result, "valid_to"),
            )
            for result in message.results
        ),
        recorded_at=_optional_instant(message, "recorded_at"),
        replayed=message.replayed,
        vectors_pending=message.vectors_pending,
        request_id=request_id,
    )


def score_parts(message: search_pb2.ScoreParts) -> results.ScoreParts:
    """Return the parts of a score."""
    return results.ScoreParts(
        relevance=message.relevance,
        recency=message.recency,
        importance=message.importance,
        cosine=message.cosine if message.HasField("cosine") else None,
        lexical=message.lexical if message.HasField("lexical") else None,
    )


def edge(message: search_pb2.Edge) -> results.Edge:
    """Return one edge of the graph."""
    return results.Edge(
        from_subject=subject(getattr(message, "from")),
        attribute=message.attribute,
        to_subject=subject(message.to),
        memory_id=message.memory_id,
        version=message.version,
    )


def operation(message: types_pb2.Operation) -> results.Operation:
    """Return long work. Of results, those of migrations and forgets are there."""
    return results.Operation(
        name=message.name,
        verb=message.verb,
        state=_OPERATION_STATES.get(message.state, enums.OperationState.UNSPECIFIED),
        progress=message.progress if message.HasField("progress") else None,
        done_units=message.done_units,
        total_units=message.total_units,
        unit=message.unit,
        failure_reason=message.failure_reason or None,
        started_at=_optional_instant(message, "started_at"),
        ended_at=_optional_instant(message, "ended_at"),
        migration=_migration(message.migration) if message.HasField("migration") else None,
        forget=_forget_report(message.forget) if message.HasField("forget") else None,
    )


def _migration(message: types_pb2.MigrationReport) -> results.MigrationReport:
    return results.MigrationReport(
        attribute=message.attribute,
        schema_version=message.schema_version,
        migrated=message.migrated,
        misfits=message.misfits,
        misfit_ids=tuple(message.misfit_ids),
    )


def forget_result(message: service.ForgetResponse) -> results.ForgetResult:
    """Return what a forget did, or where to ask."""
    done = message.WhichOneof("outcome") == "report"
    return results.ForgetResult(
        report=_forget_report(message.report) if done else None,
        operation=None if done else operation(message.operation),
        revision=message.revision,
    )


def _forget_report(message: types_pb2.ForgetReport) -> results.ForgetReport:
    return results.ForgetReport(
        memories=message.memories,
        episodes=message.episodes,
        derived=message.derived,
        sample_ids=tuple(message.sample_ids),
        exempt_ids=tuple(message.exempt_ids),
        dry_run=message.dry_run,
        receipt=receipt(message.receipt) if message.HasField("receipt") else None,
        unpreviewed=message.unpreviewed,
    )


def receipt(message: types_pb2.ErasureReceipt) -> results.ErasureReceipt:
    """Return the receipt of an erasure."""
    return results.ErasureReceipt(
        id=message.id,
        partition=partition(message.partition),
        erased_at=_optional_instant(message, "erased_at"),
        revision=message.revision,
        places=tuple(
            results.ErasedPlace(place.place, place.removed, place.method)
            for place in message.places
        ),
        verification=message.verification,
        audit_entry_id=message.audit_entry_id or None,
    )


def consolidate_result(message: service.ConsolidateResponse) -> results.ConsolidateResult:
    """Return what a consolidation did, or where to ask."""
    done = message.WhichOneof("outcome") == "report"
    return results.ConsolidateResult(
        report=_consolidate_report(message.report) if done else None,
        operation=None if done else operation(message.operation),
        revision=message.revision,
    )


def _consolidate_report(message: types_pb2.ConsolidateReport) -> results.ConsolidateReport:
    return results.ConsolidateReport(
        clusters=message.clusters,
        created=tuple(memory(made) for made in message.created),
        consolidated=message.consolidated,
        skipped=tuple(
            results.SkippedCluster(
                memory_ids=tuple(cluster.memory_ids),
                reason=_SKIP_REASONS.get(cluster.reason, enums.ClusterSkipReason.UNSPECIFIED),
                lost_details=cluster.lost_details,
            )
            for cluster in message.skipped
        ),
        promoted_ids=tuple(message.promoted_ids),
        dry_run=message.dry_run,
        more=message.more,
    )


def server_info(message: service.GetServerInfoResponse) -> results.ServerInfo:
    """Return what the server is. Capabilities that this client does not know are left out."""
    limits = message.limits
    known: Mapping[int, str] = {number: name for name, number in service.Capability.items()}
    return results.ServerInfo(
        server_version=message.server_version,
        contract=message.contract,
        capabilities=frozenset(
            known[number].removeprefix("CAPABILITY_").lower()
            for number in message.capabilities
            if number in known
        ),
        limits=results.ServerLimits(
            message_bytes_max=limits.message_bytes_max,
            mutations_max=limits.mutations_max,
            text_bytes_max=limits.text_bytes_max,
            results_max=limits.results_max,
            page_size_max=limits.page_size_max,
            batch_get_max=limits.batch_get_max,
            default_deadline=_optional_span(limits, "default_deadline"),
            request_id_window=_optional_span(limits, "request_id_window"),
            request_id_count=limits.request_id_count,
            write_bytes_max=limits.write_bytes_max,
            history_window=_optional_span(limits, "history_window"),
        ),
        embedder=_embedder(message.embedder) if message.HasField("embedder") else None,
        server_time=_optional_instant(message, "server_time"),
        started_at=_optional_instant(message, "started_at"),
        store=message.store,
    )


def _optional_span(message: Any, field: str) -> timedelta | None:  # noqa: ANN401  (any message)
    return span(getattr(message, field)) if message.HasField(field) else None


def _embedder(message: service.EmbedderInfo) -> results.EmbedderInfo:
    return results.EmbedderInfo(
        message.name, message.version, message.dimension, message.fingerprint or None
    )


def server_stats(message: admin.GetStatsResponse) -> results.ServerStats:
    """Return the statistics."""
    store = message.store
    return results.ServerStats(
        store=results.StoreStats(
            kind=store.kind,
            disk_bytes=store.disk_bytes,
            disk_bytes_max=store.disk_bytes_max,
            commits=store.commits,
            flushes=store.flushes,
            queue_depth=store.queue_depth,
            format_version=store.format_version,
        ),
        partitions=tuple(_partition_stats(one) for one in message.partitions),
        uptime=_optional_span(message, "uptime"),
        resident_bytes=message.resident_bytes,
    )


def _partition_stats(message: admin.PartitionStats) -> results.PartitionStats:
    return results.PartitionStats(
        partition=partition(message.partition),
        revision=message.revision,
        memories=message.memories,
        episodes=message.episodes,
        records=message.records,
        record_bytes=message.record_bytes,
        resident=message.resident,
        resident_bytes=message.resident_bytes,
        vectors_pending=message.vectors_pending,
        vectors_failed=message.vectors_failed,
        indexed_vectors=message.indexed_vectors,
        index_lag=message.index_lag,
        embedder=_embedder(message.embedder) if message.HasField("embedder") else None,
    )


def attribute_schema(message: schema_service_pb2.AttributeSchema) -> schemas.AttributeSchema:
    """Return a registered attribute."""
    return schemas.AttributeSchema(
        attribute=message.attribute,
        json_schema=message.json_schema,
        subject_types=tuple(message.subject_types),
        cardinality=_CARDINALITIES.get(message.cardinality, enums.Cardinality.UNSPECIFIED),
        half_life=_optional_span(message, "half_life"),
        retention_class=message.retention_class or None,
        pii_labels=tuple(message.pii_labels),
        conflict_policy=_CONFLICT_POLICIES.get(
            message.conflict_policy, enums.ConflictPolicy.UNSPECIFIED
        ),
        schema_version=message.schema_version,
        registered_at=_optional_instant(message, "registered_at"),
        version=message.version,
    )


def register_result(
    message: schema_service_pb2.RegisterAttributeResponse,
) -> schemas.RegisterResult:
    """Return what became of a registration."""
    return schemas.RegisterResult(
        schema=attribute_schema(message.schema),
        revision=message.revision,
        misfits=message.misfits,
        misfit_ids=tuple(message.misfit_ids),
    )


def migrate_result(message: schema_service_pb2.MigrateAttributeResponse) -> schemas.MigrateResult:
    """Return what a migration began with."""
    return schemas.MigrateResult(
        operation=operation(message.operation) if message.HasField("operation") else None,
        values=message.values,
        misfit_ids=tuple(message.misfit_ids),
    )
