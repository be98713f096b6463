"""Latency under load, open loop: the knee of each mix and the curve around it, beside the echo's.

`pillion bench` for one mix after another, kept. Calls are due at instants of a Poisson process and
timed from when they were due; the echo RPC of the same sizes is measured in turn, at the same
rates. Target: Search at 0.7 x the echo's throughput within the same bound of p99, 10 ms.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pillion.bench.data import Data
from pillion.bench.run import Run, Settings
from pillion.bench.schedule import MIXES

from benchmarks import harness


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mixes", nargs="+", default=list(MIXES), choices=list(MIXES))
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the run under benchmarks/runs")
    arguments = parser.parse_args()
    for mix in arguments.mixes:
        settings = Settings(
            mix=mix,
            data=Data(memories=arguments.memories),
            seconds=arguments.seconds,
            warm_up=arguments.seconds / 5,
            processes=arguments.processes,
        )
        run = Run(settings, lambda text: print(text, file=sys.stderr))
        run.measure()
        harness.record(
            f"open_loop_{mix}", run.as_dict(), keep=arguments.keep, histograms=run.histograms()
        )


if __name__ == "__main__":
    main()
