"""Forgets what is past its window: history with the feed that tells its instants, request ids.

A sweep goes through the partitions one after another and asks the store to forget a little at a
time, so that writes get in between, and looks between any two steps whether it is to stop. It is
resumable by nature: what a sweep left is there for the next.

How old something is, is told by the machine's clock, but never faster than it really went by: a
clock that jumps ahead while the server runs would otherwise forget everything at once.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage.api import HistoryGone, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import Store, TrimReport

    from pillion.domain.scope import Partition
    from pillion.ports import Clock

# When the first sweep begins: the server has other things to do when it starts.
FIRST_SECONDS: Final = 5.0
# Revisions by which one step moves the end of history: some thousands of rows, tens of
# milliseconds of the writer's time in all, in the store's own small transactions.
REVISIONS_STEP: Final = 1000
# The pause between two steps, so that a long sweep takes no more than its share of the writer.
PAUSE_SECONDS: Final = 0.02
# How long a stop waits for the step at hand; one that takes longer finds the store closed.
STOP_SECONDS: Final = 5.0

_US: Final = 1_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long things are kept, in microseconds; None: for ever.

    Where history ends, request ids must end before: the answer that a retry gets is found by the
    versions that its commit wrote, and goes with them.
    """

    history_window_us: int | None = None
    request_id_window_us: int | None = None
    sweep_interval_seconds: float = 600.0

    def __post_init__(self) -> None:
        ids, history = self.request_id_window_us, self.history_window_us
        if history is not None and (ids is None or ids > history):
            raise ValueError("history must be kept at least as long as request ids")


@dataclass(slots=True)
class SweepReport:
    """What a sweep forgot."""

    versions: int = 0
    changes: int = 0
    request_ids: int = 0
    partitions: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing went."""
        return not (self.versions or self.changes or self.request_ids)

    def add(self, report: TrimReport) -> None:
        """Count a step in."""
        self.versions += report.versions
        self.changes += report.changes
        self.request_ids += report.tokens


class RetentionJob:
    """One thread that sweeps. ``start`` once, ``stop`` once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: RetentionSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._monotonic = monotonic
        self._pause_seconds = pause_seconds
        self._stopping = threading.Event()
        self._began = clock.now_us(), monotonic()
        self._thread = threading.Thread(target=self._run, name="pillion-retention", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the step at hand."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        pause = min(FIRST_SECONDS, self._settings.sweep_interval_seconds)
        while not self._stopping.wait(pause):
            try:
                self.sweep()
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001  (the job outlives whatever goes wrong)
                _log.warning("a sweep failed: %s; trying again later", type(error).__name__)
            pause = self._settings.sweep_interval_seconds

    def sweep(self) -> SweepReport:
        """Forget what is past its window in every partition, unless told to stop.

        A partition that fails, a damaged one for example, keeps what it has; the others go on.

        Raises:
            StoreClosed: The store was closed meanwhile.
        """
        report = SweepReport()
        now = self._now_us()
        for partition in self._store.partitions():
            if self._stopping.is_set():
                break
            try:
                self._sweep_partition(partition, now, report)
            except StoreClosed:
                raise
            except Exception as error:  # noqa: BLE001  (see above)
                _log.warning("a partition could not be swept: %s", type(error).__name__)
            report.partitions += 1
        level = logging.DEBUG if report.is_empty else logging.INFO
        _log.log(
            level,
            "swept %d partitions: forgot %d versions, %d rows of the feed, %d request ids",
            report.partitions,
            report.versions,
            report.changes,
            report.request_ids,
        )
        return report

    def _now_us(self) -> int:
        """Return the time, or where the clock jumped ahead the time that really went by."""
        wall, steady = self._began
        went_by = round((self._monotonic() - steady) * _US)
        return min(self._clock.now_us(), wall + went_by)

    def _sweep_partition(self, partition: Partition, now: int, report: SweepReport) -> None:
        # Ids first: between the two a retry would find its id, and its answer gone.
        ids = self._settings.request_id_window_us
        if ids is not None and self._store.partition_stats(partition).tokens:
            self._forget(partition, report, tokens_before_us=now - ids)
        history = self._settings.history_window_us
        if history is not None:
            self._forget_history(partition, now - history, report)

    def _forget_history(self, partition: Partition, before_us: int, report: SweepReport) -> None:
        """Forget the versions that ended, and the feed, up to the revision of an instant.

        That revision stays readable: it is what was known at the instant. The feed begins after
        it, so every change that is kept can be told with the records before and after it.
        """
        stats = self._store.partition_stats(partition)
        try:
            # Not quite at the instant, so that ids of the same age are gone before.
            last = self._store.revision_at(partition, before_us - 1)
        except HistoryGone:
            return
        at = min(stats.oldest_history, stats.oldest_change - 1)
        while at < last and not self._stopping.is_set():
            at = min(last, at + REVISIONS_STEP)
            self._forget(partition, report, history_before=at, feed_before=at + 1)
            if at < last:
                self._stopping.wait(self._pause_seconds)

    def _forget(
        self,
        partition: Partition,
        report: SweepReport,
        *,
        history_before: int = 0,
        feed_before: int = 0,
        tokens_before_us: int = 0,
    ) -> None:
        report.add(
            self._store.trim(
                partition,
                history_before=history_before,
                feed_before=feed_before,
                tokens_before_us=tokens_before_us,
            )
        )
