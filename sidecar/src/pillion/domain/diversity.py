"""Maximal marginal relevance: a candidate list in which no hit repeats the ones before it.

Source: Carbonell and Goldstein, 1998. The first candidate stays first; each next one is that with
the greatest

    (1 - diversity) * score - diversity * (the greatest likeness to one chosen before)

where score and likeness are both 0..1. Ties go to the better place, so the order is that of the
list at a diversity of 0, and deterministic at any. Scores are not changed by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def diversified(
    scores: Sequence[float],
    likeness: Callable[[int], Sequence[float]],
    *,
    diversity: float,
    wanted: int,
) -> list[int]:
    """Return the places of a candidate list in their new order.

    Args:
        scores: Those of the candidates, best first, 0..1.
        likeness: That of the candidate at a place to each, 0..1; it is the same both ways.
        diversity: 0..1.
        wanted: How many are chosen by the rule; the others follow in their old order.
    """
    left = list(range(len(scores)))
    if diversity <= 0.0 or not left:
        return left
    chosen = [left.pop(0)]
    own = [(1.0 - diversity) * score for score in scores]
    nearest = [0.0] * len(scores)
    while left and len(chosen) < wanted:
        nearest = list(map(max, nearest, likeness(chosen[-1])))
        best = max(left, key=lambda place: own[place] - diversity * nearest[place])  # the first
        left.remove(best)
        chosen.append(best)
    return chosen + left
