"""How much work is let in: a bounded pool of threads for each kind of work.

Reads, writes, streams and control calls never wait for each other's threads. A pool whose queue
is full refuses at once: a call that would wait longer than its caller only makes others late.

  reads    few threads: they hold the interpreter's lock, and more of them only contend for it
  writes   many threads: each mostly waits for a flush to disk, which all that wait share
  streams  an open stream holds a thread for as long as it is open, so streams are few and capped
  watches  streams that mostly wait, for days: apart, so that they never keep an import out
  reflection  what gRPC tools ask first: streams too, so they get no thread of the others, where a
           forgotten one would be missing, least of all the one that answers health
  control  health, server info, statistics and refusals: free even when everything else is full
"""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from pillion.transport.capabilities import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CONTROL_THREADS: Final = 2
_REFLECTION_THREADS: Final = 1
_REFLECTION_WAITING_MAX: Final = 16
# Calls that wait beyond those at work: some tens of milliseconds of reads or writes.
_READS_WAITING_MAX: Final = 256
_WRITES_WAITING_MAX: Final = 512
_CONTROL_WAITING_MAX: Final = 256


class BoundedPool(ThreadPoolExecutor):
    """A thread pool that knows how much it has taken on.

    gRPC hands calls to it from one thread, so asking `is_full` before handing over is no race.
    """

    def __init__(self, name: str, *, threads: int, waiting_max: int) -> None:
        super().__init__(max_workers=threads, thread_name_prefix=f"pillion-{name}")
        self.taken_max: Final = threads + waiting_max
        self._taken = 0
        self._taken_lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether another call should be refused."""
        return self._taken >= self.taken_max

    @property
    def is_idle(self) -> bool:
        """Whether no call is waiting or at work."""
        return self._taken == 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401
        """Queue a call; it counts as taken until it has ended or was cancelled."""
        with self._taken_lock:
            self._taken += 1
        try:
            future = super().submit(fn, *args, **kwargs)
        except RuntimeError:  # the pool is shut down
            self._release()
            raise
        future.add_done_callback(self._release)
        return future

    def _release(self, _: Future[Any] | None = None) -> None:
        with self._taken_lock:
            self._taken -= 1


class Pools:
    """The pools of one server."""

    def __init__(self, *, reads: int, writes: int, streams: int, watchers: int) -> None:
        self._by_work: Mapping[Work, BoundedPool] = {
            Work.READ: BoundedPool("read", threads=reads, waiting_max=_READS_WAITING_MAX),
            Work.WRITE: BoundedPool("write", threads=writes, waiting_max=_WRITES_WAITING_MAX),
            # A stream that waits for a thread would look like a hanging server: none waits.
            Work.STREAM: BoundedPool("stream", threads=streams, waiting_max=0),
            Work.WATCH: BoundedPool("watch", threads=watchers, waiting_max=0),
            Work.REFLECTION: BoundedPool(
                "reflection", threads=_REFLECTION_THREADS, waiting_max=_REFLECTION_WAITING_MAX
            ),
            Work.CONTROL: BoundedPool(
                "control", threads=_CONTROL_THREADS, waiting_max=_CONTROL_WAITING_MAX
            ),
        }

    def __getitem__(self, work: Work) -> BoundedPool:
        return self._by_work[work]

    @property
    def taken_max(self) -> int:
        """How many calls all pools together take on."""
        return sum(pool.taken_max for pool in self._by_work.values())

    @property
    def are_idle(self) -> bool:
        """Whether no call is waiting or at work in any of them."""
        return all(pool.is_idle for pool in self._by_work.values())

    def close(self) -> None:
        """Let go of the threads; those at work end on their own."""
        for pool in self._by_work.values():
            pool.shutdown(wait=False, cancel_futures=True)
