"""Listing what came from given records, by the index that leads from a source to the derived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage.keys import created_key, derived_prefix, id_of, prefix_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.queries import Filter
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.reading import RecordReader

DERIVED_STEP: Final = 500


def sources_named(filter_: Filter) -> frozenset[UUID]:
    """Return the records of which a filter admits nothing but what came from them; empty: none."""
    return filter_.derived_from or filter_.episode_ids


def derived_memories(
    store: Store,
    partition: Partition,
    reader: RecordReader,
    sources: Iterable[UUID],
    *,
    revision: int,
    start: bytes,
    deadline: Deadline,
) -> Iterator[tuple[bytes, Memory]]:
    """Yield the memories that came from any of the sources, oldest first, equal times by id.

    With each comes its key in the index by creation. They are sorted here, so each page costs
    as much as the sources have derived memories.

    Args:
        store: The store.
        partition: Where.
        reader: Reads memories of that partition.
        sources: Ids of memories and episodes.
        revision: The state that is read.
        start: Keys before this one are left out.
        deadline: Looked at between steps.
    """
    places: list[tuple[bytes, UUID]] = []
    ids = sorted(_derived_ids(store, partition, sources, revision, deadline))
    for step in _steps(ids):
        deadline.check()
        memories, _ = reader.bare_memories(step, revision)
        places += [(created_key(one.created_at, one.id), one.id) for one in memories.values()]
    places = sorted(place for place in places if place[0] >= start)
    for step in _steps([memory_id for _, memory_id in places]):
        memories, _ = reader.memories(step, revision)
        for memory_id in step:
            memory = memories[memory_id]
            yield created_key(memory.created_at, memory_id), memory


def _derived_ids(
    store: Store,
    partition: Partition,
    sources: Iterable[UUID],
    revision: int,
    deadline: Deadline,
) -> set[UUID]:
    found: set[UUID] = set()
    for source_id in sources:
        prefix = derived_prefix(source_id)
        start: bytes | None = prefix
        while start is not None:
            deadline.check()
            page = store.scan(
                partition,
                start,
                prefix_end(prefix),
                limit=DERIVED_STEP,
                at=revision,
                keys_only=True,
            )
            found.update(id_of(row.key) for row in page.rows)
            start = page.next_start
    return found


def _steps(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    for begin in range(0, len(ids), DERIVED_STEP):
        yield ids[begin : begin + DERIVED_STEP]
