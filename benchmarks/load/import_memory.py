"""How the server's memory grows while memories are imported.

Target: 100,000 memories of 384 dimensions grow it by at most 2.2 x (vectors + texts). Counted is
the process's own memory (anonymous pages), sampled every 50 ms from before the import until the
partition is searchable and idle; pages of the data file that the kernel caches for the process
are reported beside it, since it can drop them at any time.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Partition, Source

from benchmarks import harness

TEXT = (
    "Mira said on day {0} that the quarterly report for account {0} is due on Friday at noon, "
    "that Paul has the draft, and that the numbers of region {1} are still to be checked."
)
DIMENSION = 384


def memory_of(pid: int) -> dict[str, int]:
    """Return a process's resident bytes: anonymous, and of files."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name in ("RssAnon", "RssFile"):
            found[name] = int(rest.split()[0]) * 1024
    return found


class Sampler(threading.Thread):
    """Keeps the peak of a process's memory."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._stopping = threading.Event()
        self.peak = {"RssAnon": 0, "RssFile": 0}

    def run(self) -> None:
        """Sample until stopped."""
        while not self._stopping.wait(0.05):
            for name, value in memory_of(self._pid).items():
                self.peak[name] = max(self.peak[name], value)

    def stop(self) -> None:
        """Stop sampling."""
        self._stopping.set()
        self.join()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    vectors = harness.clustered(arguments.memories, DIMENSION, seed=1)
    texts = [TEXT.format(i, i % 97) for i in range(arguments.memories)]
    text_bytes = sum(len(text.encode()) for text in texts)
    content = vectors.nbytes + text_bytes
    with (
        harness.serving("--embedder", "none", "--log-level", "warning") as served,
        Client(served.target, partition=Partition("bench", "import")) as client,
    ):
        client.search(vector=vectors[0], top_k=1)  # everything lazy is loaded before
        before = memory_of(served.process.pid)
        sampler = Sampler(served.process.pid)
        sampler.start()
        source = Source("tool_result")
        start = time.perf_counter()
        for ack in client.import_(
            AddMemory("user:mira", text, source, vector=vector)
            for text, vector in zip(texts, vectors, strict=True)
        ):
            if ack.rejections:
                raise RuntimeError(f"refused: {ack.rejections[0]}")
        seconds = time.perf_counter() - start
        hit = client.search(vector=vectors[-1], top_k=1).hits[0]
        if hit.memory.text != texts[-1]:
            raise RuntimeError("the last memory is not found")
        lag = 1
        while lag:
            (stats,) = client.stats(partition=Partition("bench", "import")).partitions
            lag = stats.index_lag
            time.sleep(0.2)
        sampler.stop()
        disk = client.stats().store.disk_bytes
    growth = sampler.peak["RssAnon"] - before["RssAnon"]
    harness.record(
        f"import_memory_{arguments.memories}",
        {
            "memories": arguments.memories,
            "vector_bytes": vectors.nbytes,
            "text_bytes": text_bytes,
            "import_seconds": round(seconds, 2),
            "memories_per_second": round(arguments.memories / seconds),
            "grown_bytes": growth,
            "grown_ratio": round(growth / content, 3),
            "file_pages_grown_bytes": sampler.peak["RssFile"] - before["RssFile"],
            "resident_partition_bytes": stats.resident_bytes,
            "indexed_vectors": stats.indexed_vectors,
            "disk_bytes": disk,
        },
        keep=arguments.keep,
    )


if __name__ == "__main__":
    main()
