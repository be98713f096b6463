"""Which memories faded: a sweep over a partition's columns, then each is looked at again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from pillion.domain.decay import has_faded
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter, RankingProfile, RecencyAnchor
from pillion.service.ranking import HALF_LIVES_US, filter_of, profile_of
from pillion.service.reading import RecordReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.accesses import Accesses
    from pillion.service.half_lives import HalfLives
    from pillion.service.partitions import KeySpaces
    from pillion.service.residents import Residents

_BY_USE = RankingProfile(recency_anchor=RecencyAnchor.LAST_USED)
# Everything that recall could still come upon, as of whenever.
_RECALLABLE = Filter(contexts=None, statuses=frozenset(), valid_only=False)


class Fading:
    """Finds what faded."""

    def __init__(
        self, *, store: Store, keys: KeySpaces, residents: Residents, accesses: Accesses
    ) -> None:
        self._store = store
        self._keys = keys
        self._residents = residents
        self._accesses = accesses

    def faded(
        self,
        partition: Partition,
        below: Mapping[MemoryKind, float],
        now: int,
        deadline: Deadline,
        limit: int,
    ) -> Iterator[tuple[UUID, ...]]:
        """Yield memories whose vitality is under their kind's threshold, at most ``limit`` at once.

        What was forgotten or expired, or is pinned, is not among them. What was used since the
        sweep is left out when its turn comes.
        """
        if self._store.head(partition).revision == 0:
            return
        keys = self._keys.at(partition, self._store.head(partition).revision)
        thresholds = np.zeros(len(MemoryKind) + 1, dtype=np.float32)
        for kind, vitality in below.items():
            thresholds[kind] = vitality
        with self._residents.using(partition, deadline) as resident:
            resident.refresh()
            resident.rank_by_use()
            view = resident.view
            found = view.table.vitality(
                now=now,
                profile=profile_of(_BY_USE, 0.0, view.half_lives),
                filter=filter_of(keys, _RECALLABLE, as_of=now, now=now, score_min=0.0),
                below=thresholds,
            )
            half_lives = view.half_lives
        for at in range(0, len(found), limit):
            deadline.check()
            ids = [UUID(bytes=row.tobytes()) for row in found[at : at + limit]]
            yield self._again(partition, ids, below, now, half_lives)

    def _again(
        self,
        partition: Partition,
        ids: Sequence[UUID],
        below: Mapping[MemoryKind, float],
        now: int,
        half_lives: HalfLives,
    ) -> tuple[UUID, ...]:
        """Return those that faded by what the store and the uses that wait say now."""
        keys = self._keys.of(partition)
        memories, _ = RecordReader(self._store, partition, keys).bare_memories(ids, None)
        waiting = self._accesses.last_used(partition, [one.bytes for one in ids])

        def used(memory: Memory) -> Memory:
            last = max(memory.last_used_at, waiting.get(memory.id.bytes, 0))
            return replace(memory, last_used_at=last)

        def half_life(memory: Memory) -> float:
            own = half_lives.columns.get(keys.column("attribute", memory.attribute))
            return HALF_LIVES_US[memory.kind] if own is None else own

        return tuple(
            one.id for one in memories.values() if has_faded(used(one), now, half_life(one), below)
        )
