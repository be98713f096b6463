"""Which way a search takes: a scan, or the vector index and whatever else could win.

Pure: the costs are measured elsewhere and passed in.

Both ways give the exact answer (the index's, given its nearest), so this is about time alone. Times
are estimates in nanoseconds from four costs of a row; what an index does is put in terms of rows
scored, because that is what it does most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pillion.domain.queries import SearchPath

# The nearest to ask for, at least: a shorter list leaves a horizon under which too many could win.
NEAREST_MIN: Final = 64
NEAREST_PER_RESULT: Final = 4
NEAREST_MAX: Final = 4096
# Vectors that a search of a graph with 16 links a node compares for each candidate explored.
COMPARED_PER_EFFORT: Final = 12
# What a call of the index costs beside its comparisons, in nanoseconds.
INDEX_CALL_NS: Final = 30_000.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds a row.

    Attributes:
        filter_row: Asking the filter about it.
        prior_row: Bounding its score by recency and importance.
        scan_row: Comparing its int8 vector in a scan.
        score_row: Scoring it with float32, wherever it lies.
    """

    filter_row: float
    prior_row: float
    scan_row: float
    score_row: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a search finds.

    Attributes:
        rows: Memories of the partition.
        admitted: Those that the filter admits.
        indexed: Vectors that the index has; 0: there is none.
        lag: Rows that it has not taken up.
        top_k: Results asked for.
        recall_target: The least share of the true nearest that the index should find, 0.5 to 1.
        effort: Candidates that it must explore for that, as measured; None: it cannot.
    """

    rows: int
    admitted: int
    indexed: int
    lag: int
    top_k: int
    recall_target: float
    effort: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The way taken, with what it was chosen by.

    Attributes:
        path: SCAN or INDEX.
        nearest: How many nearest to ask the index for.
        effort: How many candidates it should explore.
        scan_ns: What a scan should take.
        index_ns: What the index's way should take; infinite where there is none.
        situation: What was found.
    """

    path: SearchPath
    nearest: int
    effort: int
    scan_ns: float
    index_ns: float
    situation: Situation


def plan(situation: Situation, costs: Costs) -> Plan:
    """Return the cheaper way; a scan where they cost the same, or where only it keeps the promise.

    A recall target of 1 asks for every true nearest, which no index promises.
    """
    nearest = nearest_for(situation.rows, situation.top_k)
    effort = max(nearest, situation.effort or 0)
    scan_ns = situation.rows * costs.filter_row + situation.admitted * costs.scan_row
    index_ns = math.inf
    if situation.indexed and situation.effort is not None and situation.recall_target < 1.0:
        index_ns = _index_ns(situation, costs, nearest, effort)
    return Plan(
        path=SearchPath.INDEX if index_ns < scan_ns else SearchPath.SCAN,
        nearest=nearest,
        effort=effort,
        scan_ns=scan_ns,
        index_ns=index_ns,
        situation=situation,
    )


def nearest_for(rows: int, top_k: int) -> int:
    """Return how many nearest to ask an index for.

    Each costs the index COMPARED_PER_EFFORT comparisons, and the more there are, the fewer others
    could win: about rows x top_k / (2 x nearest). The sum is least at the root.
    """
    balanced = math.isqrt(rows * top_k // (2 * COMPARED_PER_EFFORT))
    return min(max(NEAREST_MIN, NEAREST_PER_RESULT * top_k, balanced), NEAREST_MAX)


def _index_ns(situation: Situation, costs: Costs, nearest: int, effort: int) -> float:
    """Return what asking the index, and scoring what else could win, should take."""
    compared = COMPARED_PER_EFFORT * effort + nearest + situation.lag
    share = situation.admitted / max(situation.rows, 1)
    # How many others could win was measured on vectors and ages without a pattern
    # (benchmarks/micro/test_ranker.py, test_certified). With hardly a result among the nearest
    # there is no bar, and nothing that the filter admits is ruled out.
    found = share * (nearest + situation.lag)
    hopeful = situation.admitted * min(1.0, situation.top_k / max(2.0 * found, 1e-9))
    return (
        INDEX_CALL_NS
        + compared * costs.score_row
        + situation.rows * (costs.filter_row + costs.prior_row)
        + hopeful * max(costs.scan_row, costs.score_row)  # they are few and lie apart
    )
