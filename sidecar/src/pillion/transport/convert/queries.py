"""What callers ask of the memories: filters, reads, rankings, searches, targets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import (
    FILTER_LEVELS_MAX,
    HEARTBEAT_SECONDS_DEFAULT,
    RECALL_TARGET_DEFAULT,
)
from pillion.domain.memory import MemoryKind, MemoryStatus, SourceKind
from pillion.domain.queries import (
    PLAIN_FILTER,
    PLAIN_READ,
    RECALLED_STATUSES,
    Filter,
    OlderStatements,
    RankingProfile,
    ReadAt,
    RecencyAnchor,
    SearchQuery,
    Target,
    Window,
)
from pillion.domain.scope import MAIN_CONTEXT
from pillion.domain.watching import WatchQuery
from pillion.service.profiles import BUILT_IN
from pillion.transport.convert.edges import expansion_from_wire
from pillion.transport.convert.instants import duration_from_wire, optional_instant
from pillion.transport.convert.scalars import (
    check_enum,
    enum_from_wire,
    enums_from_wire,
    fact_key_from_wire,
    optional_enum,
    subject_from_wire,
    uuid_from_wire,
    uuids_from_wire,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_proto.memory.v1 import types_pb2

    from pillion.service.profiles import Profiles

    _HasRead = (
        wire.SearchRequest
        | wire.GetRequest
        | wire.BatchGetRequest
        | wire.ListRequest
        | wire.HistoryRequest
        | wire.RecallRequest
        | wire.NeighborsRequest
    )

_EVERY_INSTANT: Final = Window()
# What a request may change of a profile, beside half-lives and the anchor of recency.
_NUMBERS: Final = ("relevance_weight", "recency_weight", "importance_weight", "diversity")


def read_from_wire(request: _HasRead) -> ReadAt:
    """Return a request's read options."""
    if not request.HasField("read"):
        return PLAIN_READ
    read: types_pb2.ReadOptions = request.read
    if read.at_least_revision < 0:
        raise PillionError.of_field("read.at_least_revision", "it must not be negative")
    if read.exact_revision < 0:
        raise PillionError.of_field("read.exact_revision", "it must not be negative")
    return ReadAt(
        at_least_revision=read.at_least_revision,
        as_of=optional_instant(read, "as_of", "read.as_of"),
        exact_revision=read.exact_revision if read.HasField("exact_revision") else None,
        known_at=optional_instant(read, "known_at", "read.known_at"),
    )


def history_read_from_wire(request: wire.HistoryRequest) -> ReadAt:
    """Return a history's read options: a history has every instant, so as_of is refused."""
    read = read_from_wire(request)
    if read.as_of is not None:
        raise PillionError.of_field("read.as_of", "a history tells of every instant")
    return read


def filter_from_wire(
    request: wire.SearchRequest | wire.ListRequest | wire.WatchRequest,
) -> Filter:
    """Return a request's filter."""
    if not request.HasField("filter"):
        return PLAIN_FILTER
    return filter_of_message(request.filter, "filter")


def filter_of_message(asked: search_pb2.Filter, at: str) -> Filter:
    """Return a filter that stands at a field: what it leaves out has the defaults of a search."""
    return _filter(asked, at, _contexts(asked, at), RECALLED_STATUSES)


def _filter(
    asked: search_pb2.Filter,
    at: str,
    contexts: frozenset[str] | None,
    statuses: frozenset[MemoryStatus],
) -> Filter:
    """Return a filter, given its contexts and the statuses that it means when it names none."""
    check_enum(search_pb2.ValidityFilter.values(), asked.validity, f"{at}.validity")
    return Filter(
        subjects=frozenset(map(subject_from_wire, asked.subjects)),
        contexts=contexts,
        kinds=enums_from_wire(MemoryKind, asked.kinds, f"{at}.kinds"),
        statuses=enums_from_wire(MemoryStatus, asked.statuses, f"{at}.statuses") or statuses,
        attributes=frozenset(asked.attributes),
        labels_all=frozenset(asked.labels_all),
        labels_any=frozenset(asked.labels_any),
        labels_none=frozenset(asked.labels_none),
        created=window_from_wire(asked, "created", at),
        valid_from=window_from_wire(asked, "valid_from", at),
        importance_min=asked.importance_min,
        confidence_min=asked.confidence_min,
        source_kinds=enums_from_wire(SourceKind, asked.source_kinds, f"{at}.source_kinds"),
        episode_ids=frozenset(uuids_from_wire(asked.episode_ids, f"{at}.episode_ids")),
        session_ids=frozenset(asked.session_ids),
        derived_from=frozenset(uuids_from_wire(asked.derived_from, f"{at}.derived_from")),
        include_retracted=asked.include_retracted,
        include_expired=asked.include_expired,
        valid_only=asked.validity != search_pb2.VALIDITY_FILTER_ANY,
        any_of=_nested(asked.any_of, f"{at}.any_of"),
        none_of=_nested(asked.none_of, f"{at}.none_of"),
    )


def _nested(several: Sequence[search_pb2.Filter], at: str) -> tuple[Filter, ...]:
    """Return the filters within another: what they leave out is no condition."""
    return tuple(_within(asked, f"{at}[{number}]") for number, asked in enumerate(several))


def _within(asked: search_pb2.Filter, at: str) -> Filter:
    if at.count("[") > FILTER_LEVELS_MAX:
        raise PillionError.of_field(
            at, f"is more than {FILTER_LEVELS_MAX} levels deep", Reason.LIMIT_EXCEEDED
        )
    if asked.all_contexts and asked.contexts:
        raise PillionError.of_field(f"{at}.contexts", "it must be absent with all_contexts")
    made = _filter(asked, at, frozenset(asked.contexts) or None, frozenset())
    return replace(
        made,
        include_retracted=True,
        include_expired=True,
        valid_only=asked.validity == search_pb2.VALIDITY_FILTER_VALID_NOW,
    )


