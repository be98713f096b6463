"""How many vectors each partition still waits for, counted without looking.

Invariant: a partition's count is what its ``q`` records are, because the count is taken from the
store before this process first commits to the partition, and every commit of this process adds
its own difference. (The store belongs to one process.)
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pillion_storage.keys import prefix_end

from pillion.service.vectors import PENDING

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.scope import Partition

COUNT_STEP = 10_000


class PendingVectors:
    """Counts of vectors to be made, and a bell for whoever makes them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: dict[Partition, int] = {}
        self._bell = threading.Condition(self._lock)
        self._awake = False
        self._skipped: set[Partition] = set()

    def load(self) -> None:
        """Count every partition of the store. Called once, before the first commit."""
        for partition in self._store.partitions():
            self._counts[partition] = self._counted(partition)

    def _counted(self, partition: Partition) -> int:
        total = 0
        start: bytes | None = PENDING
        while start is not None:
            page = self._store.scan(
                partition, start, prefix_end(PENDING), limit=COUNT_STEP, keys_only=True
            )
            total += len(page.rows)
            start = page.next_start
        return total

    def count(self, partition: Partition) -> int:
        """Return how many vectors the partition waits for."""
        # The maker may be done with a commit's vectors before ``add`` is told of them.
        return max(0, self._counts.get(partition, 0))

    def add(self, partition: Partition, difference: int) -> None:
        """Take a commit's difference into account, and wake the maker of vectors."""
        if difference == 0:
            return
        with self._bell:
            self._counts[partition] = self._counts.get(partition, 0) + difference
            if difference > 0:
                self._bell.notify()

    def wait(self, timeout_seconds: float) -> list[Partition]:
        """Return the partitions with vectors to make, waiting for one if there is none."""
        with self._bell:
            if not self._awake and not self._waiting():
                self._bell.wait(timeout_seconds)
            return self._waiting()

    def _waiting(self) -> list[Partition]:
        return [
            partition
            for partition, count in self._counts.items()
            if count > 0 and partition not in self._skipped
        ]

    def skip(self, partition: Partition) -> None:
        """Name this partition to the maker no more: it cannot make its vectors."""
        with self._bell:
            self._skipped.add(partition)

    def resume(self, partition: Partition) -> None:
        """Name this partition to the maker again: it may be able to make its vectors now."""
        with self._bell:
            if partition in self._skipped:
                self._skipped.discard(partition)
                self._bell.notify()

    def wake(self) -> None:
        """Never let the maker of vectors wait again, so that it sees that it is to stop."""
        with self._bell:
            self._awake = True
            self._bell.notify_all()
