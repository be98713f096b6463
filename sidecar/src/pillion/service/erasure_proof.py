"""Proving an erasure: looking for what is gone everywhere where it was, before anybody is told.

Each look may find something; then the erasure has failed, the reason says where, and saying it
again goes on with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import OwnerKeys
from pillion_storage.keys import (
    access_key,
    episode_key,
    id_of,
    memory_key,
    pending_key,
    prefix_end,
    taken_key,
    vector_key,
)
from pillion_storage.scrubbing import Compacts, Kept, Scrubs

from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import Memory
from pillion.domain.values import ValueKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from pillion_storage.api import Row, Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.erasure import Erasure
    from pillion.domain.memory import Episode
    from pillion.domain.scope import Partition
    from pillion.ports import Deadline
    from pillion.service.erasure_memory import MemoryWiper
    from pillion.service.erasure_records import ErasurePlan
    from pillion.service.erasure_scope import Scope

READ_STEP: Final = 256
SCAN_ROWS: Final = 2000
# Less of a text occurs by chance.
NEEDLE_BYTES_MIN: Final = 12
NEEDLE_BYTES_MAX: Final = 64
# How a value that refers to a subject begins in a stored memory; other bytes may look like it.
_SUBJECT_VALUE: Final = bytes((10, 0x92, ValueKind.SUBJECT, 0x92))
_KEYS: Final[tuple[Callable[[UUID], bytes], ...]] = (
    memory_key,
    episode_key,
    vector_key,
    access_key,
    pending_key,
    taken_key,
)


class Evidence:
    """Pieces of what an erasure takes, to look for in the files afterwards. Only in memory.

    Needed where bytes go by writing the file anew; where keys are destroyed there is nothing to
    look for.
    """

    def __init__(self, *, plain: bool) -> None:
        self._plain = plain
        self.needles: set[bytes] = set()

    @classmethod
    def of(cls, store: Store, partition: Partition, scope: Scope, *, plain: bool) -> Evidence:
        """Return the pieces of what is in a scope."""
        evidence = cls(plain=plain)
        evidence.add(store, partition, scope)
        return evidence

    def add(self, store: Store, partition: Partition, scope: Scope) -> None:
        """Add the pieces of what came to a scope."""
        if not self._plain:
            return
        for record in scope.records:
            for text in _texts(record):
                self._add(text.encode())
        ids = [one.id for one in scope.records if isinstance(one, Memory)]
        for begin in range(0, len(ids), READ_STEP):
            wanted = [vector_key(one) for one in ids[begin : begin + READ_STEP]]
            for entry in store.read(partition, wanted).entries.values():
                self._add(entry.value)

    def _add(self, data: bytes) -> None:
        if len(data) < NEEDLE_BYTES_MIN:
            return
        begin = max(0, (len(data) - NEEDLE_BYTES_MAX) // 2)
        self.needles.add(data[begin : begin + NEEDLE_BYTES_MAX])


def _texts(record: Memory | Episode) -> list[str]:
    if not isinstance(record, Memory):
        return [record.content]
    texts = [record.text, record.source.quote]
    if record.value is not None and isinstance(record.value.data, str):
        texts.append(record.value.data)
    if record.confirmation is not None:
        texts.append(record.confirmation.quote)
    return texts


class Proof:
    """Looks for what one erasure took."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        keys: KeySpace,
        erasure: Erasure,
        plan: ErasurePlan,
        *,
        evidence: Evidence | None,
        memory: MemoryWiper,
    ) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._erasure = erasure
        self._plan = plan
        self._gone = frozenset(plan.gone)
        self._evidence = evidence
        self._memory = memory

    def prove(self, deadline: Deadline, *, plain: bool) -> str:
        """Return how it was proved.

        Args:
            deadline: Looked at between steps.
            plain: Whether the bytes went by writing the file anew.

        Raises:
            PillionError: ERASURE_UNPROVEN, with where something of it is left.
        """
        said = [self._records(deadline), self._citations(deadline)]
        if isinstance(self._store, OwnerKeys):
            said.append(self._data_keys(self._store))
        if self._memory.holds(self._partition, self._plan.gone):
            raise _unproven("the search table still has rows of it")
        said.append("search table and words: no row of them")
        if plain:
            said.append(self._files())
        return "; ".join(said)

    def _records(self, deadline: Deadline) -> str:
        """Look for every record by its key, in the present and in history."""
        for begin in range(0, len(self._plan.gone), READ_STEP):
            deadline.check()
            part = self._plan.gone[begin : begin + READ_STEP]
            wanted = [key(one) for one in part for key in _KEYS]
            found = self._store.read(self._partition, wanted).entries.values()
            if any(self._is_old(one.version) for one in found):
                raise _unproven("a record of it is current")
            for key in (key(one) for one in part for key in (memory_key, episode_key)):
                kept = self._store.versions(self._partition, key)
                if any(self._is_old(one.version) for one in kept):
                    raise _unproven("a former version of a record is in history")
        return f"records: {len(self._plan.gone)} ids absent, now and in history"

    def _is_old(self, version: int) -> bool:
        """Say whether a version is not that of somebody who made a record of the same id anew."""
        return version <= self._erasure.revision

    def _citations(self, deadline: Deadline) -> str:
        """Read every memory that there is, for what names one that is gone."""
        start: bytes | None = b"m"
        looked_at = 0
        tag = self._erasure.subject
        gone = {one.bytes for one in self._gone}
        while start is not None:
            deadline.check()
            page = self._store.scan(self._partition, start, prefix_end(b"m"), limit=SCAN_ROWS)
            for row in page.rows:
                if not gone.isdisjoint(codec.cited_ids(row.value)):
                    raise _unproven("a memory that stays cites a record that is gone")
                if tag and _SUBJECT_VALUE in row.value:
                    self._refuse_reference(row, tag)
            looked_at += len(page.rows)
            start = page.next_start
        return f"memories: all {looked_at} read, none cites them"

    def _refuse_reference(self, row: Row, tag: bytes) -> None:
        memory = codec.decode_memory(id_of(row.key), row.value, row.version)
        about = memory.value_subject
        if about is not None and self._keys.subject(about) == tag and self._is_old(row.version):
            raise _unproven("a fact refers to the subject")

    def _data_keys(self, store: OwnerKeys) -> str:
        key_ids = self._erasure.key_ids
        if not store.destroyed_on_disk(key_ids):
            raise _unproven("a data key is still in the keyring")
        return f"keyring: read again from disk, {len(key_ids)} data keys destroyed"

    def _files(self) -> str:
        """Look for pieces of it in every byte of the data file."""
        if not isinstance(self._store, Compacts) or not isinstance(self._store, Scrubs):
            return "data file: none"
        if self._evidence is None:
            return "data file: written anew; not searched, for the server was stopped meanwhile"
        needles = self._evidence.needles
        found = set(self._store.find_bytes(needles))
        if found:
            found -= self._said_by_others(found)
        if found:
            raise _unproven("the data file has bytes of it")
        return f"data file: written anew and searched for {len(needles)} pieces of it"

    def _said_by_others(self, pieces: Iterable[bytes]) -> set[bytes]:
        """Return the pieces that something that stays says too, in whatever partition."""
        left = set(pieces)
        known: set[bytes] = set()

        def look(kept: Kept) -> bytes:
            for piece in list(left):
                if piece in kept.data:
                    known.add(piece)
                    left.discard(piece)
            return kept.data

        if isinstance(self._store, Scrubs):
            for partition in self._store.partitions():
                self._store.scrub(partition, look)
        return known


def _unproven(why: str) -> PillionError:
    return PillionError(
        Reason.ERASURE_UNPROVEN, f"the erasure is not proved: {why}; say it again to go on"
    )