def _contexts(asked: search_pb2.Filter, at: str) -> frozenset[str] | None:
    if not asked.all_contexts:
        return frozenset(asked.contexts or (MAIN_CONTEXT,))
    if asked.contexts:
        raise PillionError.of_field(f"{at}.contexts", "it must be absent with all_contexts")
    return None


def window_from_wire(asked: search_pb2.Filter | wire.ForgetSelector, name: str, at: str) -> Window:
    """Return a window of time that a message may have."""
    if not asked.HasField(name):
        return _EVERY_INSTANT
    window: search_pb2.TimeWindow = getattr(asked, name)
    return Window(
        optional_instant(window, "from", f"{at}.{name}.from"),
        optional_instant(window, "to", f"{at}.{name}.to"),
    )


def ranking_from_wire(
    request: wire.SearchRequest | wire.RecallRequest, profiles: Profiles = BUILT_IN
) -> RankingProfile:
    """Return a request's ranking: the profile that it names with what it changes of it."""
    if not request.HasField("ranking"):
        return profiles.default
    asked = request.ranking
    named = profiles.named(asked.name)
    anchor = optional_enum(RecencyAnchor, asked.recency_anchor, "ranking.recency_anchor")
    given: dict[str, Any] = {
        name: getattr(asked, name) for name in _NUMBERS if asked.HasField(name)
    }
    if asked.half_lives:
        given["half_lives"] = _half_lives(asked)
    if anchor is not None:
        given["recency_anchor"] = anchor
    return replace(named, **given) if given else named


def _half_lives(asked: search_pb2.RankingProfile) -> dict[MemoryKind, int | None]:
    half_lives: dict[MemoryKind, int | None] = {}
    for at, entry in enumerate(asked.half_lives):
        field = f"ranking.half_lives[{at}]"
        kind = enum_from_wire(MemoryKind, entry.kind, f"{field}.kind")
        if kind in half_lives:
            raise PillionError.of_field(f"{field}.kind", "the kind is named twice")
        has_one = entry.HasField("half_life")
        half_lives[kind] = (
            duration_from_wire(entry.half_life, f"{field}.half_life") if has_one else None
        )
    return half_lives


def search_from_wire(request: wire.SearchRequest, profiles: Profiles = BUILT_IN) -> SearchQuery:
    """Return a search. What asks for more than this server serves is refused."""
    return SearchQuery(
        top_k=request.top_k,
        text=request.text,
        vector=request.vector,
        filter=filter_from_wire(request),
        read=read_from_wire(request),
        ranking=ranking_from_wire(request, profiles),
        score_min=request.score_min,
        include_vectors=request.include_vectors,
        counts_as_use=not request.without_access,
        recall_target=(
            request.recall_target if request.HasField("recall_target") else RECALL_TARGET_DEFAULT
        ),
        expansion=expansion_from_wire(request.expansion) if request.HasField("expansion") else None,
        older_statements=optional_enum(
            OlderStatements, request.older_statements, "older_statements"
        )
        or OlderStatements.FOLLOW,
        include_trace=request.include_trace,
    )


def target_from_wire(target: wire.RecordTarget, field: str) -> Target:
    """Return what a Get asks for."""
    match target.WhichOneof("kind"):
        case "memory_id":
            return Target(memory_id=uuid_from_wire(target.memory_id, f"{field}.memory_id"))
        case "fact":
            return Target(fact=fact_key_from_wire(target.fact, f"{field}.fact"))
        case "episode_id":
            return Target(episode_id=uuid_from_wire(target.episode_id, f"{field}.episode_id"))
        case _:
            raise PillionError.of_field(field, "name a memory_id, a fact or an episode_id")


def history_target_from_wire(request: wire.HistoryRequest) -> Target:
    """Return what a History asks for: a fact key or a memory."""
    match request.WhichOneof("target"):
        case "fact":
            return Target(fact=fact_key_from_wire(request.fact, "fact"))
        case "memory_id":
            return Target(memory_id=uuid_from_wire(request.memory_id, "memory_id"))
        case _:
            raise PillionError.of_field("target", "name a fact or a memory_id")


def page_size_from_wire(page_size: int) -> int:
    """Return a page size; 0 lets the use case choose."""
    if page_size < 0:
        raise PillionError.of_field("page_size", "it must not be negative")
    return page_size


def _refuse_valid_now(asked: search_pb2.Filter, at: str) -> None:
    if asked.validity == search_pb2.VALIDITY_FILTER_VALID_NOW:
        raise PillionError.of_field(
            f"{at}.validity", "a watch tells of every interval: leave it out or say ANY"
        )
    for name in ("any_of", "none_of"):
        for number, one in enumerate(getattr(asked, name)):
            _refuse_valid_now(one, f"{at}.{name}[{number}]")


def watch_from_wire(request: wire.WatchRequest) -> WatchQuery:
    """Return what a watch asks for."""
    filter_ = filter_from_wire(request) if request.HasField("filter") else None
    _refuse_valid_now(request.filter, "filter")
    heartbeat = HEARTBEAT_SECONDS_DEFAULT
    if request.HasField("heartbeat"):
        heartbeat = duration_from_wire(request.heartbeat, "heartbeat") / 1_000_000
    return WatchQuery(
        after_revision=request.after_revision,
        filter=filter_,
        heartbeat_seconds=heartbeat,
    )
