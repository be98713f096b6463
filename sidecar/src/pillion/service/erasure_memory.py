"""What this process has in memory of erased records: where it is, and how it is let go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pillion_ranker as ranker

from pillion.domain.errors import PillionError, Reason
from pillion.service.table_rows import id_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.index_snapshots import IndexSnapshots
    from pillion.service.residents import Residents

# What an erasure waits for vectors to be overwritten, at most: an index may be being rebuilt.
INDEX_SECONDS_MAX: Final = 60.0
ANSWER_SECONDS: Final = 0.2


class MemoryWiper:
    """Has the caches of a partition let go of what was erased. Safe to share between threads."""

    def __init__(
        self,
        store: Store,
        residents: Residents,
        snapshots: IndexSnapshots | None,
        wipers: Iterable[Callable[[Partition], None]],
    ) -> None:
        self._store = store
        self._residents = residents
        self._snapshots = snapshots
        self._wipers = list(wipers)

    def on_wipe(self, wipe: Callable[[Partition], None]) -> None:
        """Have something called that lets go of all it keeps of a partition's content."""
        self._wipers.append(wipe)

    def forget_index(self, partition: Partition, deadline: Deadline) -> list[bytes]:
        """Take what was deleted out of table and index, and do away with the index's snapshot.

        Returns:
            The data keys of snapshots, which are to be destroyed.

        Raises:
            PillionError: ERASURE_UNPROVEN while vectors wait to be overwritten, or where the
                snapshot may still be there.
        """
        resident = self._residents.peek(partition)
        if resident is not None:
            revision = resident.refresh()
        else:
            revision = self._store.head(partition).revision
        retired: list[bytes] = []
        if self._snapshots is not None:
            try:
                retired = self._snapshots.forget(partition, revision)
            except OSError as error:
                raise PillionError(
                    Reason.ERASURE_UNPROVEN,
                    f"the index's snapshot could not be removed ({error.strerror}): say it again",
                ) from error
        if resident is not None:
            patience = min(deadline.remaining_seconds() - ANSWER_SECONDS, INDEX_SECONDS_MAX)
            if not resident.view.ann.wait_erased(revision, max(0.0, patience)):
                raise PillionError(
                    Reason.ERASURE_UNPROVEN,
                    "erased vectors are not overwritten yet in the index: say it again",
                )
        return retired

    def wipe(self, partition: Partition) -> None:
        """Let go of every decoded memory, name and answer of a partition."""
        resident = self._residents.peek(partition)
        if resident is not None:
            resident.refresh()
            resident.cache.drop_all(resident.applied)
        for wipe in self._wipers:
            wipe(partition)

    def holds(self, partition: Partition, ids: Sequence[UUID]) -> bool:
        """Say whether the table, or its words, has a row of any of these."""
        resident = self._residents.peek(partition)
        if resident is None or not ids:
            return False
        resident.refresh()
        slots = resident.view.table.slots(id_rows([one.bytes for one in ids]))
        return bool((slots != ranker.SLOT_ABSENT).any())
