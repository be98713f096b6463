"""How long after a start the vector index is there: built, and restored from its snapshot.

A store is filled once, with encryption on. A first server builds the index and writes it down;
then a server is started anew for each round, and the time from its first search, which loads the
partition, until every vector is in the index is taken. Searches scan meanwhile: the slowest of
those made all along is told beside.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import Client

from benchmarks import harness
from benchmarks.load.cold_load import PARTITION, fill
from benchmarks.load.import_memory import DIMENSION

WAIT_SECONDS = 1800.0
LOOK_SECONDS = 0.02


def until_indexed(directory: Path, memories: int, *, index_from: int) -> dict[str, Any]:
    """Start a server and search until the index has everything and is written down."""
    queries = harness.clustered(256, DIMENSION, seed=2)
    flags = ("--embedder", "none", "--log-level", "warning", "--index-from", str(index_from))
    with (
        harness.serving("--directory", str(directory), *flags) as served,
        Client(served.target, partition=PARTITION, default_deadline_seconds=120.0) as client,
    ):
        client.info()
        start = time.perf_counter()
        taken: list[float] = []
        while time.perf_counter() - start < WAIT_SECONDS:
            before = time.perf_counter()
            client.search(vector=queries[len(taken) % len(queries)], top_k=10)
            taken.append(time.perf_counter() - before)
            (stats,) = client.stats(partition=PARTITION).partitions
            if stats.indexed_vectors >= memories and stats.index_lag == 0:
                break
            time.sleep(LOOK_SECONDS)
        else:
            raise RuntimeError("the index was not there in time")
        indexed = time.perf_counter() - start
        while not list((directory / "index").glob("*.hnsw")):
            time.sleep(LOOK_SECONDS)
    return {
        "indexed_seconds": round(indexed, 2),
        "first_search_ms": round(1000 * taken[0], 1),
        "later_searches": harness.percentiles(taken[1:] or taken),
        "slowest_later_search_ms": round(1000 * max(taken[1:] or taken), 1),
    }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    memories = arguments.memories
    with tempfile.TemporaryDirectory(prefix="pillion-index-") as scratch:
        directory = Path(scratch) / "data"
        with (
            harness.serving("--directory", str(directory), "--embedder", "none") as served,
            Client(served.target, partition=PARTITION) as client,
        ):
            fill(client, memories)
        built = until_indexed(directory, memories, index_from=memories // 2)
        (snapshot,) = (directory / "index").glob("*.hnsw")
        restored = [
            until_indexed(directory, memories, index_from=memories // 2)
            for _ in range(arguments.rounds)
        ]
        harness.record(
            f"index_restart_{memories}",
            {
                "memories": memories,
                "encryption": "on",
                "snapshot_bytes": snapshot.stat().st_size,
                "built": built,
                "restored": restored,
            },
            keep=arguments.keep,
        )


if __name__ == "__main__":
    main()
