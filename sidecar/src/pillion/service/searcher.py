"""Search: the best memories by relevance, recency and importance, under a filter."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final
from uuid import UUID

import numpy as np

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_vector_shape
from pillion.domain.queries import (
    Exactness,
    Hit,
    SearchAnswer,
    SearchPath,
)
from pillion.domain.validation import check_search
from pillion.service.expansion import expanded
from pillion.service.past import Past
from pillion.service.ranked import Asked
from pillion.service.ranking import filter_of, profile_of
from pillion.service.reading import RecordReader, wait_for_revision
from pillion.service.recorded import moment_of
from pillion.service.vectors import CLIENT_SPACE
from pillion.service.walker import Walker

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    import pillion_ranker as ranker
    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.memory import Memory
    from pillion.domain.queries import SearchQuery
    from pillion.domain.scope import Partition
    from pillion.embedders.cache import QueryCache
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors
    from pillion.service.ranked import Ranker
    from pillion.service.resident import Resident
    from pillion.service.residents import Residents

    # What the ranker says of a hit: id, score, relevance, recency, importance, cosine.
    _Row = tuple[bytes, float, float, float, float, float]

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
    ) -> None:
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
            PillionError: INVALID_FIELD and its like for a malformed query; DIMENSION_MISMATCH,
                EMBEDDER_MISMATCH when its vector cannot be compared with the partition's;
                DEADLINE_EXCEEDED, OVERLOADED or PLUGIN_UNAVAILABLE when the embedder is slow,
                busy or at fault; HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        check_search(query)
        if query.expansion is not None:
            walker = Walker(store=self._store, clock=self._clock, searcher=self)
            return expanded(self, walker, partition, query, deadline)
        if query.read.asks_for_the_past:
            return self._search_past(partition, query, deadline)
        if query.read.at_least_revision > 0 or self._keys.known(partition) is None:
            wait_for_revision(self._store, partition, query.read.at_least_revision, deadline)
        head = self._store.head(partition).revision
        keys = self._keys.at(partition, head)
        if head == 0:  # there is nothing to find, and nothing to keep in memory for it
            return self._nothing(keys, query)
        with self._residents.using(partition) as resident:
            for _ in range(TRIES_MAX):
                deadline.check()
                answer = self._search_once(partition, keys, resident, query, deadline)
                if answer is not None:
                    return answer
        raise PillionError(
            Reason.OVERLOADED,
            "the memories found are being changed by others all the time: try again",
            retry_after_ms=20,
        )

    def _search_past(
        self, partition: Partition, query: SearchQuery, deadline: Deadline
    ) -> SearchAnswer:
        """Return the best memories of a recorded state, scored as they were at that instant."""
        moment = moment_of(self._store, partition, query.read, self._clock, deadline)
        revision = moment.revision
        keys = self._keys.at(partition, revision)
        if revision == 0:
            return self._nothing(keys, query)
        past = Past(self._store, partition, keys, revision, deadline)
        space = past.space()
        vector = self._query_vector(space, query, deadline)
        if vector is not None:
            _refuse_directionless(vector)
        search = Asked(
            query=vector,
            now=moment.now,
            profile=profile_of(
                query.ranking, _floor(space) if vector is not None else 0.0, past.half_lives()
            ),
            filter=filter_of(
                keys, query.filter, as_of=moment.as_of, now=moment.now, score_min=query.score_min
            ),
            k=query.top_k,
        )
        best: list[_Row] = []
        compared: set[bytes] = set()
        admitted = 0
        for table in past.tables(query.filter, moment, space):
            hits = table.search(**search)
            admitted += hits.admitted
            rows = hits.rows()
            compared |= _compared(table, rows, vector)
            best = sorted(best + rows, key=lambda row: (-row[1], row[0]))[: query.top_k]
        reader = RecordReader(self._store, partition, keys)
        ids = [UUID(bytes=row[0]) for row in best]
        memories, _ = reader.memories(ids, revision)
        vectors = reader.vectors(ids, revision) if query.include_vectors else {}
        return SearchAnswer(
            hits=_hits([memories[one] for one in ids], best, vectors, compared),
            revision=revision,
            exactness=Exactness.EXACT,
            path=SearchPath.NO_VECTOR if vector is None else SearchPath.SCAN,
            admitted=admitted,
            vectors_pending=past.vectors_pending(),
        )

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
        revision = resident.refresh()
        view = resident.view
        now = self._clock.now_us()
        as_of = query.read.as_of if query.read.as_of is not None else now
        vector = self._query_vector(view.space, query, deadline)
        wanted = filter_of(keys, query.filter, as_of=as_of, now=now, score_min=query.score_min)
        floor = _floor(view.space) if vector is not None else 0.0
        profile = profile_of(query.ranking, floor, view.half_lives)
        try:
            ranked = self._ranker.best(
                view,
                query.recall_target,
                query=vector,
                now=now,
                profile=profile,
                filter=wanted,
                k=query.top_k,
            )
        except ValueError:
            if vector is not None:
                _refuse_directionless(vector)
            raise
        rows = ranked.hits.rows()
        reader = RecordReader(self._store, partition, keys)
        memories = _memories(reader, resident, [row[0] for row in rows], revision)
        if memories is None or not query.filter.admits_all(memories, as_of, now):
            return None
        vectors: Mapping[UUID, bytes] = {}
        if query.include_vectors:
            vectors = reader.vectors([one.id for one in memories], None)
        return SearchAnswer(
            hits=_hits(memories, rows, vectors, _compared(view.table, rows, vector)),
            revision=revision,
            exactness=ranked.exactness,
            path=ranked.path,
            admitted=ranked.hits.admitted if ranked.path is not SearchPath.INDEX else 0,
            bound=ranked.bound,
            plan=ranked.plan,
            vectors_pending=self._pending.count(partition),
        )

    def _query_vector(
        self, space: EmbedderIdentity | None, query: SearchQuery, deadline: Deadline
    ) -> NDArray[np.float32] | None:
        """Return the query's vector in the partition's space; None: none takes part."""
        if query.vector:
            given = _given(query)
            if space is None:  # no memory has a vector yet, and nobody else will look
                _refuse_directionless(given)
                return None
            check_vector_shape("vector", query.vector, space.dimension)
            return given
        if not query.text or space is None:
            return None
        if space.name == CLIENT_SPACE:
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                "this partition holds vectors that its clients made: send a query vector",
                metadata={"embedder": CLIENT_SPACE},
            )
        if self._embedder is None or not space.same_space(self._embedder.identity):
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                f"this partition's vectors come from {space.name}, which this server does "
                "not run: start it with that embedder, or re-embed the partition",
                metadata={"embedder": space.name},
            )
        embedded: NDArray[np.float32] = self._embedder.embed_queries(
            [query.text], within_seconds=deadline.remaining_seconds()
        )[0]
        return embedded


def _memories(
    reader: RecordReader, resident: Resident, order: Sequence[bytes], revision: int
) -> Sequence[Memory] | None:
    """Return the memories of these ids, in their order; None when one of them is gone.

    They are as of the revision or newer, and the versions of their timelines as of the revision:
    a newer version beside an older row would let its reader overwrite what it has not seen.
    """
    known = [resident.cache.get(one) for one in order]
    missing = [UUID(bytes=one) for one, memory in zip(order, known, strict=True) if memory is None]
    if missing:
        read, revision = reader.bare_memories(missing, None)
        fresh = {one.bytes: memory for one, memory in read.items()}
        resident.cache.add(fresh, revision)
        known = [memory or fresh.get(one) for one, memory in zip(order, known, strict=True)]
    memories = [memory for memory in known if memory is not None]
    if len(memories) < len(order):
        return None
    if any(memory.attribute for memory in memories):
        by_id = {memory.id: memory for memory in memories}
        reader.fill_fact_versions(by_id, revision)
        filled = list(by_id.values())
        resident.cache.swap(zip(order, memories, filled, strict=True))
        return filled
    return memories


def _hits(
    memories: Sequence[Memory],
    rows: Sequence[_Row],
    vectors: Mapping[UUID, bytes],
    compared: Collection[bytes],
) -> tuple[Hit, ...]:
    """Return what was ranked, with its memories; ``compared``: the ids that have a cosine."""
    return tuple(
        Hit(
            memory,
            score,
            relevance,
            recency,
            importance,
            cosine if id_bytes in compared else None,
            vectors.get(memory.id, b"") if vectors else b"",
        )
        for memory, (id_bytes, score, relevance, recency, importance, cosine) in zip(
            memories, rows, strict=True
        )
    )


def _compared(
    table: ranker.Table, rows: Sequence[_Row], query: NDArray[np.float32] | None
) -> AbstractSet[bytes]:
    """Return the ids whose vectors were compared with the query's.

    Of a memory without a vector the ranker says 0, and of one at a right angle too: the table
    knows which it was.
    """
    if query is None:
        return frozenset()
    compared = {row[0] for row in rows if row[5] != 0.0}
    unclear = [row[0] for row in rows if row[5] == 0.0]
    if unclear:
        ids = np.frombuffer(b"".join(unclear), dtype=np.uint8).reshape(len(unclear), 16)
        for one, slot in zip(unclear, table.slots(ids), strict=True):
            # A memory that left the table meanwhile has no slot, which raises too.
            with contextlib.suppress(ValueError):
                table.vectors_of(np.array([slot], dtype=np.uint32))
                compared.add(one)
    return compared


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
