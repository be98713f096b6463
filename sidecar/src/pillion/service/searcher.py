"""Search: the best memories by relevance, recency and importance, under a filter."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

import numpy as np

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_vector_shape
from pillion.domain.queries import (
    Exactness,
    RecencyAnchor,
    SearchAnswer,
    SearchPath,
)
from pillion.domain.validation import check_search
from pillion.service.arranging import (
    admitted_window,
    arranged,
    table_vectors,
    wider,
    window_of,
)
from pillion.service.expansion import expanded
from pillion.service.hits import (
    best_of,
    compared_with,
    fill_fact_versions,
    hits_of,
    memories_of,
)
from pillion.service.past import Past
from pillion.service.ranked import Asked
from pillion.service.ranking import filter_of, profile_of
from pillion.service.reading import RecordReader, wait_for_revision
from pillion.service.recorded import moment_of
from pillion.service.tracing import NO_TRACE, Seen, Steps, lifted, near_wanted, trace_of
from pillion.service.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.queries import SearchQuery
    from pillion.domain.scope import Partition
    from pillion.embedders.cache import QueryCache
    from pillion.ports import Clock, Deadline
    from pillion.service.accesses import Accesses
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors
    from pillion.service.ranked import Ranked, Ranker
    from pillion.service.resident import Resident, View
    from pillion.service.residents import Residents

# A search whose hits changed before they were read is made again, at most this often.
TRIES_MAX: Final = 3


class Searcher:
    """Answers searches from the partitions in memory and the records in the store."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        residents: Residents,
        clock: Clock,
        embedder: QueryCache | None,
        pending: PendingVectors,
        ranker: Ranker,
        accesses: Accesses,
    ) -> None:
        self._accesses = accesses
        self._store = store
        self._keys = keys
        self._residents = residents
        self._clock = clock
        self._embedder = embedder
        self._pending = pending
        self._ranker = ranker

    def search(self, partition: Partition, query: SearchQuery, deadline: Deadline) -> SearchAnswer:
        """Return the best ``top_k`` memories; ties break by id.

        Raises:
            PillionError: INVALID_FIELD and its like for a malformed query; DIMENSION_MISMATCH
                when its vector cannot be compared with the partition's;
                DEADLINE_EXCEEDED, OVERLOADED or PLUGIN_UNAVAILABLE when the embedder is slow,
                busy or at fault; HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        check_search(query)
        if query.expansion is not None:
            walker = Walker(store=self._store, clock=self._clock, searcher=self)
            return self._used(partition, query, expanded(self, walker, partition, query, deadline))
        if query.read.asks_for_the_past:
            return self._search_past(partition, query, deadline)
        if query.read.at_least_revision > 0 or self._keys.known(partition) is None:
            wait_for_revision(self._store, partition, query.read.at_least_revision, deadline)
        head = self._store.head(partition).revision
        keys = self._keys.at(partition, head)
        if head == 0:  # there is nothing to find, and nothing to keep in memory for it
            return self._nothing(keys, query)
        with self._residents.using(partition, deadline) as resident:
            for _ in range(TRIES_MAX):
                deadline.check()
                answer = self._search_once(partition, keys, resident, query, deadline)
                if answer is not None:
                    return self._used(partition, query, answer)
        raise PillionError(
            Reason.OVERLOADED,
            "the memories found are being changed by others all the time: try again",
            retry_after_ms=20,
        )

    def _used(self, partition: Partition, query: SearchQuery, answer: SearchAnswer) -> SearchAnswer:
        """Count what an answer has as used, unless that is not wanted; return the answer."""
        if query.counts_as_use and answer.hits and not query.read.asks_for_the_past:
            used = [hit.memory.id for hit in answer.hits]
            self._accesses.note(partition, used, self._clock.now_us())
        return answer

    def _search_past(
        self, partition: Partition, query: SearchQuery, deadline: Deadline
    ) -> SearchAnswer:
        """Return the best memories of a recorded state, scored as they were at that instant."""
        steps = Steps()
        moment = moment_of(self._store, partition, query.read, self._clock, deadline)
        revision = moment.revision
        keys = self._keys.at(partition, revision)
        if revision == 0:
            return self._nothing(keys, query)
        past = Past(
            self._store,
            partition,
            keys,
            revision,
            deadline,
            episode_indexing=self._residents.episode_indexing,
        )
        space = past.space()
        vector = self._query_vector(space, query, deadline)
        if vector is not None:
            _refuse_directionless(vector)
        steps.end("embed")
        search = Asked(
            query=vector,
            text=query.text or None,
            now=moment.now,
            profile=profile_of(
                query.ranking, _floor(space) if vector is not None else 0.0, past.half_lives()
            ),
            filter=filter_of(
                keys, query.filter, as_of=moment.as_of, now=moment.now, score_min=query.score_min
            ),
            k=max(window_of(query), limits.WINDOW_MAX),
        )
        whole = bool(query.text)  # what words weigh depends on all that they are looked for in
        tables = past.tables(query.filter, moment, space, whole=whole)
        best, compared, admitted, scored = best_of(tables, search)
        steps.end("rank")
        reader = RecordReader(self._store, partition, keys)
        window = window_of(query)
        while True:
            ids = [UUID(bytes=row[0]) for row in best[:window]]
            read, _ = reader.memories(ids, revision)
            memories = [read[one] for one in ids]
            found = arranged(
                query,
                best[:window],
                memories,
                space,
                functools.partial(past.unit_vectors, ids, space),
                as_of=moment.as_of,
                now=moment.now,
            )
            more = wider(window, found, len(ids))
            if more is None:
                break
            window = more
        vectors = reader.vectors(ids, revision) if query.include_vectors else {}
        answer = SearchAnswer(
            hits=hits_of(found.picks, memories, best, vectors, compared),
            revision=revision,
            exactness=Exactness.EXACT,
            path=SearchPath.NO_VECTOR if vector is None else SearchPath.SCAN,
            admitted=admitted,
            vectors_pending=past.vectors_pending(),
        )
        steps.end("fetch")
        if not query.include_trace:
            return answer
        walls = lifted(query.filter)
        search["filter"] = filter_of(keys, walls, as_of=moment.as_of, now=moment.now, score_min=0.0)
        search["k"] = near_wanted(query)
        near, near_compared, rows, _ = best_of(
            past.tables(walls, moment, space, whole=bool(query.text)), search
        )
        there, _ = reader.memories([UUID(bytes=row[0]) for row in near], revision)
        told = Seen(
            path=answer.path,
            rows=rows,
            admitted=admitted,
            scored=scored,
            window=best[: len(ids)],
            near=near,
            memories={one.id.bytes: one for one in (*memories, *there.values())},
            compared=compared | near_compared,
            as_of=moment.as_of,
            now=moment.now,
        )
        return replace(answer, trace=trace_of(query, told, answer.hits, steps))

    def _nothing(self, keys: KeySpace, query: SearchQuery) -> SearchAnswer:
        """Return the answer of a partition that holds nothing; what is refused is so here too."""
        if query.vector:
            _refuse_directionless(_given(query))
        now = self._clock.now_us()
        filter_of(keys, query.filter, as_of=now, now=now, score_min=query.score_min)
        return SearchAnswer(
            hits=(),
            revision=0,
            exactness=Exactness.EXACT,
            path=SearchPath.NO_VECTOR,
            admitted=0,
            vectors_pending=0,
            trace=NO_TRACE if query.include_trace else None,
        )

    def _search_once(
        self,
        partition: Partition,
        keys: KeySpace,
        resident: Resident,
        query: SearchQuery,
        deadline: Deadline,
    ) -> SearchAnswer | None:
        """Return the answer, or None when a hit changed so that it no longer belongs in it."""
        steps = Steps()
        revision = resident.refresh(words=bool(query.text))
        steps.end("catch_up")
        view = resident.view
        now = self._clock.now_us()
        as_of = query.read.as_of if query.read.as_of is not None else now
        vector = self._query_vector(view.space, query, deadline)
        steps.end("embed")
        wanted = filter_of(keys, query.filter, as_of=as_of, now=now, score_min=query.score_min)
        floor = _floor(view.space) if vector is not None else 0.0
        profile = profile_of(query.ranking, floor, view.half_lives)
        if query.ranking.recency_anchor is RecencyAnchor.LAST_USED:
            resident.rank_by_use()
        search = Asked(
            query=vector,
            text=query.text or None,
            now=now,
            profile=profile,
            filter=wanted,
            k=window_of(query),
        )
        reader = RecordReader(self._store, partition, keys)
        while True:
            steps.end("prepare")
            ranked = self._best(view, query, search)
            rows = ranked.hits.rows()
            steps.end("rank")
            read, seen = memories_of(reader, resident, [row[0] for row in rows], revision)
            window = admitted_window(read, query, as_of, now)
            if window is None:
                return None
            rows = [rows[place] for place in window]
            seen = [seen[place] for place in window]
            memories = [one for one in map(read.__getitem__, window) if one is not None]
            steps.end("fetch")
            ids = [row[0] for row in rows]
            found = arranged(
                query,
                rows,
                memories,
                view.space,
                functools.partial(table_vectors, view.table, ids),
                as_of=as_of,
                now=now,
            )
            steps.end("arrange")
            more = wider(search["k"], found, len(ranked.hits))
            if more is None:
                break
            search["k"] = more
        picked = [pick.place for pick in found.picks]
        fill_fact_versions(reader, resident, memories, picked, seen)
        vectors: Mapping[UUID, bytes] = {}
        if query.include_vectors:
            vectors = reader.vectors([memories[place].id for place in picked], None)
        compared = compared_with(view.table, [rows[place] for place in picked], vector)
        answer = SearchAnswer(
            hits=hits_of(found.picks, memories, rows, vectors, compared),
            revision=revision,
            exactness=ranked.exactness,
            path=ranked.path,
            admitted=ranked.hits.admitted if ranked.path is not SearchPath.INDEX else 0,
            bound=ranked.bound,
            plan=ranked.plan,
            vectors_pending=self._pending.count(partition),
        )
        steps.end("fetch")
        if not query.include_trace:
            return answer
        search["filter"] = filter_of(
            keys, lifted(query.filter), as_of=as_of, now=now, score_min=0.0
        )
        search["k"] = near_wanted(query)
        near = view.table.search(**search).rows()
        there, _ = memories_of(reader, resident, [row[0] for row in near], revision)
        told = Seen(
            path=ranked.path,
            rows=len(view.table),
            admitted=answer.admitted,
            scored=ranked.hits.rescored,
            window=rows,
            near=near,
            memories={one.id.bytes: one for one in (*memories, *there) if one is not None},
            compared=compared_with(view.table, [*rows, *near], vector),
            as_of=as_of,
            now=now,
        )
        return replace(answer, trace=trace_of(query, told, answer.hits, steps))

    def _best(self, view: View, query: SearchQuery, search: Asked) -> Ranked:
        try:
            return self._ranker.best(view, query.recall_target, **search)
        except ValueError:
            if search["query"] is not None:
                _refuse_directionless(search["query"])
            raise

    def _query_vector(
        self, space: EmbedderIdentity | None, query: SearchQuery, deadline: Deadline
    ) -> NDArray[np.float32] | None:
        """Return the query's vector in the partition's space; None: only its words take part."""
        if query.vector:
            given = _given(query)
            if space is None:  # no memory has a vector yet, and nobody else will look
                _refuse_directionless(given)
                return None
            check_vector_shape("vector", query.vector, space.dimension)
            return given
        if not query.text or space is None:
            return None
        if self._embedder is None or not space.same_space(self._embedder.identity):
            return None  # nothing here makes vectors like the partition's: its words are searched
        embedded: NDArray[np.float32] = self._embedder.embed_queries(
            [query.text], within_seconds=deadline.remaining_seconds()
        )[0]
        return embedded


def _given(query: SearchQuery) -> NDArray[np.float32]:
    return np.frombuffer(query.vector, dtype="<f4").astype(np.float32, copy=False)


def _floor(space: EmbedderIdentity | None) -> float:
    """Return the cosine of unrelated texts in the partition's space."""
    return space.unrelated_cosine if space is not None else 0.0


def _refuse_directionless(vector: NDArray[np.float32]) -> None:
    wide = vector.astype(np.float64)  # a square may leave the range of float32
    squared = float(np.dot(wide, wide))
    if not np.isfinite(squared):
        raise PillionError.of_field("vector", "holds NaN or an infinity", Reason.NOT_FINITE)
    if squared == 0.0:
        raise PillionError.of_field(
            "vector", "is all zeros, which has no direction", Reason.NOT_FINITE
        )
