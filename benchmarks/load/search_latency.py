"""Search with a given vector, one caller, beside an echo RPC of the same sizes.

Both are called from this process over Unix sockets, in short turns, so that what the machine does
meanwhile falls on both. Targets: p50 at most 1.5 x, p99 at most 2 x the echo's.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, Source

from benchmarks import harness

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "Mira said on day {0} that the quarterly report for account {0} is due on Friday at noon."
DIMENSION = 384
TURN = 100


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


def sizes(target: str, partition: Partition, vector: bytes, top_k: int) -> tuple[int, int]:
    """Return the bytes of a request as the client sends it, and of its response."""
    request = service.SearchRequest(vector=vector, top_k=top_k)
    request.partition.namespace, request.partition.tenant = partition.namespace, partition.tenant
    with grpc.insecure_channel(target) as channel:
        call = channel.unary_unary("/pillion.memory.v1.MemoryService/Search")
        response = call(request.SerializeToString(), timeout=30)
    return len(request.SerializeToString()), len(response)


def timed(call: Callable[[], object], into: list[float]) -> None:
    """Call once and note how long it took."""
    start = time.perf_counter()
    call()
    into.append(time.perf_counter() - start)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--top-k", type=int, default=10)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    partition = Partition("bench", "search")
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=partition) as client,
    ):
        fill(client, arguments.memories)
        queries = harness.clustered(512, DIMENSION, seed=2)
        found = client.search(vector=queries[0], top_k=arguments.top_k)
        if len(found.hits) != arguments.top_k:
            raise RuntimeError("the search did not find what it should")
        request_bytes, response_bytes = sizes(
            served.target, partition, queries[0].tobytes(), arguments.top_k
        )
        with (
            harness.echoing(response_bytes) as echo,
            grpc.insecure_channel(echo.target) as channel,
        ):
            call_echo = channel.unary_unary("/echo/Echo")
            payload = bytes(request_bytes)
            searches: list[float] = []
            echoes: list[float] = []
            for turn in range(-5, arguments.calls // TURN):  # the first five turns warm up
                if turn == 0:
                    searches.clear()
                    echoes.clear()
                for i in range(TURN):
                    query = queries[(turn * TURN + i) % len(queries)]
                    timed(lambda q=query: client.search(vector=q, top_k=arguments.top_k), searches)
                for _ in range(TURN):
                    timed(lambda: call_echo(payload, timeout=30), echoes)
    search, echo_result = harness.percentiles(searches), harness.percentiles(echoes)
    harness.record(
        f"search_latency_{arguments.memories}",
        {
            "memories": arguments.memories,
            "top_k": arguments.top_k,
            "exactness": found.exactness.name,
            "request_bytes": request_bytes,
            "response_bytes": response_bytes,
            "search": search,
            "echo": echo_result,
            "ratio_p50": round(search["p50_ms"] / echo_result["p50_ms"], 3),
            "ratio_p99": round(search["p99_ms"] / echo_result["p99_ms"], 3),
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
