"""One hnswlib graph and the book-keeping that its rules demand. Not thread-safe: see `hnsw`.

hnswlib knows a vector by a label; the store knows it by a slot of its table. Invariants:
- Labels are 0..count-1, and hnswlib's own number of a node is its label (one thread adds).
- `_label_of[slot]` is the one live label of that slot; `_slot_of[label]` is the slot it was last
  made for, whether it is still live or not.
- Every label that is in no slot's entry is marked deleted in hnswlib, and nothing else is. It is
  either in `_dead`, and its vector's bytes are still there, or in `_free`, and they are zeros.

A free label is used again before a new one is made. hnswlib then writes the new vector over the
old one and links the node anew; its own `replace_deleted` is not used, for that makes two nodes of
one label in known cases (nmslib/hnswlib issue 487). Wiping links a node anew too, which costs ten
times an addition, so it is left to whoever has time: `wipe`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import hnswlib
import numpy as np

from pillion_storage.index.graph_state import GraphState, SnapshotUnusable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Slots = NDArray[np.uint32]
    Floats = NDArray[np.float32]

CAPACITY_MIN = 1_024
GROWTH_FACTOR = 1.5
"""hnswlib moves everything when it grows: 0.1 s for 100,000 vectors of 384 on a busy machine."""

_TOO_FEW_FOUND = "Cannot return the results in a contiguous 2D array"
_EF_STORED = 1
"""The graph's own ef is shared by all its searches and cannot be set safely while others run.
hnswlib explores max(ef, k), so each search says its ef by its k, and this one never counts."""


class Graph:
    """Vectors of unit length by slot, searched by inner product.

    Callers check arguments: vectors are float32 (n, dimension), unit length; slots don't repeat.
    """

    def __init__(
        self, dimension: int, *, m: int, ef_construction: int, seed: int, capacity: int
    ) -> None:
        self._index = hnswlib.Index(space="ip", dim=dimension)
        self._index.init_index(
            max_elements=max(capacity, CAPACITY_MIN),
            M=m,
            ef_construction=ef_construction,
            random_seed=seed,
        )
        self._index.set_ef(_EF_STORED)
        self._label_of: dict[int, int] = {}
        self._slot_of: Slots = np.zeros(max(capacity, CAPACITY_MIN), np.uint32)
        self._count = 0
        self._dead: deque[int] = deque()
        self._free: list[int] = []

    @property
    def live(self) -> int:
        """Vectors that can be found."""
        return len(self._label_of)

    @property
    def deleted(self) -> int:
        """Nodes that take memory and are in the way, but are never returned."""
        return self._count - len(self._label_of)

    @property
    def unwiped(self) -> int:
        """Deleted nodes whose vectors are still in memory."""
        return len(self._dead)

    @property
    def capacity(self) -> int:
        """Vectors that fit before the graph must grow."""
        return len(self._slot_of)

    def slots(self) -> Slots:
        """The live slots, in no particular order."""
        return np.fromiter(self._label_of, np.uint32, len(self._label_of))

    def add(self, slots: Slots, vectors: Floats) -> None:
        """Add vectors; a slot that has one already gets the new one instead."""
        if not len(slots):
            return
        again = min(len(self._free), len(slots))
        fresh = len(slots) - again
        self._reserve(self._count + fresh)
        labels = np.empty(len(slots), np.uint64)
        labels[:again] = self._free[len(self._free) - again :]
        labels[again:] = np.arange(self._count, self._count + fresh, dtype=np.uint64)
        # One thread: hnswlib then numbers nodes as it is given them. And where it fails half-way,
        # which only happens for want of memory, no label is in use twice.
        del self._free[len(self._free) - again :]
        self._index.add_items(vectors, labels, num_threads=1)
        self._count += fresh
        self._slot_of[labels.astype(np.int64)] = slots
        for slot, label in zip(slots.tolist(), labels.tolist(), strict=True):
            replaced = self._label_of.get(slot)
            if replaced is not None:
                self._bury(replaced)
            self._label_of[slot] = label

    def remove(self, slots: Iterable[int]) -> int:
        """Delete what is there of `slots`; the number of vectors deleted."""
        removed = 0
        for slot in slots:
            label = self._label_of.pop(slot, None)
            if label is not None:
                self._bury(label)
                removed += 1
        return removed

    def _bury(self, label: int) -> None:
        self._index.mark_deleted(label)
        self._dead.append(label)

    def wipe(self, limit: int) -> int:
        """Overwrite the vectors of up to `limit` deleted nodes, the oldest first; how many."""
        nothing = np.zeros((1, self._index.dim), np.float32)
        wiped = 0
        while self._dead and wiped < limit:
            label = self._dead.popleft()
            # Adding under a label that is there overwrites, and takes the mark away.
            self._index.add_items(nothing, [label], num_threads=1)
            self._index.mark_deleted(label)
            self._free.append(label)
            wiped += 1
        return wiped

    def vectors(self, slots: Iterable[int]) -> tuple[Slots, Floats]:
        """The stored vectors of those of `slots` that are live."""
        present = [(slot, self._label_of[slot]) for slot in slots if slot in self._label_of]
        found = np.array([slot for slot, _ in present], np.uint32)
        if not present:
            return found, np.empty((0, self._index.dim), np.float32)
        labels = [label for _, label in present]
        return found, np.asarray(self._index.get_items(labels, return_type="numpy"), np.float32)

    def search(self, query: Floats, n: int, ef: int) -> tuple[Slots, Floats]:
        """Slots and cosines of at least `n` near vectors if that many are reached, nearest first.

        All that was explored and kept is returned, up to max(n, ef). hnswlib raises when it
        reaches fewer than it was asked for. Then just `n` are asked for, then ever fewer.
        """
        wanted = min(n, self.live)
        k = min(max(n, ef), self.live)
        while k > 0:
            try:
                labels, distances = self._index.knn_query(query, k=k, num_threads=1)
            except RuntimeError as error:
                if _TOO_FEW_FOUND not in str(error):
                    raise
                k = wanted if k > wanted else k // 2
            else:
                return self._slot_of[labels[0].astype(np.int64)], 1 - distances[0]
        return np.empty(0, np.uint32), np.empty(0, np.float32)

    def state(self) -> tuple[GraphState, Slots, NDArray[np.bool_]]:
        """A copy of the graph, with the slot of each label, and whether the label is live.

        The vectors of deleted labels are zeros in the copy, wiped or not. hnswlib copies without
        letting go of the interpreter: 0.1 to 0.2 s for 100,000 vectors of 384.
        """
        state = GraphState.of(self._index)
        live = np.zeros(self._count, np.bool_)
        live[np.fromiter(self._label_of.values(), np.int64, self.live)] = True
        state.blank(~live)
        return state, self._slot_of[: self._count].copy(), live

    @classmethod
    def restored(
        cls, state: GraphState, slots: Slots, live: NDArray[np.bool_], *, seed: int
    ) -> Graph:
        """The graph of a checked state; a label that isn't live any more is deleted.

        Raises:
            SnapshotUnusable: this build of hnswlib lays its memory out in another way.
        """
        capacity = max(state.count + state.count // 4, CAPACITY_MIN)
        made = cls(
            state.dimension,
            m=int(state.layout["M"]),
            ef_construction=int(state.layout["ef_construction"]),
            seed=seed,
            capacity=capacity,
        )
        made._index = state.index(capacity, seed)
        made._index.set_ef(_EF_STORED)
        made._count = state.count
        made._slot_of[: state.count] = slots
        labels = np.flatnonzero(live)
        made._label_of = dict(zip(slots[labels].tolist(), labels.tolist(), strict=True))
        if len(made._label_of) != len(labels):
            raise SnapshotUnusable("two vectors are of one slot")
        made._free = np.flatnonzero(state.marked).tolist()
        for label in np.flatnonzero(~live & ~state.marked).tolist():
            made._bury(label)
        return made

    def _reserve(self, count: int) -> None:
        if count <= self.capacity:
            return
        capacity = max(count, int(self.capacity * GROWTH_FACTOR))
        self._index.resize_index(capacity)
        grown = np.zeros(capacity, np.uint32)
        grown[: self._count] = self._slot_of[: self._count]
        self._slot_of = grown


def memory_bytes(capacity: int, live: int, *, dimension: int, m: int) -> int:
    """Estimate of a graph's memory, from hnswlib's layout.

    Per capacity: the vector, 2m links and their count on the ground floor, a label, a mutex and
    a list pointer. Per vector 1/m on average also lives a floor up, with m links; and the label
    maps of both languages take about 150 bytes.
    """
    per_capacity = 4 * dimension + 4 * (2 * m + 1) + 8 + 40 + 8 + 4
    upper_floors = (4 * (m + 1)) // max(m - 1, 1)
    return capacity * per_capacity + live * (upper_floors + 150)
