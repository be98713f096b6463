"""The writer: one thread that commits what is waiting together, with one fsync.

Invariants:

* Only this thread opens write transactions and changes ``heads``.
* Every job taken from the queue gets an answer, whatever goes wrong: a result, or an error.
* A job is answered only after the transaction that carries it is on disk.
* An answer is held back at most while the next group is applied, and not at all if nothing waits.
  The engine lets go of the GIL in every call, so callers that wake up while a group is applied
  make each call many times dearer. While a group is flushed they get in nobody's way.
* A job that fails takes nothing with it: the shared transaction aborts, and each job of the group
  runs again alone. Nothing had been answered, so nothing is answered twice.
* The published ``heads`` are never changed in place, so readers need no lock.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import lmdb

from pillion_storage.errors import (
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFailed,
    StoreFull,
)
from pillion_storage.lmdb.environment import Environment, no_space
from pillion_storage.lmdb.unit import Unit
from pillion_storage.recorded_clock import RecordedClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pillion_storage.api import Partition, StoreSettings
    from pillion_storage.lmdb.records import HeadRow

T = TypeVar("T")

# One group: enough to share an fsync widely, small enough to answer the first soon.
_GROUP_JOBS_MAX = 256
_GROUP_BYTES_MAX = 8 << 20
# Bounds the memory of the cache (about 300 bytes each); a miss costs one read.
_HEADS_MAX = 65_536
_READER_CHECK_SECONDS = 60.0
# An answer waits no longer than this, and the job at hand, for the next group to be applied.
_ANSWER_DELAY_SECONDS = 0.005
# After these the engine's state can't be trusted: only reopening (or a restore) helps.
_FATAL = (
    lmdb.PanicError,
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.BadTxnError,
)
# What a group may write, generously: values twice (old ones move), a page per row at worst.
_WRITE_FACTOR = 4
_WRITE_BYTES_MIN = 4 << 20

logger = logging.getLogger(__name__)


class Reply:
    """What a caller that only waits needs of a Future, at a third of the cost: one lock.

    Held from the start, released when there is an answer.
    """

    __slots__ = ("_answered", "_error", "_lock", "_outcome")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answered = False
        self._outcome: Any = None
        self._error: BaseException | None = None

    def set_running_or_notify_cancel(self) -> bool:
        """Nobody can cancel: always True."""
        return True

    def done(self) -> bool:
        """Return whether there is an answer."""
        return self._answered

    def set_result(self, outcome: object) -> None:
        """Answer with an outcome."""
        self._outcome = outcome
        self._answered = True
        self._lock.release()

    def set_exception(self, error: BaseException) -> None:
        """Answer with an error."""
        self._error = error
        self._answered = True
        self._lock.release()

    def wait(self) -> Any:  # noqa: ANN401  (as a Future's result)
        """Wait for the answer; return the outcome or raise the error. Called once."""
        self._lock.acquire()
        if self._error is not None:
            raise self._error
        return self._outcome


@dataclass(slots=True)
class Job:
    """Work for the writer: a function of the unit of work, and who waits for its result."""

    apply: Callable[[Unit], Any]
    future: Future[Any] | Reply
    size: int
    frees_space: bool  # may use the reserve beyond the limit
    apart: Callable[[], Any] | None = None  # instead of ``apply``, outside of any transaction


class Writer:
    """The queue, the thread, and the heads that it publishes."""

    def __init__(
        self,
        environment: Environment,
        settings: StoreSettings,
        on_commit: Callable[[Iterable[Partition]], None],
    ) -> None:
        self.heads: dict[Partition, HeadRow] = {}
        self.commits = 0
        self.groups = 0
        self._environment = environment
        self._settings = settings
        self._clock = RecordedClock(settings.clock_us)
        self._on_commit = on_commit
        self._failure: str | None = None
        self._jobs: deque[Job] = deque()
        self._queued_bytes = 0
        self._closing = False
        self._idle = False  # the thread waits for work
        self._settled: deque[tuple[Job, Any]] = deque()  # on disk, not answered yet
        self._answer_by = 0.0
        self._waiting = threading.Condition(threading.Lock())
        self._readers_checked = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="pillion-store-writer", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    def submit(
        self, apply: Callable[[Unit], T], *, size: int = 0, frees_space: bool = False
    ) -> Future[T]:
        """Queue a job. Raises StoreBusy, StoreClosed or StoreFailed at once."""
        future: Future[T] = Future()
        self._queue(Job(apply, future, size, frees_space))
        return future

    def do(self, apply: Callable[[Unit], T], *, size: int = 0) -> T:
        """Queue a job and wait for its result. Raises as ``submit`` and its future do."""
        reply = Reply()
        self._queue(Job(apply, reply, size, frees_space=False))
        result: T = reply.wait()
        return result

    def apart(self, act: Callable[[], T]) -> T:
        """Run something in the writer's thread while no transaction of its is open; wait for it.

        Raises as ``act`` does, and as ``submit`` at once.
        """
        reply = Reply()
        self._queue(Job(_nothing, reply, 0, frees_space=False, apart=act))
        result: T = reply.wait()
        return result

    def settle(self, instant: int) -> None:
        """Wait for the commits under way, and stamp none hereafter with an instant up to this one.

        A store that failed commits no more, so there is nothing to wait for.
        """
        with contextlib.suppress(StoreFailed):
            self.do(lambda unit: unit.clock.answer(instant))

    def _queue(self, job: Job) -> None:
        size = job.size
        with self._waiting:
            if self._closing:
                raise StoreClosed("the store is closed")
            if self._failure is not None:
                raise StoreFailed(self._failure)
            if len(self._jobs) >= self._settings.queue_batches_max or (
                self._jobs and self._queued_bytes + size > self._settings.queue_bytes_max
            ):
                raise StoreBusy(f"{len(self._jobs)} batches are waiting; retry later")
            self._jobs.append(job)
            self._queued_bytes += size
            if self._idle:
                self._waiting.notify()

    def close(self) -> None:
        """Finish what is queued, then stop."""
        with self._waiting:
            self._closing = True
            self._waiting.notify()
        self._thread.join()

    def _run(self) -> None:
        while (group := self._take()) is not None:
            try:
                self._answer(group)
            except BaseException as error:  # noqa: BLE001 -- a bug here must not hang callers
                self._give_up(group, error)
            self._check_readers()

    def _give_up(self, group: list[Job], error: BaseException) -> None:
        self._failure = f"the writer failed ({error!r}); reopen the store"
        logger.critical("the store takes no more writes", exc_info=error)
        for job in group:
            if not job.future.done():
                job.future.set_exception(StoreFailed(self._failure))
        self._hand_out()

    def _check_readers(self) -> None:
        now = time.monotonic()
        if now - self._readers_checked < _READER_CHECK_SECONDS:
            return
        self._readers_checked = now
        try:
            self._environment.check_readers()
        except lmdb.Error as error:
            logger.warning("stale readers could not be checked: %s", error)

    def _take(self) -> list[Job] | None:
        """Take what is waiting, within the bounds of a group; None when closed and done."""
        group: list[Job] = []
        size = 0
        if not self._jobs:  # only this thread takes jobs, so no lock is needed to ask
            self._hand_out()
        with self._waiting:
            if not self._jobs:
                if self._closing:
                    return None
                self._idle = True
                self._waiting.wait(_READER_CHECK_SECONDS)
                self._idle = False
            jobs = self._jobs
            while jobs and len(group) < _GROUP_JOBS_MAX:
                if group and (size + jobs[0].size > _GROUP_BYTES_MAX or jobs[0].apart):
                    break
                job = jobs.popleft()
                size += job.size
                self._queued_bytes -= job.size
                group.append(job)
                if job.apart:
                    break
        return [job for job in group if job.future.set_running_or_notify_cancel()]

    def _answer(self, group: list[Job]) -> None:
        """Commit a group and settle its answers; if that can't be done together, job by job."""
        if not group:
            return
        if group[0].apart is not None:
            self._run_apart(group[0], group[0].apart)
            return
        try:
            outcomes = self._commit(group)
        except Exception as error:  # noqa: BLE001 -- every waiting caller must get an answer
            if len(group) > 1 and self._failure is None and not self._is_fatal(error):
                for job in group:
                    self._answer([job])
                return
            problem = self._explain(error)
            for job in group:
                job.future.set_exception(problem)
            return
        self._settled.extend(zip(group, outcomes, strict=True))
        self._answer_by = time.monotonic() + _ANSWER_DELAY_SECONDS

    def _run_apart(self, job: Job, act: Callable[[], Any]) -> None:
        self._hand_out()
        if self._failure is not None:
            job.future.set_exception(StoreFailed(self._failure))
            return
        try:
            outcome = act()
        except Exception as error:  # noqa: BLE001 -- who waits must get it
            job.future.set_exception(self._explain(error))
        else:
            job.future.set_result(outcome)

    def _hand_out(self) -> None:
        """Answer the jobs that are on disk."""
        settled = self._settled
        while settled:
            job, outcome = settled.popleft()
            if isinstance(outcome, StoreError):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)

    def _commit(self, group: list[Job]) -> list[Any]:
        """Commit in one transaction, growing the map as needed."""
        if self._failure is not None:
            raise StoreFailed(self._failure)
        retried = False
        while True:
            try:
                return self._transact(group)
            except lmdb.MapFullError:
                if self._environment.grow():
                    continue
                if not all(job.frees_space for job in group):
                    raise
                with self._environment.reserve():
                    return self._transact(group)
            except lmdb.Error as error:
                # A failed write aborts the transaction before the page that would make it valid.
                # If there is space again the disk was full for a moment: once more. If it fails
                # again, or the engine panics because that page was hit, this is fatal.
                if _code(error) != errno.EIO or retried:
                    raise
                size = sum(job.size for job in group)
                if self._environment.disk_is_full(_WRITE_FACTOR * size + _WRITE_BYTES_MIN):
                    raise StoreFull("the disk is full: make room on it") from error
                retried = True

    def _transact(self, group: list[Job]) -> list[Any]:
        environment = self._environment
        try:
            with environment.begin_write() as txn:
                unit = Unit(txn, environment.databases, self.heads, self._settings, self._clock)
                outcomes = []
                for job in group:
                    if self._settled and time.monotonic() > self._answer_by:
                        self._hand_out()
                    outcomes.append(job.apply(unit))
                unit.finish()
                self._hand_out()  # those who wake up use the time of the flush
        finally:
            self._hand_out()  # also when there was nothing to flush
        # From here on it is on disk: leaving the block without an error committed and flushed.
        if len(self.heads) + len(unit.heads) > _HEADS_MAX:
            self.heads = dict(unit.heads)
        else:
            self.heads.update(unit.heads)
        self.groups += 1
        self.commits += unit.commits
        try:
            self._on_commit(unit.heads)
        except Exception:  # the group is on disk: failing now would run it a second time
            logger.exception("those who wait for changes could not be woken")
        return outcomes

    @staticmethod
    def _is_fatal(error: Exception) -> bool:
        return isinstance(error, _FATAL) or _code(error) == errno.EIO

    def _explain(self, error: Exception) -> Exception:
        """Turn what went wrong into what the callers are told."""
        if isinstance(error, lmdb.Error) and no_space(error):
            return StoreFull(f"no space for this batch ({error}); trim, or raise the limit")
        if isinstance(error, StoreError):
            return error
        if self._is_fatal(error):
            self._failure = f"the engine failed ({error}); reopen the store"
            logger.critical("the store takes no more writes: %s", error)
            return StoreFailed(self._failure)
        logger.error("a batch failed", exc_info=error)
        return error


def _nothing(_unit: Unit) -> None:
    """Do nothing: what a job apart does in a transaction."""


def _code(error: Exception) -> int:
    code = getattr(error, "code", 0)
    return code if isinstance(code, int) else 0
