"""One client process: sends each call when it is due, whatever became of those before."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import grpc

from pillion.bench.calls import METHODS, Calls
from pillion.bench.histograms import Latencies
from pillion.bench.schedule import MIXES, Due, Verb, poisson

if TYPE_CHECKING:
    from pillion.bench.data import Data

DEADLINE_SECONDS: Final = 10.0
IN_FLIGHT_MAX: Final = 5_000
"""Calls that one process waits for; what is due beyond them is counted as DROPPED."""

_CHANNELS: Final = 4
_START_SECONDS: Final = 0.05
_SAMPLE: Final = 64  # one answer in as many is parsed and checked


@dataclass(frozen=True, slots=True)
class Job:
    """What one client process is to do.

    Attributes:
        target: Whom to call.
        mix: The name of one of `MIXES`.
        rate: Calls a second that are due, of this process alone.
        warm_up: Seconds at the beginning that do not count.
        seconds: Seconds after those.
        seed: Of the schedule.
        check: Whether answers are checked; an echo's are not.
    """

    target: str
    mix: str
    rate: float
    warm_up: float
    seconds: float
    seed: int
    check: bool = True


class Tally:
    """What became of the calls that count, those due after the warm-up."""

    def __init__(self) -> None:
        self.due = 0
        self.latencies = {verb: Latencies() for verb in Verb}
        self.lateness = Latencies()
        self.errors: Counter[str] = Counter()
        self.wrong = 0
        self.answered_in_all = 0  # the warm-up's too, for what a call costs the server

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "due": self.due,
            "latencies": {verb.value: one.encoded() for verb, one in self.latencies.items()},
            "lateness": self.lateness.encoded(),
            "errors": dict(self.errors),
            "wrong": self.wrong,
            "answered_in_all": self.answered_in_all,
        }

    @classmethod
    def merged(cls, parts: list[dict[str, Any]]) -> Tally:
        """Return what several processes found, as one."""
        found = cls()
        for part in parts:
            found.due += part["due"]
            for verb, text in part["latencies"].items():
                found.latencies[Verb(verb)].add(text)
            found.lateness.add(part["lateness"])
            found.errors.update(part["errors"])
            found.wrong += part["wrong"]
            found.answered_in_all += part["answered_in_all"]
        return found

    def of_all(self) -> Latencies:
        """Return the latencies of every verb together."""
        found = Latencies()
        for one in self.latencies.values():
            found.add(one.encoded())
        return found


@dataclass(frozen=True, slots=True)
class _Ended:
    due: Due
    seconds: float  # from when it was due
    code: grpc.StatusCode
    response: bytes | None  # of those that are checked


class Sender:
    """Sends one job's calls."""

    def __init__(self, job: Job, data: Data) -> None:
        self._job = job
        self._calls = Calls(data)
        self._channels = [
            # Each a connection of its own: gRPC would share one between equal channels.
            grpc.insecure_channel(
                job.target, [("grpc.use_local_subchannel_pool", 1), ("pillion.number", number)]
            )
            for number in range(_CHANNELS)
        ]
        self._methods = [
            {verb: channel.unary_unary(method) for verb, method in METHODS.items()}
            for channel in self._channels
        ]
        self._ended: list[_Ended] = []
        self._in_flight = 0
        self._landed = threading.Condition()

    def connect(self) -> None:
        """Wait until every connection is there.

        Raises:
            grpc.FutureTimeoutError: The server does not answer.
        """
        for channel in self._channels:
            grpc.channel_ready_future(channel).result(DEADLINE_SECONDS)

    def send(self) -> Tally:
        """Send everything, wait for the answers, and return what became of it."""
        job, tally = self._job, Tally()
        begin = time.perf_counter() + _START_SECONDS
        schedule = poisson(MIXES[job.mix], job.rate, job.warm_up + job.seconds, job.seed)
        for number, due in enumerate(schedule):
            at = begin + due.at
            request = self._calls.request(due)
            if (ahead := at - time.perf_counter()) > 0:
                time.sleep(ahead)
            counts = due.at >= job.warm_up
            if counts:
                tally.due += 1
                tally.lateness.record(time.perf_counter() - at)
            if self._in_flight >= IN_FLIGHT_MAX:
                tally.errors["DROPPED"] += counts
                continue
            with self._landed:
                self._in_flight += 1
            call = self._methods[number % _CHANNELS][due.verb].future(
                request, timeout=DEADLINE_SECONDS
            )
            call.add_done_callback(partial(self._land, due, at))
        with self._landed:
            self._landed.wait_for(lambda: self._in_flight == 0)
        self._count(tally)
        return tally

    def close(self) -> None:
        """Close the connections."""
        for channel in self._channels:
            channel.close()

    def _land(self, due: Due, at: float, call: grpc.Future) -> None:
        seconds = time.perf_counter() - at
        code: grpc.StatusCode = cast("Any", call).code()  # a call is a future and more
        is_checked = code is grpc.StatusCode.OK and due.number % _SAMPLE == 0
        response: bytes | None = call.result() if is_checked and self._job.check else None
        self._ended.append(_Ended(due, seconds, code, response))
        with self._landed:
            self._in_flight -= 1
            if self._in_flight == 0:
                self._landed.notify_all()

    def _count(self, tally: Tally) -> None:
        for one in self._ended:
            is_answered = one.code is grpc.StatusCode.OK
            tally.answered_in_all += is_answered
            if one.response is not None and not self._calls.is_right(one.due, one.response):
                tally.wrong += 1
            if one.due.at < self._job.warm_up:
                continue
            if is_answered:
                tally.latencies[one.due.verb].record(one.seconds)
            else:
                tally.errors[one.code.name] += 1
