"""From Python values to the contract's messages. Refuses what could only fail later."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import schema_service_pb2, search_pb2, types_pb2

from pillion_client import enums
from pillion_client.models import (
    FactKey,
    Partition,
    Source,
    Subject,
    SubjectLike,
    Value,
    Whole,
)
from pillion_client.schemas import (
    ConvertValue,
    DefaultProperty,
    RemoveProperty,
    RenameProperty,
    ReplaceValue,
    UnwrapValue,
    ValueStep,
    WrapValue,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pillion_client.mutations import VectorLike
    from pillion_client.preconditions import Precondition
    from pillion_client.selection import Filter, GraphExpansion, Ranking, TimeWindow

EnumT = TypeVar("EnumT", bound=StrEnum)

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PREFIXES: Final[dict[type[StrEnum], tuple[Any, str]]] = {
    enums.MemoryKind: (types_pb2.MemoryKind, "MEMORY_KIND_"),
    enums.MemoryStatus: (types_pb2.MemoryStatus, "MEMORY_STATUS_"),
    enums.SourceKind: (types_pb2.SourceKind, "SOURCE_KIND_"),
    enums.OperationState: (types_pb2.OperationState, "OPERATION_STATE_"),
    enums.ChangeKind: (service.ChangeKind, "CHANGE_KIND_"),
    enums.ClusterSkipReason: (types_pb2.ClusterSkipReason, "CLUSTER_SKIP_REASON_"),
    enums.ConflictPolicy: (service.ConflictPolicy, "CONFLICT_POLICY_"),
    enums.EmbeddingMode: (service.EmbeddingMode, "EMBEDDING_MODE_"),
    enums.EpisodeIndexing: (service.EpisodeIndexing, "EPISODE_INDEXING_"),
    enums.ExtractionMode: (service.ExtractionMode, "EXTRACTION_MODE_"),
    enums.MutationOutcome: (service.MutationOutcome, "MUTATION_OUTCOME_"),
    enums.ForgetMode: (service.ForgetMode, "FORGET_MODE_"),
    enums.ValidityFilter: (search_pb2.ValidityFilter, "VALIDITY_FILTER_"),
    enums.RecencyAnchor: (search_pb2.RecencyAnchor, "RECENCY_ANCHOR_"),
    enums.OlderStatements: (search_pb2.OlderStatements, "OLDER_STATEMENTS_"),
    enums.Exactness: (search_pb2.Exactness, "EXACTNESS_"),
    enums.SearchPath: (search_pb2.SearchPath, "SEARCH_PATH_"),
    enums.RecallPurpose: (service.RecallPurpose, "RECALL_PURPOSE_"),
    enums.RecallSection: (service.RecallSection, "RECALL_SECTION_"),
    enums.EdgeDirection: (service.EdgeDirection, "EDGE_DIRECTION_"),
    enums.Cardinality: (schema_service_pb2.Cardinality, "CARDINALITY_"),
    enums.ValueType: (schema_service_pb2.ValueType, "VALUE_TYPE_"),
    enums.ExistingValues: (schema_service_pb2.ExistingValues, "EXISTING_VALUES_"),
}


def enum_members(kind: type[EnumT]) -> dict[int, EnumT]:
    """Return the members of an enumeration by the contract's numbers."""
    wire, prefix = _PREFIXES[kind]
    return {number: kind[name.removeprefix(prefix)] for name, number in wire.items()}


_BY_CLASS: Final[dict[type[StrEnum], dict[str, int]]] = {
    kind: {member.value: number for number, member in enum_members(kind).items()}
    for kind in _PREFIXES
}


def enum_number(kind: type[EnumT], value: EnumT | str) -> Any:  # noqa: ANN401  (open enum types)
    """Return the contract's number of a member or of its text.

    Raises:
        ValueError: There is no such member.
    """
    number = _BY_CLASS[kind].get(value)
    if number is None:
        known = ", ".join(member.value for member in kind if member.value != "unspecified")
        message = f"{value!r} is not a {kind.__name__}: it is one of {known}"
        raise ValueError(message)
    return number


