"""Search of a recorded state: scored as it was at that instant, over what the store kept of it."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pillion.domain import limits
from pillion.domain.queries import Exactness, SearchAnswer, SearchPath
from pillion.service.arranging import arranged, wider, window_of
from pillion.service.hits import best_of, hits_of
from pillion.service.past import Past
from pillion.service.query_vectors import cosine_floor, refuse_directionless
from pillion.service.ranked import Asked
from pillion.service.ranking import filter_of, profile_of
from pillion.service.reading import RecordReader
from pillion.service.tracing import Seen, Steps, lifted, near_wanted, trace_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_storage.api import Store

    from pillion.domain.indexed_text import EpisodeIndexing
    from pillion.domain.queries import SearchQuery
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.partitions import KeySpaces
    from pillion.service.past_tables import PastTable, PastTables
    from pillion.service.query_vectors import QueryVectors
    from pillion.service.recorded import Moment


class PastSearcher:
    """Answers searches of past states. Safe to share between threads."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        vectors: QueryVectors,
        tables: PastTables,
        episode_indexing: EpisodeIndexing,
    ) -> None:
        self._store = store
        self._keys = keys
        self._vectors = vectors
        self._tables = tables
        self._episode_indexing = episode_indexing

    @contextlib.contextmanager
    def holding(self, partition: Partition, revision: int, deadline: Deadline) -> Iterator[None]:
        """Let searches by words of one past state share what the first of them reads.

        Raises:
            PillionError: OVERLOADED or DEADLINE_EXCEEDED as in `PastTables.holding`.
        """
        with self._tables.holding(partition, revision, deadline):
            yield

    def search(
        self, partition: Partition, query: SearchQuery, moment: Moment, deadline: Deadline
    ) -> SearchAnswer:
        """Return the best memories of the state at a moment, which is not before the first write.

        Raises:
            PillionError: what `QueryVectors.of` raises; OVERLOADED when too many search past
                states by words; DEADLINE_EXCEEDED.
        """
        if not query.text:
            return self._search(partition, query, moment, deadline, shared=None)
        # What words weigh depends on all that they are looked for in.
        with self._tables.holding(partition, moment.revision, deadline) as shared:
            return self._search(partition, query, moment, deadline, shared=shared)

    def _search(
        self,
        partition: Partition,
        query: SearchQuery,
        moment: Moment,
        deadline: Deadline,
        *,
        shared: PastTable | None,
    ) -> SearchAnswer:
        steps = Steps()
        revision = moment.revision
        keys = self._keys.at(partition, revision)
        past = Past(
            self._store,
            partition,
            keys,
            revision,
            deadline,
            episode_indexing=self._episode_indexing,
        )
        space = past.space()
        vector = self._vectors.of(space, query, deadline)
        if vector is not None:
            refuse_directionless(vector)
        steps.end("embed")
        search = Asked(
            query=vector,
            text=query.text or None,
            now=moment.now,
            profile=profile_of(
                query.ranking, cosine_floor(space) if vector is not None else 0.0, past.half_lives()
            ),
            filter=filter_of(
                keys, query.filter, as_of=moment.as_of, now=moment.now, score_min=query.score_min
            ),
            k=max(window_of(query), limits.WINDOW_MAX),
        )
        tables = past.tables(query.filter, moment, space, shared=shared)
        best, compared, admitted, scored = best_of(tables, search)
        steps.end("rank")
        reader = RecordReader(self._store, partition, keys)
        window = window_of(query)
        while True:
            ids = [UUID(bytes=row[0]) for row in best[:window]]
            read, _ = reader.memories(ids, revision)
            if len(read) < len(ids):  # some were erased since they were ranked
                gone = {one.bytes for one in ids if one not in read}
                best = [row for row in best if row[0] not in gone]
                continue
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
            past.tables(walls, moment, space, shared=shared), search
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
