"""Recall with a given vector, one caller, beside an echo RPC of the same messages.

A partition has a number of subjects, each with facts, procedures, open items, summaries and
episodes; every call asks about one of them and about what is near a vector. What is compared is the
server: see `search_latency`. A Recall makes five searches, reads the feed and counts the tokens of
each line, so it costs several times what a Search costs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, PutFact, Source, unconditional

from benchmarks import harness

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from pillion_client import ImportItem

TEXT = "Mira said on day {0} that the quarterly report for account {0} is due on Friday at noon."
DIMENSION = 384
QUERIES = 512
SECONDS = 30.0
FACTS, PROCEDURES, ITEMS, SESSIONS, EPISODES = 30, 5, 5, 10, 50
EACH = FACTS + PROCEDURES + ITEMS + SESSIONS + EPISODES
BUDGET = 2000


def memories(subjects: int, vectors: NDArray[np.float32]) -> Iterator[ImportItem]:
    """Yield what each subject has; what a query is to find has vectors, those first."""
    source = Source("tool_result")
    at = 0
    for kind, count in (("episodic", EPISODES), ("procedural", PROCEDURES)):
        for subject in range(subjects):
            for _ in range(count):
                yield AddMemory(
                    f"user:{subject}", TEXT.format(at), source, kind=kind, vector=vectors[at]
                )
                at += 1
    for subject in range(subjects):
        for number in range(FACTS):
            yield PutFact(
                f"user:{subject}",
                f"attribute_{number}",
                f"a value of about five words, {number}",
                source=source,
                precondition=unconditional,
            )
        for kind, count in (("open_item", ITEMS), ("session", SESSIONS)):
            for number in range(count):
                yield AddMemory(f"user:{subject}", TEXT.format(number), source, kind=kind)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=100)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    partition, subjects = Partition("bench", "recall"), arguments.subjects
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=partition) as client,
        grpc.insecure_channel(served.target) as channel,
    ):
        vectors = harness.clustered(subjects * (EPISODES + PROCEDURES), DIMENSION, seed=1)
        for ack in client.import_(memories(subjects, vectors)):
            if ack.rejections:
                raise RuntimeError(f"refused: {ack.rejections[0]}")
        requests = []
        for at, query in enumerate(harness.clustered(QUERIES, DIMENSION, seed=2)):
            request = service.RecallRequest(
                partition={"namespace": partition.namespace, "tenant": partition.tenant},
                subjects=[{"type": "user", "id": str(at % subjects)}],
                query_vector=query.tobytes(),
                token_budget=BUDGET,
            )
            requests.append(request)
        stub = MemoryServiceStub(channel)
        found = stub.Recall(requests[0], timeout=SECONDS)
        if {line.section for line in found.lines} < {service.RECALL_SECTION_FACTS}:
            raise RuntimeError("the context has no facts")
        with (
            harness.echoing(found.SerializeToString()) as echo,
            grpc.insecure_channel(echo.target) as echo_channel,
        ):
            echo_stub = MemoryServiceStub(echo_channel)
            times = harness.in_turns(
                {
                    "recall": lambda i: stub.Recall(requests[i % QUERIES], timeout=SECONDS),
                    "echo": lambda i: echo_stub.Recall(requests[i % QUERIES], timeout=SECONDS),
                },
                arguments.calls,
            )
    results = {name: harness.percentiles(one) for name, one in times.items()}
    harness.record(
        f"recall_latency_{subjects * EACH}",
        {
            "memories": subjects * EACH,
            "memories_of_a_subject": EACH,
            "token_budget": BUDGET,
            "tokens": found.tokens,
            "lines": len(found.lines),
            "omitted": len(found.omitted),
            "response_bytes": found.ByteSize(),
            **results,
            **harness.beside(results["recall"], results["echo"]),
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
