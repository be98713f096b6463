"""From what the ranker found to hits: memories, the versions of facts, which had a cosine."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from pillion.domain.queries import Hit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    import pillion_ranker as ranker
    from numpy.typing import NDArray

    from pillion.domain.memory import Memory
    from pillion.service.arranging import Pick
    from pillion.service.ranked import Asked
    from pillion.service.reading import RecordReader
    from pillion.service.resident import Resident

    # What the ranker says of a hit: id, score, relevance, recency, importance, cosine, lexical.
    Row = tuple[bytes, float, float, float, float, float, float]


def memories_of(
    reader: RecordReader, resident: Resident, order: Sequence[bytes], revision: int
) -> tuple[list[Memory | None], list[int]]:
    """Return the memories of these ids in their order, None where one is gone, and revisions.

    Each is as of the revision at its place or newer, without the version of its timeline.
    """
    known = [resident.cache.get(one) for one in order]
    seen = [revision] * len(known)
    missing = [place for place, memory in enumerate(known) if memory is None]
    if missing:
        read, read_at = reader.bare_memories([UUID(bytes=order[place]) for place in missing], None)
        resident.cache.add({one.bytes: memory for one, memory in read.items()}, read_at)
        for place in missing:
            known[place] = read.get(UUID(bytes=order[place]))
            seen[place] = read_at  # what was kept may be older
    return known, seen


def fill_fact_versions(
    reader: RecordReader,
    resident: Resident,
    memories: list[Memory],
    places: Sequence[int],
    seen: Sequence[int],
) -> None:
    """Fill in the versions of the timelines of some memories, each as of its revision in ``seen``.

    A newer version beside an older row would let its reader overwrite what it has not seen.
    """
    facts = [place for place in places if memories[place].attribute]
    for revision in {seen[place] for place in facts}:
        bare = {place: memories[place] for place in facts if seen[place] == revision}
        by_id = {memory.id: memory for memory in bare.values()}
        reader.fill_fact_versions(by_id, revision)
        filled = {place: by_id[memory.id] for place, memory in bare.items()}
        resident.cache.swap((old.id.bytes, old, filled[place]) for place, old in bare.items())
        for place, new in filled.items():
            memories[place] = new


def hits_of(
    picks: Sequence[Pick],
    memories: Sequence[Memory],
    rows: Sequence[Row],
    vectors: Mapping[UUID, bytes],
    compared: Collection[bytes],
) -> tuple[Hit, ...]:
    """Return what was picked, with its memories; ``compared``: the ids that have a cosine."""
    hits = []
    for place, older, folded in picks:
        memory = memories[place]
        id_bytes, score, relevance, recency, importance, cosine, lexical = rows[place]
        hits.append(
            Hit(
                memory,
                score,
                relevance,
                recency,
                importance,
                cosine if id_bytes in compared else None,
                vectors.get(memory.id, b"") if vectors else b"",
                older=older,
                folded=tuple(memories[one].id for one in folded),
                lexical=lexical or None,
            )
        )
    return tuple(hits)


def compared_with(
    table: ranker.Table, rows: Sequence[Row], query: NDArray[np.float32] | None
) -> AbstractSet[bytes]:
    """Return the ids whose vectors were compared with the query's.

    Of a memory without a vector the ranker says 0, and of one at a right angle too: the table
    knows which it was.
    """
    if query is None:
        return frozenset()
    compared = {row[0] for row in rows if row[5] != 0.0}
    unclear = [row[0] for row in rows if row[5] == 0.0]
    if unclear:
        ids = np.frombuffer(b"".join(unclear), dtype=np.uint8).reshape(len(unclear), 16)
        for one, slot in zip(unclear, table.slots(ids), strict=True):
            # A memory that left the table meanwhile has no slot, which raises too.
            with contextlib.suppress(ValueError):
                table.vectors_of(np.array([slot], dtype=np.uint32))
                compared.add(one)
    return compared


def best_of(
    tables: Iterable[ranker.Table], search: Asked
) -> tuple[list[Row], set[bytes], int, int]:
    """Return the best rows of several tables, which of them were compared, and two counts.

    The counts: rows that the filter admitted, and rows that were scored exactly.
    """
    best: list[Row] = []
    compared: set[bytes] = set()
    admitted = scored = 0
    for table in tables:
        hits = table.search(**search)
        admitted += hits.admitted
        scored += hits.rescored
        rows = hits.rows()
        compared |= compared_with(table, rows, search["query"])
        best = sorted(best + rows, key=lambda row: (-row[1], row[0]))[: search["k"]]
    return best, compared, admitted, scored
