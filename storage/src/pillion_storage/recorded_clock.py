"""Recorded time: the clock that commits are stamped with.

Invariants:

* The instants of a partition's revisions increase, so an instant that was given out as that of a
  revision means this revision ever after.
* Once a reader was told what was recorded by an instant, no commit is stamped with that instant or
  an earlier one. Without this a commit within the same microsecond, or one after the clock was set
  back, would change an answer about the past. It holds for as long as the store is open; across a
  restart it is as good as the machine's clock.

Not safe to share between threads: each engine has one thread or lock that commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class RecordedClock:
    """Gives the instants, in microseconds UTC, that commits are recorded at."""

    def __init__(self, clock_us: Callable[[], int]) -> None:
        self._clock_us = clock_us
        self._answered = 0

    def stamp(self, last: int) -> int:
        """Give the instant of a commit; ``last`` is that of the partition's commit before it."""
        return max(self._clock_us(), last + 1, self._answered + 1)

    def answer(self, instant: int) -> None:
        """Take note that a reader is told what was recorded by an instant.

        One that the clock has not reached promises nothing, or a reader could move recorded time.
        """
        self._answered = max(self._answered, min(instant, self._clock_us()))
