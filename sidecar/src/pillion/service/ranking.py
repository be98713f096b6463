"""Filters and ranking profiles in the form that the Rust ranker takes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

import pillion_ranker as ranker

from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import PLAIN_FILTER, PLAIN_RANKING, RecencyAnchor, Window
from pillion.domain.scope import MAIN_CONTEXT

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.queries import Filter, RankingProfile
    from pillion.service.half_lives import HalfLives

# One for each space and each partition that has registered half-lives.
PLAIN_PROFILES_KEPT: Final = 64
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
    if ranking is PLAIN_RANKING:
        return _plain_profile(floor, half_lives)
    return _profile(ranking, floor, half_lives)


@functools.lru_cache(maxsize=PLAIN_PROFILES_KEPT)
def _plain_profile(floor: float, half_lives: HalfLives) -> ranker.Profile:
    return _profile(PLAIN_RANKING, floor, half_lives)


def _profile(ranking: RankingProfile, floor: float, half_lives: HalfLives) -> ranker.Profile:
    by_kind = [float("inf")] * 6
    for kind, default in HALF_LIVES_US.items():
        asked = ranking.half_lives.get(kind, default)
        by_kind[kind] = float("inf") if asked is None else float(asked)
    unasked = [kind for kind in HALF_LIVES_US if kind not in ranking.half_lives]
    return ranker.Profile(
        w_relevance=ranking.relevance_weight,
        w_recency=ranking.recency_weight,
        w_importance=ranking.importance_weight,
        half_life=by_kind,
        attribute_half_life=half_lives.columns,
        attribute_kinds=ranker.mask_of(*unasked),
        recency_anchor=1 if ranking.recency_anchor is RecencyAnchor.LAST_USED else 0,
        relevance_floor=floor,
        consolidated_factor=ranking.consolidated_factor,
    )


def filter_of(
    keys: KeySpace, wanted: Filter, *, as_of: int, now: int, score_min: float
) -> ranker.Filter:
    """Return the ranker's form of a filter.

    Raises:
        PillionError: NOT_SERVED for combinations that the ranker cannot express yet.
    """
    if wanted is PLAIN_FILTER:
        return ranker.Filter(
            contexts=[keys.column("context", MAIN_CONTEXT)],
            valid_at=as_of,
            not_expired_at=now,
            min_score=score_min,
        )
    # A set of one joins the labels that must all be there.
    must = [keys.column("label", label) for label in wanted.labels_all]
    either = _either(keys, wanted)
    must += [options[0] for options in either if len(options) == 1]
    several = [options for options in either if len(options) > 1]
    if len(several) > 1:
        raise PillionError.of_field(
            "filter",
            "of labels_any, source_kinds, episode_ids and session_ids only one may name several "
            "alternatives; ask one at a time",
            Reason.NOT_SERVED,
        )
    if wanted.valid_from != Window():
        raise PillionError.of_field(
            "filter.valid_from", "is served by List only; use read.as_of", Reason.NOT_SERVED
        )
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
        labels_any=several[0] if several else [],
        labels_none=[keys.column("label", label) for label in wanted.labels_none],
        valid_at=as_of if wanted.valid_only else None,
        created_from=wanted.created.start,
        created_to=wanted.created.end,
        min_importance=wanted.importance_min,
        min_confidence=wanted.confidence_min,
        exclude_flags=exclude,
        not_expired_at=None if wanted.include_expired else now,
        min_score=score_min,
    )


def _either(keys: KeySpace, wanted: Filter) -> list[list[int]]:
    """Return the groups of labels of which a memory must have one each."""
    groups = [
        [keys.column("label", one) for one in wanted.labels_any],
        [keys.column("source", one.name) for one in wanted.source_kinds],
        [keys.column("episode", str(one)) for one in wanted.episode_ids],
        [keys.column("session", one) for one in wanted.session_ids],
    ]
    return [group for group in groups if group]
