"""One commit of an erasure: some records deleted with all that leads to them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage.keys import (
    SubjectRecord,
    access_key,
    captured_key,
    created_key,
    derived_key,
    derived_prefix,
    episode_key,
    id_of,
    memory_key,
    pending_key,
    prefix_end,
    taken_key,
    vector_key,
)

from pillion.domain.erasure import Fate, fate_of, tombstones_of, without
from pillion.domain.memory import MemoryStatus
from pillion.service.timeline_erasure import TimelineEraser

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Episode, Memory
    from pillion.service.applier import Applier
    from pillion.service.draft import Draft

# Of families that have no function of their own.
_NO_VECTOR: Final = b"x"
# Whatever else is in a commit must find room beside what one record brings.
DERIVED_STEP: Final = 500


class Step:
    """What one draft deletes and changes."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        applier: Applier,
        *,
        now: int,
        gone: AbstractSet[UUID],
        said: AbstractSet[UUID],
    ) -> None:
        self._draft = draft
        self._keys = keys
        self._applier = applier
        self._now = now
        self._gone = gone
        self._said = said
        self._timelines = TimelineEraser(
            draft,
            keys,
            applier.records,
            now=now,
            new_id=applier.new_id,
            gone=gone,
        )
        self._whole: dict[bytes, bool] = {}
        self._erased: set[bytes] = set()
        self.memories = 0
        self.episodes = 0

    def erase(self, ids: Sequence[UUID]) -> bool:
        """Delete records, their timelines first; return whether that was all that is to be done.

        False: the commit is full; commit it, and come again with the same ids.
        """
        memories = {
            one.id: one
            for one in (self._applier.records.find_memory(each) for each in ids)
            if one is not None
        }
        for memory in list(memories.values()):
            if not memory.is_fact:
                continue
            if self._is_whole(memory):
                if not self._timelines.erase_whole(memory.fact_key):
                    return False
            elif memory.status is not MemoryStatus.CANDIDATE:
                memories |= self._erase_rows(memory)
        for memory in memories.values():
            if not self._delete_memory(self._applier.records.memory(memory.id)):
                return False
        for each in ids:
            if self._applier.records.has_episode(each) and not self._delete_episode(
                self._applier.records.episode(each)
            ):
                return False
        return True

    def _erase_rows(self, memory: Memory) -> dict[UUID, Memory]:
        """Take all rows of a memory's timeline that go out of it, together; return them."""
        key = memory.fact_key
        timeline = self._keys.timeline(key)
        if timeline in self._erased:
            return {}
        self._erased.add(timeline)
        prefix = self._keys.rows(key)
        ids = [id_of(place) for place, _ in self._draft.scan(prefix, prefix_end(prefix))]
        found = [self._applier.records.find_memory(one) for one in ids if one in self._gone]
        rows = [
            one
            for one in found
            if one is not None
            and one.status is not MemoryStatus.CANDIDATE
            and self._keys.timeline(one.fact_key) == timeline
        ]
        self._timelines.erase_rows(key, rows, self._said)
        self._tidy()
        return {one.id: one for one in rows}

    def _tidy(self) -> None:
        """Leave no trace of how a timeline came to be what it is: row after row was taken out."""
        for key, value in list(self._draft.changes(b"m")):
            memory_id = id_of(key)
            if value is None or memory_id in self._gone:
                continue
            memory = self._applier.records.memory(memory_id)
            if self._draft.before(key) is None and not memory.on_timeline:
                self._delete_memory(memory)
                self.memories -= 1
                continue
            left = without(memory, self._gone)
            if left is not memory:
                self._applier.records.update(left)

    def change(self, ids: Sequence[UUID]) -> int:
        """Take what erased records added from memories that stay; return how many changed."""
        changed = 0
        for each in ids:
            memory = self._applier.records.find_memory(each)
            if memory is None:
                continue
            if memory.is_fact and memory.status is not MemoryStatus.CANDIDATE:
                self._timelines.erase_evidence(memory)
                memory = self._applier.records.memory(each)
            left = without(memory, self._gone)
            if left is not memory:
                left = replace(left, updated_at=self._now)
                self._applier.records.update(left)
                self._applier.candidates.follow(memory, left)
                changed += 1
        return changed

    def _is_whole(self, memory: Memory) -> bool:
        """Return whether nothing is left of a fact's key: every row goes with all it stands on."""
        prefix = self._keys.rows(memory.fact_key)
        known = self._whole.get(prefix)
        if known is None:
            known = all(
                (one in self._gone and one not in self._said)
                or self._applier.records.find_memory(one) is None
                for one in (
                    id_of(place) for place, _ in self._draft.scan(prefix, prefix_end(prefix))
                )
            )
            self._whole[prefix] = known
        return known

    def _delete_memory(self, memory: Memory) -> bool:
        draft, keys = self._draft, self._keys
        if not self._delete_derived(memory.id):
            return False
        # An open candidate is found by what it says, which this takes back.
        self._applier.candidates.follow(memory, replace(memory, expired_at=self._now))
        for key in (
            memory_key(memory.id),
            vector_key(memory.id),
            access_key(memory.id),
            taken_key(memory.id),
            pending_key(memory.id),
            _NO_VECTOR + memory.id.bytes,
            created_key(memory.created_at, memory.id),
            keys.of_subject(memory.subject, SubjectRecord.MEMORY, memory.created_at, memory.id),
            *(derived_key(one, memory.id) for one in memory.derived_from),
            *(derived_key(one, memory.id) for one in memory.episode_ids),
        ):
            draft.delete(key)
        if memory.is_fact:
            draft.delete(keys.row(memory.fact_key, memory.id))
            draft.delete(keys.of_attribute(memory.attribute, memory.id))
        self.memories += 1
        return True

    def _delete_episode(self, episode: Episode) -> bool:
        if not self._delete_derived(episode.id):
            return False
        self._draft.delete(episode_key(episode.id))
        self._draft.delete(captured_key(episode.recorded_at, episode.id))
        self._draft.delete(
            self._keys.of_subject(
                episode.subject, SubjectRecord.EPISODE, episode.recorded_at, episode.id
            )
        )
        # Its source, so that it is not captured again.
        for source in tombstones_of(episode):
            self._draft.put(self._keys.tombstone(*source))
        self.episodes += 1
        return True

    def _delete_derived(self, source_id: UUID) -> bool:
        """Delete what leads from a record to what came from it; False: there is more."""
        prefix = derived_prefix(source_id)
        for number, (place, _) in enumerate(self._draft.scan(prefix, prefix_end(prefix)), 1):
            self._draft.delete(place)
            if number >= DERIVED_STEP:
                return False
        return True


def left_of(memory: Memory, gone: AbstractSet[UUID]) -> Memory | None:
    """Return a former version of a memory that stays, without erased records; None: it was one."""
    return None if fate_of(memory, gone) is Fate.GOES else without(memory, gone)
