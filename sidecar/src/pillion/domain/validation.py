"""What a request must look like before anything is looked up. Raises with the field at fault."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind, SourceKind
from pillion.domain.mutations import (
    PATCHABLE_FIELDS,
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    ConfirmMemory,
    MemoryDraft,
    PatchMemory,
    Precondition,
    PreconditionKind,
    PutFact,
    RetractMemory,
)
from pillion.domain.queries import PLAIN_FILTER, PLAIN_RANKING
from pillion.domain.values import Value, ValueKind, canonical_json

if TYPE_CHECKING:
    from collections.abc import Collection
    from uuid import UUID

    from pillion.domain.commands import WriteCommand
    from pillion.domain.memory import Source
    from pillion.domain.mutations import Guard, Mutation
    from pillion.domain.queries import Filter, RankingProfile, SearchQuery
    from pillion.domain.scope import FactKey, Partition, Subject

FLOAT32_BYTES: Final = 4
_INT64_MAX: Final = 2**63 - 1


def check_text(field: str, text: str, bytes_max: int, *, required: bool = False) -> None:
    """Refuse text that is empty where it must not be, too long, or not encodable as UTF-8."""
    if required and not text:
        raise PillionError.of_field(field, "must not be empty")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise PillionError.of_field(field, "holds a lone surrogate: it is not UTF-8") from None
    if size > bytes_max:
        raise PillionError.of_field(
            field,
            f"has {size} bytes of UTF-8; at most {bytes_max} are allowed",
            Reason.LIMIT_EXCEEDED,
        )


def check_count(field: str, count: int, count_max: int) -> None:
    """Refuse more items than are allowed."""
    if count > count_max:
        raise PillionError.of_field(
            field, f"has {count} items; at most {count_max} are allowed", Reason.LIMIT_EXCEEDED
        )


def check_share(field: str, value: float | None) -> None:
    """Refuse a number outside 0 to 1; None is fine."""
    if value is None:
        return
    if not math.isfinite(value):
        raise PillionError.of_field(field, "must be a finite number", Reason.NOT_FINITE)
    if not 0.0 <= value <= 1.0:
        raise PillionError.of_field(field, f"must be from 0 to 1, not {value:g}")


def check_instant(field: str, instant: int | None) -> None:
    """Refuse an instant outside the years 1 to 9999; None is fine."""
    if instant is None:
        return
    if not limits.INSTANT_MIN_US <= instant <= limits.INSTANT_MAX_US:
        raise PillionError.of_field(field, "must be in the years 1 to 9999")


def check_partition(partition: Partition) -> None:
    """Refuse names that are empty or too long."""
    check_text("partition.namespace", partition.namespace, limits.NAME_BYTES_MAX, required=True)
    check_text("partition.tenant", partition.tenant, limits.NAME_BYTES_MAX, required=True)


def check_subject(field: str, subject: Subject) -> None:
    """Refuse a subject without a type or id, or too long a one."""
    check_text(f"{field}.type", subject.type, limits.SUBJECT_TYPE_BYTES_MAX, required=True)
    check_text(f"{field}.id", subject.id, limits.SUBJECT_ID_BYTES_MAX, required=True)


def check_fact_key(field: str, key: FactKey) -> None:
    """Refuse a malformed fact key."""
    check_subject(f"{field}.subject", key.subject)
    check_text(f"{field}.context", key.context, limits.CONTEXT_BYTES_MAX)
    check_text(f"{field}.attribute", key.attribute, limits.NAME_BYTES_MAX, required=True)


def check_labels(field: str, labels: Collection[str]) -> None:
    """Refuse too many, too long or empty labels."""
    check_count(field, len(labels), limits.LABELS_MAX)
    for label in labels:
        check_text(field, label, limits.LABEL_BYTES_MAX, required=True)


def check_vector_shape(field: str, vector: bytes, dimension: int | None = None) -> None:
    """Refuse bytes that are not float32 vectors of an allowed dimension; empty is fine.

    Args:
        field: Its path in the request.
        vector: The bytes; empty means that there is none.
        dimension: What it must have; None: any up to the limit.
    """
    if len(vector) % FLOAT32_BYTES:
        raise PillionError.of_field(
            field, f"has {len(vector)} bytes; float32 vectors have a multiple of 4"
        )
    found = len(vector) // FLOAT32_BYTES
    if found > limits.DIMENSION_MAX:
        raise PillionError.of_field(
            field,
            f"has {found} dimensions; at most {limits.DIMENSION_MAX} are allowed",
            Reason.LIMIT_EXCEEDED,
        )
    if vector and dimension is not None and found != dimension:
        raise PillionError.of_field(
            field,
            f"has {found} dimensions; this partition's vectors have {dimension}",
            Reason.DIMENSION_MISMATCH,
        )


def check_vector(field: str, vector: bytes) -> None:
    """Refuse a vector that is not finite float32, or all zeros; empty is fine."""
    check_vector_shape(field, vector)
    if not vector:
        return
    numbers = struct.unpack(f"<{len(vector) // FLOAT32_BYTES}f", vector)
    norm = math.fsum(number * number for number in numbers)
    if not math.isfinite(norm):
        raise PillionError.of_field(field, "holds NaN or an infinity", Reason.NOT_FINITE)
    if norm == 0.0:
        raise PillionError.of_field(
            field, "is all zeros, which has no direction", Reason.NOT_FINITE
        )


def check_source(field: str, source: Source) -> None:
    """Refuse too long quotes and authors."""
    check_text(f"{field}.quote", source.quote, limits.QUOTE_BYTES_MAX)
    check_text(f"{field}.author", source.author, limits.AUTHOR_BYTES_MAX)


def checked_value(field: str, value: Value) -> Value:
    """Return the value in canonical form, or refuse it."""
    data = value.data
    match value.kind:
        case ValueKind.TEXT if isinstance(data, str):
            check_text(field, data, limits.VALUE_BYTES_MAX)
        case ValueKind.JSON if isinstance(data, str):
            check_text(field, data, limits.VALUE_BYTES_MAX, required=True)
            try:
                canonical = canonical_json(data)
            except ValueError as error:
                raise PillionError.of_field(field, f"is not JSON: {_calm(error)}") from None
            # Escapes may hide a lone surrogate, and 1e15 is written out: look again.
            check_text(field, canonical, limits.VALUE_BYTES_MAX)
            return Value(ValueKind.JSON, canonical)
        case ValueKind.DOUBLE if isinstance(data, float):
            if not math.isfinite(data):
                raise PillionError.of_field(field, "must be a finite number", Reason.NOT_FINITE)
            if data == 0.0:
                return Value(ValueKind.DOUBLE, 0.0)  # -0.0 and 0.0 are one value
        case ValueKind.BOOLEAN if isinstance(data, bool):
            pass
        case ValueKind.INSTANT if isinstance(data, int) and not isinstance(data, bool):
            check_instant(field, data)
        case ValueKind.INTEGER if isinstance(data, int) and not isinstance(data, bool):
            if not -_INT64_MAX - 1 <= data <= _INT64_MAX:
                raise PillionError.of_field(field, "does not fit 64 bits")
        case ValueKind.SUBJECT if not isinstance(data, str | int | float):
            check_subject(field, data)
        case _:
            raise PillionError.of_field(field, f"is not of the kind {value.kind.name}")
    return value


def _calm(error: ValueError) -> str:
    """Return a parser's complaint without the content that it may quote."""
    position = getattr(error, "pos", None)
    return f"error at character {position}" if position is not None else str(error)


