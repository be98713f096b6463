"""From arguments to requests: pure, and shared by the blocking and the asyncio client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from google.protobuf.field_mask_pb2 import FieldMask
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import search_pb2, types_pb2

from pillion_client import _to_wire as wire
from pillion_client import enums
from pillion_client.models import FactKey, Partition, Subject, SubjectLike
from pillion_client.mutations import (
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    Confirm,
    Guard,
    Mutation,
    Patch,
    PutFact,
    Restore,
    Retract,
    StatementFields,
)
from pillion_client.options import ConditionOptions, ReadOptions, WriteOptions
from pillion_client.selection import Filter, TimeWindow, Topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PATCH_FIELDS: Final = frozenset(
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

_CONDITIONS: Final = ConditionOptions.__optional_keys__


def read_options(options: ReadOptions) -> types_pb2.ReadOptions:
    """Return how fresh a read must be and which instants it asks about.

    Raises:
        ValueError: Both known_at and exact_revision are given, or a time has no offset.
    """
    known_at, exact_revision = options.get("known_at"), options.get("exact_revision")
    if known_at is not None and exact_revision is not None:
        message = "known_at and exact_revision both name a recorded state: give one of them"
        raise ValueError(message)
    return types_pb2.ReadOptions(
        at_least_revision=options.get("at_least_revision") or 0,
        exact_revision=exact_revision,
        known_at=wire.optional_instant(known_at),
        as_of=wire.optional_instant(options.get("as_of")),
    )


def selected(given: Filter | None, options: Mapping[str, Any]) -> search_pb2.Filter | None:
    """Return the filter: the one that was given, or one of the conditions among the options.

    Raises:
        ValueError: Both are there, so that it is unclear which one holds.
    """
    conditions = {name: options[name] for name in _CONDITIONS if name in options}
    if given is not None and conditions:
        message = f"give a filter or single conditions ({', '.join(sorted(conditions))}), not both"
        raise ValueError(message)
    return wire.filter_(Filter(**conditions) if conditions else given)


def without_write_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], WriteOptions]:
    """Split what a convenience method was given into the mutation's fields and the options."""
    names = WriteOptions.__optional_keys__
    fields = {name: content for name, content in given.items() if name not in names}
    options = {name: content for name, content in given.items() if name in names}
    return fields, cast("WriteOptions", options)


def _statement(fields: StatementFields, about: SubjectLike) -> types_pb2.Memory:
    return types_pb2.Memory(
        subject=wire.subject(about),
        context=fields.context,
        vector=wire.optional_vector(fields.vector),
        importance=fields.importance,
        confidence=fields.confidence,
        status=wire.enum_number(enums.MemoryStatus, fields.status),
        pinned=fields.pinned,
        pii_labels=fields.pii_labels,
        labels=fields.labels,
        derived_from=fields.derived_from,
        valid_from=wire.optional_instant(fields.valid_from),
        valid_to=wire.optional_instant(fields.valid_to),
        expires_at=wire.optional_instant(fields.expires_at),
        retention_class=fields.retention_class or "",
        session_id=fields.session_id or "",
        schema_version=fields.schema_version,
    )


def _put_fact(change: PutFact) -> service.Mutation:
    fact = _statement(change, change.subject)
    fact.id = change.id or ""
    fact.kind = types_pb2.MEMORY_KIND_SEMANTIC
    fact.attribute = change.attribute
    fact.value.CopyFrom(wire.value(change.value))
    fact.source.CopyFrom(wire.source(change.source))
    fact.text = change.text or ""
    return service.Mutation(
        put_fact=service.PutFact(
            fact=fact,
            precondition=wire.precondition(change.precondition),
            conflict_policy=wire.enum_number(enums.ConflictPolicy, change.conflict_policy),
        )
    )


def _add_memory(change: AddMemory) -> service.Mutation:
    memory = _statement(change, change.subject)
    memory.id = change.id or ""
    memory.kind = wire.enum_number(enums.MemoryKind, change.kind)
    memory.text = change.text
    memory.source.CopyFrom(wire.source(change.source))
    return service.Mutation(
        add_memory=service.AddMemory(
            memory=memory, precondition=wire.precondition(change.precondition)
        )
    )


def _capture_episode(change: CaptureEpisode) -> service.Mutation:
    return service.Mutation(
        capture_episode=service.CaptureEpisode(
            episode=types_pb2.Episode(
                id=change.id or "",
                subject=wire.subject(change.subject),
                context=change.context,
                content=change.content,
                media_type=change.media_type or "",
                source_kind=wire.enum_number(enums.SourceKind, change.source_kind),
                author=change.author or "",
                occurred_at=wire.optional_instant(change.occurred_at),
                session_id=change.session_id or "",
                external_ref=change.external_ref or "",
                labels=change.labels,
                retention_class=change.retention_class or "",
                expires_at=wire.optional_instant(change.expires_at),
            ),
            precondition=wire.precondition(change.precondition),
            indexing=wire.enum_number(enums.EpisodeIndexing, change.indexing),
            extraction=wire.enum_number(enums.ExtractionMode, change.extraction),
            importance=change.importance,
            vector=wire.optional_vector(change.vector),
        )
    )


def _patch(change: Patch) -> service.Mutation:
    unknown = sorted(change.changes.keys() - PATCH_FIELDS)
    if unknown or not change.changes:
        known = ", ".join(sorted(PATCH_FIELDS))
        what = f"cannot change {', '.join(unknown)}" if unknown else "changes nothing"
        message = f"the patch {what}; the fields that can change are {known}"
        raise ValueError(message)
    given: dict[str, Any] = {
        name: content for name, content in change.changes.items() if content is not None
    }
    if "vector" in given:
        given["vector"] = wire.vector(given["vector"])
    if "expires_at" in given:
        given["expires_at"] = wire.instant(given["expires_at"])
    return service.Mutation(
        patch_memory=service.PatchMemory(
            memory_id=change.memory_id,
            patch=types_pb2.Memory(**given),
            update_mask=FieldMask(paths=sorted(change.changes)),
            precondition=wire.precondition(change.precondition),
        )
    )


