"""Who waits for which partition to change. Each waiter has an event of its own: no herd."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pillion_storage.api import Partition


class Waiters:
    """Events by partition."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[Partition, set[threading.Event]] = {}

    @contextmanager
    def waiting(self, partition: Partition) -> Iterator[threading.Event]:
        """Register an event that is set by the next change of the partition."""
        event = threading.Event()
        with self._lock:
            self._events.setdefault(partition, set()).add(event)
        try:
            yield event
        finally:
            with self._lock:
                events = self._events[partition]
                events.discard(event)
                if not events:
                    del self._events[partition]

    def wake(self, partitions: Iterable[Partition]) -> None:
        """Set the events of these partitions."""
        if not self._events:  # the usual case costs the writer nothing
            return
        with self._lock:
            for partition in partitions:
                for event in self._events.get(partition, ()):
                    event.set()

    def wake_all(self) -> None:
        """Set every event."""
        with self._lock:
            for events in self._events.values():
                for event in events:
                    event.set()
