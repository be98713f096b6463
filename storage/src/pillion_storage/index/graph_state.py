"""The memory of an hnswlib graph as arrays: taken out, checked, put back. Stateless.

hnswlib believes whatever it is given: a link that leads nowhere is followed, and a file of another
dimension loads without a word. So what goes back in is checked as a whole first: after `check`
hnswlib reads nothing outside the arrays, whoever made them.

    level0      count rows of  links u16, mark u8, 0 u8, 2m x link u32, dimension x f32, label u64
    levels      count x i32: how many floors a node has above the ground floor
    upper       for each floor of each node in turn: links u32, m x link u32
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import hnswlib
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LINK_BYTES: Final = 4
_LABEL_BYTES: Final = 8
_MARK_AT: Final = 2
_MARK: Final = 1
_LINKS_MASK: Final = 0xFFFF
# Rows that are looked at together: bounds the memory that checking takes.
_CHUNK_ROWS: Final = 16_384
# How far from 1 a length may be, in float32.
_LENGTH_TOLERANCE: Final = 1e-3
# What `hnswlib` says of a graph that depends on how it was compiled.
_LAYOUT: Final = (
    "ser_version",
    "space",
    "dim",
    "normalize",
    "offset_level0",
    "size_data_per_element",
    "label_offset",
    "offset_data",
    "max_M",
    "max_M0",
    "M",
    "mult",
    "ef_construction",
    "size_links_per_element",
)


class SnapshotUnusable(Exception):  # noqa: N818 -- says more than "SnapshotUnusableError"
    """A kept graph cannot be used; the message says why. Build it anew."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphState:
    """A graph of `count` nodes. `layout` holds what must be equal where it is put back."""

    count: int
    max_level: int
    entry: int
    layout: dict[str, Any]
    level0: NDArray[np.uint8]
    levels: NDArray[np.int32]
    upper: NDArray[np.uint8]

    @classmethod
    def of(cls, index: hnswlib.Index) -> GraphState:
        """Copy the memory of a graph. The caller keeps others from changing it meanwhile."""
        told = _told(index)
        count = int(told["cur_element_count"])
        level0 = told["data_level0"].view(np.uint8)
        return cls(
            count=count,
            max_level=int(told["max_level"]),
            entry=int(told["enterpoint_node"]),
            layout={name: told[name] for name in _LAYOUT},
            level0=level0.reshape(count, int(told["size_data_per_element"])),
            levels=told["element_levels"][:count].astype(np.int32),
            upper=told["link_lists"].view(np.uint8),
        )

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return int(self.layout["dim"])

    @property
    def marked(self) -> NDArray[np.bool_]:
        """Which nodes are marked deleted."""
        return (self.level0[:, _MARK_AT] & _MARK).astype(np.bool_)

    def vectors(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some labels, (n, dimension)."""
        start = int(self.layout["offset_data"])
        rows = np.ascontiguousarray(self.level0[labels, start : start + 4 * self.dimension])
        return rows.view("<f4").astype(np.float32, copy=False)

    def blank(self, labels: NDArray[np.bool_]) -> None:
        """Overwrite the vectors of some labels with zeros, in place."""
        start = int(self.layout["offset_data"])
        self.level0[labels, start : start + 4 * self.dimension] = 0

    def discard(self, labels: NDArray[np.bool_]) -> None:
        """Mark some labels deleted and blank them, in place."""
        self.level0[labels, _MARK_AT] |= _MARK
        self.blank(labels)

    def check(self) -> None:
        """Refuse a state that could not have come from a sound graph.

        Raises:
            SnapshotUnusable: it says what is wrong.
        """
        count, m, m0 = self.count, int(self.layout["M"]), int(self.layout["max_M0"])
        row_bytes = _LINK_BYTES * (m0 + 1) + 4 * self.dimension + _LABEL_BYTES
        if count < 1 or self.level0.shape != (count, row_bytes) or self.levels.shape != (count,):
            raise SnapshotUnusable("its parts do not fit its count and dimension")
        if self.levels.min() < 0 or not 0 <= self.entry < count:
            raise SnapshotUnusable("a floor or the entry is out of bounds")
        if not self.levels[self.entry] == self.max_level == self.levels.max():
            raise SnapshotUnusable("the entry is not on the top floor")
        for start in range(0, count, _CHUNK_ROWS):
            self._check_ground(start, m0)
        self._check_upper(m)

    def _check_ground(self, start: int, m0: int) -> None:
        rows = self.level0[start : start + _CHUNK_ROWS]
        heads = np.ascontiguousarray(rows[:, : _LINK_BYTES * (m0 + 1)]).view("<u4")
        _check_links(heads[:, 0] & _LINKS_MASK, heads[:, 1:], m0, self.count)
        labels = np.ascontiguousarray(rows[:, -_LABEL_BYTES:]).view("<u8")[:, 0]
        if not np.array_equal(labels, np.arange(start, start + len(rows), dtype=np.uint64)):
            raise SnapshotUnusable("labels are not in order")
        vectors = self.vectors(np.arange(start, start + len(rows)))
        lengths = np.einsum("ij,ij->i", vectors, vectors)
        wanted = np.where(self.marked[start : start + len(rows)], 0.0, 1.0)
        if not np.allclose(lengths, wanted, rtol=0, atol=_LENGTH_TOLERANCE):
            raise SnapshotUnusable("a vector does not have unit length")

    def _check_upper(self, m: int) -> None:
        floors = int(self.levels.sum(dtype=np.int64))
        if self.upper.shape != (floors * _LINK_BYTES * (m + 1),):
            raise SnapshotUnusable("its upper floors do not fit its nodes")
        blocks = self.upper.view("<u4").reshape(floors, m + 1)
        counts = blocks[:, 0] & _LINKS_MASK
        _check_links(counts, blocks[:, 1:], m, self.count)
        # Floors 1, 2, ... of each node in turn; a link leads to a node that has that floor.
        owners = np.repeat(np.arange(self.count), self.levels)
        first = np.cumsum(self.levels) - self.levels
        floor = np.arange(floors) - first[owners] + 1
        used = np.arange(m) < counts[:, None]
        reached = self.levels[np.where(used, blocks[:, 1:], 0)]
        if (used & (reached < floor[:, None])).any():
            raise SnapshotUnusable("a link leads to a floor that is not there")

    def index(self, capacity: int, seed: int) -> hnswlib.Index:
        """Put a checked state back into hnswlib, with room for `capacity` nodes.

        Raises:
            SnapshotUnusable: this build of hnswlib lays its memory out in another way.
        """
        params = _empty(
            self.dimension,
            int(self.layout["M"]),
            int(self.layout["ef_construction"]),
            capacity=capacity,
            seed=seed,
        )
        if self.layout != {name: params[name] for name in _LAYOUT}:
            raise SnapshotUnusable("another build of hnswlib made it")
        levels = np.zeros(capacity, np.int32)
        levels[: self.count] = self.levels
        params |= {
            "ep_added": True,
            "cur_element_count": self.count,
            "max_level": self.max_level,
            "enterpoint_node": self.entry,
            "has_deletions": True,  # it counts them
            "label_lookup_external": np.arange(self.count, dtype=np.uint64),
            "label_lookup_internal": np.arange(self.count, dtype=np.uint32),
            "element_levels": levels,
            "data_level0": self.level0.reshape(-1).view(np.int8),
            "link_lists": self.upper.view(np.int8),
        }
        made = hnswlib.Index.__new__(hnswlib.Index)
        # pybind11 gives the class this method; its stub doesn't tell.
        put: Any = getattr(made, "__setstate__")  # noqa: B009
        put((params,))
        return made


def layout_of(dimension: int, m: int, ef_construction: int) -> dict[str, Any]:
    """The layout of graphs that this build of hnswlib makes with these settings."""
    params = _empty(dimension, m, ef_construction, capacity=1, seed=0)
    return {name: params[name] for name in _LAYOUT}


def _empty(
    dimension: int, m: int, ef_construction: int, *, capacity: int, seed: int
) -> dict[str, Any]:
    index = hnswlib.Index(space="ip", dim=dimension)
    index.init_index(max_elements=capacity, M=m, ef_construction=ef_construction, random_seed=seed)
    return dict(_told(index))


def _told(index: hnswlib.Index) -> dict[str, Any]:
    """What an index says of itself to be pickled."""
    state: Any = index.__getstate__()
    told: dict[str, Any] = state[0]
    return told


def _check_links(
    counts: NDArray[np.integer[Any]], links: NDArray[np.uint32], links_max: int, nodes: int
) -> None:
    if (counts > links_max).any():
        raise SnapshotUnusable("a node has too many links")
    used = np.arange(links_max) < counts[:, None]
    if (used & (links >= nodes)).any():
        raise SnapshotUnusable("a link leads out of the graph")
