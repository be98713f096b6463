"""How long it takes from an ERASE of one subject to its verified receipt, and what reads see.

A partition is filled with memories of many subjects, and one subject with its own. Another caller
searches all along, before the erasure and during it; both latencies are told. With encryption on
the subject's key is destroyed; ``--encryption off`` writes the whole data file anew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion_client import AddMemory, Client, Source

from benchmarks import harness
from benchmarks.load.cold_load import PARTITION, fill
from benchmarks.load.import_memory import DIMENSION

SUBJECT = "user:to-be-erased"
QUIET_SECONDS = 3.0


def fill_subject(client: Client, count: int) -> None:
    """Put ``count`` memories of the one who is to be erased, each with a vector."""
    vectors = harness.clustered(count, DIMENSION, seed=3)
    source = Source("tool_result")
    items = (
        AddMemory(SUBJECT, f"what is to be erased, number {i}", source, vector=vectors[i])
        for i in range(count)
    )
    for ack in client.import_(items):
        if ack.rejections:
            raise RuntimeError(f"refused: {ack.rejections[0]}")


class Reads:
    """Searches without a rest, in a thread of its own."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._stop = threading.Event()
        self.taken: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        queries = harness.clustered(256, DIMENSION, seed=2)
        with Client(self._target, partition=PARTITION, default_deadline_seconds=120.0) as client:
            while not self._stop.is_set():
                before = time.perf_counter()
                client.search(vector=queries[len(self.taken) % len(queries)], top_k=10)
                self.taken.append((before, time.perf_counter() - before))

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--erased", type=int, default=1000)
    parser.add_argument("--encryption", choices=["on", "off"], default="on")
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pillion-erase-") as scratch:
        directory = Path(scratch) / "data"
        flags = ("--embedder", "none", "--erasure", "preview")
        flags += ("--encryption", arguments.encryption)
        with (
            harness.serving("--directory", str(directory), *flags) as served,
            Client(served.target, partition=PARTITION, default_deadline_seconds=300.0) as client,
        ):
            fill(client, arguments.memories - arguments.erased)
            fill_subject(client, arguments.erased)
            client.search("report", top_k=1)
            with Reads(served.target) as reads:
                time.sleep(QUIET_SECONDS)
                begun = time.perf_counter()
                result = client.forget(subject=SUBJECT, mode="erase", dry_run=False)
                ended = time.perf_counter()
            report = result.report
            if report is None or report.receipt is None or report.memories != arguments.erased:
                raise RuntimeError("not everything was erased")
            before = [taken for at, taken in reads.taken if at + taken < begun]
            during = [taken for at, taken in reads.taken if at + taken >= begun and at <= ended]
            harness.record(
                f"erase_subject_{arguments.memories}_{arguments.encryption}",
                {
                    "memories": arguments.memories,
                    "erased": arguments.erased,
                    "encryption": arguments.encryption,
                    "receipt_seconds": round(ended - begun, 3),
                    "verification": report.receipt.verification,
                    "searches_before": harness.percentiles(before),
                    "searches_during": harness.percentiles(during),
                    "slowest_search_during_ms": round(1000 * max(during), 1),
                },
                keep=arguments.keep,
            )


if __name__ == "__main__":
    main()
