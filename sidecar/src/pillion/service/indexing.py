"""The approximate index of one large partition, kept by a thread of its own.

A slot is *dirty* from the moment its row changes until the index has its vector (or lost it).
Searches read the index and score every dirty slot exactly beside it, so an index that lags never
hides a memory. Building the index at first is nothing else: every slot is dirty.

What the thread does, the first that applies: wipe, where an erasure waits for it; take up dirty
slots; and once there are none, begin a rebuild, wipe a removed vector, measure, write a snapshot.
A rebuild has a thread of its own, beside which all of this goes on.

Invariants, under ``_lock``:
  - Every slot whose vector differs from what the index has is in ``_dirty`` or ``_in_hand``,
    except while ``_restoring``, when nobody asks the index.
  - ``covered`` is a revision whose every change is in the index.
  - The thread runs only once the partition was at least ``index_from`` rows large.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pillion_storage.index.hnsw import HnswIndex

from pillion.domain.limits import RECALL_TARGET_DEFAULT
from pillion.service.index_recall import (
    RecallMeasurement,
    RecallTable,
    effort_unknown,
)
from pillion.service.index_restore import ids_by_slot, restored
from pillion.service.index_snapshots import Captured

if TYPE_CHECKING:
    from collections.abc import Callable

    import pillion_ranker as ranker
    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.service.index_snapshots import PartitionSnapshots

# Above so many dirty slots a search scans everything instead: that costs no more.
DIRTY_MAX: Final = 4096
# Slots taken up at once: together while nobody reads the index, one by one between readers.
SLICE_SLOTS: Final = 64
# A snapshot is written once this share of the index has changed since the last, at least so many:
# what came after it is taken up anew at the next start, about a millisecond each.
SNAPSHOT_SHARE: Final = 0.10
SNAPSHOT_CHANGES_MIN: Final = 1024
# Where the index is closed in good order, this share is worth a snapshot.
CLOSING_SHARE: Final = 0.01
# Recall is measured again once this share has changed.
MEASURE_SHARE: Final = 0.10
# Wiping holds readers back for some milliseconds each, so it rests this many times as long.
WIPE_REST: Final = 4.0

_log = logging.getLogger(__name__)


class Candidates(NamedTuple):
    """What the index says of a query: slots to score, and the cosine that no other slot exceeds."""

    slots: NDArray[np.uint32]
    horizon: float


class VectorIndex:
    """An HNSW index over a table's vectors, once the table is large enough to be worth one.

    Args:
        table: Where the vectors are.
        index_from: Rows from which there is an index.
        space: Whose vectors they are; None: there are none yet, and never an index.
        snapshots: Where the index is kept between two runs; None: nowhere.
        clock: Seconds, for how long things take.
    """

    def __init__(
        self,
        table: ranker.Table,
        index_from: int,
        space: EmbedderIdentity | None = None,
        snapshots: PartitionSnapshots | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table = table
        self._index_from = index_from
        self._space = space
        self._snapshots = snapshots
        self._clock = clock
        self._lock = threading.Condition()
        self._dirty: dict[int, None] = {}
        self._in_hand: frozenset[int] = frozenset()
        self._restoring = False
        self._index: HnswIndex | None = None
        self._thread: threading.Thread | None = None
        self._rebuild: threading.Thread | None = None
        self._told = 0
        self.covered = 0
        self._erasers = 0
        self._woken = False
        self._stopping = False
        self._save_until: float | None = None
        self._resting = False
        self._save_failed = False
        self._unsaved = 0
        self._unmeasured = 0
        self._measured = False
        self._measurement: RecallMeasurement | None = None
        self._recall: RecallTable | None = None

    # --- what others ask -------------------------------------------------------------------

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
        if self._thread is None:
            return 0
        return len(self._table) if self._restoring else len(self._dirty) + len(self._in_hand)

    @property
    def revisions_behind(self) -> int:
        """Revisions whose changes are not all in the index yet; 0 when there is no index."""
        return self._told - self.covered if self._thread is not None else 0

    @property
    def saved_revision(self) -> int:
        """The revision of the snapshot; 0: there is none."""
        return self._snapshots.revision if self._snapshots is not None else 0

    @property
    def idle(self) -> bool:
        """Whether there is an index with nothing to do."""
        return self._resting and self._rebuild is None and not self._dirty and not self._woken

    def candidates(self, query: NDArray[np.float32], wanted: int, effort: int) -> Candidates | None:
        """Return the slots to score: the nearest that the index knows, and every dirty one.

        ``effort_for`` gives the effort. The horizon is the cosine of the last of the nearest, as
        the index had it. None: there is no index, it lags too far, or it has come apart; scan
        instead.
        """
        with self._lock:
            if self._index is None or self._restoring or len(self._dirty) > DIRTY_MAX:
                return None
            index = self._index
            tail = np.fromiter((*self._dirty, *self._in_hand), dtype=np.uint32)
        found = index.search(query, wanted, effort)
        if not found.complete:
            return None
        # Fewer than were wanted are all that there are: nothing else has a vector.
        horizon = float(found.cosines[-1]) if len(found.slots) == wanted else -1.0
        return Candidates(np.concatenate([found.slots, tail]), horizon)

    def effort_for(self, recall_target: float, k: int) -> int | None:
        """Return the effort that finds this share of the k nearest, as measured; None: scan.

        Before anything was measured it is a cautious guess. Greater than ``k`` or equal to it.
        """
        recall = self._recall
        return effort_unknown(k) if recall is None else recall.effort_for(recall_target, k)

    # --- what the partition says -----------------------------------------------------------

    def note(self, slots: NDArray[np.uint32]) -> None:
        """Say that rows changed, once they have."""
        with self._lock:
            if self._thread is not None:
                self._dirty.update(dict.fromkeys(slots.tolist()))
                self._lock.notify_all()

    def level(self, revision: int) -> None:
        """Say that every change up to a revision was noted.

        Starts the index when the table has grown large enough.
        """
        with self._lock:
            self._told = revision
            if self._thread is None:
                if self._stopping or self._space is None or len(self._table) < self._index_from:
                    return
                self._restoring = True
                self._thread = threading.Thread(target=self._run, name="pillion-index", daemon=True)
                self._thread.start()
            self._settle()
            self._lock.notify_all()

    def wait_erased(self, revision: int, timeout_seconds: float) -> bool:
        """Wait until no vector that was removed by a revision is in the index's memory.

        The partition must have noted that revision (``Resident.refresh``). False: not yet.
        """

        def erased() -> bool:
            return self._thread is None or (
                self.covered >= revision
                and self._rebuild is None
                and self._index is not None
                and self._index.unwiped == 0
            )

        with self._lock:
            self._erasers += 1
            self._woken = True  # there may be a snapshot to be written anew
            self._lock.notify_all()
            try:
                return self._lock.wait_for(
                    lambda: erased() or self._stopping, timeout_seconds
                ) and (erased())
            finally:
                self._erasers -= 1

    def wait_settled(self, timeout_seconds: float) -> bool:
        """Wait until the index has every vector that it was told of. True too: there is none."""

        def settled() -> bool:
            busy = self._restoring or self._dirty or self._in_hand
            return self._thread is None or self._stopping or not busy

        with self._lock:
            return self._lock.wait_for(settled, timeout_seconds)

    def stop(self, save_within_seconds: float | None = None) -> None:
        """Stop the threads after what they are at; a snapshot is written first if it is worth it.

        Args:
            save_within_seconds: What the snapshot may take; None: there will be none.
        """
        with self._lock:
            self._stopping = True
            if save_within_seconds is not None:
                self._save_until = self._clock() + save_within_seconds
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join()
        rebuild = self._rebuild  # begun by that thread, if at all
        if rebuild is not None:
            rebuild.join()

    # --- the thread ------------------------------------------------------------------------

    def _run(self) -> None:
        index = self._opened()
        while not self._stopping:
            if self._erasers and index.unwiped:
                index.wipe()
                self._tell()
            elif self._dirty:
                self._take_some(index)
            elif not self._tidy(index):
                self._rest()
        until = self._save_until
        if until is not None and self._clock() < until and self._worth(CLOSING_SHARE, 1):
            self._save(index, lambda: self._clock() < until)

    def _rest(self) -> None:
        with self._lock:
            self._resting = True
            while not (self._stopping or self._dirty or self._woken):
                self._lock.notify_all()
                self._lock.wait()
            self._woken = self._resting = False

    def _opened(self) -> HnswIndex:
        """Return the index, from the snapshot if there is one that fits, and empty otherwise."""
        started = self._clock()
        found = None
        if self._snapshots is not None and self._space is not None:
            found = restored(self._snapshots, self._space, self._table)
        with self._lock:
            if found is None:
                self._index = HnswIndex(self._table.dimension, capacity=len(self._table))
                self._dirty.update(dict.fromkeys(self._table.live_slots().tolist()))
                self._unsaved = len(self._dirty)
            else:
                self._index = found.graph
                self._dirty.update(dict.fromkeys(found.dirty.tolist()))
                self._recall = found.recall
                self._measured = found.recall is not None
                self._unsaved = self._unmeasured = 0
                _log.info(
                    "index restored at revision %d: %d vectors, %d to take up, %.1f s",
                    found.revision,
                    found.graph.live,
                    len(self._dirty),
                    self._clock() - started,
                )
            self._restoring = False
            self._settle()
            self._lock.notify_all()
            return self._index

    def _settle(self) -> None:
        """Nothing is dirty: so every change that was told of is in. ``_lock`` is held."""
        if not self._dirty and not self._in_hand and not self._restoring:
            self.covered = self._told

    def _tell(self) -> None:
        with self._lock:
            self._lock.notify_all()

    def _take_some(self, index: HnswIndex) -> None:
        with self._lock:
            taken = [slot for slot, _ in zip(self._dirty, range(SLICE_SLOTS), strict=False)]
            building = len(self._dirty) > DIRTY_MAX
            for slot in taken:
                del self._dirty[slot]
            self._in_hand = frozenset(taken)
        self._take_up(index, np.array(taken, dtype=np.uint32), together=building)
        with self._lock:
            self._in_hand = frozenset()
            self._unsaved += len(taken)
            self._unmeasured += len(taken)
            self._settle()
            self._lock.notify_all()

    def _take_up(self, index: HnswIndex, slots: NDArray[np.uint32], *, together: bool) -> None:
        """Bring these slots level. A slot that changes meanwhile is dirty again by then."""
        if together:
            try:
                vectors = self._table.vectors_of(slots)
            except ValueError:
                pass  # one of them is free, or its row has no vector: one by one
            else:
                index.add(slots, vectors)
                return
        for slot in slots:
            one = np.array([slot], dtype=np.uint32)
            try:
                vector = self._table.vectors_of(one)
            except ValueError:
                index.remove(one)
            else:
                index.add(one, vector)

    # --- when nothing is dirty -------------------------------------------------------------

    def _tidy(self, index: HnswIndex) -> bool:
        """Do one piece of what can wait; False: there is none."""
        if self._rebuild is None and index.needs_rebuild:
            self._begin_rebuild(index)
        elif index.unwiped:
            started = self._clock()
            index.wipe()
            with self._lock:
                self._lock.notify_all()
                if not self._dirty and not self._stopping and not self._erasers:
                    self._lock.wait(WIPE_REST * (self._clock() - started))
        elif self._measurement is not None or self._measure_due(index):
            self._measure(index)
        elif self._rebuild is None and self._worth(SNAPSHOT_SHARE, SNAPSHOT_CHANGES_MIN):
            self._save(index, lambda: not self._stopping)
        else:
            return False
        return True

    def _begin_rebuild(self, index: HnswIndex) -> None:
        _log.info(
            "index rebuild begins: %d vectors, %.0f %% of the nodes are deleted",
            index.live,
            100 * index.deleted_share,
        )
        rebuild = threading.Thread(
            target=self._scrub, args=(index,), name="pillion-index-rebuild", daemon=True
        )
        with self._lock:
            self._rebuild = rebuild
        rebuild.start()

    def _scrub(self, index: HnswIndex) -> None:
        started = self._clock()
        try:
            if index.scrub(lambda: not self._stopping):
                _log.info("index rebuilt in %.1f s", self._clock() - started)
        finally:
            with self._lock:
                self._rebuild = None
                self._woken = True
                # The graph is another one: worth a snapshot, and to be measured.
                self._unsaved = self._unmeasured = max(index.live, SNAPSHOT_CHANGES_MIN)
                self._lock.notify_all()

    def _worth(self, share: float, changes_min: int) -> bool:
        """Whether enough has changed since the last snapshot, or since there was none."""
        if self._snapshots is None or self.covered <= self.saved_revision:
            return False
        changes_min = max(changes_min, int(share * self.vectors))
        if self.saved_revision == 0 and not self._save_failed:
            return True
        return self._unsaved >= changes_min

    def _save(self, index: HnswIndex, go_on: Callable[[], bool]) -> None:
        if self._snapshots is None or self._space is None:
            return
        unsaved = self._unsaved
        rows = self._recall.rows() if self._recall is not None else []
        saved = self._snapshots.save(self._space, lambda: self._captured(index), rows, go_on)
        # Where it can't be written it is not tried again before as much has changed once more; but
        # a save that was given up in order to stop may be made in the time that is left.
        if saved or not self._stopping:
            self._unsaved -= unsaved
            self._save_failed = not saved

    def _captured(self, index: HnswIndex) -> Captured | None:
        revision = self.covered
        if revision == 0:
            return None
        state, slots, live = index.capture()
        if not state.count:
            return None
        with self._lock:
            # Their rows are of another memory by now, or of none, or about to be.
            stale = np.fromiter((*self._dirty, *self._in_hand), dtype=np.uint32)
        known = live & ~np.isin(slots, stale)
        ids = np.zeros((state.count, 16), dtype=np.uint8)
        ids[known] = ids_by_slot(self._table, slots[known])
        state.discard(live & ~ids.any(axis=1))
        return Captured(state, ids, revision)

    def _measure_due(self, index: HnswIndex) -> bool:
        if not index.live or self._rebuild is not None:
            return False
        return not self._measured or self._unmeasured >= max(1, MEASURE_SHARE * index.live)

    def _measure(self, index: HnswIndex) -> None:
        """Ask one more query of the measurement under way."""
        if self._measurement is None:
            self._measurement = RecallMeasurement(index, self._table, seed=self.covered)
            self._unmeasured, self._measured = 0, True
        if self._measurement.step():
            return
        measured, self._measurement = self._measurement.table(), None
        if measured is not None:
            self._recall = measured
            _log.info(
                "index measured: effort %s finds %.2f of the 10 nearest",
                measured.effort_for(RECALL_TARGET_DEFAULT, 10),
                RECALL_TARGET_DEFAULT,
            )
