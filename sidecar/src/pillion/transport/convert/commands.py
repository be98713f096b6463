"""Requests that change something, as commands: Write, Import, Forget, Consolidate."""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import schema_service_pb2 as schema_wire

from pillion.domain.commands import (
    ConsolidateCommand,
    WriteCommand,
)
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import CLUSTER_SIZE_DEFAULT, GUARDS_MAX, IMPORT_BATCH_MAX, MUTATIONS_MAX
from pillion.domain.mutations import EmbeddingMode
from pillion.transport.capabilities import feature_not_served
from pillion.transport.convert.instants import optional_instant
from pillion.transport.convert.mutations import guard_from_wire, mutation_from_wire
from pillion.transport.convert.scalars import (
    optional_enum,
    subject_from_wire,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from pillion.domain.mutations import Mutation

    WireT = TypeVar("WireT")
    DomainT = TypeVar("DomainT")

_DIGEST_BYTES = 32


def write_from_wire(request: wire.WriteRequest) -> WriteCommand:
    """Return a Write. Its lists' lengths are checked before anything of them is converted."""
    check_length(request.mutations, "mutations", 1, MUTATIONS_MAX)
    check_length(request.guards, "guards", 0, GUARDS_MAX)
    return WriteCommand(
        mutations=_each(request.mutations, "mutations", "index", mutation_from_wire),
        guards=_each(request.guards, "guards", "guard_index", guard_from_wire),
        request_id=request.request_id,
        body_digest=body_digest(request),
        embedding_mode=embedding_mode_from_wire(request.embedding_mode),
        validate_only=request.validate_only,
    )


def import_items_from_wire(batch: wire.ImportBatch) -> list[Mutation | PillionError]:
    """Return a batch's items; one that cannot be converted is its error, and keeps its place.

    Raises:
        PillionError: The batch as a whole is empty or too long.
    """
    check_length(batch.items, "batch.items", 1, IMPORT_BATCH_MAX)
    return [_import_item(item) for item in batch.items]


def _import_item(item: wire.Mutation) -> Mutation | PillionError:
    try:
        return mutation_from_wire(item)
    except PillionError as error:
        return error


def embedding_mode_from_wire(number: int, field: str = "embedding_mode") -> EmbeddingMode:
    """Return when vectors must be there; absent is QUEUED."""
    return optional_enum(EmbeddingMode, number, field) or EmbeddingMode.QUEUED


def consolidate_from_wire(request: wire.ConsolidateRequest) -> ConsolidateCommand:
    """Return a consolidation of one subject."""
    if request.background:
        raise feature_not_served(wire.CAPABILITY_BACKGROUND, "background")
    if not request.HasField("subject"):
        # Every subject, one after another, is work for the background.
        raise feature_not_served(wire.CAPABILITY_BACKGROUND, "subject (absent: every subject)")
    return ConsolidateCommand(
        subject=subject_from_wire(request.subject),
        context=request.context,
        before=optional_instant(request, "before", "before"),
        summarizer=request.summarizer or "extractive",
        cluster_size_min=request.cluster_size_min or CLUSTER_SIZE_DEFAULT,
        dry_run=request.dry_run,
        request_id=request.request_id,
        body_digest=body_digest(request),
    )


def body_digest(
    request: wire.WriteRequest
    | wire.ForgetRequest
    | wire.ConsolidateRequest
    | schema_wire.RegisterAttributeRequest
    | schema_wire.MigrateAttributeRequest,
) -> bytes:
    """Return a hash that tells a retry from another request under the same request_id.

    Without a request_id there is nothing to tell apart, and the hash is empty. The partition is
    left out: request ids are a partition's own, and absent means the same as its default.
    """
    if not request.request_id:
        return b""
    body = copy.deepcopy(request)
    body.ClearField("request_id")
    body.ClearField("partition")
    content = body.SerializeToString(deterministic=True)
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def check_length(items: Sequence[object], field: str, least: int, most: int) -> None:
    """Refuse a list that is too short or too long, before anything of it is converted."""
    if len(items) < least:
        raise PillionError.of_field(field, f"at least {least} is required")
    if len(items) > most:
        raise PillionError.of_field(
            field, f"{len(items)} are too many; at most {most} fit", Reason.LIMIT_EXCEEDED
        )


def _each(
    items: Sequence[WireT], field: str, place: str, convert: Callable[[WireT], DomainT]
) -> tuple[DomainT, ...]:
    """Convert each; an error names its field below ``field``, and its place in the metadata."""
    made = []
    for at, item in enumerate(items):
        try:
            made.append(convert(item))
        except PillionError as error:
            raise error.within(f"{field}[{at}]", **{place: str(at)}) from None
    return tuple(made)
