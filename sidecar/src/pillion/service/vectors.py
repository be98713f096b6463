"""Which vectors a partition holds, and what a write must do about a text's vector.

A partition holds vectors of one space: either those that the server's embedder makes, or those
that clients send. The first vector (or the first text queued for one) decides, and the choice is
recorded beside it, so a mix is refused and never silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import EMBEDDER_KEY, pending_key, vector_key

from pillion.domain.embedding import EmbedderIdentity
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import FLOAT32_BYTES, check_vector_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pillion.service.draft import Draft

CLIENT_SPACE: Final = "client"
PENDING: Final = b"q"


def client_space(dimension: int) -> EmbedderIdentity:
    """Return the identity under which vectors that clients send are kept."""
    return EmbedderIdentity(CLIENT_SPACE, "1", dimension, "", 0.0)


@dataclass(frozen=True, slots=True)
class MadeVectors:
    """Vectors that were made before the write, for texts that asked for them in line.

    ``by_text`` maps a text to its little-endian float32 bytes; None: vectors are queued.
    """

    by_text: Mapping[str, bytes] | None = None


class VectorWriter:
    """Puts vectors, or the wish for one, into a draft."""

    def __init__(self, draft: Draft, server: EmbedderIdentity | None, made: MadeVectors) -> None:
        self._draft = draft
        self._server = server
        self._made = made

    def keys_read(self, memory_id: UUID) -> tuple[bytes, ...]:
        """Return the keys of what ``write`` will ask about a memory, to be read together."""
        if self._server is None:
            return (EMBEDDER_KEY,)
        return (EMBEDDER_KEY, pending_key(memory_id))

    def space(self) -> EmbedderIdentity | None:
        """Return the space of the partition's vectors; None: nothing decided it yet."""
        data = self._draft.get(EMBEDDER_KEY)
        return codec.decode_embedder(data) if data is not None else None

    def write(self, memory_id: UUID, texts: Sequence[str], vector: bytes, owner: bytes) -> None:
        """Give a memory its vector, or queue one, or neither where the server makes none.

        Args:
            memory_id: The memory.
            texts: What its vector is made of; behind it, what may stand for that in a vector that
                was made in line.
            vector: The caller's own vector; empty: the server's.
            owner: The tag of the memory's subject.

        Raises:
            PillionError: EMBEDDER_MISMATCH or DIMENSION_MISMATCH when it does not fit the
                partition.
        """
        if vector:
            self.require_client_space(vector)
            self._draft.put(vector_key(memory_id), vector, owner=owner)
            return
        space = self.space()
        if space is not None and space.name == CLIENT_SPACE:
            return  # the server makes no vectors here: other signals recall it
        if self._server is not None:
            self._require_server_space(space, self._server)
        elif space is None:
            return  # no embedder ever was: nothing to wait for
        made = self._made.by_text or {}
        ready = next((made[text] for text in texts if text in made), None)
        if ready is not None:
            self._draft.put(vector_key(memory_id), ready, owner=owner)
            return
        self._draft.get(pending_key(memory_id))  # so that ``pending_added`` counts it once
        self._draft.put(pending_key(memory_id))

    def copy(self, from_id: UUID, to_id: UUID, owner: bytes) -> None:
        """Give a memory the vector of another with the same text, or queue one as for that."""
        data = self._draft.get(vector_key(from_id))
        if data is not None:
            self._draft.put(vector_key(to_id), data, owner=owner)
        elif self._draft.get(pending_key(from_id)) is not None:
            self._draft.put(pending_key(to_id))

    def require_client_space(self, vector: bytes) -> None:
        """Make the partition one of clients' vectors, or refuse one that does not fit it."""
        space = self.space()
        if space is None:
            identity = client_space(len(vector) // FLOAT32_BYTES)
            self._draft.put(EMBEDDER_KEY, codec.encode_embedder(identity))
            return
        if space.name != CLIENT_SPACE:
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                f"this partition's vectors come from the server's embedder ({space.name}): leave "
                "the vector out, or keep your own vectors in another tenant",
                metadata={"embedder": space.name},
            )
        check_vector_shape("vector", vector, space.dimension)

    def _require_server_space(
        self, space: EmbedderIdentity | None, server: EmbedderIdentity
    ) -> None:
        if space is None:
            self._draft.put(EMBEDDER_KEY, codec.encode_embedder(server))
        elif not space.same_space(server):
            raise PillionError(
                Reason.EMBEDDER_MISMATCH,
                f"this partition's vectors come from {space.name} {space.version}, the server "
                f"now embeds with {server.name} {server.version}: start it with the former "
                "embedder, or re-embed the partition",
                metadata={"embedder": space.name},
            )


def pending_added(draft: Draft) -> int:
    """Return by how many a draft raises the number of vectors still to be made."""
    return sum(
        (value is not None) - bool(draft.version(key)) for key, value in draft.changes(PENDING)
    )
