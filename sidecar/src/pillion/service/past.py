"""A partition as it was at a revision of the past, for searches.

The partitions in memory hold the newest state only, so a search of the past reads the store: the
memories that the filter admits, with their vectors, in tables of at most `TABLE_ROWS` rows that
live as long as they are searched; for a query in words all memories are read, into one table that
others may share (`past_tables`), because what a word weighs depends on how many of all have it.
That is slower than a search of the present (it decodes every memory of the subjects asked about,
or of the partition) and takes no lasting memory.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Final

import numpy as np
import pillion_ranker as ranker
from pillion_storage import codec
from pillion_storage.keys import (
    EMBEDDER_KEY,
    SubjectRecord,
    id_of,
    memory_key,
    prefix_end,
    vector_key,
)

from pillion.service.conversation_texts import ConversationTexts
from pillion.service.half_lives import half_lives_at
from pillion.service.table_rows import NO_VECTORS_DIMENSION, TableRows
from pillion.service.vectors import PENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.indexed_text import EpisodeIndexing
    from pillion.domain.memory import Memory
    from pillion.domain.queries import Filter
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Deadline
    from pillion.service.half_lives import HalfLives
    from pillion.service.past_tables import PastTable
    from pillion.service.recorded import Moment

# A table of these with vectors of 384 numbers takes 4 MB.
TABLE_ROWS: Final = 2048
KEYS_STEP: Final = 10_000
_MEMORIES: Final = b"m"


class Past:
    """One partition at one revision."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        keys: KeySpace,
        revision: int,
        deadline: Deadline,
        *,
        episode_indexing: EpisodeIndexing,
    ) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._revision = revision
        self._deadline = deadline
        self._episode_indexing = episode_indexing
        self._rows = TableRows(store, partition, keys)

    def space(self) -> EmbedderIdentity | None:
        """Return the space that the vectors were of; None: nothing had decided it."""
        found = self._store.read(self._partition, (EMBEDDER_KEY,), at=self._revision).entries
        entry = found.get(EMBEDDER_KEY)
        return codec.decode_embedder(entry.value) if entry is not None else None

    def half_lives(self) -> HalfLives:
        """Return the half-lives that attributes had."""
        return half_lives_at(self._store, self._partition, self._keys, self._revision)

    def tables(
        self,
        wanted: Filter,
        moment: Moment,
        space: EmbedderIdentity | None,
        *,
        shared: PastTable | None = None,
    ) -> Iterator[ranker.Table]:
        """Yield tables of all memories that the filter admits, each memory once.

        ``shared``: one table of the whole partition, for what a word weighs depends on every text.
        """
        dimension = space.dimension if space is not None else NO_VECTORS_DIMENSION
        if shared is not None:
            yield shared.table(functools.partial(self._whole, dimension), self._deadline)
            return
        waiting: list[Memory] = []
        for memory in self._memories(wanted.subjects):
            if wanted.admits(memory, moment.as_of, moment.now):
                waiting.append(memory)
            if len(waiting) == TABLE_ROWS:
                yield self._table(dimension, waiting)
                waiting = []
        if waiting:
            yield self._table(dimension, waiting)

    def _table(self, dimension: int, memories: list[Memory]) -> ranker.Table:
        self._deadline.check()
        table = ranker.Table(dimension)
        self._rows.upsert(table, memories, self._revision, texts=False)
        return table

    def _whole(self, dimension: int, grown: Callable[[int], None]) -> ranker.Table:
        table = ranker.Table(dimension)
        texts = ConversationTexts(self._store, self._partition, self._episode_indexing)
        for memories in self._pages():
            self._rows.upsert(table, memories, self._revision, texts=False)
            texts.note(memories)
            texts.index(table, memories, self._revision)
            texts.settle(table, self._revision)
            grown(table.memory_bytes() + texts.memory_bytes)
        return table

    def _memories(self, subjects: frozenset[Subject]) -> Iterator[Memory]:
        if not subjects:
            yield from itertools.chain.from_iterable(self._pages())
            return
        for subject in subjects:
            prefix = self._keys.subject_range(subject, SubjectRecord.MEMORY)
            for keys in self._keys_of(prefix, TABLE_ROWS):
                wanted = [memory_key(id_of(key)) for key in keys]
                found = self._store.read(self._partition, wanted, at=self._revision).entries
                for key, entry in found.items():
                    yield codec.decode_memory(id_of(key), entry.value, entry.version)

    def _pages(self) -> Iterator[list[Memory]]:
        """Yield every memory of the partition; no page is empty."""
        start: bytes | None = _MEMORIES
        while start is not None:
            self._deadline.check()
            page = self._store.scan(
                self._partition,
                start,
                prefix_end(_MEMORIES),
                limit=TABLE_ROWS,
                at=self._revision,
            )
            if page.rows:
                yield [
                    codec.decode_memory(id_of(row.key), row.value, row.version) for row in page.rows
                ]
            start = page.next_start

    def _keys_of(self, prefix: bytes, step: int) -> Iterator[list[bytes]]:
        start: bytes | None = prefix
        while start is not None:
            self._deadline.check()
            page = self._store.scan(
                self._partition,
                start,
                prefix_end(prefix),
                limit=step,
                at=self._revision,
                keys_only=True,
            )
            yield [row.key for row in page.rows]
            start = page.next_start

    def unit_vectors(
        self, ids: Sequence[UUID], space: EmbedderIdentity | None
    ) -> list[NDArray[np.float32] | None]:
        """Return the unit vectors of memories in the space; None: it has none of use there."""
        wanted = [vector_key(one) for one in ids]
        stored = self._store.read(self._partition, wanted, at=self._revision).entries
        found: list[NDArray[np.float32] | None] = []
        for key in wanted:
            data = stored[key].value if key in stored else b""
            vector = np.frombuffer(data, dtype="<f4").astype(np.float64)
            length = float(np.linalg.norm(vector))
            usable = space is not None and len(vector) == space.dimension
            usable = usable and 0.0 < length < float("inf")
            found.append((vector / length).astype(np.float32) if usable else None)
        return found

    def vectors_pending(self) -> int:
        """Return how many vectors the partition waited for."""
        return sum(len(keys) for keys in self._keys_of(PENDING, KEYS_STEP))
