"""Whole partitions as they were, for searches of the past by words: built once for all who want it.

Such a table takes as much memory as the partition itself and is built in Python, memory by memory.
So those who ask about the same revision at the same time share one, as do all searches of one
Recall; few are there at once; and what they take counts in the budget of the partitions in memory,
which leave for them. A table goes with the last one who holds it.

Invariant: ``_lock`` guards ``_there`` and everything in it; it is not held while one is built.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pillion_ranker as ranker

    from pillion.domain.scope import Partition
    from pillion.ports import Deadline

    Build = Callable[[Callable[[int], None]], ranker.Table]

TABLES_MAX: Final = 2
"""Tables at once, whatever they are of."""

WAIT_SECONDS_MAX: Final = 5.0
"""How long a search waits for its turn, if its deadline allows; then it is OVERLOADED."""

_RETRY_AFTER_MS: Final = 1000


class PastTable:
    """One partition at one revision, held by whoever has it from `PastTables.holding`."""

    def __init__(self, taken: Callable[[int], None]) -> None:
        self.users = 1
        self._taken = taken
        self._building = threading.Lock()
        self._table: ranker.Table | None = None
        self._bytes = 0

    def table(self, build: Build, deadline: Deadline) -> ranker.Table:
        """Return the table; whoever asks first builds it, the others wait.

        Where building fails, each of those who waited tries for itself.

        Args:
            build: Returns the table; tells, while it builds, how many bytes there are by now.
            deadline: Until when this caller waits.

        Raises:
            PillionError: DEADLINE_EXCEEDED; and what ``build`` raises.
        """
        if not self._building.acquire(timeout=max(0.0, deadline.remaining_seconds())):
            deadline.check()
            raise PillionError(Reason.DEADLINE_EXCEEDED, "another search was still building")
        try:
            if self._table is None:
                try:
                    self._table = build(self._grown)
                    self._grown(self._table.memory_bytes())
                except BaseException:
                    self._grown(0)
                    raise
            return self._table
        finally:
            self._building.release()

    def drop(self) -> None:
        """Let go of the table: nobody holds it any more."""
        self._table = None
        self._grown(0)

    def _grown(self, size: int) -> None:
        grown, self._bytes = size - self._bytes, size
        self._taken(grown)


class PastTables:
    """Hands out tables of the past. Safe to share between threads.

    Args:
        taken: Hears how many bytes more, or fewer, the tables take.
        tables_max: How many there may be at once.
        wait_seconds_max: How long anyone waits for one to go.
    """

    def __init__(
        self,
        taken: Callable[[int], None],
        *,
        tables_max: int = TABLES_MAX,
        wait_seconds_max: float = WAIT_SECONDS_MAX,
    ) -> None:
        self._taken = taken
        self._tables_max = tables_max
        self._wait_seconds_max = wait_seconds_max
        self._lock = threading.Condition()
        self._there: dict[tuple[Partition, int], PastTable] = {}

    @contextlib.contextmanager
    def holding(
        self, partition: Partition, revision: int, deadline: Deadline
    ) -> Iterator[PastTable]:
        """Hold the table of a partition at a revision; nothing is built yet.

        Who holds it and asks for the same again gets the same, without waiting.

        Raises:
            PillionError: OVERLOADED where too many others are there all the time;
                DEADLINE_EXCEEDED where the caller's deadline passes first.
        """
        place = partition, revision
        with self._lock:
            within = max(0.0, min(deadline.remaining_seconds(), self._wait_seconds_max))
            if not self._lock.wait_for(lambda: self._has_room(place), within):
                deadline.check()
                raise PillionError(
                    Reason.OVERLOADED,
                    "searches by words of other past states take all there is room for: try again, "
                    "or search without text",
                    retry_after_ms=_RETRY_AFTER_MS,
                )
            held = self._there.get(place)
            if held is None:
                held = self._there[place] = PastTable(self._taken)
            else:
                held.users += 1
        try:
            yield held
        finally:
            with self._lock:
                held.users -= 1
                is_last = held.users == 0
                if is_last:
                    del self._there[place]
                    self._lock.notify_all()
            if is_last:
                held.drop()

    def _has_room(self, place: tuple[Partition, int]) -> bool:
        return place in self._there or len(self._there) < self._tables_max
