"""Consumers that take nothing: whoever hands something over blocks, and another thread must look.

Invariants:
  - an entry is there exactly while something is being handed over;
  - each entry's ``cut_off`` is called at most once;
  - the thread runs from the first entry until ``close``, and waits without end while none is there.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger(__name__)


class Stalls:
    """Cuts off consumers that have not taken what they were handed within a time."""

    def __init__(self, monotonic: Callable[[], float], *, stall_seconds: float) -> None:
        self._monotonic = monotonic
        self._stall_seconds = stall_seconds
        self._changed = threading.Condition()
        self._handing: dict[object, tuple[float, Callable[[], None]]] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watching(self, cut_off: Callable[[], None]) -> Iterator[None]:
        """Call ``cut_off`` when what is done within takes too long."""
        entry = object()
        with self._changed:
            self._handing[entry] = (self._monotonic() + self._stall_seconds, cut_off)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._run, name="pillion-watch-stalls", daemon=True
                )
                self._thread.start()
            if len(self._handing) == 1:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._handing.pop(entry, None)

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = self._monotonic()
                late = [one for one, (due, _) in self._handing.items() if due <= now]
                for one in late:
                    _, cut_off = self._handing.pop(one)
                    _log.warning("a watch was cut off: its consumer takes nothing")
                    cut_off()
                due = min((due for due, _ in self._handing.values()), default=None)
                # An entry that comes meanwhile is due later than any that is there.
                self._changed.wait(None if due is None else max(0.0, due - now))
