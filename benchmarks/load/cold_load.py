"""The first search of a partition that is not in memory, beside reading its bytes.

A store is filled once, with encryption on. Then a server is started on it anew for each round, and
its first search timed: it loads the partition. The floor, in the same rounds, is one read of the
same rows in the data file, without opening, decoding or keeping any. Target: 100,000 memories of
384 dimensions within 1.5 s. The file is in the page cache, as it is after a restart; a cold disk
adds its own time to both.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import lmdb

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, Source
from pillion_storage.schema import CURRENT

from benchmarks import harness
from benchmarks.load.import_memory import DIMENSION, TEXT, memory_of

PARTITION = Partition("bench", "cold")
SUBJECTS = 50
LABELS = 40
MIB = 1 << 20


def fill(client: Client, count: int) -> None:
    """Put ``count`` memories of some subjects, each with a vector and two labels."""
    vectors = harness.clustered(count, DIMENSION, seed=1)
    source = Source("tool_result")
    items = (
        AddMemory(
            f"user:{i % SUBJECTS}",
            TEXT.format(i, i % 97),
            source,
            vector=vectors[i],
            labels=(f"topic-{i % LABELS}", "report"),
        )
        for i in range(count)
    )
    for ack in client.import_(items):
        if ack.rejections:
            raise RuntimeError(f"refused: {ack.rejections[0]}")


def read_rows(directory: Path) -> tuple[float, int]:
    """Read every memory and vector from the data file; return the seconds and the bytes."""
    with (
        lmdb.open(str(directory), readonly=True, max_dbs=16, lock=False, map_size=1 << 36) as env,
        env.begin(buffers=True) as txn,
    ):
        current = env.open_db(CURRENT.name.encode(), txn=txn)
        start = time.perf_counter()
        total = 0
        with txn.cursor(current) as cursor:
            for key, value in cursor.iternext():
                if key[4:5] in (b"m", b"v"):
                    total += len(bytes(value))
        return time.perf_counter() - start, total


def first_searches(directory: Path) -> dict[str, float]:
    """Start a server; return the seconds of its first search and of its second, and its memory."""
    queries = harness.clustered(2, DIMENSION, seed=2)
    with (
        harness.serving(
            "--directory", str(directory), "--embedder", "none", "--log-level", "warning"
        ) as served,
        Client(served.target, partition=PARTITION, default_deadline_seconds=120.0) as client,
    ):
        client.info()  # the connection is there, and the server is warm otherwise
        before = memory_of(served.process.pid)["RssAnon"]
        seconds = []
        for query in queries:
            start = time.perf_counter()
            if len(client.search(vector=query, top_k=10).hits) != 10:
                raise RuntimeError("the search did not find what it should")
            seconds.append(time.perf_counter() - start)
        (stats,) = client.stats(partition=PARTITION).partitions
        return {
            "cold": seconds[0],
            "warm": seconds[1],
            "grown": memory_of(served.process.pid)["RssAnon"] - before,
            "resident": stats.resident_bytes,
        }


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="a store filled by this script before")
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pillion-cold-") as scratch:
        directory = arguments.directory or Path(scratch) / "data"
        if not directory.exists():
            with (
                harness.serving("--directory", str(directory), "--embedder", "none") as served,
                Client(served.target, partition=PARTITION) as client,
            ):
                fill(client, arguments.memories)
        rounds = []
        floors = []
        for _ in range(arguments.rounds):
            floor, read_bytes = read_rows(directory)
            floors.append(floor)
            rounds.append(first_searches(directory))
    cold = harness.percentiles([one["cold"] for one in rounds])
    floor_times = harness.percentiles(floors)
    harness.record(
        f"cold_load_{arguments.memories}",
        {
            "memories": arguments.memories,
            "encryption": "on",
            "read_bytes": read_bytes,
            "cold_first_search": cold,
            "floor_read": floor_times,
            "ratio_p50": round(cold["p50_ms"] / floor_times["p50_ms"], 2),
            "second_search": harness.percentiles([one["warm"] for one in rounds]),
            "grown_bytes": max(one["grown"] for one in rounds),
            "grown_bytes_per_memory": round(
                max(one["grown"] for one in rounds) / arguments.memories
            ),
            "resident_bytes": rounds[0]["resident"],
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
