"""One partition in memory: the ranker's table, kept level with the store by its change feed.

Invariants:
  - ``applied`` is a revision whose every change is in the table; the table may be ahead of it.
  - Only the holder of ``_lock`` changes the table, ``applied`` or ``view``.
  - The table is a cache: everything in it can be read again from the store, and is at start.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pillion_ranker as ranker
from pillion_storage import codec
from pillion_storage.api import HistoryGone
from pillion_storage.keys import EMBEDDER_KEY, id_of, prefix_end, vector_key

from pillion.domain.memory import FOREVER, EndReason
from pillion.embedders.usable import have_direction
from pillion.service.indexing import VectorIndex
from pillion.service.memory_cache import MemoryCache

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition

LOAD_ROWS: Final = 2048
FEED_STEP: Final = 256
# A partition without vectors still has columns; the table needs some dimension for them.
NO_VECTORS_DIMENSION: Final = 1
_OFF_TIMELINE: Final = (EndReason.CORRECTED, EndReason.WITHDRAWN)

_log = logging.getLogger(__name__)


class View(NamedTuple):
    """What a search reads: always a matching set, replaced whole."""

    table: ranker.Table
    ann: VectorIndex
    space: EmbedderIdentity | None


class Resident:
    """One partition's rows in memory. Safe to use from several threads."""

    def __init__(
        self, store: Store, partition: Partition, keys: KeySpace, *, index_from: int
    ) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._index_from = index_from
        self._lock = threading.Lock()
        self.applied = 0
        empty = ranker.Table(NO_VECTORS_DIMENSION)
        self.view = View(empty, VectorIndex(NO_VECTORS_DIMENSION, empty, index_from), None)
        self.cache = MemoryCache()
        self._warned = False
        self._load()

    @property
    def memory_bytes(self) -> int:
        """Bytes that the table and the index take."""
        return self.view.table.memory_bytes() + self.view.ann.memory_bytes

    def refresh(self) -> int:
        """Apply every commit so far; return a revision that the table holds in full."""
        head = self._store.head(self._partition).revision
        if self.applied >= head:
            return self.applied
        with self._lock:
            while self.applied < head:
                self._catch_up()
            return self.applied

    def _catch_up(self) -> None:
        try:
            page = self._store.changes(self._partition, self.applied, limit=FEED_STEP)
        except HistoryGone:
            self._load()
            return
        if not page.changes:
            return
        ids: dict[bytes, None] = {}
        for change in page.changes:
            for key, _ in change.keys:
                if key[:1] in (b"m", b"v"):
                    ids[key[1:]] = None
                elif key == EMBEDDER_KEY:
                    self._load()
                    return
        self._apply(list(ids))
        # Only now may a search count on this revision: nothing older is left in the cache.
        self.cache.drop(ids, page.changes[-1].revision)
        self.applied = page.changes[-1].revision

    def _load(self) -> None:
        """Read everything anew, at one revision."""
        revision = self._store.head(self._partition).revision
        found = self._store.read(self._partition, (EMBEDDER_KEY,), at=revision).entries
        entry = found.get(EMBEDDER_KEY)
        space = codec.decode_embedder(entry.value) if entry is not None else None
        dimension = space.dimension if space is not None else NO_VECTORS_DIMENSION
        table = ranker.Table(dimension)
        index = VectorIndex(dimension, table, self._index_from)
        start: bytes | None = b"m"
        while start is not None:
            page = self._store.scan(
                self._partition, start, prefix_end(b"m"), limit=LOAD_ROWS, at=revision
            )
            memories = [
                codec.decode_memory(id_of(row.key), row.value, row.version) for row in page.rows
            ]
            self._upsert(table, index, memories, revision)
            start = page.next_start
        self.view.ann.stop()
        self.view = View(table, index, space)
        # Nobody knows which memories changed on the way here; as in ``_catch_up``, first the cache.
        self.cache.drop_all(revision)
        self.applied = revision

    def _apply(self, ids: Sequence[bytes]) -> None:
        """Bring these ids level with the store's newest state."""
        for start in range(0, len(ids), LOAD_ROWS):
            part = ids[start : start + LOAD_ROWS]
            result = self._store.read(self._partition, [b"m" + one for one in part])
            memories = []
            gone = []
            for one in part:
                entry = result.entries.get(b"m" + one)
                if entry is None:
                    gone.append(one)
                else:
                    memory_id = id_of(b"m" + one)
                    memories.append(codec.decode_memory(memory_id, entry.value, entry.version))
            self._upsert(self.view.table, self.view.ann, memories, result.revision)
            if gone:
                dead = _ids(gone)
                slots = self.view.table.slots(dead)
                self.view.table.remove(dead)
                self.view.ann.note(slots[slots != ranker.SLOT_ABSENT])

    def _upsert(
        self,
        table: ranker.Table,
        index: VectorIndex,
        memories: Sequence[Memory],
        revision: int,
    ) -> None:
        if not memories:
            return
        vectors = self._vectors([memory.id for memory in memories], table.dimension, revision)
        rows = self._columns(memories)
        slots = table.upsert(has_vector=vectors[0], vectors=vectors[1], **rows)
        index.note(slots)

    def _vectors(
        self, ids: Sequence[UUID], dimension: int, revision: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Return which ids have a vector, and the vectors (zeros where there is none).

        A stored vector that cannot be compared counts as none: it must not fail every search.
        """
        rows = np.zeros((len(ids), dimension), dtype=np.float32)
        wanted = [vector_key(one) for one in ids]
        found = self._store.read(self._partition, wanted, at=revision).entries
        for place, key in enumerate(wanted):
            entry = found.get(key)
            if entry is not None and len(entry.value) == 4 * dimension:
                rows[place] = np.frombuffer(entry.value, dtype="<f4")
        has = have_direction(rows)
        rows[~has] = 0.0
        if np.count_nonzero(has) < len(found) and not self._warned:
            self._warned = True
            _log.error("a partition has stored vectors that cannot be used; they are left out")
        return has, rows

    def _columns(self, memories: Sequence[Memory]) -> dict[str, NDArray[Any]]:
        """Return the ranker's columns of some memories."""
        keys = self._keys
        labels = [self.label_hashes(memory) for memory in memories]
        offsets = np.zeros(len(memories) + 1, dtype=np.uint32)
        np.cumsum([len(one) for one in labels], out=offsets[1:])
        flat = [one for row in labels for one in row]

        def column(values: Iterable[int | float], dtype: type[np.generic]) -> NDArray[Any]:
            return np.array(list(values), dtype=dtype)

        return {
            "ids": _ids([memory.id.bytes for memory in memories]),
            "created": column((memory.created_at for memory in memories), np.int64),
            "last_used": column((memory.last_used_at for memory in memories), np.int64),
            "valid_from": column((memory.valid_from for memory in memories), np.int64),
            "valid_to": column((memory.valid_to for memory in memories), np.int64),
            "recorded": column((memory.updated_at for memory in memories), np.int64),
            "expires": column((memory.expires_at for memory in memories), np.int64),
            "importance": column((memory.importance for memory in memories), np.float32),
            "confidence": column((memory.confidence for memory in memories), np.float32),
            "kind": column((memory.kind for memory in memories), np.uint8),
            "status": column((memory.status for memory in memories), np.uint8),
            "flags": column((_flags(memory) for memory in memories), np.uint16),
            "subject": column(
                (keys.column("subject", m.subject.type, m.subject.id) for m in memories), np.uint64
            ),
            "context": column((keys.column("context", m.context) for m in memories), np.uint64),
            "attribute": column(
                (keys.column("attribute", m.attribute) for m in memories), np.uint64
            ),
            "label_offsets": offsets,
            "label_hashes": column(flat, np.uint64),
        }

    def label_hashes(self, memory: Memory) -> list[int]:
        """Return the hashes of a memory's labels, and of its source kind, episodes and session.

        The latter three are labels of their own families, so that filters on them cost no column.
        """
        keys = self._keys
        hashes = [keys.column("label", label) for label in memory.labels]
        hashes.append(keys.column("source", memory.source.kind.name))
        if memory.source.episode_id is not None:
            hashes.append(keys.column("episode", str(memory.source.episode_id)))
        hashes += [keys.column("episode", str(one)) for one in memory.recurrence.episode_ids]
        if memory.session_id:
            hashes.append(keys.column("session", memory.session_id))
        return hashes

    def close(self) -> None:
        """Stop the index's work."""
        self.view.ann.stop()


def _ids(ids: Sequence[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(len(ids), 16)


def _flags(memory: Memory) -> int:
    flags = 0
    if memory.pinned:
        flags |= ranker.FLAG_PINNED
    if memory.end_reason in _OFF_TIMELINE:
        flags |= ranker.FLAG_RETRACTED
    if memory.expired_at != FOREVER:
        flags |= ranker.FLAG_EXPIRED
    if memory.consolidated_into is not None:
        flags |= ranker.FLAG_CONSOLIDATED
    return flags
