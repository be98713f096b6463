"""A few threads that call the embedder, so that nobody who waits for it waits without a limit.

Invariants, under ``_lock``:
- At most ``threads_max`` tasks run and at most ``queue_max`` wait; one more is refused at once.
- A future that was handed out is resolved: by its task, or by ``close``.

The threads are daemons and nobody joins them: an embedder that never answers keeps its thread,
and neither a caller nor the end of the process waits for that.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Generic, TypeVar

from pillion.domain.errors import PillionError, Reason
from pillion.embedders.errors import EmbedderError, EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

RETRY_AFTER_MS = 1_000


class EmbedderPool(Generic[T]):
    """Runs tasks in threads of its own. Safe to use from several threads."""

    def __init__(
        self, name: str, *, threads_max: int, queue_max: int, stall_seconds: float
    ) -> None:
        """Make a pool that starts its threads when it needs them.

        Args:
            name: Of the threads.
            threads_max: Tasks that run at once.
            queue_max: Tasks that wait for a thread.
            stall_seconds: When every thread has been busy with one task for so long, the embedder
                counts as stuck and new tasks are refused until a thread is back.
        """
        self._name = name
        self._threads_max = threads_max
        self._queue_max = queue_max
        self._stall_seconds = stall_seconds
        self._lock = threading.Condition()
        self._tasks: deque[tuple[Callable[[], T], Future[T]]] = deque()
        self._threads = 0
        self._since: dict[int, float] = {}  # by thread: when its task began
        self._closed = False

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Queue a task.

        Raises:
            PillionError: OVERLOADED when too many wait or the embedder is stuck; UNAVAILABLE after
                ``close``.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise _closing()
            if len(self._tasks) >= self._queue_max or self._stuck():
                raise PillionError(
                    Reason.OVERLOADED,
                    "the embedder does not keep up: try again, or search without text",
                    retry_after_ms=RETRY_AFTER_MS,
                )
            self._tasks.append((task, future))
            busy = len(self._since)
            if busy + len(self._tasks) > self._threads and self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(
                    target=self._run, name=f"{self._name}-{self._threads}", daemon=True
                ).start()
            self._lock.notify()
        return future

    def close(self) -> None:
        """Refuse what waits and what comes; the threads end with what they have in hand."""
        with self._lock:
            self._closed = True
            dropped = list(self._tasks)
            self._tasks.clear()
            self._lock.notify_all()
        for _, future in dropped:
            if future.set_running_or_notify_cancel():
                future.set_exception(_closing())

    def _stuck(self) -> bool:
        if len(self._since) < self._threads_max:
            return False
        return time.monotonic() - max(self._since.values()) > self._stall_seconds

    def _run(self) -> None:
        me = threading.get_ident()
        while True:
            with self._lock:
                while not self._tasks and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                task, future = self._tasks.popleft()
                self._since[me] = time.monotonic()
            _resolve(task, future)
            del task, future  # an idle thread keeps no texts
            with self._lock:
                del self._since[me]


def _resolve(task: Callable[[], T], future: Future[T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:  # noqa: BLE001  (it is raised where the result is wanted)
        future.set_exception(error)
    else:
        future.set_result(result)


def outcome(future: Future[T], seconds: float | None) -> T:
    """Return a task's result, waiting for it as long as ``seconds`` say; None: for ever.

    Raises:
        PillionError: DEADLINE_EXCEEDED when it takes longer; the task goes on.
        EmbedderError: As the task raised it, in an object of the caller's own, since several may
            wait for one task; EmbedderUnavailable for whatever else it raised.
    """
    timeout = None if seconds is None else max(0.0, seconds)
    if not wait((future,), timeout).done:
        raise PillionError(
            Reason.DEADLINE_EXCEEDED, "the embedder did not answer before the deadline"
        )
    error = future.exception()
    if error is not None:
        raise _anew(error) from error
    return future.result()


def _anew(error: BaseException) -> Exception:
    """Return another object that says the same: a raised one collects its raiser's traceback."""
    if not isinstance(error, EmbedderError | PillionError):
        return EmbedderUnavailable(f"the embedder failed with {type(error).__name__}")
    made = type(error).__new__(type(error), *error.args)
    made.args = error.args
    made.__dict__.update(error.__dict__)
    return made


def _closing() -> PillionError:
    return PillionError(Reason.UNAVAILABLE, "the server is stopping")
