"""How hard an index must look to find what an exact search finds: measured, not assumed.

Recall at k under an effort ef depends on the data far more than on the index's settings. So now
and then a few of the partition's own vectors are looked up both ways, and what the index missed is
counted. Queries that lie further from what is stored than stored vectors from each other are
harder than this sample; a target is met on average over such a sample, not for each query.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import pillion_ranker as ranker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pillion_storage.index.hnsw import HnswIndex

EFFORTS: Final = (16, 32, 64, 128, 256, 512, 1024)
# Lengths of lists that are measured: a short one is easier to find whole.
LENGTHS: Final = (10, 100)
# Queries of one measurement. Of 48 x 10 neighbours the share is known to about one percent.
SAMPLE: Final = 48
# Until something was measured, the effort for each neighbour asked for, and at least.
_EFFORT_EACH: Final = 2
EFFORT_UNKNOWN: Final = 256

# By nothing but cosine, and everything there is.
_NEAREST: Final = ranker.Profile(
    w_relevance=1.0,
    w_recency=0.0,
    w_importance=0.0,
    relevance_floor=-1.0,
    consolidated_factor=1.0,
)
_ALL: Final = ranker.Filter(statuses=0, exclude_flags=0)


class RecallTable:
    """What share of the k nearest is found with which effort. Immutable."""

    def __init__(self, found: dict[int, dict[int, float]]) -> None:
        """Take the share found by length of the list and effort."""
        self._found = {
            length: dict(sorted(by_effort.items())) for length, by_effort in sorted(found.items())
        }

    @classmethod
    def of_rows(cls, rows: list[list[float]]) -> RecallTable | None:
        """Return the table of what ``rows`` gave; None: they are none."""
        found: dict[int, dict[int, float]] = {}
        try:
            for length, effort, share in rows:
                if not 0 <= share <= 1 or length < 1 or effort < 1:
                    return None
                found.setdefault(int(length), {})[int(effort)] = float(share)
        except (TypeError, ValueError):
            return None
        return cls(found) if found else None

    def rows(self) -> list[list[float]]:
        """Return (k, effort, share found) of each measurement."""
        return [
            [length, effort, share]
            for length, by_effort in self._found.items()
            for effort, share in by_effort.items()
        ]

    @property
    def best(self) -> float:
        """The least share found over all lengths with the greatest effort."""
        return min(max(by_effort.values()) for by_effort in self._found.values())

    def effort_for(self, recall_target: float, k: int) -> int | None:
        """Return the least effort that found this share of the k nearest; None: none did.

        Between measured lengths the longer one counts. Beyond the longest the effort grows with k.
        """
        length = next((one for one in self._found if one >= k), max(self._found))
        for effort, share in self._found[length].items():
            if share >= recall_target:
                return max(effort * max(k, length) // length, k)
        return None


def effort_unknown(k: int) -> int:
    """Return the effort for k neighbours before anything was measured."""
    return max(EFFORT_UNKNOWN, _EFFORT_EACH * k)


class RecallMeasurement:
    """One measurement, a query at a time, so that its maker can do other things in between."""

    def __init__(self, index: HnswIndex, table: ranker.Table, seed: int) -> None:
        """Draw the sample."""
        self._index = index
        self._table = table
        slots = index.slots()
        draw = np.random.default_rng(seed)
        self._queries: Iterator[np.uint32] = iter(
            draw.choice(slots, size=min(SAMPLE, len(slots)), replace=False)
        )
        self._lengths = [length for length in LENGTHS if length < len(slots)]
        # hnswlib explores no fewer than it is asked for, so an effort is at least the length.
        self._sums = {
            length: dict.fromkeys([one for one in EFFORTS if one > length], 0.0)
            for length in self._lengths
        }
        self._asked = 0

    def step(self) -> bool:
        """Ask the next query; False: there is none, or nothing to measure."""
        slot = next(self._queries, None)
        if slot is None or not self._lengths:
            return False
        try:
            query = self._table.vectors_of(np.array([slot], dtype=np.uint32))[0]
        except ValueError:  # its row is gone since
            return True
        # The vector itself is found by the way; it is no neighbour.
        longest = self._lengths[-1]
        hits = self._table.search(query=query, now=0, profile=_NEAREST, filter=_ALL, k=longest + 1)
        exact = _others(hits.slots, slot)
        for effort in EFFORTS:
            found = _others(self._index.search(query, effort, effort).slots, slot)
            for length, sums in self._sums.items():
                if effort in sums:
                    true = exact[:length]
                    share = np.isin(true, found[:length]).mean() if len(true) else 1.0
                    sums[effort] += float(share)
        self._asked += 1
        return True

    def table(self) -> RecallTable | None:
        """Return what was measured; None: nothing."""
        if not self._asked:
            return None
        return RecallTable(
            {
                length: {
                    effort: math.floor(1000 * total / self._asked) / 1000
                    for effort, total in by_effort.items()
                }
                for length, by_effort in self._sums.items()
            }
        )


def _others(slots: NDArray[np.uint32], slot: np.uint32) -> NDArray[np.uint32]:
    return np.delete(slots, np.flatnonzero(slots == slot))
