"""Reading and writing memories and episodes in a draft, with every index that follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage import codec
from pillion_storage.keys import (
    SubjectRecord,
    captured_key,
    created_key,
    derived_key,
    episode_key,
    memory_key,
    vector_key,
)

from pillion.domain.errors import PillionError, Reason
from pillion.domain.indexed_text import embedded_text
from pillion.service.vectors import CLIENT_SPACE

if TYPE_CHECKING:
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Episode, Memory
    from pillion.service.draft import Draft
    from pillion.service.vectors import VectorWriter


def not_found(what: str, record_id: UUID | str) -> PillionError:
    """Return the error for a record that is not in this partition."""
    return PillionError(
        Reason.NOT_FOUND,
        f"there is no {what} {record_id} in this partition",
        metadata={"id": str(record_id)},
    )


class Records:
    """The memories and episodes of one partition, as one draft sees and changes them."""

    def __init__(self, draft: Draft, keys: KeySpace, vectors: VectorWriter) -> None:
        self._draft = draft
        self._keys = keys
        self._vectors = vectors
        # What was decoded, and from what: a plan comes back to the same few memories.
        self._decoded: dict[UUID, tuple[bytes, Memory]] = {}

    def keys_read(self, memory_id: UUID) -> tuple[bytes, ...]:
        """Return the keys of what making a memory asks, to be read together."""
        return (memory_key(memory_id), *self._vectors.keys_read(memory_id))

    def memory(self, memory_id: UUID) -> Memory:
        """Return a memory.

        Raises:
            PillionError: NOT_FOUND.
        """
        found = self.find_memory(memory_id)
        if found is None:
            raise not_found("memory", memory_id)
        return found

    def find_memory(self, memory_id: UUID) -> Memory | None:
        """Return a memory, or None. Its version is the one before this draft."""
        key = memory_key(memory_id)
        data = self._draft.get(key)
        if data is None:
            return None
        known = self._decoded.get(memory_id)
        if known is not None and known[0] is data:
            return known[1]
        memory = codec.decode_memory(memory_id, data, self._draft.version(key))
        self._decoded[memory_id] = data, memory
        return memory

    def written_version(self, memory_id: UUID) -> int:
        """Return the version that a memory will have after this write; -1: this write's own."""
        key = memory_key(memory_id)
        return -1 if self._draft.changed(key) else self._draft.version(key)

    def has_episode(self, episode_id: UUID) -> bool:
        """Return whether an episode exists."""
        return self._draft.get(episode_key(episode_id)) is not None

    def episode(self, episode_id: UUID) -> Episode:
        """Return an episode.

        Raises:
            PillionError: NOT_FOUND.
        """
        key = episode_key(episode_id)
        data = self._draft.get(key)
        if data is None:
            raise not_found("episode", episode_id)
        return codec.decode_episode(episode_id, data, self._draft.version(key))

    def create(self, memory: Memory, vector: bytes = b"") -> None:
        """Add a memory with its indexes, and give it its vector or queue it."""
        self._write_vector(memory, vector)
        self._index(memory)

    def check_vector(self, vector: bytes) -> None:
        """Refuse a caller's vector that does not fit the partition's; empty is fine."""
        if vector:
            self._vectors.require_client_space(vector)

    def create_like(self, memory: Memory, other: Memory, vector: bytes = b"") -> None:
        """Add a memory that has another's vector wherever it has another's text, not its own."""
        if not vector and embedded_text(memory) == embedded_text(other):
            self._vectors.copy(other.id, memory.id, self._owner(memory))
            self._index(memory)
        else:
            self.create(memory, vector)

    def _owner(self, record: Memory | Episode) -> bytes:
        """Return the tag of the subject whose content a record is."""
        return self._keys.subject(record.subject)

    def _index(self, memory: Memory) -> None:
        self.update(memory)
        self._draft.put(created_key(memory.created_at, memory.id))
        self._draft.put(
            self._keys.of_subject(
                memory.subject, SubjectRecord.MEMORY, memory.created_at, memory.id
            )
        )
        if memory.attribute:
            self._draft.put(self._keys.of_attribute(memory.attribute, memory.id))
        for source_id in memory.derived_from:
            self._draft.put(derived_key(source_id, memory.id))
        if memory.source.episode_id is not None:
            self._draft.put(derived_key(memory.source.episode_id, memory.id))

    def support(self, memory_id: UUID, episode_id: UUID | None) -> None:
        """Index that an episode stated a memory again; None: no episode did."""
        if episode_id is not None:
            self._draft.put(derived_key(episode_id, memory_id))

    def update(self, memory: Memory) -> None:
        """Write a changed memory. Subject, context, attribute and creation never change."""
        self._draft.put(
            memory_key(memory.id), codec.encode_memory(memory), owner=self._owner(memory)
        )

    def set_vector(self, memory: Memory, vector: bytes) -> None:
        """Give a memory a new vector, or queue one for its new text."""
        self._draft.delete(vector_key(memory.id))
        self._write_vector(memory, vector)

    def _write_vector(self, memory: Memory, vector: bytes) -> None:
        texts = (embedded_text(memory), memory.text)
        self._vectors.write(memory.id, texts, vector, self._owner(memory))

    def text_changed(self, memory: Memory) -> None:
        """Queue a vector for a text that the server changed; a client's own vector stays."""
        space = self._vectors.space()
        if space is None or space.name != CLIENT_SPACE:
            self.set_vector(memory, b"")

    def create_episode(self, episode: Episode) -> None:
        """Add an episode with its indexes."""
        self.update_episode(episode)
        self._draft.put(captured_key(episode.recorded_at, episode.id))
        self._draft.put(
            self._keys.of_subject(
                episode.subject, SubjectRecord.EPISODE, episode.recorded_at, episode.id
            )
        )

    def update_episode(self, episode: Episode) -> None:
        """Write an episode whose standing (never its content) changed."""
        self._draft.put(
            episode_key(episode.id), codec.encode_episode(episode), owner=self._owner(episode)
        )
