"""An index from its snapshot: which slot each node has now, and what has changed since.

A table gives out slots anew at each start, so a snapshot knows its nodes by the memories' ids.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np
import pillion_ranker as ranker
from pillion_storage.index.graph_state import SnapshotUnusable
from pillion_storage.index.hnsw import HnswIndex

from pillion.service.index_recall import RecallTable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pillion_storage.index.snapshot import Snapshot

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.service.index_snapshots import PartitionSnapshots

# Vectors that are compared with the table's, and how far a component may be off: both are float32
# of the same stored vector, scaled to unit length in two places.
_SAMPLE: Final = 256
_TOLERANCE: Final = 1e-4
_ID_BYTES: Final = 16
_CHUNK: Final = 4096


class Restored(NamedTuple):
    """An index, the slots that it has still to take up, its revision, and what was measured."""

    graph: HnswIndex
    dirty: NDArray[np.uint32]
    revision: int
    recall: RecallTable | None


def restored(
    snapshots: PartitionSnapshots, space: EmbedderIdentity, table: ranker.Table
) -> Restored | None:
    """Return the index that was kept for this table, if it fits; why not is in the log.

    The table may change meanwhile: whatever changes after this began must count as dirty.
    """
    kept = snapshots.load(space)
    if kept is None:
        return None
    try:
        found = _placed(kept, table)
        # Read after the table was: so it tells of every commit that the table was seen with.
        changed = snapshots.changed_since(kept.manifest.revision, max(len(table), _CHUNK))
        _check(kept, found, changed)
        index = HnswIndex.restored(kept.state, found.slots, found.here)
    except SnapshotUnusable as error:
        snapshots.refused(str(error))
        return None
    slots = _slots_of(table, changed)
    dirty = np.union1d(found.missing, slots[slots != ranker.SLOT_ABSENT]).astype(np.uint32)
    recall = RecallTable.of_rows(kept.manifest.recall)
    return Restored(index, dirty, kept.manifest.revision, recall)


class _Placed(NamedTuple):
    """A snapshot's nodes in a table.

    Attributes:
        slots: The slot of each node, SLOT_ABSENT where its memory is not there.
        here: Which nodes' memories are there, with a vector.
        missing: The slots with vectors that no node is for; missing_ids are their memories'.
        sample: Some nodes that are here; sample_vectors are what the table has for them.
    """

    slots: NDArray[np.uint32]
    here: NDArray[np.bool_]
    missing: NDArray[np.uint32]
    missing_ids: NDArray[np.uint8]
    sample: NDArray[np.int64]
    sample_vectors: list[NDArray[np.float32] | None]


def _placed(kept: Snapshot, table: ranker.Table) -> _Placed:
    named = kept.ids.any(axis=1)
    if kept.manifest.live != np.count_nonzero(named):
        raise SnapshotUnusable("it does not hold as many vectors as it says")
    slots = np.full(len(kept.ids), ranker.SLOT_ABSENT, dtype=np.uint32)
    slots[named] = table.slots(kept.ids[named])
    vectors = table.live_slots()
    here = named & np.isin(slots, vectors)
    missing = np.setdiff1d(vectors, slots[here])
    nodes = np.flatnonzero(here)
    sample = nodes[:: max(1, len(nodes) // _SAMPLE)]
    return _Placed(
        slots,
        here,
        missing,
        ids_by_slot(table, missing),
        sample,
        [_vector(table, slot) for slot in slots[sample]],
    )


def _check(kept: Snapshot, found: _Placed, changed: set[bytes]) -> None:
    """Refuse a snapshot that differs from the table in what has not changed since.

    Raises:
        SnapshotUnusable: it is of another partition, or of another time than it says.
    """
    gone = kept.ids[kept.ids.any(axis=1) & ~found.here]
    for ids, how in ((gone, "has memories"), (found.missing_ids, "lacks memories")):
        if any(row.any() and row.tobytes() not in changed for row in ids):
            raise SnapshotUnusable(f"it {how} that the partition at its revision did not")
    for node, vector in zip(found.sample, found.sample_vectors, strict=True):
        if vector is not None and kept.ids[node].tobytes() not in changed:
            stored = kept.state.vectors(np.array([node]))[0]
            if not np.allclose(stored, vector, rtol=0, atol=_TOLERANCE):
                raise SnapshotUnusable("it has other vectors than the partition")


def ids_by_slot(table: ranker.Table, slots: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the (n, 16) ids of the memories in some slots; zeros where a slot is free."""
    ids = np.zeros((len(slots), _ID_BYTES), dtype=np.uint8)
    for start in range(0, len(slots), _CHUNK):
        part = slice(start, start + _CHUNK)
        try:
            ids[part] = table.ids_of(slots[part])
        except ValueError:  # one of them is free
            for place in range(start, min(start + _CHUNK, len(slots))):
                with contextlib.suppress(ValueError):
                    ids[place] = table.ids_of(slots[place : place + 1])[0]
    return ids


def _slots_of(table: ranker.Table, ids: set[bytes]) -> NDArray[np.uint32]:
    rows = np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(len(ids), _ID_BYTES)
    return table.slots(rows)


def _vector(table: ranker.Table, slot: np.uint32) -> NDArray[np.float32] | None:
    try:
        (vector,) = table.vectors_of(np.array([slot], dtype=np.uint32))
    except ValueError:  # it was freed just now
        return None
    return cast("NDArray[np.float32]", vector)
