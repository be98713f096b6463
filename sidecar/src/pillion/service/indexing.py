"""The approximate index of one large partition, filled by a thread of its own.

A slot is *dirty* from the moment its row changes until the index has its vector (or lost it).
Searches read the index and score every dirty slot exactly beside it, so an index that lags never
hides a memory. Building the index at first is nothing else: every slot is dirty.

Invariants, under ``_lock``:
  - Every slot whose vector differs from what the index has is in ``_dirty``.
  - The thread runs only while the partition is at least ``index_from`` rows large.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import numpy as np
from pillion_storage.index.hnsw import HnswIndex

if TYPE_CHECKING:
    import pillion_ranker as ranker
    from numpy.typing import NDArray

SLICE_SLOTS: Final = 64
# Above so many dirty slots a search scans everything instead: that costs no more.
DIRTY_MAX: Final = 4096

_log = logging.getLogger(__name__)


class VectorIndex:
    """An HNSW index over a table's vectors, once the table is large enough to be worth one."""

    def __init__(self, dimension: int, table: ranker.Table, index_from: int) -> None:
        self._dimension = dimension
        self._table = table
        self._index_from = index_from
        self._lock = threading.Condition()
        self._dirty: dict[int, None] = {}
        self._in_hand: frozenset[int] = frozenset()
        self._index: HnswIndex | None = None
        self._thread: threading.Thread | None = None
        self._stopping = False

    @property
    def memory_bytes(self) -> int:
        """Bytes that the index takes."""
        return self._index.memory_bytes if self._index is not None else 0

    @property
    def vectors(self) -> int:
        """Vectors that the index has."""
        return self._index.live if self._index is not None else 0

    @property
    def lag(self) -> int:
        """Slots that the index has not taken up yet; 0 when there is no index."""
        return len(self._dirty) + len(self._in_hand) if self._index is not None else 0

    def note(self, slots: NDArray[np.uint32]) -> None:
        """Say that rows changed. Starts the index when the table has grown large enough."""
        with self._lock:
            self._dirty.update(dict.fromkeys(slots.tolist()))
            if self._index is None:
                if len(self._table) < self._index_from:
                    self._dirty.clear()
                    return
                self._dirty.update(dict.fromkeys(self._table.live_slots().tolist()))
                self._index = HnswIndex(self._dimension, capacity=len(self._dirty))
                self._thread = threading.Thread(target=self._run, name="pillion-index", daemon=True)
                self._thread.start()
            self._lock.notify()

    def candidates(
        self, query: NDArray[np.float32], wanted: int, effort: int
    ) -> NDArray[np.uint32] | None:
        """Return the slots to score: the nearest that the index knows, and every dirty one.

        None: there is no index, it lags too far, or it has come apart; scan instead.
        """
        with self._lock:
            if self._index is None or len(self._dirty) > DIRTY_MAX:
                return None
            index = self._index
            tail = np.fromiter((*self._dirty, *self._in_hand), dtype=np.uint32)
        found = index.search(query, wanted, effort)
        if not found.complete:
            return None
        return np.concatenate([found.slots, tail])

    def stop(self) -> None:
        """Stop the thread after its slice."""
        with self._lock:
            self._stopping = True
            self._lock.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        index = self._index
        if index is None:
            raise AssertionError("the thread starts after the index")
        while True:
            with self._lock:
                while not self._dirty and not self._stopping:
                    self._lock.wait()
                if self._stopping:
                    return
                taken = [slot for slot, _ in zip(self._dirty, range(SLICE_SLOTS), strict=False)]
                for slot in taken:
                    del self._dirty[slot]
                self._in_hand = frozenset(taken)
            self._take_up(index, np.array(taken, dtype=np.uint32))
            with self._lock:
                self._in_hand = frozenset()
                self._lock.notify_all()
            if index.needs_rebuild:
                index.scrub()

    def _take_up(self, index: HnswIndex, slots: NDArray[np.uint32]) -> None:
        """Bring these slots level. A slot that changes meanwhile is dirty again by then."""
        for slot in slots:
            one = np.array([slot], dtype=np.uint32)
            try:
                vector = self._table.vectors_of(one)
            except ValueError:  # free, or its row has no vector
                index.remove(one)
            else:
                index.add(one, vector)
