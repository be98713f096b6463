"""Forgets what is past its time: retention classes that were kept long enough, and what decayed.

A sweep is a Forget like any caller's: the same selectors, in the same small commits, passing over
what is held. It goes through the partitions one after another and pauses before each step, so that
writes and reads get in between; a stop ends it after the step at hand. What a sweep left is there
for the next.

What was recorded, and when something was used last, is told by the machine's clock, but never
faster than it really went by: a clock that jumps ahead while the server runs forgets nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pillion_storage.api import StoreClosed

from pillion.domain.commands import ForgetCommand, ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.forgetting import ByRetentionClass, Decayed
from pillion.domain.retention import NO_CLASSES, RetentionClasses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pillion_storage.api import Store

    from pillion.domain.commands import ForgetReport
    from pillion.domain.forgetting import Selector
    from pillion.domain.memory import MemoryKind
    from pillion.domain.scope import Partition
    from pillion.ports import Clock
    from pillion.service.forgetter import Forgetter

# When the first sweep begins: the server has other things to do when it starts.
FIRST_SECONDS: Final = 60.0
# The pause before each step of at most 100 records or 500 reads.
PAUSE_SECONDS: Final = 0.02
STOP_SECONDS: Final = 5.0
# No caller waits: what a sweep itself waits for, such as the load of a partition, may take this.
_PATIENCE_SECONDS: Final = 600.0
_US: Final = 1_000_000
# Clocks are set: now and then by minutes, in the spring of those that do not know UTC by an hour.
_TOLERATED_US: Final = 3_600 * _US

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeingSettings:
    """What is forgotten by age.

    Attributes:
        classes: Retention classes.
        decay_below: By kind, the vitality under which memories are forgotten; a kind that is not
            named does not decay.
        interval_seconds: How often it looks.
    """

    classes: RetentionClasses = NO_CLASSES
    decay_below: Mapping[MemoryKind, float] = field(default_factory=dict)
    interval_seconds: float = 21_600.0

    def selectors(self) -> Iterator[Selector]:
        """Yield what a sweep forgets; none: there is nothing to sweep for."""
        for name, one in sorted(self.classes.by_name.items()):
            if one.keep_for is not None:
                yield ByRetentionClass(name)
        if self.decay_below:
            yield Decayed(self.decay_below)


NOTHING_AGES: Final = AgeingSettings()


class _Pace:
    """A deadline that never passes, makes whoever looks at it pause, and ends with the job."""

    def __init__(self, stopping: threading.Event, pause_seconds: float) -> None:
        self._stopping = stopping
        self._pause_seconds = pause_seconds

    def remaining_seconds(self) -> float:
        return 0.0 if self._stopping.is_set() else _PATIENCE_SECONDS

    def check(self) -> None:
        if self._stopping.wait(self._pause_seconds):
            raise PillionError(Reason.CANCELLED, "the server stops")


class AgeingJob:
    """One thread that sweeps. ``start`` once, ``stop`` once."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        forgetter: Forgetter,
        settings: AgeingSettings,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._forgetter = forgetter
        self._settings = settings
        self._monotonic = monotonic
        self._stopping = threading.Event()
        self._pace = _Pace(self._stopping, pause_seconds)
        self._began = clock.now_us(), monotonic()
        self._thread = threading.Thread(target=self._run, name="pillion-ageing", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the step at hand."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        pause = min(FIRST_SECONDS, self._settings.interval_seconds)
        while not self._stopping.wait(pause):
            try:
                self.sweep()
            except StoreClosed:
                return
            except Exception as error:  # noqa: BLE001  (the job outlives whatever goes wrong)
                _log.warning("a sweep failed: %s; trying again later", type(error).__name__)
            pause = self._settings.interval_seconds

    def sweep(self) -> int:
        """Forget what is past its time in every partition; return how many records that were.

        A partition that fails keeps what it has, and the others go on.

        Raises:
            StoreClosed: The store was closed meanwhile.
        """
        ahead = self._clock.now_us() - self._now_us()
        if ahead > 0:
            _log.warning("the clock jumped %.0f s ahead: nothing is forgotten by age", ahead / _US)
            return 0
        done = 0
        for partition in self._store.partitions():
            if self._stopping.is_set():
                break
            try:
                done += self._sweep_partition(partition)
            except StoreClosed:
                raise
            except Exception as error:  # noqa: BLE001  (see above)
                if self._stopping.is_set():
                    break
                _log.warning("a partition could not be swept: %s", type(error).__name__)
        return done

    def _sweep_partition(self, partition: Partition) -> int:
        done = 0
        for selector in self._settings.selectors():
            command = ForgetCommand(
                mode=ForgetMode.EXPIRE, selector=selector, force=True, reason_code="ageing"
            )
            report = self._forgetter.forget(partition, command, self._pace)
            _tell(selector, report)
            done += report.memories + report.episodes
        return done

    def _now_us(self) -> int:
        """Return the time, or where the clock jumped ahead a little after what really went by."""
        wall, steady = self._began
        went_by = round((self._monotonic() - steady) * _US)
        return min(self._clock.now_us(), wall + went_by + _TOLERATED_US)


def _tell(selector: Selector, report: ForgetReport) -> None:
    """Log how much a sweep forgot, and by what, without content."""
    if report.memories or report.episodes or report.exempt_ids:
        _log.info(
            "forgot by age (%s): %d memories, %d episodes; held and kept: at least %d",
            type(selector).__name__,
            report.memories,
            report.episodes,
            len(report.exempt_ids),
        )
