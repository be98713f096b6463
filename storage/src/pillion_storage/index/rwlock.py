"""A fair readers-writer lock: first come, first served, neighbouring readers together.

Invariants, all guarded by `_condition`:
- `_writing` implies `_readers == 0`.
- Whoever waits has a ticket in `_queue`; only the head may enter.
- After every change that could let the head in, all waiters are told.

Neither side starves: a writer waits for the readers before it, a reader for the writers before it.
Not re-entrant: a thread that asks for a lock it holds may wait for itself for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class ReadWriteLock:
    """Many readers or one writer."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._queue: deque[object] = deque()
        self._readers = 0
        self._writing = False

    @property
    def waiting(self) -> int:
        """How many threads wait right now; for tests and metrics."""
        with self._condition:
            return len(self._queue)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold the lock together with other readers."""
        with self._condition:
            self._enter(lambda: not self._writing)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone."""
        with self._condition:
            self._enter(lambda: not self._writing and self._readers == 0)
            self._writing = True
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()

    def _enter(self, may_enter: Callable[[], bool]) -> None:
        """Wait for one's turn. `_condition` is held on entry and on return."""
        if not self._queue and may_enter():
            return
        ticket = object()
        self._queue.append(ticket)
        try:
            self._condition.wait_for(lambda: self._queue[0] is ticket and may_enter())
        finally:
            # Also when the wait is interrupted: a ticket left behind would block everybody.
            self._queue.remove(ticket)
            self._condition.notify_all()
