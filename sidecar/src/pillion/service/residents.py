"""The partitions in memory: loaded on first use, once, however many ask at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pillion.service.resident import Resident

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.service.index_snapshots import IndexSnapshots
    from pillion.service.partitions import KeySpaces


class Residents:
    """Loads partitions and hands them out. Safe to share between threads."""

    def __init__(
        self,
        store: Store,
        keys: KeySpaces,
        *,
        index_from: int,
        snapshots: IndexSnapshots | None = None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._index_from = index_from
        self._snapshots = snapshots
        self._lock = threading.Lock()
        self._loaded: dict[Partition, Future[Resident]] = {}

    def get(self, partition: Partition) -> Resident:
        """Return a partition, loading it if need be. The first caller loads, the others wait.

        When the load fails, each of those who waited tries for itself: the failure may be over,
        and an exception is raised by one thread only.
        """
        while True:
            with self._lock:
                future = self._loaded.get(partition)
                if future is None:
                    mine = self._loaded[partition] = Future()
                    break
            if future.exception() is None:
                return future.result()
        try:
            resident = Resident(
                self._store,
                partition,
                self._keys.of(partition),
                index_from=self._index_from,
                snapshots=self._snapshots,
            )
        except BaseException as error:
            with self._lock:
                self._loaded.pop(partition, None)  # absent: closed meanwhile
            mine.set_exception(error)
            raise
        mine.set_result(resident)
        return resident

    def peek(self, partition: Partition) -> Resident | None:
        """Return a partition if it is in memory."""
        future = self._loaded.get(partition)
        if future is None or not future.done() or future.exception() is not None:
            return None
        return future.result()

    def close(self) -> None:
        """Stop the work of every partition in memory."""
        with self._lock:
            loaded = list(self._loaded.values())
            self._loaded.clear()
        for future in loaded:
            if future.done() and future.exception() is None:
                future.result().close()