def check_precondition(
    field: str, precondition: Precondition, *, allowed: Collection[PreconditionKind]
) -> None:
    """Refuse a precondition that makes no sense here, and versions below 1."""
    if precondition.kind not in allowed:
        names = ", ".join(kind.name.lower() for kind in sorted(allowed))
        raise PillionError.of_field(field, f"must be one of {names}")
    if precondition.kind is PreconditionKind.VERSION_EQUALS and precondition.version < 1:
        raise PillionError.of_field(f"{field}.version_equals", "must be 1 or more")


_ANY: Final = frozenset(PreconditionKind)
_EXISTING: Final = _ANY - {PreconditionKind.MUST_NOT_EXIST}
_GUARDING: Final = _ANY - {PreconditionKind.UNCONDITIONAL}
_NEW: Final = frozenset({PreconditionKind.MUST_NOT_EXIST})


def check_id(field: str, record_id: UUID | None) -> None:
    """Refuse the id of all zeros, which the ranker reserves; None is fine."""
    if record_id is not None and not record_id.int:
        raise PillionError.of_field(field, "must not be all zeros")


def check_pii_labels(field: str, labels: Collection[str]) -> None:
    """Refuse too many, too long or empty labels of personal data."""
    check_count(field, len(labels), limits.PII_LABELS_MAX)
    for label in labels:
        check_text(field, label, limits.PII_LABEL_BYTES_MAX, required=True)


