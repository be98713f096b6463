"""How much memory this process may take: what its container allows, or what the machine has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CONTAINER_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")


def memory_bytes(container_limit: Path = CONTAINER_LIMIT) -> int:
    """Return the lesser of the machine's memory and the limit of the process's control group."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(container_limit.read_text(encoding="ascii"))
    except (OSError, ValueError):  # there is no such file, or it says "max"
        return machine
    return min(machine, limit)


def partitions_share(whole: int) -> int:
    """Return what partitions may take of that, unless told otherwise: half.

    The other half is for pages of the data file, which every read goes through, and for calls
    under way; a partition that is loaded is in memory twice for a moment, a step at a time.
    """
    return whole // 2
