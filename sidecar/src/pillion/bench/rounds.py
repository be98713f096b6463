"""One round: some client processes at a rate together, against one server."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from pillion.bench.floors import cpu_seconds
from pillion.bench.ladder import Tried
from pillion.bench.sender import Job, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion.bench.data import Data

_LATE_SHARE_MAX: Final = 0.5
_LATE_SECONDS_MIN: Final = 0.002


@dataclass(frozen=True, slots=True)
class Load:
    """What a round is made of.

    Attributes:
        mix: The name of a mix.
        rate: Calls a second that are due, of all processes together.
        seconds: How long it counts.
        warm_up: How long it does not, before that.
        processes: How many client processes share the rate.
        seed: Of the schedules.
    """

    mix: str
    rate: float
    seconds: float
    warm_up: float = 1.0
    processes: int = 1
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Round:
    """What became of a load.

    Attributes:
        load: The load.
        tally: The calls.
        cpu_us: Microseconds of the server's processors a call; None where they are not known.
    """

    load: Load
    tally: Tally
    cpu_us: float | None

    @property
    def answered(self) -> float:
        """Calls a second that came back well."""
        return self.tally.of_all().count / self.load.seconds

    @property
    def is_of_the_server(self) -> bool:
        """Whether the latencies are the server's: the client was not late itself with many calls.

        A process that is woken late is a part of every latency that it measures. Up to half of a
        p99, or two milliseconds, is let pass; beyond, the client is the bottleneck.
        """
        late = self.tally.lateness.seconds_at(99.0)
        return late <= max(_LATE_SECONDS_MIN, _LATE_SHARE_MAX * self.tally.of_all().seconds_at(99))

    def tried(self) -> Tried:
        """Return what the ladder asks about."""
        return Tried(
            offered=self.load.rate,
            answered=self.answered,
            p99=self.tally.of_all().seconds_at(99.0),
            refused=sum(self.tally.errors.values()) + self.tally.wrong,
            client_late=self.tally.lateness.seconds_at(99.0),
        )

    def as_dict(self, *, histograms: bool = False) -> dict[str, Any]:
        """Return it as JSON, with the histograms themselves where asked."""
        used = {verb: one for verb, one in self.tally.latencies.items() if one.count}
        found: dict[str, Any] = {
            **asdict(self.load),
            "due": self.tally.due,
            "answered_per_second": round(self.answered, 1),
            "latency_ms": self.tally.of_all().milliseconds(),
            "latency_ms_by_verb": {verb.value: one.milliseconds() for verb, one in used.items()},
            "client_late_ms": self.tally.lateness.milliseconds(),
            "of_the_server": self.is_of_the_server,
            "errors": dict(self.tally.errors),
            "wrong": self.tally.wrong,
            "server_cpu_us_per_call": self.cpu_us and round(self.cpu_us, 1),
        }
        if histograms:
            found["histograms"] = {verb.value: one.encoded() for verb, one in used.items()}
        return found


def play(load: Load, target: str, data: Data, *, pid: int | None, check: bool = True) -> Round:
    """Put a load on a server and return what became of it.

    Args:
        load: What to send.
        target: Whom to call.
        data: What the server holds.
        pid: The server's process, for its processor time; None: not on this machine.
        check: Whether a part of the answers is parsed and checked.

    Raises:
        RuntimeError: A client process failed.
    """
    jobs = [
        Job(
            target=target,
            mix=load.mix,
            rate=load.rate / load.processes,
            warm_up=load.warm_up,
            seconds=load.seconds,
            seed=load.seed * 1000 + number,
            check=check,
        )
        for number in range(load.processes)
    ]
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(_worker(job, data)) for job in jobs]
        for worker in workers:
            if _line(worker) != "ready":
                raise RuntimeError("a client process of the bench did not connect")
        before = cpu_seconds(pid) if pid else None
        for worker in workers:
            _tell(worker, "go")
        parts = [json.loads(_line(worker)) for worker in workers]
        after = cpu_seconds(pid) if pid else None
    tally = Tally.merged(parts)
    cpu_us = None
    if before is not None and after is not None and tally.answered_in_all:
        cpu_us = (after - before) / tally.answered_in_all * 1e6
    return Round(load, tally, cpu_us)


@contextlib.contextmanager
def _worker(job: Job, data: Data) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "pillion.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        _tell(process, json.dumps({"job": asdict(job), "data": asdict(data)}))
        yield process
    finally:
        process.kill()
        process.communicate()


def _tell(worker: subprocess.Popen[str], line: str) -> None:
    if worker.stdin is None:
        raise RuntimeError("a client process has no stdin")
    worker.stdin.write(line + "\n")
    worker.stdin.flush()


def _line(worker: subprocess.Popen[str]) -> str:
    line = worker.stdout.readline() if worker.stdout else ""
    if not line:
        raise RuntimeError(f"a client process of the bench ended with {worker.wait()}")
    return line.rstrip("\n")
