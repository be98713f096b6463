"""Neighbors: walks along facts whose value is a subject, as of an instant, by both clocks.

Edges are found by searches: out of subjects by the subject, into them by the subject that the value
refers to, which the ranker's table has as a label. They are ordered by importance and id alone, so
what a walk finds depends on no clock but those that it is asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.graph import (
    Direction,
    NeighborsAnswer,
    Walk,
    check_neighbors,
    edge_of,
)
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter, RankingProfile, SearchQuery
from pillion.service.one_revision import at_one_revision
from pillion.service.reading import ANSWER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pillion_storage.api import Store

    from pillion.domain.graph import Edge, NeighborsQuery
    from pillion.domain.memory import Memory
    from pillion.domain.queries import ReadAt
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Clock, Deadline
    from pillion.service.recorded import Moment
    from pillion.service.searcher import Searcher

# What one search returns at most. Of a group of subjects with more edges each half is asked alone;
# of a single subject with more, the most important ones are looked at.
BEST_MAX: Final = limits.RESULTS_MAX
# A filter names at most so many subjects.
GROUP: Final = limits.FILTER_SUBJECTS_MAX
_BY_IMPORTANCE: Final = RankingProfile(
    relevance_weight=0.0, recency_weight=0.0, importance_weight=1.0
)


class Walker:
    """Walks the graph of a partition. Safe to share between threads."""

    def __init__(self, *, store: Store, clock: Clock, searcher: Searcher) -> None:
        self._store = store
        self._clock = clock
        self._searcher = searcher

    def neighbors(
        self, partition: Partition, query: NeighborsQuery, deadline: Deadline
    ) -> NeighborsAnswer:
        """Return whom a walk reaches, nearest first, all of it of one revision.

        A walk that would outlast the caller's deadline ends in time and says that it was cut.

        Raises:
            PillionError: INVALID_FIELD and its like for a malformed walk; HISTORY_GONE or
                FUTURE_REVISION as in `moment_of`.
        """
        check_neighbors(query)
        return self.walk(partition, query, deadline)

    def walk(
        self, partition: Partition, query: NeighborsQuery, deadline: Deadline
    ) -> NeighborsAnswer:
        """Do the same for a query that is known to be well-formed, from any number of subjects."""

        def read(moment: Moment, read_at: ReadAt) -> tuple[Walk, Callable[[Memory], bool]]:
            walk = self._walked(partition, query, moment, read_at, deadline)
            visited = walk.visited

            def matters(memory: Memory) -> bool:
                return memory.value_subject is not None and (
                    memory.subject in visited or memory.value_subject in visited
                )

            return walk, matters

        moment, walk = at_one_revision(
            self._store, partition, query.read, self._clock, deadline, read=read
        )
        return NeighborsAnswer(tuple(walk.neighbors), walk.truncated, moment.revision)

    def _walked(
        self,
        partition: Partition,
        query: NeighborsQuery,
        moment: Moment,
        read_at: ReadAt,
        deadline: Deadline,
    ) -> Walk:
        walk = Walk(query.subjects, query.direction, query.expansion, edges_max=query.edges_max)
        left = deadline.remaining_seconds()
        reserve = min(ANSWER_SECONDS, left / 4)
        found = _Edges(self._searcher, partition, query, moment, read_at, deadline)
        while walk.frontier:
            edges: list[Edge] = []
            for group in _groups(walk.frontier):
                if deadline.remaining_seconds() < reserve:
                    walk.cut()
                    return walk
                edges += found.of(group)
                walk.truncated = walk.truncated or found.truncated
            walk.advance(edges)
        return walk


@dataclass(slots=True)
class _Edges:
    """Finds the edges of subjects for one walk.

    ``truncated``: some subject has more edges than one search returns.
    """

    searcher: Searcher
    partition: Partition
    query: NeighborsQuery
    moment: Moment
    read_at: ReadAt
    deadline: Deadline
    truncated: bool = False

    def of(self, group: Sequence[Subject]) -> Iterator[Edge]:
        """Yield the edges of a group of subjects, each way that the walk goes."""
        subjects = frozenset(group)
        if self.query.direction is not Direction.IN:
            yield from self._found(group, self._filter(subjects=subjects))
        if self.query.direction is not Direction.OUT:
            yield from self._found(group, self._filter(value_subjects=subjects))

    def _filter(
        self,
        *,
        subjects: frozenset[Subject] = frozenset(),
        value_subjects: frozenset[Subject] = frozenset(),
    ) -> Filter:
        return Filter(
            subjects=subjects,
            value_subjects=value_subjects,
            contexts=self.query.contexts,
            kinds=frozenset({MemoryKind.SEMANTIC}),
            attributes=self.query.expansion.attributes,
            edges=True,
        )

    def _found(self, group: Sequence[Subject], wanted: Filter) -> Iterator[Edge]:
        query = SearchQuery(
            top_k=BEST_MAX,
            filter=wanted,
            read=self.read_at,
            ranking=_BY_IMPORTANCE,
            counts_as_use=False,
        )
        hits = self.searcher.search(self.partition, query, self.deadline).hits
        if len(hits) == BEST_MAX:
            if len(group) > 1:
                middle = len(group) // 2
                for half in (group[:middle], group[middle:]):
                    yield from self._found(half, _narrowed(wanted, frozenset(half)))
                return
            self.truncated = True
        moment = self.moment
        for hit in hits:
            if wanted.admits(hit.memory, moment.as_of, moment.now):
                edge = edge_of(hit.memory)
                if edge is not None:
                    yield edge


def _narrowed(wanted: Filter, subjects: frozenset[Subject]) -> Filter:
    if wanted.subjects:
        return replace(wanted, subjects=subjects)
    return replace(wanted, value_subjects=subjects)


def _groups(frontier: Sequence[Subject]) -> Iterator[Sequence[Subject]]:
    for start in range(0, len(frontier), GROUP):
        yield frontier[start : start + GROUP]
