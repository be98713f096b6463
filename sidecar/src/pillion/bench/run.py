"""A whole run of one mix: a server and its floors, the knee and the curve around it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import grpc

from pillion.bench.calls import METHODS, Calls
from pillion.bench.data import Data, fill
from pillion.bench.floors import flushes
from pillion.bench.ladder import Knee, climb
from pillion.bench.rounds import Load, Round, play
from pillion.bench.schedule import MIXES, Due, Verb
from pillion.bench.servers import Served, echoing, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pillion.bench.histograms import Latencies

CURVE: Final = (0.25, 0.5, 0.75, 0.9, 1.1, 1.5)
"""The rates of the curve, in shares of the knee's."""

_FLUSH_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run measures.

    Attributes:
        mix: The name of a mix.
        data: What the server holds.
        rates: Calls a second to measure at. Empty: the knee is looked for.
        bound_ms: What the p99 may take at the knee, in milliseconds.
        first_rate: Where the search for the knee begins, calls a second.
        seconds: How long a round counts.
        warm_up: How long it does not, before that.
        processes: Client processes.
        seed: Of the schedules.
    """

    mix: str
    data: Data
    rates: Sequence[float] = ()
    bound_ms: float = 10.0
    first_rate: float = 200.0
    seconds: float = 10.0
    warm_up: float = 2.0
    processes: int = 1
    seed: int = 1


@dataclass(slots=True)
class Side:
    """One of the two servers that are compared, and what was measured of it."""

    name: str
    served: Served
    knee: Knee | None = None
    rounds: list[Round] = field(default_factory=list)

    def knee_as_dict(self) -> dict[str, Any] | None:
        """Return the knee as JSON; None: none was looked for, or none found."""
        best = self.knee.best if self.knee else None
        return {name: round(value, 6) for name, value in asdict(best).items()} if best else None


class Run:
    """Measures one mix."""

    def __init__(self, settings: Settings, tell: Callable[[str], None] = lambda _: None) -> None:
        tenants = MIXES[settings.mix].tenants
        self._settings = replace(settings, data=replace(settings.data, tenants=tenants))
        self._tell = tell
        self._sides: list[Side] = []
        self._flushes: Latencies | None = None

    def measure(self) -> None:
        """Start the servers, measure, and stop them.

        Raises:
            RuntimeError: A server did not start, or did not answer as it should.
        """
        with self._servers() as sides:
            self._sides = list(sides)
            for side in self._sides:
                if not self._settings.rates:
                    side.knee = self._climb(side)
            for rate in self._curve():
                for side in self._sides:  # in turn, so that the machine's moods fall on both
                    side.rounds.append(self._play(side, rate))

    def as_dict(self) -> dict[str, Any]:
        """Return what was measured as JSON, without the histograms."""
        found: dict[str, Any] = {
            "mix": self._settings.mix,
            "about": MIXES[self._settings.mix].about,
            "data": asdict(self._settings.data),
            "bound_ms": self._settings.bound_ms,
        }
        for side in self._sides:
            found[side.name] = {
                "knee": side.knee_as_dict(),
                "rounds": [one.as_dict() for one in side.rounds],
            }
        knees = [side.knee.best for side in self._sides if side.knee]
        if len(knees) == len(self._sides) and all(knees):
            ours, floor = (one.offered if one else 0.0 for one in knees)
            found["throughput_ratio"] = round(ours / floor, 3)
        if self._flushes is not None:
            found["flush_ms"] = self._flushes.milliseconds()
        return found

    def histograms(self) -> Iterator[tuple[str, str]]:
        """Yield a name and the encoded histogram of each round and verb."""
        for side in self._sides:
            for one in side.rounds:
                for verb, latencies in one.tally.latencies.items():
                    if latencies.count:
                        yield f"{side.name} {one.load.rate:g} {verb.value}", latencies.encoded()

    @contextlib.contextmanager
    def _servers(self) -> Iterator[tuple[Side, Side]]:
        settings = self._settings
        with serving("--embedder", "none", "--log-level", "warning") as served:
            self._tell(f"filling: {settings.data.memories:,} memories")
            fill(served.target, settings.data)
            if Verb.WRITE in MIXES[settings.mix].shares:
                self._flushes = flushes(served.folder, _FLUSH_SECONDS)
            with echoing(_answer(served.target, settings)) as floor:
                yield Side("pillion", served), Side("echo", floor)

    def _climb(self, side: Side) -> Knee:
        knee = Knee(self._settings.bound_ms / 1e3, self._settings.first_rate)
        climb(knee, lambda rate: self._play(side, rate).tried())
        return knee

    def _curve(self) -> Sequence[float]:
        if self._settings.rates:
            return self._settings.rates
        knee = self._sides[0].knee
        best = knee.best if knee else None
        return [round(best.offered * share, 1) for share in CURVE] if best else []

    def _play(self, side: Side, rate: float) -> Round:
        settings = self._settings
        load = Load(
            mix=settings.mix,
            rate=rate,
            seconds=settings.seconds,
            warm_up=settings.warm_up,
            processes=settings.processes,
            seed=settings.seed,
        )
        is_ours = side.name == "pillion"
        found = play(
            load, side.served.target, settings.data, pid=side.served.process.pid, check=is_ours
        )
        p99 = found.tally.of_all().seconds_at(99) * 1e3
        self._tell(f"{side.name}: {rate:,.0f} calls a second, p99 {p99:.2f} ms")
        return found


def _answer(target: str, settings: Settings) -> bytes:
    """Return a real answer to the mix's most frequent call: what the echo is to send."""
    shares = MIXES[settings.mix].shares
    verb = max(shares, key=lambda one: shares[one])
    due = Due(0.0, verb, 0, 1)
    calls = Calls(settings.data)
    with grpc.insecure_channel(target) as channel:
        method = channel.unary_unary(METHODS[verb])
        answer: bytes = method(calls.request(due), timeout=_ANSWER_SECONDS)
    if not calls.is_right(due, answer):
        raise RuntimeError("the server's answer is not what its data lets it be")
    return answer
