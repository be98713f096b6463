"""One hnswlib graph and the book-keeping that its rules demand. Not thread-safe: see `hnsw`.

hnswlib knows a vector by a label; the store knows it by a slot of its table. Invariants:
- A label is given out once in a graph's life, in ascending order, so labels are 0..count-1.
  Re-using one makes two nodes of one name (nmslib/hnswlib issue 487).
- `_label_of[slot]` is the one live label of that slot; `_slot_of[label]` is the slot it was made
  for, whether it is still live or not.
- Every label that is in no slot's entry is marked deleted in hnswlib, and nothing else is.

A deleted vector stays in hnswlib's memory, and in anything saved from it, for the graph's life.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hnswlib
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Slots = NDArray[np.uint32]
    Floats = NDArray[np.float32]

CAPACITY_MIN = 1_024
GROWTH_FACTOR = 1.5
"""hnswlib copies everything when it grows, about 0.3 s per 100,000 vectors of 384."""

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

    @property
    def live(self) -> int:
        """Vectors that can be found."""
        return len(self._label_of)

    @property
    def deleted(self) -> int:
        """Vectors that are still in memory and in the way, but are never returned."""
        return self._count - len(self._label_of)

    @property
    def capacity(self) -> int:
        """Vectors that fit before the graph must grow."""
        return len(self._slot_of)

    def slots(self) -> Slots:
        """The live slots, in no particular order."""
        return np.fromiter(self._label_of, np.uint32, len(self._label_of))

    def add(self, slots: Slots, vectors: Floats, *, threads: int) -> None:
        """Add vectors; a slot that has one already gets the new one instead."""
        if not len(slots):
            return
        self._reserve(self._count + len(slots))
        labels = np.arange(self._count, self._count + len(slots), dtype=np.uint64)
        self._index.add_items(vectors, labels, num_threads=threads)
        self._slot_of[self._count : self._count + len(slots)] = slots
        self._count += len(slots)
        for slot, label in zip(slots.tolist(), labels.tolist(), strict=True):
            replaced = self._label_of.get(slot)
            if replaced is not None:
                self._index.mark_deleted(replaced)
            self._label_of[slot] = label

    def remove(self, slots: Iterable[int]) -> int:
        """Delete what is there of `slots`; the number of vectors deleted."""
        removed = 0
        for slot in slots:
            label = self._label_of.pop(slot, None)
            if label is not None:
                self._index.mark_deleted(label)
                removed += 1
        return removed

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
