"""Compare-and-set under contention: many writers count up one fact, each in its own process.

Every writer reads the counter and writes one more if nobody wrote between, by the client's own
helper, until it has made its increments. Each must be counted once. The floor is a flush of one
page after another on the same disk, measured before, between and after the rounds: increments of
one key can't share a flush, for each needs to have seen the one before.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import Client, FactKey, Memory, Partition, Source, Subject

from benchmarks import harness

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

SUBJECT = Subject("system", "bench")
READY_SECONDS = 120.0
FLOOR_SECONDS = 1.0
# Contention is what is measured, so no writer gives up.
ATTEMPTS_MAX = 100_000


class Told(NamedTuple):
    """What a writer tells of its work: instants of the shared monotonic clock, in seconds."""

    began: float
    ended: float
    attempts: int
    latencies: list[float]


def count_up(target: str, attribute: str, times: int, start: Barrier, answers: Queue[Told]) -> None:
    """Make increments, and tell how long each took with all of its attempts."""
    attempts = 0

    def one_more(current: Memory | None) -> int:
        nonlocal attempts
        attempts += 1
        return 1 if current is None else int(str(current.value)) + 1

    latencies = []
    with Client.connect(
        target, partition=Partition("bench", "cas"), default_deadline_seconds=60.0
    ) as client:
        start.wait(READY_SECONDS)
        began = time.monotonic()
        for _ in range(times):
            before = time.perf_counter()
            client.update_fact(
                SUBJECT,
                attribute,
                one_more,
                source=Source("tool_result"),
                attempts_max=ATTEMPTS_MAX,
            )
            latencies.append(time.perf_counter() - before)
        answers.put(Told(began, time.monotonic(), attempts, latencies))


def round_of(target: str, attribute: str, writers: int, times: int) -> list[Told]:
    """Let the writers work at once on one key; return what each tells."""
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(writers)
    answers: Queue[Told] = spawn.Queue()
    given = (target, attribute, times, start, answers)
    processes = [spawn.Process(target=count_up, args=given) for _ in range(writers)]
    for process in processes:
        process.start()
    told = [answers.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a writer ended with {process.exitcode}")
    return told


def check(client: Client, attribute: str, expected: int) -> None:
    """Hold the key to the promise: each increment is there once, and in order.

    Raises:
        RuntimeError: One was lost, or counted twice.
    """
    rows: dict[str, tuple[int, object]] = {}
    for entry in client.history(FactKey(SUBJECT, attribute), page_size=1000):
        made, memory = entry.recorded_from_revision, entry.memory
        rows[memory.id] = min(rows.get(memory.id, (made, memory.value))[0], made), memory.value
    values = [value for _, value in sorted(rows.values())]
    if values != list(range(1, expected + 1)):
        raise RuntimeError(f"{expected} increments were acknowledged, the key went {values}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--increments", type=int, default=60, help="of each writer, each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    each_round = arguments.writers * arguments.increments
    rates, floors, latencies, attempts = [], [], [], 0
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=Partition("bench", "cas")) as client,
    ):
        folder = served.socket.parent
        floors.append(harness.flushes_per_second(folder, FLOOR_SECONDS))
        for number in range(arguments.rounds):
            attribute = f"counter{number}"
            told = round_of(served.target, attribute, arguments.writers, arguments.increments)
            check(client, attribute, each_round)
            took = max(one.ended for one in told) - min(one.began for one in told)
            rates.append(each_round / took)
            attempts += sum(one.attempts for one in told)
            latencies += [second for one in told for second in one.latencies]
            floors.append(harness.flushes_per_second(folder, FLOOR_SECONDS))
        one_key = f"alone{random.getrandbits(32)}"
        (alone,) = round_of(served.target, one_key, 1, each_round)
        check(client, one_key, each_round)
    rate, floor = statistics.median(rates), statistics.median(floors)
    harness.record(
        f"cas_contention_{arguments.writers}",
        {
            "writers": arguments.writers,
            "increments": each_round * arguments.rounds,
            "counted_exactly_once": True,  # else it had ended with an error
            "attempts_per_increment": round(attempts / (each_round * arguments.rounds), 2),
            "increments_per_second": round(rate, 1),
            "increments_per_second_each_round": [round(one, 1) for one in rates],
            "increments_per_second_alone": round(each_round / (alone.ended - alone.began), 1),
            "flushes_per_second": round(floor, 1),
            "flushes_per_second_each_time": [round(one, 1) for one in floors],
            "flushes_per_increment": round(floor / rate, 2),
            "increment": harness.percentiles(latencies),
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
