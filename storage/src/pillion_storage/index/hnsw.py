"""The approximate index of one large partition: an HNSW graph that can be used while it changes.

Malkov & Yashunin 2016, by hnswlib, which is neither safe for reading while writing nor able to
forget. Around it stand a fair readers-writer lock, nodes that are wiped and used again, and a
rebuild beside the live graph.

Locks, in the order in which they are taken:
1. `_rebuilding`: one rebuild at a time.
2. `_mutating`: one change at a time; while held, the journal of a running rebuild is complete.
3. `_lock`: readers share the live graph; a change holds it alone, for one slice at most.

A change is visible when its call returns. A call that adds more than `SLICE_ROWS` vectors lets
readers in between slices, so they may see a part of it; each slice is all or nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pillion_storage.index.graph import Graph, memory_bytes
from pillion_storage.index.rwlock import ReadWriteLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from pillion_storage.index.graph_state import GraphState

    Slots = NDArray[np.uint32]
    Floats = NDArray[np.float32]

SLICE_ROWS = 64
"""Rows added under one hold of the write lock: 20-60 ms of work at 100,000 vectors of 384."""

REBUILD_SLICE_ROWS = 256
"""Rows that a rebuild reads or adds at once. It holds no write lock, but reading them out holds
the interpreter: 1,024 of 384 components held a search up for 30 ms."""

REBUILD_AT = 0.33
"""Share of deleted nodes from which a rebuild pays. They cost memory: the wiped ones cost a search
nothing measurable, and are used again first (docs/adr/0018)."""

M = 16
EF_CONSTRUCTION = 200
SEED = 100
DIMENSION_MAX = 16_384
SLOT_MAX = 2**32 - 1


class SearchResult(NamedTuple):
    """What a search found, nearest first.

    Attributes:
        slots: uint32, up to n of them, each once.
        cosines: float32, of the same length.
        complete: False when fewer than min(n, live) were reached: the graph has come apart after
            many deletions. The caller should scan exactly and rebuild.
    """

    slots: Slots
    cosines: Floats
    complete: bool


class HnswIndex:
    """Cosine search over vectors that are known by their slot in the ranking table.

    Args:
        dimension: Components of a vector.
        m: Links of a node. 16 suits 384 dimensions; twice that costs twice the build.
        ef_construction: Candidates looked at when linking a node.
        seed: Of the level draw. The same changes give the same graph.
        capacity: Vectors to make room for at once, so as not to grow while in use.
        rebuild_at: Share of deleted nodes from which `needs_rebuild` is true.

    Vectors need not have unit length; they are normalised. Any thread may call any method.
    """

    def __init__(
        self,
        dimension: int,
        *,
        m: int = M,
        ef_construction: int = EF_CONSTRUCTION,
        seed: int = SEED,
        capacity: int = 0,
        rebuild_at: float = REBUILD_AT,
    ) -> None:
        if not 1 <= dimension <= DIMENSION_MAX:
            raise ValueError(f"dimension must be in 1..{DIMENSION_MAX}")
        if m < 2 or ef_construction < 1 or capacity < 0:  # noqa: PLR2004 - hnswlib's least m
            raise ValueError("m must be >= 2, ef_construction >= 1, capacity >= 0")
        if not 0 < rebuild_at <= 1:
            raise ValueError("rebuild_at must be in (0, 1]")
        self._dimension = dimension
        self._m = m
        self._ef_construction = ef_construction
        self._seed = seed
        self._rebuild_at = rebuild_at
        self._lock = ReadWriteLock()
        self._mutating = threading.Lock()
        self._rebuilding = threading.Lock()
        self._graph = self._new_graph(capacity)
        self._journal: list[_Change] | None = None

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self._dimension

    @property
    def live(self) -> int:
        """Vectors that can be found."""
        return self._graph.live

    @property
    def deleted(self) -> int:
        """Nodes of removed or replaced vectors: used again by additions, gone with a rebuild."""
        return self._graph.deleted

    @property
    def unwiped(self) -> int:
        """Removed or replaced vectors whose bytes are still in memory, until `wipe`."""
        return self._graph.unwiped

    @property
    def deleted_share(self) -> float:
        """The deleted nodes' share of all, 0..1."""
        with self._lock.reading():
            total = self._graph.live + self._graph.deleted
            return self._graph.deleted / total if total else 0.0

    @property
    def needs_rebuild(self) -> bool:
        """Whether deleted nodes take so large a share that a rebuild pays."""
        return self.deleted_share >= self._rebuild_at

    @property
    def memory_bytes(self) -> int:
        """Estimate of the memory that the live graph takes."""
        with self._lock.reading():
            return memory_bytes(
                self._graph.capacity, self._graph.live, dimension=self._dimension, m=self._m
            )

    def slots(self) -> Slots:
        """The live slots, ascending."""
        with self._lock.reading():
            return np.sort(self._graph.slots())

    def add(self, slots: ArrayLike, vectors: ArrayLike) -> None:
        """Add vectors (n, dimension); a slot that has one gets the new one instead.

        Raises:
            ValueError: Wrong shape, a repeated slot, a component that is not finite, or a zero
                vector. Then nothing has changed.
        """
        change = _Change(*self._checked(slots, vectors))
        with self._mutating:
            for part in change.slices(SLICE_ROWS):
                with self._lock.writing():
                    part.apply(self._graph)
                if self._journal is not None:
                    self._journal.append(part)

    def remove(self, slots: ArrayLike) -> int:
        """Take vectors out of every later result; the number that was there.

        Slots that have no vector are passed over. The vectors' bytes stay in memory until `wipe`,
        `scrub` or `rebuild_from`.
        """
        change = _Change(_checked_slots(slots), None)
        with self._mutating:
            with self._lock.writing():
                removed = change.apply(self._graph)
            if self._journal is not None:
                self._journal.append(change)
        return removed

    def wipe(self, limit: int = 1) -> int:
        """Overwrite the bytes of up to `limit` removed vectors, the oldest first; how many.

        Each holds readers back for some milliseconds: hnswlib links the node anew.
        """
        wiped = 0
        with self._mutating:
            while wiped < limit:
                with self._lock.writing():
                    if not self._graph.wipe(1):
                        break
                wiped += 1
        return wiped

    def search(self, query: ArrayLike, n: int, ef: int) -> SearchResult:
        """The `n` vectors nearest to `query`, found by exploring `ef` candidates (at least `n`).

        Never raises for an `n` above the number of vectors.

        Raises:
            ValueError: `query` is not one finite, non-zero vector of the dimension, or n or ef < 1.
        """
        if n < 1 or ef < 1:
            raise ValueError("n and ef must be at least 1")
        unit = self._unit(_as_floats(query).reshape(1, -1))
        with self._lock.reading():
            graph = self._graph
            wanted = min(n, graph.live)
            slots, cosines = graph.search(unit, n, ef)
        return SearchResult(slots[:n], cosines[:n], complete=len(slots) >= wanted)

    def rebuild_from(self, slots: ArrayLike, vectors: ArrayLike) -> None:
        """Replace the content by these vectors (n, dimension). Readers use the old graph meanwhile.

        Changes made while this runs are kept. Changes made between reading `vectors` from the
        store and this call are not: hold off writers over both, or use `scrub`.

        Raises:
            ValueError: As for `add`. Then nothing has changed.
        """
        content = _Change(*self._checked(slots, vectors))
        with self._rebuilding:
            with self._mutating:
                self._journal = []
            self._rebuild(content.slices(REBUILD_SLICE_ROWS), len(content.slots))

    def scrub(self, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Rebuild from the index's own live vectors, without the deleted nodes.

        Returns whether it did. It doesn't where there is nothing deleted, or once `go_on`, which
        is asked every `REBUILD_SLICE_ROWS`, says no; then all is as it was. Removed vectors are
        gone from this object's memory when the call returns; what the allocator still holds is
        the caller's business (docs/adr/0006).
        """
        with self._rebuilding:
            with self._mutating:
                if self._graph.deleted == 0:
                    return False
                self._journal = []
                slots = self._graph.slots()
            try:
                self._rebuild(self._own_content(slots, go_on), len(slots))
            except _StoppedError:
                return False
        return True

    def capture(self) -> tuple[GraphState, Slots, NDArray[np.bool_]]:
        """A copy of the live graph, with the slot of each label, and whether the label is live.

        See `Graph.state`: the interpreter stands still meanwhile.
        """
        with self._mutating, self._lock.reading():
            return self._graph.state()

    @classmethod
    def restored(
        cls,
        state: GraphState,
        slots: Slots,
        live: NDArray[np.bool_],
        *,
        seed: int = SEED,
        rebuild_at: float = REBUILD_AT,
    ) -> HnswIndex:
        """The index of a captured state. Where `live` is False the label is deleted.

        Raises:
            SnapshotUnusable: the state is not sound, or of another build of hnswlib.
        """
        state.check()
        made = cls(
            state.dimension,
            m=int(state.layout["M"]),
            ef_construction=int(state.layout["ef_construction"]),
            seed=seed,
            rebuild_at=rebuild_at,
        )
        made._graph = Graph.restored(state, slots, live, seed=seed)
        return made

    def _own_content(self, slots: Slots, go_on: Callable[[], bool]) -> Iterator[_Change]:
        """The vectors of `slots` as they are now; the journal tells what was removed since."""
        for start in range(0, len(slots), REBUILD_SLICE_ROWS):
            if not go_on():
                raise _StoppedError
            part = slots[start : start + REBUILD_SLICE_ROWS].tolist()
            with self._lock.reading():
                found = self._graph.vectors(part)
            # Outside the lock: whoever takes this from us is about to build with it.
            yield _Change(*found)

    def _rebuild(self, content: Iterator[_Change], capacity: int) -> None:
        """Build beside the live graph, catch up with the journal, swap. `_rebuilding` is held."""
        try:
            fresh = self._new_graph(capacity + capacity // 4)
            for part in content:
                part.apply(fresh)
            while self._replay(fresh):
                pass
        finally:
            # On success the journal has already been closed by the swap.
            with self._mutating:
                self._journal = None

    def _replay(self, fresh: Graph) -> bool:
        """Apply what the journal holds; swap and return False once that was little.

        A long journal is applied while changes go on; the last few under `_mutating`, so that none
        can slip between the last look and the swap.
        """
        with self._mutating:
            changes, self._journal = self._journal or [], []
            if sum(len(change.slots) for change in changes) <= SLICE_ROWS:
                self._apply_all(fresh, changes)
                # What was copied and then removed is in nobody's way yet, but must not linger.
                fresh.wipe(fresh.unwiped)
                with self._lock.writing():
                    self._graph = fresh
                self._journal = None
                return False
        self._apply_all(fresh, changes)
        fresh.wipe(fresh.unwiped)
        return True

    def _apply_all(self, graph: Graph, changes: list[_Change]) -> None:
        for change in changes:
            change.apply(graph)

    def _new_graph(self, capacity: int) -> Graph:
        return Graph(
            self._dimension,
            m=self._m,
            ef_construction=self._ef_construction,
            seed=self._seed,
            capacity=capacity,
        )

    def _checked(self, slots: ArrayLike, vectors: ArrayLike) -> tuple[Slots, Floats]:
        checked = _checked_slots(slots)
        rows = _as_floats(vectors)
        if rows.shape != (len(checked), self._dimension):
            raise ValueError(
                f"vectors have shape {rows.shape}, expected {(len(checked), self._dimension)}"
            )
        return checked, self._unit(rows)

    def _unit(self, rows: Floats) -> Floats:
        """The rows scaled to unit length, as a contiguous array of its own."""
        if rows.shape[1:] != (self._dimension,):
            raise ValueError(f"vector has {rows.shape[1:]} components, expected {self._dimension}")
        # In float64: squares of large float32 components overflow, of small ones vanish.
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))[:, None]
        if not np.isfinite(lengths).all():
            raise ValueError("a vector has a component that is not finite")
        if (lengths == 0).any():
            raise ValueError("a vector is zero: it has no direction")
        unit = np.empty(rows.shape, np.float32)
        for start in range(0, len(rows), REBUILD_SLICE_ROWS):  # the float64 quotients stay few
            part = slice(start, start + REBUILD_SLICE_ROWS)
            unit[part] = rows[part] / lengths[part]
        return unit


class _StoppedError(Exception):
    """A rebuild was told not to go on."""


class _Change(NamedTuple):
    """Vectors for slots, or, without vectors, the removal of slots."""

    slots: Slots
    vectors: Floats | None

    def apply(self, graph: Graph) -> int:
        if self.vectors is None:
            return graph.remove(self.slots.tolist())
        graph.add(self.slots, self.vectors)
        return 0

    def slices(self, rows: int) -> Iterator[_Change]:
        for start in range(0, len(self.slots), rows):
            part = slice(start, start + rows)
            yield _Change(self.slots[part], None if self.vectors is None else self.vectors[part])


def _as_floats(values: ArrayLike) -> Floats:
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        return np.asarray(values, np.float32)


def _checked_slots(slots: ArrayLike) -> Slots:
    wide = np.asarray(slots)
    if wide.ndim != 1 or (wide.size and wide.dtype.kind not in "iu"):
        raise ValueError("slots must be a flat sequence of integers")
    if wide.size and (int(wide.min()) < 0 or int(wide.max()) > SLOT_MAX):
        raise ValueError(f"a slot is outside 0..{SLOT_MAX}")
    checked = wide.astype(np.uint32)
    if len(np.unique(checked)) != len(checked):
        raise ValueError("a slot is given twice")
    return checked
