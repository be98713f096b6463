"""Every memory of some subjects at a revision, from the store: slow, complete, and undisturbed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import SubjectRecord, id_of, memory_key, prefix_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Deadline

STEP: Final = 1024


def standing_memories(
    store: Store,
    partition: Partition,
    keys: KeySpace,
    subjects: Sequence[Subject],
    *,
    at: int,
    deadline: Deadline,
) -> Iterator[Memory]:
    """Yield what subjects had at a revision, one subject after another, the oldest first."""
    for subject in subjects:
        prefix = keys.subject_range(subject, SubjectRecord.MEMORY)
        start: bytes | None = prefix
        while start is not None:
            deadline.check()
            page = store.scan(
                partition, start, prefix_end(prefix), limit=STEP, at=at, keys_only=True
            )
            wanted = [memory_key(id_of(row.key)) for row in page.rows]
            found = store.read(partition, wanted, at=at).entries
            for key in wanted:
                entry = found.get(key)
                if entry is not None:
                    yield codec.decode_memory(id_of(key), entry.value, entry.version)
            start = page.next_start
