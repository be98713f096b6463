"""Mutations and guards of the wire, as the domain's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.types_pb2 import Memory as WireMemory

from pillion.domain.errors import PillionError
from pillion.domain.memory import MemoryKind, MemoryStatus, SourceKind
from pillion.domain.mutations import (
    PATCHABLE_FIELDS,
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    ConfirmMemory,
    ConflictPolicy,
    Guard,
    MemoryDraft,
    MemoryPatch,
    Mutation,
    PatchMemory,
    PreconditionKind,
    PutFact,
    RestoreMemory,
    RetractMemory,
)
from pillion.transport.capabilities import feature_not_served
from pillion.transport.convert.instants import optional_instant
from pillion.transport.convert.scalars import (
    check_enum,
    enum_from_wire,
    fact_key_from_wire,
    optional_enum,
    optional_precondition,
    optional_uuid,
    precondition_from_wire,
    required,
    required_subject,
    source_from_wire,
    uuid_from_wire,
    uuids_from_wire,
    value_from_wire,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_proto.memory.v1 import types_pb2


def mutation_from_wire(mutation: wire.Mutation) -> Mutation:
    """Return one mutation. Fields in errors are relative to it.

    Raises:
        PillionError: What the edge can see is wrong, or NOT_SERVED.
    """
    kind = mutation.WhichOneof("kind")
    if kind is None:
        raise PillionError.of_field("kind", "one kind of mutation must be set")
    return _CONVERTERS[kind](getattr(mutation, kind))


def guard_from_wire(guard: wire.Guard) -> Guard:
    """Return one guard. Fields in errors are relative to it."""
    precondition = precondition_from_wire(guard, "precondition")
    if precondition.kind is PreconditionKind.UNCONDITIONAL:
        raise PillionError.of_field("precondition", "an unconditional guard guards nothing")
    match guard.WhichOneof("target"):
        case "memory_id":
            return Guard(precondition, memory_id=uuid_from_wire(guard.memory_id, "memory_id"))
        case "fact":
            return Guard(precondition, fact=fact_key_from_wire(guard.fact, "fact"))
        case _:
            raise PillionError.of_field("target", "name a memory_id or a fact")


def _draft(memory: types_pb2.Memory, field: str, kind: MemoryKind) -> MemoryDraft:
    """Return what the caller states. Fields that only the server sets are not looked at."""
    required(memory, "source", f"{field}.source")
    has = memory.HasField
    return MemoryDraft(
        subject=required_subject(memory, "subject", f"{field}.subject"),
        source=source_from_wire(memory.source, f"{field}.source"),
        kind=kind,
        id=optional_uuid(memory.id, f"{field}.id"),
        context=memory.context,
        attribute=memory.attribute,
        value=value_from_wire(memory.value, f"{field}.value") if has("value") else None,
        text=memory.text,
        vector=memory.vector,
        importance=memory.importance if has("importance") else None,
        confidence=memory.confidence if has("confidence") else None,
        status=optional_enum(MemoryStatus, memory.status, f"{field}.status"),
        pinned=memory.pinned,
        pii_labels=tuple(memory.pii_labels),
        labels=tuple(memory.labels),
        derived_from=uuids_from_wire(memory.derived_from, f"{field}.derived_from"),
        valid_from=optional_instant(memory, "valid_from", f"{field}.valid_from"),
        valid_to=optional_instant(memory, "valid_to", f"{field}.valid_to"),
        expires_at=optional_instant(memory, "expires_at", f"{field}.expires_at"),
        retention_class=memory.retention_class,
        session_id=memory.session_id,
    )


def _put_fact(put: wire.PutFact) -> PutFact:
    required(put, "fact", "put_fact.fact")
    fact = put.fact
    kind = optional_enum(MemoryKind, fact.kind, "put_fact.fact.kind") or MemoryKind.SEMANTIC
    if kind is not MemoryKind.SEMANTIC:
        raise PillionError.of_field("put_fact.fact.kind", "a fact is SEMANTIC")
    if not fact.attribute:
        raise PillionError.of_field("put_fact.fact.attribute", "it is required")
    required(fact, "value", "put_fact.fact.value")
    return PutFact(
        _draft(fact, "put_fact.fact", kind),
        precondition_from_wire(put, "put_fact.precondition"),
        optional_enum(ConflictPolicy, put.conflict_policy, "put_fact.conflict_policy"),
    )


def _add_memory(add: wire.AddMemory) -> AddMemory:
    required(add, "memory", "add_memory.memory")
    memory = add.memory
    kind = enum_from_wire(MemoryKind, memory.kind, "add_memory.memory.kind")
    for name, present in (
        ("attribute", bool(memory.attribute)),
        ("value", memory.HasField("value")),
    ):
        if present:
            raise PillionError.of_field(f"add_memory.memory.{name}", "only a fact has one")
    return AddMemory(
        _draft(memory, "add_memory.memory", kind),
        optional_precondition(add, "add_memory.precondition", PreconditionKind.MUST_NOT_EXIST),
    )


def _capture_episode(capture: wire.CaptureEpisode) -> CaptureEpisode:
    field = "capture_episode"
    required(capture, "episode", f"{field}.episode")
    check_enum(wire.EpisodeIndexing.values(), capture.indexing, f"{field}.indexing")
    check_enum(wire.ExtractionMode.values(), capture.extraction, f"{field}.extraction")
    if capture.extraction not in (wire.EXTRACTION_MODE_UNSPECIFIED, wire.EXTRACTION_MODE_NONE):
        raise feature_not_served(wire.CAPABILITY_EXTRACTION, f"{field}.extraction")
    episode, field = capture.episode, f"{field}.episode"
    return CaptureEpisode(
        subject=required_subject(episode, "subject", f"{field}.subject"),
        content=episode.content,
        source_kind=enum_from_wire(SourceKind, episode.source_kind, f"{field}.source_kind"),
        precondition=optional_precondition(
            capture, "capture_episode.precondition", PreconditionKind.MUST_NOT_EXIST
        ),
        id=optional_uuid(episode.id, f"{field}.id"),
        context=episode.context,
        media_type=episode.media_type or "text/plain",
        author=episode.author,
        occurred_at=optional_instant(episode, "occurred_at", f"{field}.occurred_at"),
        session_id=episode.session_id,
        external_ref=episode.external_ref,
        labels=tuple(episode.labels),
        retention_class=episode.retention_class,
        expires_at=optional_instant(episode, "expires_at", f"{field}.expires_at"),
        indexed=capture.indexing != wire.EPISODE_INDEXING_SOURCE_ONLY,
        importance=capture.importance if capture.HasField("importance") else None,
        vector=capture.vector,
    )


def _patch_memory(patch: wire.PatchMemory) -> PatchMemory:
    paths = frozenset(patch.update_mask.paths)
    if not paths:
        raise PillionError.of_field("patch_memory.update_mask", "name at least one field")
    unknown = sorted(paths - PATCHABLE_FIELDS)
    if unknown:
        # A path that is a field's name is safe to repeat; any other might hold content.
        known = WireMemory.DESCRIPTOR.fields_by_name
        shown = unknown[0] if unknown[0] in known else "a path that is no field"
        raise PillionError.of_field(
            "patch_memory.update_mask",
            f"{shown} cannot be patched; these can: {', '.join(sorted(PATCHABLE_FIELDS))}",
        )
    new = patch.patch
    return PatchMemory(
        uuid_from_wire(patch.memory_id, "patch_memory.memory_id"),
        MemoryPatch(
            fields=paths,
            text=new.text,
            importance=new.importance if new.HasField("importance") else None,
            confidence=new.confidence if new.HasField("confidence") else None,
            pinned=new.pinned,
            labels=tuple(new.labels),
            pii_labels=tuple(new.pii_labels),
            expires_at=optional_instant(new, "expires_at", "patch_memory.patch.expires_at"),
            retention_class=new.retention_class,
            session_id=new.session_id,
            vector=new.vector,
        ),
        precondition_from_wire(patch, "patch_memory.precondition"),
    )


def _confirm_memory(confirm: wire.ConfirmMemory) -> ConfirmMemory:
    required(confirm, "source", "confirm_memory.source")
    source = source_from_wire(confirm.source, "confirm_memory.source")
    if source.kind is not SourceKind.USER_CONFIRMATION:
        raise PillionError.of_field("confirm_memory.source.kind", "it must be USER_CONFIRMATION")
    return ConfirmMemory(
        uuid_from_wire(confirm.memory_id, "confirm_memory.memory_id"),
        source,
        optional_precondition(confirm, "confirm_memory.precondition", PreconditionKind.MUST_EXIST),
    )


def _retract_memory(retract: wire.RetractMemory) -> RetractMemory:
    precondition = precondition_from_wire(retract, "retract_memory.precondition")
    valid_to = optional_instant(retract, "valid_to", "retract_memory.valid_to")
    match retract.WhichOneof("target"):
        case "memory_id":
            memory_id = uuid_from_wire(retract.memory_id, "retract_memory.memory_id")
            return RetractMemory(precondition, memory_id=memory_id, valid_to=valid_to)
        case "fact":
            fact = fact_key_from_wire(retract.fact, "retract_memory.fact")
            return RetractMemory(precondition, fact=fact, valid_to=valid_to)
        case _:
            raise PillionError.of_field("retract_memory.target", "name a memory_id or a fact")


def _restore_memory(restore: wire.RestoreMemory) -> RestoreMemory:
    return RestoreMemory(
        uuid_from_wire(restore.memory_id, "restore_memory.memory_id"),
        precondition_from_wire(restore, "restore_memory.precondition"),
    )


def _close_open_item(close: wire.CloseOpenItem) -> CloseOpenItem:
    field = "close_open_item"
    return CloseOpenItem(
        uuid_from_wire(close.memory_id, f"{field}.memory_id"),
        optional_precondition(close, f"{field}.precondition", PreconditionKind.MUST_EXIST),
        optional_instant(close, "closed_at", f"{field}.closed_at"),
    )


_CONVERTERS: Final[dict[str, Callable[..., Mutation]]] = {
    "put_fact": _put_fact,
    "add_memory": _add_memory,
    "capture_episode": _capture_episode,
    "patch_memory": _patch_memory,
    "confirm_memory": _confirm_memory,
    "retract_memory": _retract_memory,
    "restore_memory": _restore_memory,
    "close_open_item": _close_open_item,
}
