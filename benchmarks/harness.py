"""What every benchmark shares: a server of its own, a floor beside it, and a record of the run.

Numbers are only compared within one run: machines differ, and so does one machine from minute to
minute. A run is kept as JSON under ``benchmarks/runs/<date>/`` with machine, commit and command.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pillion.bench.data import clustered
from pillion.bench.floors import flushes
from pillion.bench.servers import Served, echoing, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Served", "clustered", "echoing", "serving"]  # the bench of the product has them

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "benchmarks" / "runs"
SERVED_PACKAGES = ("grpcio", "protobuf", "lmdb", "hnswlib", "numpy")


def machine() -> dict[str, Any]:
    """Return what the numbers depend on: processor, cores, kernel, versions."""
    processor = platform.processor() or platform.machine()
    flags = ""
    with contextlib.suppress(OSError):
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        for line in info.splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
            if line.startswith("flags"):
                flags = line
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "vectors": [name for name in ("avx2", "avx512f", "avx512_vnni") if name in flags],
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in SERVED_PACKAGES},
        "load_average": os.getloadavg()[0],
    }


def commit() -> str:
    """Return the commit that is measured, with a mark when the tree differs from it."""
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    dirty = subprocess.run(
        ["git", "status", "--porcelain", "--", "sidecar", "storage", "ranker-rs", "clients"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return f"{head}+" if dirty else head


def record(
    name: str, results: dict[str, Any], *, keep: bool, histograms: Iterable[tuple[str, str]] = ()
) -> None:
    """Print results as JSON, and keep them as a run when asked to, histograms in a file beside."""
    now = datetime.now(UTC)
    command = [Path(sys.argv[0]).resolve(), *sys.argv[1:]]
    with contextlib.suppress(ValueError):
        command[0] = Path(command[0]).relative_to(ROOT)
    run = {
        "name": name,
        "at": now.strftime("%Y-%m-%dT%H:%MZ"),
        "command": "python " + shlex.join(map(str, command)),
        "commit": commit(),
        "machine": machine(),
        "results": results,
    }
    text = json.dumps(run, indent=2, sort_keys=False)
    print(text)
    if keep:
        folder = RUNS / now.strftime("%Y-%m-%d")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        lines = "".join(f"{label}\t{one}\n" for label, one in histograms)
        if lines:
            (folder / f"{name}.histograms").write_text(lines, encoding="utf-8")


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return count, p50, p90, p99 and maximum in milliseconds."""
    values = np.array(seconds) * 1e3
    found = np.percentile(values, [50, 90, 99, 100])
    names = ("p50_ms", "p90_ms", "p99_ms", "max_ms")
    return {"count": len(seconds)} | {
        name: round(float(one), 4) for name, one in zip(names, found, strict=True)
    }


def flushes_per_second(folder: Path, seconds: float) -> float:
    """Return how often a page is overwritten and flushed to disk in a second, one after another.

    It is the floor of every durable write that waits for the one before it.
    """
    return flushes(folder, seconds).count / seconds


def in_turns(
    measured: dict[str, Callable[[int], object]], calls: int, *, turn: int = 100, warm_up: int = 5
) -> dict[str, list[float]]:
    """Time calls in short turns, so that what the machine does meanwhile falls on each.

    Args:
        measured: What to call, by name; it is given the number of the call, from 0.
        calls: How many of each are timed.
        turn: How many calls of one are made before the next one's.
        warm_up: How many turns of each come first, untimed.

    Returns:
        The seconds of each call, by name.
    """
    seconds: dict[str, list[float]] = {name: [] for name in measured}
    clock = time.perf_counter
    for round_ in range(-warm_up, calls // turn):
        for name, call in measured.items():
            times = []
            for number in range(max(round_, 0) * turn, (max(round_, 0) + 1) * turn):
                start = clock()
                call(number)
                times.append(clock() - start)
            if round_ >= 0:
                seconds[name] += times
    return seconds


def beside(times: dict[str, float], floor: dict[str, float]) -> dict[str, float]:
    """Return how many times as long as the floor something takes, at p50 and at p99."""
    return {
        f"ratio_{name}": round(times[f"{name}_ms"] / floor[f"{name}_ms"], 3)
        for name in ("p50", "p99")
    }
