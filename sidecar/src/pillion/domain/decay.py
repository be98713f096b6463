"""Vitality: recency x importance. The policy by which trivial memories fade and others do not.

Recency is a half-life's decay, ``2 ** -(age / half life)``, from the later of valid_from and the
last use: what is used stays alive. Pinned memories do not fade. The ranker sweeps whole
partitions by the same formula, in float32 over columns; a test holds the two equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion.domain.memory import Memory, MemoryKind

ENDLESS: Final = float("inf")


def vitality(memory: Memory, now: int, half_life: float) -> float:
    """Return a memory's vitality, 0 to 1.

    Args:
        memory: It, with its last use.
        now: Microseconds since the epoch.
        half_life: In microseconds; `ENDLESS`: it does not fade.
    """
    age = max(0, now - max(memory.valid_from, memory.last_used_at))
    recency = 1.0 if half_life == ENDLESS else 2.0 ** -(age / half_life)
    return recency * memory.importance


def has_faded(
    memory: Memory, now: int, half_life: float, below: Mapping[MemoryKind, float]
) -> bool:
    """Return whether its vitality is under its kind's threshold; a kind without one stays."""
    threshold = below.get(memory.kind)
    return (
        threshold is not None and not memory.pinned and vitality(memory, now, half_life) < threshold
    )
