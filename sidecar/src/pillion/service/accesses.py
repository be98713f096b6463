"""How often memories are used: counted in memory, and written down now and then.

A search that returns a memory uses it. It writes nothing: its uses wait here, apart from the
partitions in memory, which come and go, until a flush adds them to the records beside the memories
(`access_codec`). Such a record is no part of its memory: a flush raises no memory's version, shows
in no history and is told to no watch. What a kill takes is the uses since the last flush.

Invariant: a use is waiting, or in the one flush under way, or in the store; never in two of them,
and in none only after a kill, when the outcome of a commit is not known, or beyond the bound here.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

import numpy as np
from pillion_storage import codec
from pillion_storage.access_codec import Access, decode_access, encode_access
from pillion_storage.api import Batch, Conflict, StoreClosed, StoreError, StoreFailed
from pillion_storage.keys import access_key, id_of, memory_key

from pillion.domain.limits import ACCESSES_PENDING_MAX
from pillion.service.table_rows import id_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    import pillion_ranker as ranker
    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.service.partitions import KeySpaces

# Memories of one commit: each puts one record and expects two versions.
FLUSH_STEP: Final = 500
# A flush that met changes of the same memories is tried again, at most this often.
TRIES_MAX: Final = 3

_log = logging.getLogger(__name__)


class Accesses:
    """The uses that are not in the store yet. Safe to share between threads.

    Attributes:
        crowded: Set while it is time for a flush.
        dropped: Uses that were not counted, since too many memories waited.
    """

    def __init__(self, pending_max: int = ACCESSES_PENDING_MAX) -> None:
        self._pending_max = pending_max
        self._lock = threading.Lock()
        self._waiting: dict[Partition, dict[bytes, Access]] = {}
        self._in_flight: dict[Partition, dict[bytes, Access]] = {}
        self._unranked: dict[Partition, dict[bytes, int]] = {}
        self._count = 0
        self.crowded = threading.Event()
        self.dropped = 0

    def note(self, partition: Partition, ids: Iterable[UUID], now: int) -> None:
        """Count a use of each of these memories at an instant."""
        with self._lock:
            waiting = self._waiting.setdefault(partition, {})
            unranked = self._unranked.setdefault(partition, {})
            for one in ids:
                key = one.bytes
                known = waiting.get(key)
                if known is None:
                    if self._count >= self._pending_max:
                        self.dropped += 1
                        continue
                    self._count += 1
                    known = Access()
                waiting[key] = access = known.and_(Access(1, now))
                unranked[key] = access.last_used_at
            if 2 * self._count >= self._pending_max:
                self.crowded.set()

    def partitions(self) -> list[Partition]:
        """Return the partitions with uses that wait."""
        with self._lock:
            return [partition for partition, waiting in self._waiting.items() if waiting]

    def last_used(self, partition: Partition, ids: Iterable[bytes] | None) -> dict[bytes, int]:
        """Return when those of some memories (None: all) were used last that the store lacks."""
        found: dict[bytes, int] = {}
        with self._lock:
            for uses in (self._in_flight.get(partition, {}), self._waiting.get(partition, {})):
                for one in uses if ids is None else ids:
                    access = uses.get(one)
                    if access is not None:
                        found[one] = max(found.get(one, 0), access.last_used_at)
        return found

    def take_unranked(self, partition: Partition) -> dict[bytes, int]:
        """Return when memories were used last, of the uses since this was asked before."""
        with self._lock:
            return self._unranked.pop(partition, {})

    # --- for the flush ---------------------------------------------------------------------

    def take(self, partition: Partition, limit: int) -> Mapping[bytes, Access]:
        """Take some of the uses that wait; ``settle`` or ``give_back`` follows."""
        with self._lock:
            waiting = self._waiting.get(partition, {})
            taken = {one: waiting.pop(one) for one in list(waiting)[:limit]}
            if not waiting:
                self._waiting.pop(partition, None)
            if taken:
                self._in_flight[partition] = taken
            return taken

    def settle(self, partition: Partition) -> None:
        """Forget what was taken: it is in the store, or will never be."""
        with self._lock:
            settled = self._in_flight.pop(partition, {})
            self._count -= len(settled)
            # The change feed tells the table of these.
            unranked = self._unranked.get(partition, {})
            for one, access in settled.items():
                if unranked.get(one, 0) <= access.last_used_at:
                    unranked.pop(one, None)
            if not unranked:
                self._unranked.pop(partition, None)
            if 2 * self._count < self._pending_max:
                self.crowded.clear()

    def give_back(self, partition: Partition) -> None:
        """Put what was taken back, with what came meanwhile."""
        with self._lock:
            waiting = self._waiting.setdefault(partition, {})
            for one, access in self._in_flight.pop(partition, {}).items():
                known = waiting.get(one)
                if known is not None:
                    self._count -= 1
                    access = access.and_(known)  # noqa: PLW2901
                waiting[one] = access


def touch(table: ranker.Table, last_used: Mapping[bytes, int]) -> None:
    """Tell a table when memories were used last; those that it lacks are passed over."""
    if last_used:
        table.touch(id_rows(list(last_used)), np.array(list(last_used.values()), dtype=np.int64))


class AccessFlusher:
    """Adds the uses that wait to the store's records. Safe to share; one flush runs at a time."""

    def __init__(self, store: Store, keys: KeySpaces, accesses: Accesses) -> None:
        self._store = store
        self._keys = keys
        self._accesses = accesses
        self._flushing = threading.Lock()

    def flush_all(self) -> None:
        """Flush every partition; one that fails keeps its uses, and the others go on.

        Raises:
            StoreClosed: there is no store any more.
        """
        for partition in self._accesses.partitions():
            try:
                self.flush(partition)
            except StoreClosed:
                raise
            except StoreError as error:
                _log.warning("uses could not be written down: %s", type(error).__name__)

    def flush(self, partition: Partition) -> None:
        """Add the uses of a partition that wait now to its records.

        Uses of memories that are gone go too. Those of memories that others change all the time
        may stay for the next flush.

        Raises:
            StoreError: nothing of the step at hand was done, and its uses wait again; but after
                StoreFailed, whose outcome nobody knows, they are forgotten: a use is never counted
                twice.
        """
        with self._flushing:
            left = len(self._accesses.last_used(partition, None))
            while left > 0:
                taken = self._accesses.take(partition, FLUSH_STEP)
                if not taken:
                    return
                left -= len(taken)
                try:
                    done = self._add(partition, taken)
                except StoreFailed:
                    self._accesses.settle(partition)
                    raise
                except BaseException:
                    self._accesses.give_back(partition)
                    raise
                if done:
                    self._accesses.settle(partition)
                else:
                    self._accesses.give_back(partition)

    def _add(self, partition: Partition, taken: Mapping[bytes, Access]) -> bool:
        for _ in range(TRIES_MAX):
            batch = self._batch(partition, taken)
            if batch is None or not isinstance(self._store.commit(partition, batch), Conflict):
                return True
        return False

    def _batch(self, partition: Partition, taken: Mapping[bytes, Access]) -> Batch | None:
        """Return what adds the uses to the records of the memories that are still there."""
        ids = [id_of(one) for one in taken]
        wanted = [memory_key(one) for one in ids] + [access_key(one) for one in ids]
        entries = self._store.read(partition, wanted).entries
        keys = self._keys.of(partition)
        puts: dict[bytes, bytes] = {}
        owners: dict[bytes, bytes] = {}
        expect: dict[bytes, int] = {}
        for one in ids:
            memory, key = entries.get(memory_key(one)), access_key(one)
            if memory is None:
                continue
            before = entries.get(key)
            access = decode_access(before.value if before is not None else None)
            puts[key] = encode_access(access.and_(taken[one.bytes]))
            owners[key] = keys.subject(codec.decode_memory(one, memory.value, 0).subject)
            expect[key] = before.version if before is not None else 0
            expect[memory_key(one)] = memory.version  # so that none outlives its memory
        return Batch(puts=puts, owners=owners, expect=expect) if puts else None
