"""Opening what was sealed, in its place, and saying when it isn't what was sealed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.errors import Corrupt
from pillion_storage.sealed import envelope
from pillion_storage.sealed.envelope import HEAD_BYTES, MAGIC, MAGIC_BYTES, open_sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion_storage.sealed.keyring import Keyring


class Opener:
    """Opens values with a keyring."""

    def __init__(self, keyring: Keyring, plain_until: Mapping[bytes, int]) -> None:
        """Take plain values in these partitions (by tag) up to these revisions, nowhere else."""
        self._cipher = keyring.cipher
        self._plain_until = plain_until

    def opened(
        self, tag: bytes, kind: bytes, key: bytes, data: bytes, version: int
    ) -> bytes | None:
        """Give what was sealed; None: its key was destroyed.

        Args:
            tag: The partition's.
            kind: ``envelope.VALUE``, ``MEMO`` or ``NOTE``.
            key: The value's key, or the token's id; empty for a note.
            data: What is stored.
            version: The revision that wrote it.

        Raises:
            Corrupt: it doesn't open, or is in plain where nothing may be.
        """
        if data[:MAGIC_BYTES] == MAGIC:  # nearly always: as few calls as can be
            cipher = self._cipher(data[MAGIC_BYTES:HEAD_BYTES])
            return None if cipher is None else open_sealed(cipher, data, kind + tag + key)
        if not data:
            return data
        place = kind + tag + key
        if data[: envelope.MAGIC_BYTES] == envelope.MAGIC_OUTER:
            cipher = self._cipher(envelope.key_id_of(data))
            if cipher is None:
                return None
            inner = envelope.open_sealed(cipher, data, place)
            return self.opened(tag, kind, key, inner, version)
        if version <= self._plain_until.get(tag, 0):
            return data
        raise Corrupt(envelope.describe(place), "it is not sealed, as it must be")
