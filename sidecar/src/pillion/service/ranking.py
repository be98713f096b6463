"""Filters and ranking profiles in the form that the Rust ranker takes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import pillion_ranker as ranker

from pillion.domain.memory import MemoryKind
from pillion.domain.queries import PLAIN_FILTER, PLAIN_RANKING, RecencyAnchor
from pillion.domain.scope import MAIN_CONTEXT

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.queries import Filter, RankingProfile
    from pillion.service.half_lives import HalfLives

# One for each ranking in use, each space and each partition that has registered half-lives.
PROFILES_KEPT: Final = 256
# What the ranker has a factor for: no source, the kinds of the contract, and one to spare.
_SOURCES: Final = 8
DAY_US: Final = 86_400 * 1_000_000
HALF_LIVES_US: Final = {
    MemoryKind.EPISODIC: 30.0 * DAY_US,
    MemoryKind.SEMANTIC: 365.0 * DAY_US,
    MemoryKind.PROCEDURAL: float("inf"),
    MemoryKind.SESSION: 30.0 * DAY_US,
    MemoryKind.OPEN_ITEM: float("inf"),
}


def profile_of(ranking: RankingProfile, floor: float, half_lives: HalfLives) -> ranker.Profile:
    """Return the ranker's form of a profile.

    Args:
        ranking: What was asked for.
        floor: The cosine of unrelated texts, from which relevance counts.
        half_lives: Those that attributes have; what was asked for a kind goes before them.
    """
    numbers = _PLAIN_NUMBERS if ranking is PLAIN_RANKING else _numbers(ranking)
    return _profile(numbers, floor, half_lives)


class _Numbers(NamedTuple):
    """What the ranker is told of a ranking, as a key to keep its form by."""

    weights: tuple[float, float, float]
    half_life: tuple[float, ...]
    attribute_kinds: int
    recency_anchor: int
    consolidated_factor: float
    source_factor: tuple[float, ...]


def _numbers(ranking: RankingProfile) -> _Numbers:
    by_kind = [float("inf")] * 6
    for kind, default in HALF_LIVES_US.items():
        usual = ranking.usual_half_lives.get(kind, default)
        asked = ranking.half_lives.get(kind, usual)
        by_kind[kind] = float("inf") if asked is None else float(asked)
    unasked = [kind for kind in HALF_LIVES_US if kind not in ranking.half_lives]
    by_source = [1.0] * _SOURCES
    for source, factor in ranking.source_confidence.items():
        by_source[source] = factor
    return _Numbers(
        weights=(ranking.relevance_weight, ranking.recency_weight, ranking.importance_weight),
        half_life=tuple(by_kind),
        attribute_kinds=ranker.mask_of(*unasked),
        recency_anchor=1 if ranking.recency_anchor is RecencyAnchor.LAST_USED else 0,
        consolidated_factor=ranking.consolidated_factor,
        source_factor=tuple(by_source),
    )


_PLAIN_NUMBERS: Final = _numbers(PLAIN_RANKING)


@functools.lru_cache(maxsize=PROFILES_KEPT)
def _profile(numbers: _Numbers, floor: float, half_lives: HalfLives) -> ranker.Profile:
    w_relevance, w_recency, w_importance = numbers.weights
    return ranker.Profile(
        w_relevance=w_relevance,
        w_recency=w_recency,
        w_importance=w_importance,
        half_life=numbers.half_life,
        attribute_half_life=half_lives.columns,
        attribute_kinds=numbers.attribute_kinds,
        recency_anchor=numbers.recency_anchor,
        relevance_floor=floor,
        consolidated_factor=numbers.consolidated_factor,
        source_factor=numbers.source_factor,
    )


def filter_of(
    keys: KeySpace, wanted: Filter, *, as_of: int, now: int, score_min: float
) -> ranker.Filter:
    """Return the ranker's form of a filter, and of those within it."""
    if wanted is PLAIN_FILTER:
        return ranker.Filter(
            contexts=[keys.column("context", MAIN_CONTEXT)],
            valid_at=as_of,
            not_expired_at=now,
            min_score=score_min,
        )
    # A set of one joins the labels that must all be there.
    must = [keys.column("label", label) for label in wanted.labels_all]
    must_not = [keys.column("label", label) for label in wanted.labels_none]
    if wanted.facts is not None:
        (must if wanted.facts else must_not).append(keys.column("fact"))
    if wanted.edges:
        must.append(keys.column("edge"))
    either = _either(keys, wanted)
    must += [options[0] for options in either if len(options) == 1]
    several = [options for options in either if len(options) > 1]

    def within(filters: tuple[Filter, ...]) -> list[ranker.Filter]:
        return [filter_of(keys, one, as_of=as_of, now=now, score_min=0.0) for one in filters]

    exclude = 0
    if not wanted.include_retracted:
        exclude |= ranker.FLAG_RETRACTED
    if not wanted.include_expired:
        exclude |= ranker.FLAG_EXPIRED
    return ranker.Filter(
        kinds=ranker.mask_of(*wanted.kinds),
        statuses=ranker.mask_of(*wanted.statuses),
        subjects=[keys.column("subject", one.type, one.id) for one in wanted.subjects],
        contexts=[keys.column("context", one) for one in wanted.contexts or ()],
        attributes=[keys.column("attribute", one) for one in wanted.attributes],
        labels_all=must,
        labels_each=several,
        labels_none=must_not,
        valid_at=as_of if wanted.valid_only else None,
        created_from=wanted.created.start,
        created_to=wanted.created.end,
        valid_from_from=wanted.valid_from.start,
        valid_from_to=wanted.valid_from.end,
        min_importance=wanted.importance_min,
        min_confidence=wanted.confidence_min,
        exclude_flags=exclude,
        not_expired_at=None if wanted.include_expired else now,
        min_score=score_min,
        any_of=within(wanted.any_of),
        none_of=within(wanted.none_of),
    )


def _either(keys: KeySpace, wanted: Filter) -> list[list[int]]:
    """Return the groups of labels of which a memory must have one each."""
    groups = [
        [keys.column("label", one) for one in wanted.labels_any],
        [keys.column("source", one.name) for one in wanted.source_kinds],
        [keys.column("episode", str(one)) for one in wanted.episode_ids],
        [keys.column("session", one) for one in wanted.session_ids],
        [keys.column("value_subject", one.type, one.id) for one in wanted.value_subjects],
    ]
    return [group for group in groups if group]
