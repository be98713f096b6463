"""What a request must look like before anything is looked up. Raises with the field at fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import (
    check_count,
    check_fact_key,
    check_id,
    check_instant,
    check_labels,
    check_pii_labels,
    check_request_id,
    check_share,
    check_source,
    check_subject,
    check_text,
    check_vector,
    check_vector_shape,
    checked_value,
)
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
    RestoreMemory,
    RetractMemory,
)
from pillion.domain.provenance import check_status
from pillion.domain.queries import PLAIN_FILTER, PLAIN_RANKING, PLAIN_READ

if TYPE_CHECKING:
    from collections.abc import Collection

    from pillion.domain.commands import WriteCommand
    from pillion.domain.mutations import Guard, Mutation
    from pillion.domain.queries import Filter, RankingProfile, ReadAt, SearchQuery


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
# An episode is new in any case; "unconditional" captures a source that was erased.
_CAPTURED: Final = _NEW | {PreconditionKind.UNCONDITIONAL}


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
    check_status(field, draft.source, draft.status)
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
    check_precondition("capture_episode.precondition", mutation.precondition, allowed=_CAPTURED)


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
        case RestoreMemory():
            check_precondition(
                "restore_memory.precondition", mutation.precondition, allowed=_EXISTING
            )
        case CloseOpenItem():
            check_instant("close_open_item.closed_at", mutation.closed_at)
            check_precondition(
                "close_open_item.precondition", mutation.precondition, allowed=_EXISTING
            )


def check_guard(guard: Guard) -> None:
    """Refuse a malformed guard."""
    if guard.fact is not None:
        check_fact_key("fact", guard.fact)
        if guard.fact.member:
            raise PillionError.of_field(
                "fact.member", "a guard is about the version of the whole key: leave it out"
            )
    check_precondition("precondition", guard.precondition, allowed=_GUARDING)


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
            raise error.within(f"guards[{index}]", guard_index=str(index)) from None


def check_filter(filter_: Filter, at: str = "filter") -> None:
    """Refuse a filter beyond its limits; ``at`` is the field that it is."""
    check_count(at, _conditions(filter_), limits.FILTER_CONDITIONS_MAX)
    _check_conditions(filter_, at)


def _conditions(filter_: Filter) -> int:
    """Return how many filters there are within one, on all levels."""
    return sum(1 + _conditions(one) for one in filter_.nested)


def _check_conditions(filter_: Filter, at: str) -> None:
    check_count(f"{at}.subjects", len(filter_.subjects), limits.FILTER_SUBJECTS_MAX)
    for subject in filter_.subjects:
        check_subject(f"{at}.subjects", subject)
    if filter_.contexts is not None:
        check_count(f"{at}.contexts", len(filter_.contexts), limits.FILTER_CONTEXTS_MAX)
        for context in filter_.contexts:
            check_text(f"{at}.contexts", context, limits.CONTEXT_BYTES_MAX)
    for name in ("attributes", "episode_ids", "session_ids", "derived_from"):
        check_count(f"{at}.{name}", len(getattr(filter_, name)), limits.FILTER_SUBJECTS_MAX)
    for name in ("attributes", "session_ids"):
        for one in getattr(filter_, name):
            check_text(f"{at}.{name}", one, limits.NAME_BYTES_MAX)
    # No session is no session to ask for: indexes have nothing under it.
    if "" in filter_.session_ids:
        raise PillionError.of_field(f"{at}.session_ids", "must not be empty")
    for name in ("created", "valid_from"):
        window = getattr(filter_, name)
        check_instant(f"{at}.{name}.start", window.start)
        check_instant(f"{at}.{name}.end", window.end)
    for name in ("labels_all", "labels_any", "labels_none"):
        check_labels(f"{at}.{name}", getattr(filter_, name))
    check_share(f"{at}.importance_min", filter_.importance_min)
    check_share(f"{at}.confidence_min", filter_.confidence_min)
    if filter_.nested and at.count("_of[") >= limits.FILTER_LEVELS_MAX:
        raise PillionError.of_field(
            at, f"has more than {limits.FILTER_LEVELS_MAX} levels below", Reason.LIMIT_EXCEEDED
        )
    for name in ("any_of", "none_of"):
        for number, one in enumerate(getattr(filter_, name)):
            _check_conditions(one, f"{at}.{name}[{number}]")


def check_ranking(ranking: RankingProfile) -> None:
    """Refuse weights and half-lives outside their bounds."""
    weights = (ranking.relevance_weight, ranking.recency_weight, ranking.importance_weight)
    names = ("relevance_weight", "recency_weight", "importance_weight")
    for name, weight in zip(names, weights, strict=True):
        check_share(f"ranking.{name}", weight)
    if sum(weights) < limits.WEIGHTS_SUM_MIN:
        raise PillionError.of_field("ranking", "at least one weight must be above 0")
    check_share("ranking.consolidated_factor", ranking.consolidated_factor)
    check_share("ranking.diversity", ranking.diversity)
    for factor in ranking.source_confidence.values():
        check_share("ranking.source_confidence", factor)
    for half_life in ranking.half_lives.values():
        if half_life is not None and not (
            limits.HALF_LIFE_MIN_US <= half_life <= limits.HALF_LIFE_MAX_US
        ):
            raise PillionError.of_field(
                "ranking.half_lives", "a half-life must be from 1 minute to 100 years"
            )


def check_read(read: ReadAt) -> None:
    """Refuse malformed read options. Whether the state exists is for the store to say."""
    check_instant("read.as_of", read.as_of)
    check_instant("read.known_at", read.known_at)
    if read.exact_revision is None:
        return
    if read.known_at is not None:
        raise PillionError.of_field(
            "read.recorded", "exact_revision and known_at both name a recorded state: give one"
        )
    if read.exact_revision < 0:
        raise PillionError.of_field("read.exact_revision", "must not be negative")


def _check_not_derived(filter_: Filter) -> None:
    if filter_.derived_from:
        raise PillionError.of_field(
            "filter.derived_from", "is for List only: list what is derived, or search without"
        )
    for one in filter_.nested:
        _check_not_derived(one)


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
    check_share("recall_target", query.recall_target)
    if query.recall_target < limits.RECALL_TARGET_MIN:
        raise PillionError.of_field("recall_target", f"must be {limits.RECALL_TARGET_MIN} or more")
    if query.read is not PLAIN_READ:
        check_read(query.read)
    if query.filter is not PLAIN_FILTER:
        check_filter(query.filter)
        _check_not_derived(query.filter)
    if query.ranking is not PLAIN_RANKING:
        check_ranking(query.ranking)