def instant(moment: datetime) -> Timestamp:
    """Return the instant, to the microsecond.

    Raises:
        ValueError: The time has no offset.
        TypeError: It is no datetime.
    """
    if not isinstance(moment, datetime):
        message = f"{moment!r} is no datetime: give for example datetime(2026, 6, 1, tzinfo=UTC)"
        raise TypeError(message)
    if moment.utcoffset() is None:
        message = (
            f"{moment.isoformat()} has no offset from UTC, so it names no instant: "
            "give it one, for example datetime(..., tzinfo=UTC)"
        )
        raise ValueError(message)
    since = moment - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1000)


def optional_instant(moment: datetime | None) -> Timestamp | None:
    """Return the instant, or None for None."""
    return None if moment is None else instant(moment)


def duration(span: timedelta) -> Duration:
    """Return the span, to the microsecond."""
    message = Duration()
    message.FromTimedelta(span)
    return message


def partition(where: Partition | None) -> types_pb2.Partition | None:
    """Return the partition, or None: the only one that the credential reaches."""
    if where is None:
        return None
    return types_pb2.Partition(namespace=where.namespace, tenant=where.tenant)


def subject(about: SubjectLike) -> types_pb2.Subject:
    """Return the subject; a text is read as ``type:id``."""
    parsed = Subject.parse(about) if isinstance(about, str) else about
    return types_pb2.Subject(type=parsed.type, id=parsed.id)


def fact_key(key: FactKey) -> types_pb2.FactKey:
    """Return the fact key."""
    return types_pb2.FactKey(
        subject=subject(key.subject),
        context=key.context,
        attribute=key.attribute,
        member=None if isinstance(key.member, Whole) else value(key.member),
    )


def value(content: Value) -> types_pb2.Value:  # noqa: PLR0911  (one return for each type)
    """Return a fact's value by its Python type.

    Raises:
        ValueError: An integer of more than 64 bits, a number that is not finite, a time without
            an offset.
        TypeError: A type that the contract has no place for.
    """
    match content:
        case str():
            return types_pb2.Value(string_value=content)
        case bool():
            return types_pb2.Value(bool_value=content)
        case int():
            if not INT_MIN <= content <= INT_MAX:
                message = f"{content} does not fit a signed 64-bit integer: send it as text"
                raise ValueError(message)
            return types_pb2.Value(int_value=content)
        case float():
            if not np.isfinite(content):
                message = f"a fact's value must be finite, not {content}"
                raise ValueError(message)
            return types_pb2.Value(double_value=content)
        case datetime():
            return types_pb2.Value(time_value=instant(content))
        case Subject():
            return types_pb2.Value(subject_value=subject(content))
        case dict() | list() | None:
            text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
            return types_pb2.Value(json_value=text)
    message = (
        f"a fact's value cannot be a {type(content).__name__}: give str, int, float, bool, "
        "datetime, Subject, or JSON (of a pydantic model, model_dump(mode='json'))"
    )
    raise TypeError(message)


_FLOAT32: Final = np.dtype("<f4")
_INFINITY: Final = float("inf")


def vector(components: VectorLike) -> bytes:
    """Return the little-endian float32 bytes of a vector.

    Raises:
        ValueError: It is empty, not one-dimensional, all zeros, or has a component that is NaN
            or infinite as a float32.
    """
    if isinstance(components, np.ndarray) and components.dtype == _FLOAT32:
        array = components
    else:
        with np.errstate(over="ignore"):  # a double too large for float32 is reported below
            array = np.asarray(components, dtype=_FLOAT32)
    if array.ndim == 1 and 0.0 < array.dot(array) < _INFINITY:
        return array.tobytes()  # the square of its length says that nothing is wrong with it
    return _checked_vector(array)


def _checked_vector(array: NDArray[np.float32]) -> bytes:
    """Say what is wrong with a vector; nothing may be, where squares only overflow or vanish."""
    if array.ndim != 1 or array.size == 0:
        message = f"a vector has one dimension and at least one component, not shape {array.shape}"
        raise ValueError(message)
    finite = np.isfinite(array)
    if not finite.all():
        place = int(np.argmin(finite))
        message = f"vector: component {place} is {array[place]} as a float32; all must be finite"
        raise ValueError(message)
    if not array.any():
        message = "vector: all components are zero, so it points nowhere"
        raise ValueError(message)
    return array.tobytes()


def optional_vector(components: VectorLike | None) -> bytes | None:
    """Return the vector's bytes, or None for None."""
    return None if components is None else vector(components)


