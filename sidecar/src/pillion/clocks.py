"""The server's clock: the machine's, but it never goes back.

A machine's clock can be set back, while the server runs or between two runs. A statement without
a valid_from is dated "now"; dated before the statement that it follows, it would be taken for a
late arrival and the older value would stay current. So time goes on from the latest instant that
was given out or recorded, at half its pace, until the machine's clock has caught up.

A clock that was ahead once has dated what it has dated; time then goes on from there as well.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NS_PER_US = 1000
_NS_PER_SLOW_US = 2000


class SteadyClock:
    """A clock that never goes back. Safe to share between threads."""

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._lock = threading.Lock()
        self._last_us = 0
        self._last_at_ns = monotonic_ns()

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch, UTC."""
        with self._lock:
            steady_ns = self._monotonic_ns()
            slow_us = (steady_ns - self._last_at_ns) // _NS_PER_SLOW_US
            wall_us = self._wall_ns() // _NS_PER_US
            if wall_us >= self._last_us + slow_us:
                self._last_us = wall_us
                self._last_at_ns = steady_ns
            else:
                # Whole microseconds only: the rest is not to be lost by asking often.
                self._last_us += slow_us
                self._last_at_ns += slow_us * _NS_PER_SLOW_US
            return self._last_us

    def not_before(self, instant_us: int) -> None:
        """Go on from an instant, where the machine's clock is behind it."""
        with self._lock:
            if instant_us > self._last_us:
                self._last_us = instant_us
                self._last_at_ns = self._monotonic_ns()
