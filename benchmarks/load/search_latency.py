"""Search with a given vector, one caller, beside an echo RPC of the same messages.

What is compared is the server: both sides are called over Unix sockets through the generated stub,
which serialises the same request and parses the same response, in short turns of one run. The
echo's handler returns the bytes of a real response and does nothing else. The thin client's search
is timed in the same turns, to show what it adds. Targets: p50 at most 1.5 x, p99 at most 2 x the
echo's.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, Source

from benchmarks import harness

TEXT = "Mira said on day {0} that the quarterly report for account {0} is due on Friday at noon."
DIMENSION = 384
QUERIES = 512
SECONDS = 30.0


def fill(client: Client, count: int) -> None:
    """Put ``count`` memories with vectors into the client's partition."""
    vectors = harness.clustered(count, DIMENSION, seed=1)
    source = Source("tool_result")
    items = (
        AddMemory("user:mira", TEXT.format(i), source, vector=vectors[i]) for i in range(count)
    )
    for ack in client.import_(items):
        if ack.rejections:
            raise RuntimeError(f"refused: {ack.rejections[0]}")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    partition, top_k = Partition("bench", "search"), arguments.top_k
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=partition) as client,
        grpc.insecure_channel(served.target) as channel,
    ):
        fill(client, arguments.memories)
        queries = harness.clustered(QUERIES, DIMENSION, seed=2)
        requests = []
        for query in queries:
            request = service.SearchRequest(vector=query.tobytes(), top_k=top_k)
            request.partition.namespace = partition.namespace
            request.partition.tenant = partition.tenant
            requests.append(request)
        stub = MemoryServiceStub(channel)
        found = stub.Search(requests[0], timeout=SECONDS)
        if len(found.hits) != top_k:
            raise RuntimeError("the search did not find what it should")
        with (
            harness.echoing(found.SerializeToString()) as echo,
            grpc.insecure_channel(echo.target) as echo_channel,
        ):
            echo_stub = MemoryServiceStub(echo_channel)
            times = harness.in_turns(
                {
                    "search": lambda i: stub.Search(requests[i % QUERIES], timeout=SECONDS),
                    "echo": lambda i: echo_stub.Search(requests[i % QUERIES], timeout=SECONDS),
                    "client": lambda i: client.search(vector=queries[i % QUERIES], top_k=top_k),
                },
                arguments.calls,
            )
    results = {name: harness.percentiles(one) for name, one in times.items()}
    client_ratio = harness.beside(results["client"], results["echo"])
    harness.record(
        f"search_latency_{arguments.memories}",
        {
            "memories": arguments.memories,
            "top_k": top_k,
            "exactness": service.SearchResponse.DESCRIPTOR.fields_by_name["exactness"]
            .enum_type.values_by_number[found.exactness]
            .name.removeprefix("EXACTNESS_"),
            "request_bytes": requests[0].ByteSize(),
            "response_bytes": found.ByteSize(),
            **results,
            **harness.beside(results["search"], results["echo"]),
            "client_ratio_p50": client_ratio["ratio_p50"],
            "client_ratio_p99": client_ratio["ratio_p99"],
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