def _target(target: str | FactKey) -> dict[str, Any]:
    if isinstance(target, FactKey):
        return {"fact": wire.fact_key(target)}
    return {"memory_id": target}


def mutation(change: Mutation) -> service.Mutation:  # noqa: PLR0911  (one return for each kind)
    """Return one change of a write."""
    match change:
        case PutFact():
            return _put_fact(change)
        case AddMemory():
            return _add_memory(change)
        case CaptureEpisode():
            return _capture_episode(change)
        case Patch():
            return _patch(change)
        case Confirm(memory_id, source, condition):
            return service.Mutation(
                confirm_memory=service.ConfirmMemory(
                    memory_id=memory_id,
                    source=wire.source(source),
                    precondition=wire.precondition(condition),
                )
            )
        case Retract(target, condition, valid_to):
            return service.Mutation(
                retract_memory=service.RetractMemory(
                    **_target(target),
                    valid_to=wire.optional_instant(valid_to),
                    precondition=wire.precondition(condition),
                )
            )
        case Restore(memory_id, condition):
            return service.Mutation(
                restore_memory=service.RestoreMemory(
                    memory_id=memory_id, precondition=wire.precondition(condition)
                )
            )
        case CloseOpenItem(memory_id, closed_at, condition):
            return service.Mutation(
                close_open_item=service.CloseOpenItem(
                    memory_id=memory_id,
                    closed_at=wire.optional_instant(closed_at),
                    precondition=wire.precondition(condition),
                )
            )


def write(
    changes: Iterable[Mutation],
    *,
    partition: Partition | None,
    request_id: str,
    guards: Sequence[Guard] = (),
    embedding: enums.EmbeddingMode | str = enums.EmbeddingMode.UNSPECIFIED,
    validate_only: bool = False,
) -> service.WriteRequest:
    """Return the request of a write."""
    return service.WriteRequest(
        partition=wire.partition(partition),
        request_id=request_id,
        mutations=[mutation(change) for change in changes],
        guards=[
            service.Guard(
                **_target(guard.target), precondition=wire.precondition(guard.precondition)
            )
            for guard in guards
        ],
        embedding_mode=wire.enum_number(enums.EmbeddingMode, embedding),
        validate_only=validate_only,
    )


def some_subjects(given: SubjectLike | Sequence[SubjectLike]) -> list[types_pb2.Subject]:
    """Return subjects, of which a single one may be given as it is."""
    several = [given] if isinstance(given, str | Subject) else given
    return [wire.subject(one) for one in several]


def record_target(target: str | FactKey) -> service.RecordTarget:
    """Return what to get: a memory by id or a fact by key."""
    return service.RecordTarget(**_target(target))


def forget_selector(
    *,
    ids: Sequence[str] | None = None,
    subject: SubjectLike | None = None,
    contexts: Sequence[str] = (),
    fact: FactKey | None = None,
    filter: Filter | None = None,  # noqa: A002  (the contract's name)
    episode_id: str | None = None,
    recorded: TimeWindow | None = None,
    topic: Topic | None = None,
    retention_class: str | None = None,
    expired: bool = False,
    decayed_below: dict[enums.MemoryKind | str, float] | None = None,
) -> service.ForgetSelector:
    """Return what to forget.

    Raises:
        ValueError: Not exactly one selector is given, or contexts without a subject.
    """
    made: list[service.ForgetSelector] = []
    selector = service.ForgetSelector
    if ids is not None:
        made.append(selector(ids=service.IdList(ids=ids)))
    if subject is not None:
        chosen = service.SubjectSelector(subject=wire.subject(subject), contexts=contexts)
        made.append(selector(subject=chosen))
    elif contexts:
        message = "contexts narrow a subject: name the subject too"
        raise ValueError(message)
    if fact is not None:
        made.append(selector(fact=wire.fact_key(fact)))
    if filter is not None:
        made.append(selector(filter=wire.filter_(filter)))
    if episode_id is not None:
        made.append(selector(episode_id=episode_id))
    if recorded is not None:
        made.append(selector(recorded=wire.time_window(recorded)))
    if topic is not None:
        made.append(
            selector(
                topic=service.TopicSelector(
                    text=topic.text,
                    score_min=topic.score_min,
                    subjects=[wire.subject(about) for about in topic.subjects],
                )
            )
        )
    if retention_class is not None:
        made.append(selector(retention_class=retention_class))
    if expired:
        made.append(selector(expired=True))
    if decayed_below is not None:
        thresholds = [
            service.KindThreshold(kind=wire.enum_number(enums.MemoryKind, kind), vitality=vitality)
            for kind, vitality in decayed_below.items()
        ]
        made.append(selector(decayed=service.DecaySelector(thresholds=thresholds)))
    if len(made) != 1:
        message = f"say what to forget by exactly one selector, not {len(made)}"
        raise ValueError(message)
    return made[0]


def forget_run(dry_run: bool | None) -> Any:  # noqa: ANN401  (an open enum type)
    """Return whether to do it; None: the contract's default, a dry run for all but ids."""
    if dry_run is None:
        return service.FORGET_RUN_UNSPECIFIED
    return service.FORGET_RUN_DRY_RUN if dry_run else service.FORGET_RUN_EXECUTE
