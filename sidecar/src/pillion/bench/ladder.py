"""Where the knee is: rates are tried upwards, then between the last good and the first bad one.

Pure: it is told what became of a rate and says which to try next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

STEP: Final = 1.5
"""How much the next rate is above the last while none was too much."""

_NARROW: Final = 1.06  # a knee between two rates this close is known well enough


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one rate.

    Attributes:
        offered: Calls a second that were due.
        answered: Calls a second that came back well.
        p99: Seconds that 99 % of the answered did not exceed, from when they were due.
        refused: Calls that came back with an error, deadlines included.
        client_late: Seconds that the client itself was late with 99 % of the calls.
    """

    offered: float
    answered: float
    p99: float
    refused: int
    client_late: float


@dataclass(slots=True)
class Knee:
    """The highest rate at which a server keeps a bound on its p99, found by trying.

    A rate that does not keep it is tried once more: machines have bad seconds.

    Attributes:
        bound: Seconds that the p99 may take.
        first: The first rate to try, calls a second.
        tries_max: How many rates are tried in all.
        tried: What became of them, in order.
    """

    bound: float
    first: float
    tries_max: int = 16
    tried: list[Tried] = field(default_factory=list)

    @property
    def best(self) -> Tried | None:
        """The highest rate that kept the bound; None: not one did."""
        kept = [one for one in self.tried if self.is_kept(one)]
        return max(kept, key=lambda one: one.offered, default=None)

    def is_kept(self, one: Tried) -> bool:
        """Return whether a rate was served: all of it, well, and within the bound."""
        return one.refused == 0 and one.p99 <= self.bound

    def next_rate(self) -> float | None:
        """Return which rate to try next; None: the knee is known, or enough were tried."""
        if not self.tried:
            return self.first
        if len(self.tried) >= self.tries_max:
            return None
        best = self.best
        low = best.offered if best else 0.0
        over = [one.offered for one in self.tried if one.offered > low]
        if over and over.count(over[-1]) == 1:
            return over[-1]
        if not over:
            return low * STEP
        high = min(over)
        if low == 0.0:
            return high / 2 if high > 1.0 else None
        return None if high / low <= _NARROW else (low * high) ** 0.5


def climb(knee: Knee, attempt: Callable[[float], Tried]) -> Tried | None:
    """Try rates until the knee is known; return the best, or None when none kept the bound."""
    while (rate := knee.next_rate()) is not None:
        knee.tried.append(attempt(rate))
    return knee.best
