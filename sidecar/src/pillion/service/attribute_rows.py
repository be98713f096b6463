"""Finding the facts of an attribute: the index ``b``, and how partitions without it get it.

Every version of this server writes the index with each fact. A partition that an earlier version
wrote lacks the rows of its older facts; they are added once, before the first registration, in
batches that each remember where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import Batch, Committed
from pillion_storage.keys import BY_ATTRIBUTE_KEY, after, id_of, memory_key, prefix_end

from pillion.domain.limits import COMMIT_TRIES_MAX
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline

# Memories read, or index rows written, at a time.
STEP: Final = 500
_ROWS: Final = b"f"
_DONE: Final = b""


class AttributeRows:
    """The facts of attributes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def complete(self, partition: Partition, keys: KeySpace, deadline: Deadline) -> None:
        """Add what the index lacks, if it lacks anything. What was added stays if this fails.

        Raises:
            PillionError: DEADLINE_EXCEEDED or CANCELLED; the next call goes on.
        """
        tries = 0
        while tries < COMMIT_TRIES_MAX:
            deadline.check()
            setting = self._store.read(partition, [BY_ATTRIBUTE_KEY]).entries.get(BY_ATTRIBUTE_KEY)
            if setting is not None and codec.unpack(setting.value) == _DONE:
                return
            start = codec.unpack(setting.value) if setting is not None else _ROWS
            puts, following = self._missing(partition, keys, start)
            batch = Batch(
                puts={**puts, BY_ATTRIBUTE_KEY: codec.pack(following or _DONE)},
                expect={BY_ATTRIBUTE_KEY: setting.version if setting is not None else 0},
            )
            if isinstance(self._store.commit(partition, batch), Committed):
                tries = 0
            else:
                tries += 1  # somebody else is at it as well
        raise changed_too_often()

    def _missing(
        self, partition: Partition, keys: KeySpace, start: bytes
    ) -> tuple[dict[bytes, bytes], bytes | None]:
        """Return index rows of some facts, and where the next ones begin; None: there are none."""
        page = self._store.scan(partition, start, prefix_end(_ROWS), limit=STEP, keys_only=True)
        found = self._memories(partition, [id_of(row.key) for row in page.rows], page.revision)
        puts = {keys.of_attribute(one.attribute, one.id): b"" for one in found if one.is_fact}
        return puts, page.next_start

    def _is_complete(self, partition: Partition, revision: int) -> bool:
        found = self._store.read(partition, [BY_ATTRIBUTE_KEY], at=revision).entries
        setting = found.get(BY_ATTRIBUTE_KEY)
        return setting is not None and codec.unpack(setting.value) == _DONE

    def of(
        self,
        partition: Partition,
        keys: KeySpace,
        attribute: str,
        revision: int,
        *,
        after_id: UUID | None = None,
        step: int = STEP,
    ) -> Iterator[list[Memory]]:
        """Yield an attribute's facts at a revision, candidates and ended ones too, in steps.

        They come in the order of their ids. Without a complete index, every fact of the partition
        is looked at.
        """
        indexed = self._is_complete(partition, revision)
        prefix = keys.attribute_range(attribute) if indexed else _ROWS
        start: bytes | None = prefix
        if after_id is not None and indexed:
            start = after(keys.of_attribute(attribute, after_id))
        while start is not None:
            page = self._store.scan(
                partition, start, prefix_end(prefix), limit=step, at=revision, keys_only=True
            )
            found = self._memories(partition, [id_of(row.key) for row in page.rows], revision)
            yield [one for one in found if one.attribute == attribute]
            start = page.next_start

    def _memories(self, partition: Partition, ids: Sequence[UUID], revision: int) -> list[Memory]:
        """Return the memories of some ids; named statements that became no row have none."""
        if not ids:
            return []
        wanted = {memory_key(one): one for one in ids}
        found = self._store.read(partition, list(wanted), at=revision).entries
        return [
            codec.decode_memory(one, found[key].value, found[key].version)
            for key, one in wanted.items()
            if key in found
        ]
