"""How a search came to its answer: every near candidate, and what dropped it. Never content.

What the filter keeps out never reaches the ranker's candidates, so a trace ranks once more with
the conditions lifted, all but the subjects and contexts: those are walls, and a trace looks over
none that its search does not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pillion.domain.limits import TRACE_CANDIDATES_MAX
from pillion.domain.queries import Filter, SearchPath, SearchTrace, TraceCandidate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pillion.domain.memory import Memory
    from pillion.domain.queries import Hit, SearchQuery

    Row = tuple[bytes, float, float, float, float, float, float]

_SOURCES = {
    SearchPath.SCAN: ("scan",),
    SearchPath.INDEX: ("vector",),
    SearchPath.NO_VECTOR: ("prior",),
}
# Near misses that are looked at beside the answer itself.
NEAR_MIN = 50


# Of a partition that holds nothing.
NO_TRACE = SearchTrace(
    path=SearchPath.NO_VECTOR, memories=0, admitted=0, scored=0, candidates=(), timings=()
)


class Steps:
    """How long the steps of one search took, in microseconds; steps of one name add up."""

    __slots__ = ("_last", "_taken")

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        self._last = time.perf_counter_ns()

    def end(self, step: str) -> None:
        """Say that a step has ended, which began when the last one did."""
        now = time.perf_counter_ns()
        self._taken[step] = self._taken.get(step, 0) + now - self._last
        self._last = now

    def timings(self) -> tuple[tuple[str, int], ...]:
        """Return the steps in the order in which they first ended."""
        return tuple((step, taken // 1000) for step, taken in self._taken.items())


class Seen(NamedTuple):
    """What a search did.

    Attributes:
        window: The candidates that the ranker gave.
        near: The nearest with the filter's conditions lifted.
        memories: The memories of both by id, as far as they are there.
        compared: The ids of those that have a cosine.
    """

    path: SearchPath
    rows: int
    admitted: int
    scored: int
    window: Sequence[Row]
    near: Sequence[Row]
    memories: Mapping[bytes, Memory]
    compared: Collection[bytes]
    as_of: int
    now: int


def lifted(wanted: Filter) -> Filter:
    """Return a filter's walls without its other conditions."""
    return Filter(
        subjects=wanted.subjects,
        contexts=wanted.contexts,
        statuses=frozenset(),
        include_retracted=True,
        include_expired=True,
        valid_only=False,
    )


def near_wanted(query: SearchQuery) -> int:
    """Return how many candidates a trace ranks with the conditions lifted."""
    return min(TRACE_CANDIDATES_MAX, max(NEAR_MIN, 4 * query.top_k))


def trace_of(query: SearchQuery, seen: Seen, hits: Sequence[Hit], steps: Steps) -> SearchTrace:
    """Return the trace of a search: its candidates best first, at most 200."""
    returned = {hit.memory.id.bytes for hit in hits}
    folded = {one.bytes for hit in hits for one in hit.folded}
    proposed = {row[0] for row in seen.window}
    least = min((hit.score for hit in hits), default=0.0)
    candidates = []
    rows = {row[0]: row for row in (*seen.near, *seen.window)}
    for row in sorted(rows.values(), key=lambda row: (-row[1], row[0])):
        identity, score, *parts, cosine, lexical = row
        if identity in returned:
            dropped = ""
        elif identity in folded:
            dropped = "folded"
        else:
            dropped = _dropped_by(query, seen, row, proposed, least)
        candidates.append(
            TraceCandidate(
                memory_id=UUID(bytes=identity),
                score=score,
                parts=(parts[0], parts[1], parts[2]),
                cosine=cosine if identity in seen.compared else None,
                lexical=lexical or None,
                proposed_by=_proposed_by(seen.path, lexical) if identity in proposed else (),
                dropped_by=dropped,
            )
        )
    steps.end("trace")
    return SearchTrace(
        path=seen.path,
        memories=seen.rows,
        admitted=seen.admitted,
        scored=seen.scored,
        candidates=tuple(candidates[:TRACE_CANDIDATES_MAX]),
        timings=steps.timings(),
    )


def _proposed_by(path: SearchPath, lexical: float) -> tuple[str, ...]:
    return (*_SOURCES[path], "lexical") if lexical else _SOURCES[path]


def _dropped_by(
    query: SearchQuery, seen: Seen, row: Row, proposed: Collection[bytes], least: float
) -> str:
    identity, score = row[0], row[1]
    memory = seen.memories.get(identity)
    if memory is None:
        return "gone"
    refusal = query.filter.first_refusal(memory, seen.as_of, seen.now)
    if refusal is not None:
        return f"filter:{refusal}"
    if score < query.score_min:
        return "score_min"
    if identity not in proposed and seen.path is SearchPath.INDEX and score > least:
        return "not_proposed"
    if query.ranking.diversity > 0.0 and score > least:
        return "diversity"
    return "below_top_k"
