"""Decoded memories of one resident partition, so that a search need not decode its hits again.

Invariant: a cached memory is the newest version as of every revision up to the last invalidation.
The partition's change feed drops what changes; a memory that was read before the latest drop is
not taken in, since it may be the very version that was dropped.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pillion.domain.memory import Memory

# About 32 MB of Python objects at a few hundred bytes of text each: a search reads the memories of
# a window twice as wide as its answer, so a few hundred queries in turn go through thousands.
ENTRIES_MAX: Final = 16_384
ENTRY_BYTES: Final = 2048


class MemoryCache:
    """A bounded cache by id bytes; the entry that came first leaves first."""

    def __init__(self, entries_max: int = ENTRIES_MAX) -> None:
        self._entries_max = entries_max
        self._lock = threading.Lock()
        self._memories: dict[bytes, Memory] = {}
        self._dropped_at = 0

    @property
    def memory_bytes(self) -> int:
        """About how many bytes it takes."""
        return len(self._memories) * ENTRY_BYTES

    def get(self, memory_id: bytes) -> Memory | None:
        """Return a memory if it is here."""
        return self._memories.get(memory_id)

    def add(self, memories: Mapping[bytes, Memory], revision: int) -> None:
        """Take in memories that were read at a revision."""
        with self._lock:
            if revision < self._dropped_at:
                return
            self._memories.update(memories)
            excess = len(self._memories) - self._entries_max
            for memory_id in list(itertools.islice(self._memories, max(0, excess))):
                del self._memories[memory_id]

    def swap(self, changes: Iterable[tuple[bytes, Memory, Memory]]) -> None:
        """Put memories in the place of themselves, with what a read has filled in since.

        Args:
            changes: The id, what is to be replaced if it is still here, and by what.
        """
        with self._lock:
            for memory_id, old, new in changes:
                if new is not old and self._memories.get(memory_id) is old:
                    self._memories[memory_id] = new

    def drop(self, ids: Iterable[bytes], revision: int) -> None:
        """Drop memories that changed at or before a revision."""
        with self._lock:
            self._dropped_at = max(self._dropped_at, revision)
            for memory_id in ids:
                self._memories.pop(memory_id, None)

    def drop_all(self, revision: int) -> None:
        """Drop every memory, since any may have changed at or before a revision."""
        with self._lock:
            self._dropped_at = max(self._dropped_at, revision)
            self._memories.clear()
