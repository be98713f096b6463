"""A partition's memories as rows of the ranker's table.

A load makes the same rows in Rust (`table_load`, and ``columns.rs`` of the crate store-rows): what
changes here changes there too, and ``tests/differential/test_table_load.py`` compares them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pillion_ranker as ranker
from pillion_storage.access_codec import with_access
from pillion_storage.keys import access_key, vector_key

from pillion.domain.memory import FOREVER, EndReason
from pillion.embedders.usable import have_direction
from pillion.service.indexed_text import indexed_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition

# A partition without vectors still has columns; the table needs some dimension for them.
NO_VECTORS_DIMENSION: Final = 1
_OFF_TIMELINE: Final = (EndReason.CORRECTED, EndReason.WITHDRAWN)

_log = logging.getLogger(__name__)


class TableRows:
    """Puts memories of one partition into tables, with their vectors of the same revision."""

    def __init__(self, store: Store, partition: Partition, keys: KeySpace) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._warned = False

    def upsert(
        self,
        table: ranker.Table,
        memories: Sequence[Memory],
        revision: int | None,
        *,
        texts: bool = True,
    ) -> NDArray[np.uint32]:
        """Put memories, at least one, into a table; return their slots.

        ``revision``: at which their vectors are read; None: the newest. ``texts``: with their own
        texts; else the caller sets what is indexed of them (`ConversationTexts`).
        """
        found = self._beside([memory.id for memory in memories], revision)
        has_vector, vectors = self._vectors(memories, found, table.dimension)
        columns = self._columns(
            [with_access(one, found.get(access_key(one.id))) for one in memories]
        )
        slots = table.upsert(has_vector=has_vector, vectors=vectors, **columns)
        if texts:
            table.set_texts(columns["ids"], [indexed_text(memory) for memory in memories])
        return slots

    def _beside(self, ids: Sequence[UUID], revision: int | None) -> dict[bytes, bytes]:
        """Return what is stored beside memories: vectors and uses, by their keys."""
        wanted = [vector_key(one) for one in ids] + [access_key(one) for one in ids]
        found = self._store.read(self._partition, wanted, at=revision).entries
        return {key: entry.value for key, entry in found.items()}

    def _vectors(
        self, memories: Sequence[Memory], found: Mapping[bytes, bytes], dimension: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Return which memories have a vector, and the vectors (zeros where there is none).

        A stored vector that cannot be compared counts as none: it must not fail every search.
        """
        rows = np.zeros((len(memories), dimension), dtype=np.float32)
        stored = 0
        for place, memory in enumerate(memories):
            value = found.get(vector_key(memory.id))
            stored += value is not None
            if value is not None and len(value) == 4 * dimension:
                rows[place] = np.frombuffer(value, dtype="<f4")
        has = have_direction(rows)
        rows[~has] = 0.0
        if np.count_nonzero(has) < stored:
            self.warn_of_unusable_vectors()
        return has, rows

    def warn_of_unusable_vectors(self) -> None:
        """Say once that the partition has some."""
        if not self._warned:
            self._warned = True
            _log.error("a partition has stored vectors that cannot be used; they are left out")

    def _columns(self, memories: Sequence[Memory]) -> dict[str, NDArray[Any]]:
        """Return the ranker's columns of some memories."""
        keys = self._keys
        labels = [self.label_hashes(memory) for memory in memories]
        offsets = np.zeros(len(memories) + 1, dtype=np.uint32)
        np.cumsum([len(one) for one in labels], out=offsets[1:])
        flat = [one for row in labels for one in row]

        def column(values: Iterable[int | float], dtype: type[np.generic]) -> NDArray[Any]:
            return np.array(list(values), dtype=dtype)

        return {
            "ids": id_rows([memory.id.bytes for memory in memories]),
            "created": column((memory.created_at for memory in memories), np.int64),
            "last_used": column((memory.last_used_at for memory in memories), np.int64),
            "valid_from": column((memory.valid_from for memory in memories), np.int64),
            "valid_to": column((memory.valid_to for memory in memories), np.int64),
            "recorded": column((memory.updated_at for memory in memories), np.int64),
            "expires": column((memory.expires_at for memory in memories), np.int64),
            "importance": column((memory.importance for memory in memories), np.float32),
            "confidence": column((memory.confidence for memory in memories), np.float32),
            "kind": column((memory.kind for memory in memories), np.uint8),
            "status": column((memory.status for memory in memories), np.uint8),
            "flags": column((_flags(memory) for memory in memories), np.uint16),
            "subject": column(
                (keys.column("subject", m.subject.type, m.subject.id) for m in memories), np.uint64
            ),
            "context": column((keys.column("context", m.context) for m in memories), np.uint64),
            "attribute": column(
                (keys.column("attribute", m.attribute) for m in memories), np.uint64
            ),
            "label_offsets": offsets,
            "label_hashes": column(flat, np.uint64),
        }

    def label_hashes(self, memory: Memory) -> list[int]:
        """Return the hashes of a memory's labels, and of what filters take for labels.

        Source kind, episodes, session, being a fact or an edge, and the subject that the value
        refers to are labels of their own families, so that filters on them cost no column.
        """
        keys = self._keys
        hashes = [keys.column("label", label) for label in memory.labels]
        hashes.append(keys.column("source", memory.source.kind.name))
        hashes += [keys.column("episode", str(one)) for one in dict.fromkeys(memory.episode_ids)]
        if memory.session_id:
            hashes.append(keys.column("session", memory.session_id))
        if memory.is_fact:
            hashes.append(keys.column("fact"))
        target = memory.value_subject
        if target is not None:
            hashes.append(keys.column("edge"))
            hashes.append(keys.column("value_subject", target.type, target.id))
        return hashes


def id_rows(ids: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return ids in the form that the table takes: (n, 16)."""
    return np.frombuffer(b"".join(ids), dtype=np.uint8).reshape(len(ids), 16)


def _flags(memory: Memory) -> int:
    flags = memory.source.kind << ranker.SOURCE_SHIFT
    if memory.pinned:
        flags |= ranker.FLAG_PINNED
    if memory.end_reason in _OFF_TIMELINE:
        flags |= ranker.FLAG_RETRACTED
    if memory.expired_at != FOREVER:
        flags |= ranker.FLAG_EXPIRED
    if memory.consolidated_into is not None:
        flags |= ranker.FLAG_CONSOLIDATED
    return flags
