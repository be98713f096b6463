"""The partitions in memory: loaded on first use, once, however many ask at the same time.

Together they may take a budget of memory. Beyond it those leave that were not used for longest,
but never one that is in use, nor the one that was used last: a partition larger than the budget is
served like any other. Nothing is lost with them: they are caches of the store. What tables of the
past take (`past_tables`) counts too: partitions leave for them.

Invariants:
  - ``_lock`` guards ``_loaded`` and everything in it; it is not held while one is loaded or closed.
  - ``_loaded`` is in the order of use, the latest last.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from pillion.domain.indexed_text import EpisodeIndexing
from pillion.service.resident import SAVE_SECONDS, Resident

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.accesses import Accesses
    from pillion.service.index_snapshots import IndexSnapshots
    from pillion.service.partitions import KeySpaces

# Uses after which a partition is measured again: it grows as it is written to, and measuring takes
# as long as a look at each row.
USES_BETWEEN_MEASURES: Final = 256


class _Held:
    """A partition in memory, or on its way there."""

    __slots__ = ("bytes", "future", "since_measured", "users")

    def __init__(self) -> None:
        self.future: Future[Resident] = Future()
        self.users = 0
        self.bytes = 0
        self.since_measured = 0


class Residents:
    """Loads partitions and hands them out. Safe to share between threads.

    Attributes:
        loads: How many loads there were.
        evictions: How many partitions left for want of memory.
    """

    def __init__(
        self,
        store: Store,
        keys: KeySpaces,
        *,
        index_from: int,
        episode_indexing: EpisodeIndexing = EpisodeIndexing.CONTEXT,
        snapshots: IndexSnapshots | None = None,
        memory_bytes_max: int | None = None,
        accesses: Accesses,
    ) -> None:
        """``memory_bytes_max``: what all may take together; None: as much as there is."""
        self._accesses = accesses
        self._store = store
        self._keys = keys
        self._index_from = index_from
        self.episode_indexing = episode_indexing
        self._snapshots = snapshots
        self._memory_bytes_max = memory_bytes_max
        self._lock = threading.Lock()
        self._loaded: OrderedDict[Partition, _Held] = OrderedDict()
        self._over = False
        self._bytes_elsewhere = 0
        # One that leaves may write its index down first, which no search waits for.
        self._closing = ThreadPoolExecutor(1, thread_name_prefix="pillion-evict")
        self.loads = 0
        self.evictions = 0

    @contextlib.contextmanager
    def using(self, partition: Partition, deadline: Deadline | None = None) -> Iterator[Resident]:
        """Hand out a partition, which stays in memory meanwhile; load it if need be.

        The first caller loads, the others wait, each as long as its deadline allows. When the load
        fails, each of those who waited tries for itself: the failure may be over, and an exception
        is raised by one thread only.

        Raises:
            PillionError: DEADLINE_EXCEEDED when the load of another caller took too long.
        """
        held, resident = self._take(partition, deadline)
        try:
            yield resident
        finally:
            self._give_back(held)

    def get(self, partition: Partition) -> Resident:
        """Return a partition as `using` does; it may leave memory while it is looked at."""
        with self.using(partition) as resident:
            return resident

    def _take(self, partition: Partition, deadline: Deadline | None) -> tuple[_Held, Resident]:
        while True:
            with self._lock:
                held = self._loaded.get(partition)
                mine = held is None
                if held is None:
                    held = self._loaded[partition] = _Held()
                held.users += 1
                self._loaded.move_to_end(partition)
            if mine:
                return held, self._load(partition, held)
            try:
                failure = held.future.exception(
                    deadline.remaining_seconds() if deadline is not None else None
                )
            except TimeoutError:
                with self._lock:
                    held.users -= 1
                if deadline is not None:
                    deadline.check()
            else:
                if failure is None:
                    return held, held.future.result()

    def _made(self, partition: Partition) -> Resident:
        return Resident(
            self._store,
            partition,
            self._keys.of(partition),
            index_from=self._index_from,
            episode_indexing=self.episode_indexing,
            snapshots=self._snapshots,
            accesses=self._accesses,
        )

    def _load(self, partition: Partition, held: _Held) -> Resident:
        try:
            resident = self._made(partition)
        except BaseException as error:
            with self._lock:
                if self._loaded.get(partition) is held:  # it is not where all were closed meanwhile
                    del self._loaded[partition]
            held.future.set_exception(error)
            raise
        size = resident.memory_bytes
        with self._lock:
            held.bytes = size
            self.loads += 1
            leaving = self._make_room()
        held.future.set_result(resident)
        self._close_later(leaving)
        return resident

    def _give_back(self, held: _Held) -> None:
        measure = False
        leaving: list[Resident] = []
        with self._lock:
            held.users -= 1
            held.since_measured += 1
            if held.since_measured >= USES_BETWEEN_MEASURES:
                held.since_measured = 0
                measure = True
            elif self._over:
                leaving = self._make_room()
        if measure:
            size = held.future.result().memory_bytes
            with self._lock:
                held.bytes = size
                leaving = self._make_room()
        self._close_later(leaving)

    def count_elsewhere(self, grown: int) -> None:
        """Count bytes that something else took, or gave back where it is negative."""
        with self._lock:
            self._bytes_elsewhere += grown
            leaving = self._make_room() if grown > 0 else []
        self._close_later(leaving)

    def _make_room(self) -> list[Resident]:
        """Take out those that must leave, and return them. The lock is held."""
        if self._memory_bytes_max is None:
            return []
        taken = self._bytes_elsewhere + sum(one.bytes for one in self._loaded.values())
        excess = taken - self._memory_bytes_max
        if excess <= 0:
            self._over = False
            return []
        leaving = []
        last = next(reversed(self._loaded), None)
        for partition, held in list(self._loaded.items()):
            if excess <= 0 or partition == last:
                break
            if held.users or not held.future.done():
                continue
            del self._loaded[partition]
            leaving.append(held.future.result())
            excess -= held.bytes
        self._over = excess > 0
        self.evictions += len(leaving)
        return leaving

    def _close_later(self, leaving: list[Resident]) -> None:
        for resident in leaving:
            # Where everything is being closed, there is nobody left to hand it to.
            with contextlib.suppress(RuntimeError):
                self._closing.submit(resident.close)

    def rebuild(self, partition: Partition) -> None:
        """Build a partition anew from the store, if it is in memory, and forget its snapshot.

        Meanwhile the former one answers, its index as it is; it leaves once the new one is there.
        """
        held, former = self._take(partition, None)
        try:
            former.view.ann.stop()  # nothing is written down any more; it still answers
            if self._snapshots is not None:
                self._snapshots.drop(partition, self._store.head(partition).revision)
            fresh = _Held()
            resident = self._made(partition)
            fresh.bytes = resident.memory_bytes
            fresh.future.set_result(resident)
            with self._lock:
                mine = self._loaded.get(partition) is held
                if mine:
                    self._loaded[partition] = fresh
            if not mine:  # it left meanwhile, and so does this
                resident.view.ann.stop()
        finally:
            self._give_back(held)

    def peek(self, partition: Partition) -> Resident | None:
        """Return a partition if it is in memory. It does not count as a use."""
        held = self._loaded.get(partition)
        if held is None or not held.future.done() or held.future.exception() is not None:
            return None
        return held.future.result()

    def close(self) -> None:
        """Stop the work of every partition in memory; together they may write for a while."""
        until = time.monotonic() + SAVE_SECONDS
        with self._lock:
            loaded = list(self._loaded.values())
            self._loaded.clear()
        for held in loaded:
            if held.future.done() and held.future.exception() is None:
                held.future.result().close(max(0.0, until - time.monotonic()))
        self._closing.shutdown()