def check_memory_draft(field: str, draft: MemoryDraft) -> None:
    """Refuse a malformed memory, whatever it is used for."""
    check_id(f"{field}.id", draft.id)
    check_subject(f"{field}.subject", draft.subject)
    check_text(f"{field}.context", draft.context, limits.CONTEXT_BYTES_MAX)
    check_text(f"{field}.text", draft.text, limits.TEXT_BYTES_MAX)
    check_vector(f"{field}.vector", draft.vector)
    check_share(f"{field}.importance", draft.importance)
    check_share(f"{field}.confidence", draft.confidence)
    check_labels(f"{field}.labels", draft.labels)
    check_pii_labels(f"{field}.pii_labels", draft.pii_labels)
    check_source(f"{field}.source", draft.source)
    check_count(f"{field}.derived_from", len(draft.derived_from), limits.DERIVED_FROM_MAX)
    check_text(f"{field}.retention_class", draft.retention_class, limits.NAME_BYTES_MAX)
    check_text(f"{field}.session_id", draft.session_id, limits.NAME_BYTES_MAX)
    for name in ("valid_from", "valid_to", "expires_at"):
        check_instant(f"{field}.{name}", getattr(draft, name))
    if (
        draft.valid_from is not None
        and draft.valid_to is not None
        and draft.valid_to <= draft.valid_from
    ):
        raise PillionError.of_field(
            f"{field}.valid_to", "must come after valid_from", Reason.INTERVAL_EMPTY
        )


def _check_put_fact(mutation: PutFact) -> None:
    fact = mutation.fact
    check_memory_draft("put_fact.fact", fact)
    check_text("put_fact.fact.attribute", fact.attribute, limits.NAME_BYTES_MAX, required=True)
    if fact.kind is not MemoryKind.SEMANTIC:
        raise PillionError.of_field("put_fact.fact.kind", "a fact is SEMANTIC")
    if fact.value is None:
        raise PillionError.of_field("put_fact.fact.value", "a fact needs a value")
    checked_value("put_fact.fact.value", fact.value)
    check_precondition("put_fact.precondition", mutation.precondition, allowed=_ANY)


def _check_add_memory(mutation: AddMemory) -> None:
    memory = mutation.memory
    check_memory_draft("add_memory.memory", memory)
    if not memory.text.strip():
        raise PillionError.of_field("add_memory.memory.text", "must not be empty")
    if memory.attribute or memory.value is not None:
        raise PillionError.of_field(
            "add_memory.memory.attribute", "a memory with an attribute is a fact: use put_fact"
        )
    check_precondition("add_memory.precondition", mutation.precondition, allowed=_NEW)


