"""What reads share: freshness, decoding, and the fields that only a read can fill in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.access_codec import with_access
from pillion_storage.keys import access_key, memory_key, pending_key, vector_key

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline

# How long a read waits at most: it holds one of a few threads, and a write that a caller has
# heard of is in the store already.
WAIT_SECONDS_MAX: Final = 2.0
# How often a wait looks whether its caller is still there.
WAIT_STEP_SECONDS: Final = 0.25
# What is left of the caller's time for the answer: this much, or a quarter where that is less.
ANSWER_SECONDS: Final = 0.2
# No partition makes so many commits while a read waits.
REVISIONS_AHEAD_MAX: Final = 10_000


def wait_for_revision(
    store: Store, partition: Partition, revision: int, deadline: Deadline
) -> None:
    """Wait until the partition, whose names are checked, has reached a revision.

    The wait ends after ``WAIT_SECONDS_MAX`` and a little before the deadline, so that the caller
    still hears why.

    Raises:
        PillionError: FUTURE_REVISION when the partition did not get there in that time, or is
            too far from it to wait at all.
    """
    check_partition(partition)
    head = store.head(partition).revision
    if head >= revision:
        return
    left = deadline.remaining_seconds()
    # The steps are counted instead of the time: a wait ends early only when the head has moved.
    patience = min(WAIT_SECONDS_MAX, left - min(ANSWER_SECONDS, left / 4))
    while head < revision:
        if patience <= 0 or revision - head > REVISIONS_AHEAD_MAX:
            raise PillionError(
                Reason.FUTURE_REVISION,
                f"revision {revision} is not reached yet; the newest is {head}",
                metadata={"newest_revision": str(head)},
            )
        deadline.check()
        step = min(patience, WAIT_STEP_SECONDS)
        store.wait(partition, revision - 1, step)
        patience -= step
        head = store.head(partition).revision


class RecordReader:
    """Reads whole memories of one partition at one revision (None: the newest)."""

    def __init__(self, store: Store, partition: Partition, keys: KeySpace) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys

    def memories(self, ids: Sequence[UUID], at: int | None) -> tuple[dict[UUID, Memory], int]:
        """Return the memories that exist, with the revision they were read at.

        ``fact_version`` and ``vector_pending`` are filled in.
        """
        found, revision = self.bare_memories(ids, at)
        self.fill_fact_versions(found, revision)
        return found, revision

    def bare_memories(self, ids: Sequence[UUID], at: int | None) -> tuple[dict[UUID, Memory], int]:
        """Return the same without ``fact_version``, which changes without the memory."""
        wanted = [memory_key(one) for one in ids]
        wanted += [pending_key(one) for one in ids]
        wanted += [access_key(one) for one in ids]
        result = self._store.read(self._partition, wanted, at=at)
        entries = result.entries
        found: dict[UUID, Memory] = {}
        for one in ids:
            entry = entries.get(memory_key(one))
            if entry is None:
                continue
            memory = codec.decode_memory(one, entry.value, entry.version)
            if pending_key(one) in entries:
                memory = replace(memory, vector_pending=True)
            access = entries.get(access_key(one))
            if access is not None:
                memory = with_access(memory, access.value)
            found[one] = memory
        return found, result.revision

    def fill_fact_versions(self, memories: dict[UUID, Memory], at: int | None) -> None:
        """Fill in the versions of the timelines that the facts among the memories are rows of."""
        heads = {
            one: self._keys.head(memory.fact_key)
            for one, memory in memories.items()
            if memory.attribute
        }
        if not heads:
            return
        versions = self._store.read(self._partition, set(heads.values()), at=at).entries
        for one, head in heads.items():
            entry = versions.get(head)
            version = entry.version if entry is not None else 0
            if memories[one].fact_version != version:  # a copy costs as much as a decoding
                memories[one] = replace(memories[one], fact_version=version)

    def vectors(self, ids: Sequence[UUID], at: int | None) -> dict[UUID, bytes]:
        """Return the vectors that exist, as little-endian float32."""
        by_key = {vector_key(one): one for one in ids}
        entries = self._store.read(self._partition, list(by_key), at=at).entries
        return {by_key[key]: entry.value for key, entry in entries.items()}
