"""What the use cases answer, as responses of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import admin_service_pb2 as admin_wire
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2, types_pb2

from pillion.domain.limits import IMPORT_BATCH_MAX
from pillion.domain.memory import FOREVER
from pillion.transport.convert.edges import fill_edge
from pillion.transport.convert.instants import duration_to_wire, put_instant
from pillion.transport.convert.records import fill_memory, fill_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion.domain.commands import (
        ConsolidateReport,
        ImportAck,
        PartitionStatistics,
        Statistics,
        WriteAnswer,
    )
    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.erasure import Receipt
    from pillion.domain.mutations import MutationResult
    from pillion.domain.queries import Found, HistoryEntry, Page, SearchAnswer, SearchTrace
    from pillion.domain.scope import Partition
    from pillion.domain.watching import WatchEvent


def write_to_wire(answer: WriteAnswer) -> wire.WriteResponse:
    """Return the answer to a Write."""
    response = wire.WriteResponse(
        revision=answer.revision,
        results=[_mutation_result(result) for result in answer.results],
        replayed=answer.replayed,
        vectors_pending=answer.vectors_pending,
    )
    put_instant(response.recorded_at, answer.recorded_at)
    return response


def _mutation_result(result: MutationResult) -> wire.MutationResult:
    made = wire.MutationResult(
        id=str(result.id),
        version=result.version,
        outcome=result.outcome,  # type: ignore[arg-type]
        fact_version=result.fact_version,
        superseded_id=str(result.superseded_id) if result.superseded_id else "",
        memory_id=str(result.memory_id) if result.memory_id else "",
    )
    if result.valid_to != FOREVER:
        put_instant(made.valid_to, result.valid_to)
    return made


def search_to_wire(
    answer: SearchAnswer, partition: Partition, *, include_parts: bool
) -> wire.SearchResponse:
    """Return the answer to a Search; `encoded.encode_search` is the short way to the same."""
    response = wire.SearchResponse(
        revision=answer.revision,
        exactness=answer.exactness,  # type: ignore[arg-type]
        path=answer.path,  # type: ignore[arg-type]
        admitted=answer.admitted,
        vectors_pending=answer.vectors_pending,
        bound=answer.bound,
    )
    add = response.hits.add
    for hit in answer.hits:
        target = add(score=hit.score)
        fill_memory(target.memory, hit.memory, partition, hit.vector)
        target.older_statement = hit.older
        target.folded_ids.extend(map(str, hit.folded))
        for edge in hit.path:
            fill_edge(target.path.add(), edge)
        if include_parts:
            parts = target.parts
            parts.relevance = hit.relevance
            parts.recency = hit.recency
            parts.importance = hit.importance
            if hit.cosine is not None:
                parts.cosine = hit.cosine
            if hit.lexical is not None:
                parts.lexical = hit.lexical
    if answer.trace is not None:
        _fill_trace(response.trace, answer.trace)
    return response


def _fill_trace(target: search_pb2.SearchTrace, trace: SearchTrace) -> None:
    target.path = trace.path  # type: ignore[assignment]
    target.memories = trace.memories
    target.admitted = trace.admitted
    target.scored = trace.scored
    for one in trace.candidates:
        candidate = target.candidates.add(
            memory_id=str(one.memory_id),
            proposed_by=one.proposed_by,
            score=one.score,
            dropped_by=one.dropped_by,
        )
        parts = candidate.parts
        parts.relevance, parts.recency, parts.importance = one.parts
        if one.cosine is not None:
            parts.cosine = one.cosine
        if one.lexical is not None:
            parts.lexical = one.lexical
    for step, taken in trace.timings:
        target.timings.add(step=step, duration=duration_to_wire(taken))


def get_to_wire(found: Found, revision: int, partition: Partition) -> wire.GetResponse:
    """Return the answer to a Get; `encoded.encode_get` is the short way to the same."""
    response = wire.GetResponse(revision=revision)
    fill_record(response.record, found, partition)
    return response


def batch_get_to_wire(
    found: Sequence[Found | None], revision: int, partition: Partition
) -> wire.BatchGetResponse:
    """Return the answer to a BatchGet: an item without a record where there is none."""
    response = wire.BatchGetResponse(revision=revision)
    for one in found:
        item = response.items.add()
        if one is not None:
            fill_record(item.record, one, partition)
    return response


def page_to_wire(page: Page, partition: Partition) -> wire.ListResponse:
    """Return a page of a List."""
    response = wire.ListResponse(next_page_token=page.next_token, revision=page.revision)
    for found in page.records:
        fill_record(response.records.add(), found, partition)
    return response


def watch_to_wire(event: WatchEvent, partition: Partition) -> wire.WatchResponse:
    """Return one message of a Watch."""
    response = wire.WatchResponse(revision=event.revision, resume=event.resume)
    if event.recorded_at is not None:
        put_instant(response.recorded_at, event.recorded_at)
    for change in event.changes:
        target = response.changes.add(kind=change.kind, id=str(change.id))
        if change.found is not None:
            fill_record(target.record, change.found, partition)
    return response


def history_to_wire(
    entries: Sequence[HistoryEntry], next_token: str, revision: int, partition: Partition
) -> wire.HistoryResponse:
    """Return a page of a History."""
    response = wire.HistoryResponse(next_page_token=next_token, revision=revision)
    for entry in entries:
        target = response.entries.add(
            recorded_from_revision=entry.from_revision, recorded_to_revision=entry.to_revision
        )
        fill_memory(target.memory, entry.memory, partition)
        put_instant(target.recorded_from, entry.recorded_from)
        if entry.recorded_to is not None:
            put_instant(target.recorded_to, entry.recorded_to)
    return response


def receipt_to_wire(receipt: Receipt) -> types_pb2.ErasureReceipt:
    """Return the receipt of an erasure."""
    erasure = receipt.erasure
    message = types_pb2.ErasureReceipt(
        id=str(erasure.id),
        partition=types_pb2.Partition(
            namespace=receipt.partition.namespace, tenant=receipt.partition.tenant
        ),
        revision=erasure.revision,
        places=[
            types_pb2.ErasedPlace(place=one.name, removed=one.removed, method=one.method)
            for one in erasure.places
        ],
        verification=erasure.verification,
        audit_entry_id=erasure.ledger_entry.hex(),
    )
    put_instant(message.erased_at, erasure.finished_at)
    return message


def consolidate_to_wire(
    report: ConsolidateReport, partition: Partition
) -> wire.ConsolidateResponse:
    """Return the answer to a Consolidate."""
    response = wire.ConsolidateResponse(revision=report.revision)
    target = response.report
    target.clusters = report.clusters
    target.consolidated = report.consolidated
    target.promoted_ids.extend(map(str, report.promoted))
    target.dry_run = report.dry_run
    target.more = report.more
    for memory in report.created:
        fill_memory(target.created.add(), memory, partition)
    for cluster in report.skipped:
        target.skipped.add(
            memory_ids=map(str, cluster.memory_ids),
            reason=cluster.reason,
            lost_details=cluster.lost_details,
        )
    return response


def import_ack_to_wire(sequence: int, ack: ImportAck) -> wire.ImportResponse:
    """Return the acknowledgement of a batch."""
    response = wire.ImportResponse()
    target = response.ack
    target.sequence = sequence
    target.revision = ack.revision
    target.written = ack.written
    target.existing = ack.existing
    target.vectors_pending = ack.vectors_pending
    for rejection in ack.rejections:
        violations = rejection.error.violations
        target.rejections.add(
            index=rejection.index,
            reason=rejection.error.reason.value,
            field=violations[0].field if violations else "",
            message=rejection.error.message,
        )
    return response


def backoff_to_wire(wait_ms: int) -> wire.ImportResponse:
    """Return the request to wait before the next batch."""
    return wire.ImportResponse(
        backoff=wire.ImportBackoff(
            batch_size=IMPORT_BATCH_MAX, wait=duration_to_wire(wait_ms * 1000)
        )
    )


def embedder_to_wire(identity: EmbedderIdentity) -> wire.EmbedderInfo:
    """Return whose vectors a server or a partition holds."""
    return wire.EmbedderInfo(
        name=identity.name,
        version=identity.version,
        dimension=identity.dimension,
        fingerprint=identity.fingerprint,
    )


def statistics_to_wire(statistics: Statistics) -> admin_wire.GetStatsResponse:
    """Return the answer to GetStats."""
    store = statistics.store
    return admin_wire.GetStatsResponse(
        store=admin_wire.StoreStats(
            kind=store.kind,
            disk_bytes=store.disk_bytes,
            disk_bytes_max=store.disk_bytes_max,
            commits=store.commits,
            flushes=store.flushes,
            queue_depth=store.queue_depth,
            format_version=store.format_version,
        ),
        partitions=[_partition_statistics(one) for one in statistics.partitions],
        uptime=duration_to_wire(statistics.uptime_us),
        resident_bytes=statistics.resident_bytes,
    )


def _partition_statistics(one: PartitionStatistics) -> admin_wire.PartitionStats:
    return admin_wire.PartitionStats(
        partition=types_pb2.Partition(
            namespace=one.partition.namespace, tenant=one.partition.tenant
        ),
        revision=one.revision,
        memories=one.memories,
        episodes=one.episodes,
        records=one.records,
        record_bytes=one.record_bytes,
        resident=one.resident,
        resident_bytes=one.resident_bytes,
        vectors_pending=one.vectors_pending,
        vectors_failed=one.vectors_failed,
        indexed_vectors=one.indexed_vectors,
        index_lag=one.index_lag,
        embedder=embedder_to_wire(one.embedder) if one.embedder else None,
    )