def _check_capture_episode(mutation: CaptureEpisode) -> None:
    field = "capture_episode.episode"
    check_id(f"{field}.id", mutation.id)
    check_subject(f"{field}.subject", mutation.subject)
    if not mutation.content.strip():
        raise PillionError.of_field(f"{field}.content", "must not be empty")
    for name, bytes_max in (
        ("content", limits.TEXT_BYTES_MAX),
        ("context", limits.CONTEXT_BYTES_MAX),
        ("media_type", limits.NAME_BYTES_MAX),
        ("author", limits.AUTHOR_BYTES_MAX),
        ("session_id", limits.NAME_BYTES_MAX),
        ("external_ref", limits.EXTERNAL_REF_BYTES_MAX),
        ("retention_class", limits.NAME_BYTES_MAX),
    ):
        check_text(f"{field}.{name}", getattr(mutation, name), bytes_max)
    check_labels(f"{field}.labels", mutation.labels)
    check_instant(f"{field}.occurred_at", mutation.occurred_at)
    check_instant(f"{field}.expires_at", mutation.expires_at)
    check_share("capture_episode.importance", mutation.importance)
    check_vector("capture_episode.vector", mutation.vector)
    check_precondition("capture_episode.precondition", mutation.precondition, allowed=_NEW)


def _check_patch_memory(mutation: PatchMemory) -> None:
    patch = mutation.patch
    if not patch.fields:
        raise PillionError.of_field("patch_memory.update_mask", "must name at least one field")
    unknown = patch.fields - PATCHABLE_FIELDS
    if unknown:
        raise PillionError.of_field(
            "patch_memory.update_mask",
            f"{min(unknown)} cannot be patched; allowed are {', '.join(sorted(PATCHABLE_FIELDS))}",
        )
    field = "patch_memory.patch"
    if "text" in patch.fields and not patch.text.strip():
        raise PillionError.of_field(f"{field}.text", "must not be empty")
    check_text(f"{field}.text", patch.text, limits.TEXT_BYTES_MAX)
    check_share(f"{field}.importance", patch.importance)
    check_share(f"{field}.confidence", patch.confidence)
    check_labels(f"{field}.labels", patch.labels)
    check_pii_labels(f"{field}.pii_labels", patch.pii_labels)
    check_instant(f"{field}.expires_at", patch.expires_at)
    check_text(f"{field}.retention_class", patch.retention_class, limits.NAME_BYTES_MAX)
    check_text(f"{field}.session_id", patch.session_id, limits.NAME_BYTES_MAX)
    check_vector(f"{field}.vector", patch.vector)
    check_precondition("patch_memory.precondition", mutation.precondition, allowed=_EXISTING)


def _check_confirm(mutation: ConfirmMemory) -> None:
    check_source("confirm_memory.source", mutation.source)
    if mutation.source.kind is not SourceKind.USER_CONFIRMATION:
        raise PillionError.of_field("confirm_memory.source.kind", "must be USER_CONFIRMATION")
    check_precondition("confirm_memory.precondition", mutation.precondition, allowed=_EXISTING)


def _check_retract(mutation: RetractMemory) -> None:
    if mutation.fact is not None:
        check_fact_key("retract_memory.fact", mutation.fact)
    check_instant("retract_memory.valid_to", mutation.valid_to)
    check_precondition("retract_memory.precondition", mutation.precondition, allowed=_EXISTING)


def check_mutation(mutation: Mutation) -> None:
    """Refuse a malformed mutation."""
    match mutation:
        case PutFact():
            _check_put_fact(mutation)
        case AddMemory():
            _check_add_memory(mutation)
        case CaptureEpisode():
            _check_capture_episode(mutation)
        case PatchMemory():
            _check_patch_memory(mutation)
        case ConfirmMemory():
            _check_confirm(mutation)
        case RetractMemory():
            _check_retract(mutation)
        case CloseOpenItem():
            check_instant("close_open_item.closed_at", mutation.closed_at)
            check_precondition(
                "close_open_item.precondition", mutation.precondition, allowed=_EXISTING
            )


def check_guard(guard: Guard) -> None:
    """Refuse a malformed guard."""
    if guard.fact is not None:
        check_fact_key("fact", guard.fact)
    check_precondition("precondition", guard.precondition, allowed=_GUARDING)


