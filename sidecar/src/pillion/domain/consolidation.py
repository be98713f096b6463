"""Which memories speak of the same thing, and what a consolidated memory looks like. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pillion.domain.limits import LABELS_MAX
from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Sequence
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


def same_thing_threshold(
    similarities: Sequence[Sequence[float]], unrelated: float | None = None
) -> float:
    """Return the similarity from which two of these memories speak of the same thing.

    Args:
        similarities: A symmetric n x n matrix; its diagonal is not looked at.
        unrelated: The similarity that memories have which have nothing in common; None: unknown.
    """
    count = len(similarities)
    pairs = [similarities[i][j] for i in range(count) for j in range(i)]
    if not pairs:
        return math.inf
    mean = math.fsum(pairs) / len(pairs)
    deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in pairs) / len(pairs))
    usual = mean + SIMILARITY_DEVIATIONS * deviation
    if unrelated is None:
        return usual
    return min(usual, unrelated + SURELY_SAME * (1.0 - unrelated))


def cluster(similarities: Sequence[Sequence[float]], threshold: float) -> list[list[int]]:
    """Return groups of positions that speak of the same thing, in order of their first member.

    Average linkage, greedily in the given order: each memory joins the group to whose members it
    is on average most similar, if that reaches the threshold, else it begins one. Every position
    is in exactly one group.
    """
    groups: list[list[int]] = []
    for position in range(len(similarities)):
        row = similarities[position]
        best: list[int] | None = None
        best_similarity = threshold
        for group in groups:
            if len(group) >= CLUSTER_MEMORIES_MAX:
                continue
            average = math.fsum(row[member] for member in group) / len(group)
            if average >= best_similarity:
                best, best_similarity = group, average
        if best is None:
            groups.append([position])
        else:
            best.append(position)
    return groups


def consolidated(sources: Sequence[Memory], text: str, new_id: UUID, now: int) -> Memory:
    """Return the semantic memory that states what its sources have in common.

    It is as important as the most important source, as sure as the least sure one, and holds
    since the latest of them.
    """
    labels = sorted({label for one in sources for label in one.labels})
    return Memory(
        id=new_id,
        subject=sources[0].subject,
        context=sources[0].context,
        kind=MemoryKind.SEMANTIC,
        text=text,
        source=Source(SourceKind.CONSOLIDATION),
        importance=max(one.importance for one in sources),
        confidence=min(one.confidence for one in sources),
        pii_labels=tuple(sorted({label for one in sources for label in one.pii_labels})),
        labels=tuple(labels[:LABELS_MAX]),
        derived_from=tuple(one.id for one in sources),
        valid_from=max(one.valid_from for one in sources),
        created_at=now,
        updated_at=now,
    )
