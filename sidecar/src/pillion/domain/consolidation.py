"""Which memories speak of the same thing, and what a consolidated memory looks like. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pillion.domain.limits import LABELS_MAX, PII_LABELS_MAX
from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

# More memories than this in one summary read badly; the rest forms another cluster.
CLUSTER_MEMORIES_MAX: Final = 24
# How far above the usual similarity two memories must be to speak of the same thing, in standard
# deviations of all similarities of the set. Relative, because cosines of different embedders
# cannot share a threshold.
SIMILARITY_DEVIATIONS: Final = 1.0
# How far from unrelated (0) to identical (1) two memories surely speak of the same thing. Where all
# of a set do, none stands out from the others, and only this can tell.
SURELY_SAME: Final = 0.6


def _unchecked() -> None:
    """Nobody waits."""


def same_thing_threshold(
    similarities: Sequence[Sequence[float]],
    unrelated: float | None = None,
    *,
    check: Callable[[], None] = _unchecked,
) -> float:
    """Return the similarity from which two of these memories speak of the same thing.

    Args:
        similarities: A symmetric n x n matrix; its diagonal is not looked at.
        unrelated: The similarity that memories have which have nothing in common; None: unknown.
        check: Called once a row; raises when the caller waits no longer.
    """
    count = len(similarities)
    pairs = count * (count - 1) // 2
    if not pairs:
        return math.inf
    sums = []
    for i in range(count):
        check()
        sums.append(math.fsum(similarities[i][:i]))
    mean = math.fsum(sums) / pairs
    squares = []
    for i in range(count):
        check()
        squares.append(math.fsum((one - mean) ** 2 for one in similarities[i][:i]))
    usual = mean + SIMILARITY_DEVIATIONS * math.sqrt(math.fsum(squares) / pairs)
    if unrelated is None:
        return usual
    return min(usual, unrelated + SURELY_SAME * (1.0 - unrelated))


def cluster(
    similarities: Sequence[Sequence[float]],
    threshold: float,
    classes: Sequence[str] | None = None,
    *,
    check: Callable[[], None] = _unchecked,
) -> list[list[int]]:
    """Return groups of positions that speak of the same thing, in order of their first member.

    Average linkage, greedily in the given order: each memory joins the group to whose members it
    is on average most similar, if that reaches the threshold, else it begins one. Every position
    is in exactly one group.

    Args:
        similarities: A symmetric n x n matrix.
        threshold: The least average similarity of a member to its group.
        classes: The class of each position; a group has members of one class. None: all are alike.
        check: Called once a row; raises when the caller waits no longer.
    """
    groups: list[list[int]] = []
    for position in range(len(similarities)):
        check()
        row = similarities[position]
        best: list[int] | None = None
        best_similarity = threshold
        for group in groups:
            if len(group) >= CLUSTER_MEMORIES_MAX:
                continue
            if classes is not None and classes[group[0]] != classes[position]:
                continue
            average = math.fsum(row[member] for member in group) / len(group)
            if average >= best_similarity:
                best, best_similarity = group, average
        if best is None:
            groups.append([position])
        else:
            best.append(position)
    return groups


def labels_lost(sources: Sequence[Memory]) -> int:
    """Return how many labels of the sources would not fit on one memory; 0: all fit."""
    labels = {label for one in sources for label in one.labels}
    pii_labels = {label for one in sources for label in one.pii_labels}
    return max(0, len(labels) - LABELS_MAX) + max(0, len(pii_labels) - PII_LABELS_MAX)


def consolidated(sources: Sequence[Memory], text: str, new_id: UUID, now: int) -> Memory:
    """Return the semantic memory that states what its sources have in common.

    It is as important as the most important source, as sure as the least sure one, and holds
    since the latest of them. It is kept no longer than any of them: it expires with the first,
    and is of their retention class.

    Args:
        sources: Memories of one retention class, with no more labels than fit (``labels_lost``).
        text: What they have in common.
        new_id: Its id.
        now: When it is made.
    """
    if labels_lost(sources) or len({one.retention_class for one in sources}) > 1:
        raise AssertionError("sources of one retention class, whose labels fit")
    return Memory(
        id=new_id,
        subject=sources[0].subject,
        context=sources[0].context,
        kind=MemoryKind.SEMANTIC,
        text=text,
        source=Source(SourceKind.CONSOLIDATION),
        importance=max(one.importance for one in sources),
        confidence=min(one.confidence for one in sources),
        pinned=False,  # a caller pins what it has seen
        pii_labels=tuple(sorted({label for one in sources for label in one.pii_labels})),
        labels=tuple(sorted({label for one in sources for label in one.labels})),
        derived_from=tuple(one.id for one in sources),
        valid_from=max(one.valid_from for one in sources),
        expires_at=min(one.expires_at for one in sources),
        retention_class=sources[0].retention_class,
        created_at=now,
        updated_at=now,
    )
