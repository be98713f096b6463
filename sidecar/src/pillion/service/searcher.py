"""Search: the best memories by relevance, recency and importance, under a filter."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError, Reason
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
    compared_with,
    fill_fact_versions,
    hits_of,
    memories_of,
)
from pillion.service.query_vectors import cosine_floor, given_vector, refuse_directionless
from pillion.service.ranked import Asked
from pillion.service.ranking import filter_of, profile_of
from pillion.service.reading import RecordReader, wait_for_revision
from pillion.service.recorded import moment_of
from pillion.service.tracing import NO_TRACE, Seen, Steps, lifted, near_wanted, trace_of
from pillion.service.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.queries import SearchQuery
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.accesses import Accesses
    from pillion.service.partitions import KeySpaces
    from pillion.service.past_search import PastSearcher
    from pillion.service.pending import PendingVectors
    from pillion.service.query_vectors import QueryVectors
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
        pending: PendingVectors,
        ranker: Ranker,
        accesses: Accesses,
        vectors: QueryVectors,
        past: PastSearcher,
    ) -> None:
        self._accesses = accesses
        self._store = store
        self._keys = keys
        self._residents = residents
        self._clock = clock
        self._vectors = vectors
        self._past = past
        self._pending = pending
        self._ranker = ranker

    def search(self, partition: Partition, query: SearchQuery, deadline: Deadline) -> SearchAnswer:
        """Return the best ``top_k`` memories; ties break by id.

        Raises:
            PillionError: INVALID_FIELD and its like for a malformed query; DIMENSION_MISMATCH
                when its vector cannot be compared with the partition's;
                DEADLINE_EXCEEDED, OVERLOADED or PLUGIN_UNAVAILABLE when the embedder is slow,
                busy or at fault; OVERLOADED when too many search past states by words;
                HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        check_search(query)
        if query.expansion is not None:
            walker = Walker(store=self._store, clock=self._clock, searcher=self)
            return self._used(partition, query, expanded(self, walker, partition, query, deadline))
        if query.read.asks_for_the_past:
            moment = moment_of(self._store, partition, query.read, self._clock, deadline)
            if moment.revision == 0:
                return self._nothing(self._keys.at(partition, 0), query)
            return self._past.search(partition, query, moment, deadline)
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

    def _nothing(self, keys: KeySpace, query: SearchQuery) -> SearchAnswer:
        """Return the answer of a partition that holds nothing; what is refused is so here too."""
        if query.vector:
            refuse_directionless(given_vector(query))
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
        vector = self._vectors.of(view.space, query, deadline)
        steps.end("embed")
        wanted = filter_of(keys, query.filter, as_of=as_of, now=now, score_min=query.score_min)
        floor = cosine_floor(view.space) if vector is not None else 0.0
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
                refuse_directionless(search["query"])
            raise
