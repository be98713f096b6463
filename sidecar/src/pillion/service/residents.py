"""The partitions in memory: loaded on first use, once, however many ask at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

from pillion.service.resident import Resident

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.service.partitions import KeySpaces


class Residents:
    """Loads partitions and hands them out. Safe to share between threads."""

    def __init__(self, store: Store, keys: KeySpaces, *, index_from: int) -> None:
        self._store = store
        self._keys = keys
        self._index_from = index_from
        self._lock = threading.Lock()
        self._loaded: dict[Partition, Future[Resident]] = {}

    def get(self, partition: Partition) -> Resident:
        """Return a partition, loading it if need be. The first caller loads, the others wait."""
        with self._lock:
            future = self._loaded.get(partition)
            mine = future is None
            if future is None:
                future = self._loaded[partition] = Future()
        if not mine:
            return future.result()
        try:
            resident = Resident(
                self._store, partition, self._keys.of(partition), index_from=self._index_from
            )
        except BaseException as error:
            with self._lock:
                del self._loaded[partition]
            future.set_exception(error)
            raise
        future.set_result(resident)
        return resident

    def peek(self, partition: Partition) -> Resident | None:
        """Return a partition if it is in memory."""
        future = self._loaded.get(partition)
        return future.result() if future is not None and future.done() else None

    def close(self) -> None:
        """Stop the work of every partition in memory."""
        with self._lock:
            loaded = list(self._loaded.values())
            self._loaded.clear()
        for future in loaded:
            if future.done() and future.exception() is None:
                future.result().close()
