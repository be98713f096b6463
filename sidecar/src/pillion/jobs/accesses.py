"""Writes down how often memories were used, now and then and at the end."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from pillion_storage.api import StoreClosed, StoreError

if TYPE_CHECKING:
    from pillion.service.accesses import Accesses, AccessFlusher

# How long a stop waits for the flush at hand.
STOP_SECONDS: Final = 5.0
# A flush that failed for want of room, say, is not tried again and again.
PAUSE_SECONDS: Final = 1.0

_log = logging.getLogger(__name__)


class AccessJob:
    """One thread that flushes. ``start`` at most once, ``stop`` once."""

    def __init__(
        self, accesses: Accesses, flusher: AccessFlusher, interval_seconds: float | None
    ) -> None:
        """``interval_seconds`` None: there is a flush at the end only."""
        self._accesses = accesses
        self._flusher = flusher
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pillion-accesses", daemon=True)

    def start(self) -> None:
        """Start the thread, if there is to be one."""
        if self._interval_seconds is not None:
            self._thread.start()

    def stop(self) -> None:
        """Stop, and flush what is left."""
        self._stopping.set()
        self._accesses.crowded.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        try:
            self._flusher.flush_all()
        except StoreError as error:
            level = logging.DEBUG if isinstance(error, StoreClosed) else logging.WARNING
            _log.log(level, "the last uses are not written down: %s", type(error).__name__)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._accesses.crowded.wait(self._interval_seconds)
            if self._stopping.is_set():
                return
            try:
                self._flusher.flush_all()
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001  (the job outlives whatever goes wrong)
                _log.warning("uses could not be written down: %s", type(error).__name__)
            self._stopping.wait(PAUSE_SECONDS)
