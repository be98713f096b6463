"""What this machine can do at best, measured in the same run as what is compared with it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pillion.bench.histograms import Latencies


def flushes(folder: Path, seconds: float) -> Latencies:
    """Overwrite a page and flush it to disk, one after another, for some seconds; return each time.

    It is the floor of every durable write that waits for the one before it.
    """
    path = folder / "floor"
    page = os.urandom(4096)
    found = Latencies()
    with path.open("wb", buffering=0) as file:
        file.write(page * 16)
        os.fsync(file.fileno())
        end = time.perf_counter() + seconds
        number = 0
        while (start := time.perf_counter()) < end:
            os.pwrite(file.fileno(), page, 4096 * (number % 16))
            os.fdatasync(file.fileno())
            found.record(time.perf_counter() - start)
            number += 1
    path.unlink()
    return found


def cpu_seconds(pid: int) -> float | None:
    """Return the processor time that a process has used; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