def source(origin: Source) -> types_pb2.Source:
    """Return where a statement came from."""
    return types_pb2.Source(
        kind=enum_number(enums.SourceKind, origin.kind),
        episode_id=origin.episode_id or "",
        quote=origin.quote or "",
        author=origin.author or "",
    )


def precondition(condition: Precondition) -> types_pb2.Precondition:
    """Return the precondition."""
    if condition.kind == "version_equals":
        return types_pb2.Precondition(version_equals=condition.version)
    return types_pb2.Precondition(**{condition.kind: True})


def time_window(window: TimeWindow | None) -> search_pb2.TimeWindow | None:
    """Return the window, or None for None."""
    if window is None:
        return None
    message = search_pb2.TimeWindow(to=optional_instant(window.end))
    if window.start is not None:  # `from` is a keyword, so the constructor cannot name it
        getattr(message, "from").CopyFrom(instant(window.start))
    return message


def filter_(where: Filter | None) -> search_pb2.Filter | None:
    """Return the filter, or None for None."""
    if where is None:
        return None
    return search_pb2.Filter(
        subjects=[subject(about) for about in where.subjects],
        contexts=where.contexts,
        all_contexts=where.all_contexts,
        kinds=[enum_number(enums.MemoryKind, kind) for kind in where.kinds],
        statuses=[enum_number(enums.MemoryStatus, status) for status in where.statuses],
        attributes=where.attributes,
        labels_all=where.labels_all,
        labels_any=where.labels_any,
        labels_none=where.labels_none,
        created=time_window(where.created),
        valid_from=time_window(where.valid_from),
        importance_min=where.importance_min,
        confidence_min=where.confidence_min,
        source_kinds=[enum_number(enums.SourceKind, kind) for kind in where.source_kinds],
        episode_ids=where.episode_ids,
        session_ids=where.session_ids,
        include_retracted=where.include_retracted,
        include_expired=where.include_expired,
        validity=enum_number(enums.ValidityFilter, where.validity),
        any_of=_filters(where.any_of),
        none_of=_filters(where.none_of),
        derived_from=where.derived_from,
    )


def _filters(several: Sequence[Filter]) -> list[search_pb2.Filter]:
    return [made for made in map(filter_, several) if made is not None]


def ranking(profile: Ranking | None) -> search_pb2.RankingProfile | None:
    """Return the ranking profile, or None for None."""
    if profile is None:
        return None
    return search_pb2.RankingProfile(
        name=profile.name,
        relevance_weight=profile.relevance_weight,
        recency_weight=profile.recency_weight,
        importance_weight=profile.importance_weight,
        half_lives=[
            search_pb2.KindHalfLife(
                kind=enum_number(enums.MemoryKind, kind),
                half_life=None if span is None else duration(span),
            )
            for kind, span in profile.half_lives.items()
        ],
        recency_anchor=enum_number(enums.RecencyAnchor, profile.recency_anchor),
        diversity=profile.diversity,
    )


def expansion(walk: GraphExpansion | None) -> search_pb2.GraphExpansion | None:
    """Return the graph expansion, or None for None."""
    if walk is None:
        return None
    return search_pb2.GraphExpansion(
        depth=walk.depth, fan_out=walk.fan_out, attributes=walk.attributes
    )


def value_step(step: ValueStep) -> schema_service_pb2.ValueStep:  # noqa: PLR0911  (one a kind)
    """Return a step of a migration."""
    made = schema_service_pb2.ValueStep
    match step:
        case ConvertValue(to):
            return made(convert={"to": enum_number(enums.ValueType, to)})
        case ReplaceValue(old, new):  # `from` is a keyword, so the constructor cannot name it
            replaced = schema_service_pb2.ReplaceValue(to=value(new))
            getattr(replaced, "from").CopyFrom(value(old))
            return made(replace=replaced)
        case RenameProperty(old, new):
            return made(rename_property={"from": old, "to": new})
        case DefaultProperty(name, content):
            text = json.dumps(content, ensure_ascii=False, allow_nan=False)
            return made(default_property={"name": name, "json_value": text})
        case RemoveProperty(name):
            return made(remove_property={"name": name})
        case WrapValue(name):
            return made(wrap={"name": name})
        case UnwrapValue(name):
            return made(unwrap={"name": name})
