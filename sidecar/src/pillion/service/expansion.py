"""A search that also walks the graph from what it found, and adds what is known of whom it reaches.

The walk starts from the subjects of the hits and goes along edges either way. What is known of
the subjects that it reaches, under the search's own filter but for the subjects that this names, is
scored by the search's own formula; the best ``top_k`` of it follow the hits, each with the path.
They never take a hit's place: an expansion adds.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pillion.domain import limits
from pillion.domain.graph import Direction, NeighborsQuery, check_expansion
from pillion.service.walker import GROUP

if TYPE_CHECKING:
    from pillion.domain.queries import Hit, SearchAnswer, SearchQuery
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.searcher import Searcher
    from pillion.service.walker import Walker


def expanded(
    searcher: Searcher,
    walker: Walker,
    partition: Partition,
    query: SearchQuery,
    deadline: Deadline,
) -> SearchAnswer:
    """Return the answer to a search that asks for an expansion.

    Exactness, path and counts are those of the search itself. Its revision too: what the
    expansion of a search of the present adds may be newer, and is never older.

    Raises:
        PillionError: INVALID_FIELD and its like for a malformed expansion, and what
            `Searcher.search` raises.
    """
    if query.expansion is None:
        raise AssertionError("the search asks for no expansion")
    check_expansion(query.expansion)
    plain = replace(query, expansion=None, counts_as_use=False)  # the whole answer counts
    answer = searcher.search(partition, plain, deadline)
    starts = dict.fromkeys(hit.memory.subject for hit in answer.hits)
    if not starts:
        return answer
    walk = walker.walk(
        partition,
        NeighborsQuery(
            subjects=tuple(starts)[: limits.EXPANSION_STARTS_MAX],
            direction=Direction.BOTH,
            expansion=query.expansion,
            contexts=query.filter.contexts or frozenset(),
            edges_max=limits.GRAPH_EDGES_MAX,
            read=query.read,
        ),
        deadline,
    )
    paths = {one.subject: one.path for one in walk.neighbors}
    known = {hit.memory.id for hit in answer.hits}
    reached = list(paths)
    added: list[list[Hit]] = []
    for start in range(0, len(reached), GROUP):
        subjects = frozenset(reached[start : start + GROUP])
        # What is a hit already may take up places here, so as many more are asked for.
        asked = replace(
            plain,
            top_k=min(query.top_k + len(known), limits.RESULTS_MAX),
            filter=replace(query.filter, subjects=subjects),
            include_trace=False,
        )
        found = searcher.search(partition, asked, deadline).hits
        added.append(
            [
                hit._replace(path=paths[hit.memory.subject])
                for hit in found
                if hit.memory.id not in known
            ]
        )
    # Merged as they come and not sorted: a latest statement stands before its older ones.
    count = min(query.top_k, limits.RESULTS_MAX - len(answer.hits))
    best = itertools.islice(heapq.merge(*added, key=_rank), count)
    return replace(answer, hits=(*answer.hits, *best))


def _rank(hit: Hit) -> tuple[float, bytes]:
    return -hit.score, hit.memory.id.bytes
