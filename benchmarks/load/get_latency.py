"""Get, one caller, beside an echo RPC: of a current fact, by id, and as of an instant of the past.

What is compared is the server: both sides are called over Unix sockets through the generated stub,
which serialises the same request and parses the same response, in short turns of one run. The
echo's handler returns the bytes of a real response and does nothing else. The thin client's Get
is timed in the same turns, to show what it adds.

Targets: p50 of a current fact at most 1.2 x the echo's; of a key with 10,000 versions, as of
random instants of its past, at most 1.5 x.
"""

from __future__ import annotations

import argparse
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import Client, Partition, PutFact, Source
from pillion_client.preconditions import unconditional

from benchmarks import harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KEYS = 1000
BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(hours=1)
SECONDS = 30.0
SOURCE = Source("tool_result")


def statements(versions: int) -> Iterable[PutFact]:
    """State a fact of each of many people, and one fact of one person again and again."""
    for i in range(KEYS):
        yield PutFact(
            f"user:person-{i}",
            "home city",
            f"City {i % 97}",
            SOURCE,
            unconditional,
            valid_from=BEGIN,
        )
    for i in range(versions):
        yield PutFact(
            "user:mira",
            "home city",
            f"City {i}",
            SOURCE,
            unconditional,
            valid_from=BEGIN + i * STEP,
        )


def fill(client: Client, versions: int) -> None:
    """Write the facts."""
    for ack in client.import_(statements(versions)):
        if ack.rejections:
            raise RuntimeError(f"refused: {ack.rejections[0]}")


def of_fact(partition: Partition, person: str, as_of: datetime | None = None) -> service.GetRequest:
    """Return the request for where a person lives."""
    request = service.GetRequest()
    request.partition.namespace, request.partition.tenant = partition.namespace, partition.tenant
    key = request.target.fact
    key.subject.type, key.subject.id, key.attribute = "user", person, "home city"
    if as_of is not None:
        request.read.as_of.FromDatetime(as_of)
    return request


def of_id(partition: Partition, memory_id: str) -> service.GetRequest:
    """Return the request for one memory."""
    request = service.GetRequest()
    request.partition.namespace, request.partition.tenant = partition.namespace, partition.tenant
    request.target.memory_id = memory_id
    return request


def compare(
    stub: MemoryServiceStub,
    requests: list[service.GetRequest],
    by_client: Callable[[service.GetRequest], object],
    calls: int,
) -> dict[str, Any]:
    """Time the requests at the server, at an echo of its first answer, and by the thin client."""
    response = stub.Get(requests[0], timeout=SECONDS)
    with (
        harness.echoing(response.SerializeToString()) as echo,
        grpc.insecure_channel(echo.target) as channel,
    ):
        echo_stub = MemoryServiceStub(channel)
        times = harness.in_turns(
            {
                "get": lambda i: stub.Get(requests[i % len(requests)], timeout=SECONDS),
                "echo": lambda i: echo_stub.Get(requests[i % len(requests)], timeout=SECONDS),
                "client": lambda i: by_client(requests[i % len(requests)]),
            },
            calls,
        )
    found = {name: harness.percentiles(one) for name, one in times.items()}
    return {
        "request_bytes": requests[0].ByteSize(),
        "response_bytes": response.ByteSize(),
        **found,
        **harness.beside(found["get"], found["echo"]),
        "client_ratio_p50": harness.beside(found["client"], found["echo"])["ratio_p50"],
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    partition = Partition("bench", "get")
    chance = random.Random(1)
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=partition) as client,
        grpc.insecure_channel(served.target) as channel,
    ):
        fill(client, arguments.versions)
        stub = MemoryServiceStub(channel)
        people = [f"person-{i}" for i in range(KEYS)]
        chance.shuffle(people)
        current = [of_fact(partition, person) for person in people]
        ids = [stub.Get(one, timeout=SECONDS).record.memory.id for one in current]
        past = [
            of_fact(partition, "mira", BEGIN + (chance.randrange(arguments.versions) + 0.5) * STEP)
            for _ in range(arguments.calls)
        ]

        def fact_by_client(request: service.GetRequest) -> object:
            key = request.target.fact
            as_of = request.read.as_of.ToDatetime(UTC) if request.HasField("read") else None
            return client.get_fact(f"user:{key.subject.id}", key.attribute, as_of=as_of)

        results = {
            "versions": arguments.versions,
            "keys": KEYS,
            "current": compare(stub, current, fact_by_client, arguments.calls),
            "by_id": compare(
                stub,
                [of_id(partition, one) for one in ids],
                lambda request: client.get(request.target.memory_id),
                arguments.calls,
            ),
            "as_of": compare(stub, past, fact_by_client, arguments.calls),
        }
    harness.record("get_latency", results, keep=arguments.keep)


if __name__ == "__main__":
    main()
