"""Goes on with long work, a bounded part at a time, until none is left.

The work is in the store (``o`` records), so a crash loses nothing: the next start goes on where
the last commit was. Operations take turns. A stop waits for the part at hand only.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from pillion_storage.api import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pillion.domain.scope import Partition
    from pillion.service.operations import RunningOperations

IDLE_SECONDS: Final = 30.0
BACKOFF_FIRST_SECONDS: Final = 0.2
BACKOFF_MAX_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class OperationsJob:
    """One thread that does long work. ``start`` once, ``stop`` once."""

    def __init__(
        self, running: RunningOperations, advance: Callable[[Partition, UUID], bool]
    ) -> None:
        self._running = running
        self._advance = advance
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pillion-operations", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the part at hand; the next start goes on with the rest."""
        self._stopping.set()
        self._running.wake()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        loaded = False
        backoff = BACKOFF_FIRST_SECONDS
        while not self._stopping.is_set():
            failed: Exception | None = None
            goes_on = False
            try:
                if not loaded:
                    self._running.load()
                    loaded = True
                for partition, operation_id in self._running.wait(IDLE_SECONDS):
                    if self._stopping.is_set():
                        return
                    try:
                        goes_on |= self._advanced(partition, operation_id)
                    except StoreClosed:
                        raise
                    except Exception as error:  # noqa: BLE001  (others must not wait for one)
                        failed = error
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001  (the job outlives whatever goes wrong)
                failed = error
            if failed is None:
                backoff = BACKOFF_FIRST_SECONDS
            elif not goes_on:
                _log.warning(
                    "long work is late: %s; trying again in %.1f s", type(failed).__name__, backoff
                )
                self._stopping.wait(backoff)
                backoff = min(2 * backoff, BACKOFF_MAX_SECONDS)

    def _advanced(self, partition: Partition, operation_id: UUID) -> bool:
        """Do a part of an operation; return whether there is more to do."""
        if self._advance(partition, operation_id):
            return True
        self._running.drop(partition, operation_id)
        return False
