"""The best rows of a partition in memory, by the way that the planner chose."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

import pillion_ranker as ranker

from pillion.domain.limits import CERTIFY_ROWS_MAX
from pillion.domain.queries import Exactness, SearchPath
from pillion.domain.search_plan import Costs, Plan, Situation, plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pillion.service.resident import View


class Asked(TypedDict):
    """What the ranker needs to know of a search."""

    query: NDArray[np.float32] | None
    text: str | None
    now: int
    profile: ranker.Profile
    filter: ranker.Filter
    k: int


class Ranked(NamedTuple):
    """The best rows, and how they were found.

    ``plan`` None: there was nothing to choose. ``bound``: for APPROXIMATE, what no missed memory
    scores above.
    """

    hits: ranker.Hits
    exactness: Exactness
    path: SearchPath
    plan: Plan | None
    bound: float | None = None


class Ranker:
    """Chooses and takes the way.

    Args:
        index_from: Rows from which a partition has an index.
        costs: What rows cost; None: measured, once for each dimension and process.
    """

    def __init__(self, index_from: int, costs: Costs | None) -> None:
        self._index_from = index_from
        self._costs = costs

    def best(self, view: View, recall_target: float, **asked: Unpack[Asked]) -> Ranked:
        """Return the best ``k`` of the admitted rows."""
        table, vector = view.table, asked["query"]
        if vector is None or len(table) < self._index_from:
            return _scanned(table, None, asked)
        found = Situation(
            rows=len(table),
            admitted=table.count(asked["filter"]),
            indexed=view.ann.vectors,
            lag=view.ann.lag,
            top_k=asked["k"],
            recall_target=recall_target,
            effort=view.ann.effort_for(recall_target, asked["k"]),
        )
        chosen = plan(found, self._costs or measured_costs(table.dimension))
        if chosen.path is SearchPath.INDEX:
            candidates = view.ann.candidates(vector, chosen.nearest, chosen.effort)
            if candidates is not None:
                hits = table.certify(
                    slots=candidates.slots,
                    horizon=candidates.horizon,
                    rows_max=CERTIFY_ROWS_MAX,
                    **asked,
                )
                exactness = Exactness.CERTIFIED if hits.bound is None else Exactness.APPROXIMATE
                return Ranked(hits, exactness, SearchPath.INDEX, chosen, hits.bound)
        return _scanned(table, chosen, asked)


def _scanned(table: ranker.Table, chosen: Plan | None, asked: Asked) -> Ranked:
    path = SearchPath.NO_VECTOR if asked["query"] is None else SearchPath.SCAN
    return Ranked(table.search(**asked), Exactness.EXACT, path, chosen)


@functools.lru_cache
def measured_costs(dimension: int) -> Costs:
    """Return what rows with vectors of that dimension cost on this machine."""
    return Costs(*ranker.calibrate(dimension))
