"""One partition in memory: the ranker's table, kept level with the store by its change feed.

Invariants:
  - ``applied`` is a revision whose every change is in the table; the table may be ahead of it.
  - Only the holder of ``_lock`` changes the table, ``applied`` or ``view``.
  - The table is a cache: everything in it can be read again from the store, and is at start.
  - What memories borrow of others (`ConversationTexts`) is in the table from the first search by
    words on, ``_texts`` is None until then: a load doesn't pay for it, nor who asks by vectors.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import pillion_ranker as ranker
from pillion_storage import codec
from pillion_storage.access_codec import decode_access
from pillion_storage.api import HistoryGone
from pillion_storage.keys import ACCESSES, EMBEDDER_KEY, REGISTRATIONS, id_of, prefix_end

from pillion.domain.indexed_text import EpisodeIndexing
from pillion.service.accesses import touch
from pillion.service.conversation_texts import ConversationTexts
from pillion.service.half_lives import NO_HALF_LIVES, after_changes, half_lives_at
from pillion.service.indexing import VectorIndex
from pillion.service.memory_cache import MemoryCache
from pillion.service.table_load import load_table
from pillion.service.table_rows import NO_VECTORS_DIMENSION, TableRows, id_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.service.accesses import Accesses
    from pillion.service.half_lives import HalfLives
    from pillion.service.index_snapshots import IndexSnapshots

LOAD_ROWS: Final = 2048
FEED_STEP: Final = 256
# What the index may take to be written down when the partition leaves memory.
SAVE_SECONDS: Final = 5.0


class View(NamedTuple):
    """What a search reads: always a matching set, replaced whole."""

    table: ranker.Table
    ann: VectorIndex
    space: EmbedderIdentity | None
    half_lives: HalfLives


class Resident:
    """One partition's rows in memory. Safe to use from several threads."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        keys: KeySpace,
        *,
        index_from: int,
        episode_indexing: EpisodeIndexing = EpisodeIndexing.CONTEXT,
        snapshots: IndexSnapshots | None = None,
        accesses: Accesses,
    ) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._rows = TableRows(store, partition, keys)
        self._index_from = index_from
        self._episode_indexing = episode_indexing
        self._texts: ConversationTexts | None = None
        self._snapshots = snapshots.of(partition) if snapshots is not None else None
        self._accesses = accesses
        self._lock = threading.Lock()
        self._ranking_by_use = threading.Lock()
        self.applied = 0
        empty = ranker.Table(NO_VECTORS_DIMENSION)
        index = VectorIndex(empty, index_from)
        self.view = View(empty, index, None, NO_HALF_LIVES)
        self.cache = MemoryCache()
        self._load()

    @property
    def memory_bytes(self) -> int:
        """Bytes that the table, the index, the decoded memories and the turns' order take."""
        view, texts = self.view, self._texts
        turns = texts.memory_bytes if texts is not None else 0
        return view.table.memory_bytes() + view.ann.memory_bytes + self.cache.memory_bytes + turns

    def refresh(self, *, words: bool = False) -> int:
        """Apply every commit so far; return a revision that the table holds in full.

        ``words``: with its texts, so that it can be searched by words.
        """
        head = self._store.head(self._partition).revision
        if self.applied >= head and not (words and self._texts is None):
            return self.applied
        with self._lock:
            if words and self._texts is None:
                self._texts = self._load_texts(self.view.table)
            while self.applied < head:
                head = max(head, self._catch_up())
            return self.applied

    def _catch_up(self) -> int:
        """Apply some of the commits so far; return up to which there may be half of one."""
        try:
            page = self._store.changes(self._partition, self.applied, limit=FEED_STEP)
        except HistoryGone:
            return self._load()
        if not page.changes:
            return self.applied
        ids: dict[bytes, None] = {}
        used: dict[bytes, None] = {}
        registrations: set[bytes] = set()
        for change in page.changes:
            for key, _ in change.keys:
                if key[:1] in (b"m", b"v", b"q"):
                    ids[key[1:]] = None
                elif key[:1] == ACCESSES:
                    used[key[1:]] = None
                elif key[:1] == REGISTRATIONS:
                    registrations.add(key)
                elif key == EMBEDDER_KEY:
                    return self._load()
        self._apply(list(ids))
        self._touch(list(used))
        self.view.ann.level(page.changes[-1].revision)
        if registrations:
            half_lives = after_changes(
                self._store, self._partition, self._keys, self.view.half_lives, registrations
            )
            self.view = self.view._replace(half_lives=half_lives)
        # Only now may a search count on this revision: nothing older is left in the cache.
        self.cache.drop(ids | used, page.changes[-1].revision)
        self.applied = page.changes[-1].revision
        return self.applied

    def _load(self) -> int:
        """Read everything anew, as it is at the revision applied or later; return how late."""
        revision = self._store.head(self._partition).revision
        found = self._store.read(self._partition, (EMBEDDER_KEY,), at=revision).entries
        entry = found.get(EMBEDDER_KEY)
        space = codec.decode_embedder(entry.value) if entry is not None else None
        half_lives = half_lives_at(self._store, self._partition, self._keys, revision)
        dimension = space.dimension if space is not None else NO_VECTORS_DIMENSION
        table = ranker.Table(dimension)
        index = VectorIndex(table, self._index_from, space, self._snapshots)
        for slots in load_table(self._store, self._partition, self._keys, self._rows, table):
            index.note(slots)
        touch(table, self._accesses.last_used(self._partition, None))
        if self._texts is not None:
            self._texts = self._load_texts(table)
        self.view.ann.stop()
        index.level(revision)
        self.view = View(table, index, space, half_lives)
        # Nobody knows which memories changed on the way here; as in ``_catch_up``, first the cache.
        self.cache.drop_all(revision)
        self.applied = revision
        return self._store.head(self._partition).revision

    def _load_texts(self, table: ranker.Table) -> ConversationTexts:
        """Give every row of a table its text, as it is at the revision applied or later."""
        texts = ConversationTexts(self._store, self._partition, self._episode_indexing)
        start: bytes | None = b"m"
        while start is not None:
            page = self._store.scan(self._partition, start, prefix_end(b"m"), limit=LOAD_ROWS)
            memories = [
                codec.decode_memory(id_of(row.key), row.value, row.version) for row in page.rows
            ]
            # What isn't a row yet is told by the feed, and gets its text then.
            texts.note(memories)
            texts.index(table, memories, page.revision)
            texts.settle(table, page.revision)
            start = page.next_start
        return texts

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
                dead = id_rows(gone)
                slots = self.view.table.slots(dead)
                self.view.table.remove(dead)
                self.view.ann.note(slots[slots != ranker.SLOT_ABSENT])
            if self._texts is not None:
                self._texts.forget(gone)
                self._texts.note(memories)
                self._texts.index(self.view.table, memories, result.revision)
                self._texts.settle(self.view.table, result.revision)

    def _upsert(
        self,
        table: ranker.Table,
        index: VectorIndex,
        memories: Sequence[Memory],
        revision: int,
    ) -> None:
        if memories:
            index.note(self._rows.upsert(table, memories, revision, texts=self._texts is None))
            # The store may lack their last uses, which the table had.
            touch(table, self._accesses.last_used(self._partition, [m.id.bytes for m in memories]))

    def _touch(self, ids: Sequence[bytes]) -> None:
        """Tell the table of uses that were written down."""
        for start in range(0, len(ids), LOAD_ROWS):
            wanted = [ACCESSES + one for one in ids[start : start + LOAD_ROWS]]
            found = self._store.read(self._partition, wanted).entries
            last_used = {
                key[1:]: decode_access(entry.value).last_used_at for key, entry in found.items()
            }
            touch(self.view.table, last_used)

    def rank_by_use(self) -> None:
        """Tell the table of every use so far: for a search whose recency counts from the last one.

        Other searches do without: a use would make them wait for each other.
        """
        with self._ranking_by_use:
            touch(self.view.table, self._accesses.take_unranked(self._partition))

    def close(self, save_within_seconds: float = SAVE_SECONDS) -> None:
        """Stop the index's work, and write the index down if that is worth it and in time."""
        self.view.ann.stop(save_within_seconds)