def check_request_id(request_id: str) -> None:
    """Refuse a request_id that is too long."""
    check_text("request_id", request_id, limits.REQUEST_ID_BYTES_MAX)


def check_write(command: WriteCommand) -> None:
    """Refuse a malformed Write, naming the mutation at fault."""
    check_request_id(command.request_id)
    if not command.mutations:
        raise PillionError.of_field("mutations", "must not be empty")
    check_count("mutations", len(command.mutations), limits.MUTATIONS_MAX)
    check_count("guards", len(command.guards), limits.GUARDS_MAX)
    for index, mutation in enumerate(command.mutations):
        try:
            check_mutation(mutation)
        except PillionError as error:
            raise error.within(f"mutations[{index}]", index=str(index)) from None
    for index, guard in enumerate(command.guards):
        try:
            check_guard(guard)
        except PillionError as error:
            raise error.within(f"guards[{index}]") from None


def check_filter(filter_: Filter) -> None:
    """Refuse a filter beyond its limits."""
    check_count("filter.subjects", len(filter_.subjects), limits.FILTER_SUBJECTS_MAX)
    for subject in filter_.subjects:
        check_subject("filter.subjects", subject)
    if filter_.contexts is not None:
        check_count("filter.contexts", len(filter_.contexts), limits.FILTER_CONTEXTS_MAX)
        for context in filter_.contexts:
            check_text("filter.contexts", context, limits.CONTEXT_BYTES_MAX)
    for name in ("attributes", "episode_ids", "session_ids"):
        check_count(f"filter.{name}", len(getattr(filter_, name)), limits.FILTER_SUBJECTS_MAX)
    for name in ("attributes", "session_ids"):
        for one in getattr(filter_, name):
            check_text(f"filter.{name}", one, limits.NAME_BYTES_MAX)
    for name in ("created", "valid_from"):
        window = getattr(filter_, name)
        check_instant(f"filter.{name}.start", window.start)
        check_instant(f"filter.{name}.end", window.end)
    for name in ("labels_all", "labels_any", "labels_none"):
        check_labels(f"filter.{name}", getattr(filter_, name))
    check_share("filter.importance_min", filter_.importance_min)
    check_share("filter.confidence_min", filter_.confidence_min)


def check_ranking(ranking: RankingProfile) -> None:
    """Refuse weights and half-lives outside their bounds."""
    weights = (ranking.relevance_weight, ranking.recency_weight, ranking.importance_weight)
    names = ("relevance_weight", "recency_weight", "importance_weight")
    for name, weight in zip(names, weights, strict=True):
        check_share(f"ranking.{name}", weight)
    if sum(weights) < limits.WEIGHTS_SUM_MIN:
        raise PillionError.of_field("ranking", "at least one weight must be above 0")
    check_share("ranking.consolidated_factor", ranking.consolidated_factor)
    for half_life in ranking.half_lives.values():
        if half_life is not None and not (
            limits.HALF_LIFE_MIN_US <= half_life <= limits.HALF_LIFE_MAX_US
        ):
            raise PillionError.of_field(
                "ranking.half_lives", "a half-life must be from 1 minute to 100 years"
            )


def check_search(query: SearchQuery) -> None:
    """Refuse a malformed search."""
    if query.top_k < 1:
        raise PillionError.of_field("top_k", "must be 1 or more")
    if query.top_k > limits.RESULTS_MAX:
        raise PillionError.of_field(
            "top_k",
            f"is {query.top_k}; at most {limits.RESULTS_MAX} are allowed",
            Reason.LIMIT_EXCEEDED,
        )
    check_text("text", query.text, limits.QUERY_BYTES_MAX)
    check_vector_shape("vector", query.vector)  # its numbers are checked where they are used
    check_share("score_min", query.score_min)
    check_instant("read.as_of", query.read.as_of)
    if query.filter is not PLAIN_FILTER:
        check_filter(query.filter)
    if query.ranking is not PLAIN_RANKING:
        check_ranking(query.ranking)
