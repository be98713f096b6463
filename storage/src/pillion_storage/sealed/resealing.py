"""Scrubbing through the seals: opened, changed, and sealed again with the owner's key of today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage.errors import InvalidBatch
from pillion_storage.scrubbing import Kept, KeptKind
from pillion_storage.sealed import envelope
from pillion_storage.sealed.layout import NO_OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pillion_storage.sealed.keyring import Keyring
    from pillion_storage.sealed.leases import Lease

_PLACES: Final = {
    KeptKind.VALUE: envelope.VALUE,
    KeptKind.MEMO: envelope.MEMO,
    KeptKind.NOTE: envelope.NOTE,
}
# Seals that one scrubbing may make with a key, for the count of what a key sealed.
SEALS_MAX: Final = 1 << 24


class Resealing:
    """One scrubbing of one partition. Not shared between threads; ``close`` it."""

    def __init__(
        self,
        keyring: Keyring,
        tag: bytes,
        key_ids: Collection[bytes],
        change: Callable[[Kept], bytes | None],
    ) -> None:
        """Prepare to seal for the owners of these keys, none of which may be in use any more.

        Raises:
            InvalidBatch: a key is in use: it was not retired.
            StoreFull, StoreFailed: a new key can't be written.
        """
        self._keyring = keyring
        self._tag = tag
        self._change = change
        self._owners = keyring.owners_of(key_ids)
        self._lease: Lease = keyring.lease(tag, set(self._owners.values()) | {NO_OWNER}, SEALS_MAX)
        if any(key_id in self._owners for key_id, _ in self._lease.keys.values()):
            self._lease.release()
            raise InvalidBatch("a key must be retired before what it sealed is sealed anew")

    def close(self) -> None:
        """Give the keys back."""
        self._lease.release()

    def changed(self, kept: Kept) -> bytes | None:
        """Return what becomes of something kept, sealed."""
        if not envelope.is_sealed(kept.data):
            return self._plain(kept)
        place = _PLACES[kept.kind] + self._tag + kept.key
        if kept.data[: envelope.MAGIC_BYTES] == envelope.MAGIC_OUTER:
            return self._layered(kept, place)
        owner = self._owners.get(envelope.key_id_of(kept.data))
        if owner is None:
            return kept.data
        plain = self._opened(kept.data, place)
        if plain is None:
            return kept.data  # destroyed meanwhile
        told = self._change(Kept(kept.kind, kept.key, kept.version, plain, kept.live))
        if told is None:
            return None
        key_id, cipher = self._lease.keys[owner]
        return envelope.seal(cipher, key_id, told, place) if told else told

    def _plain(self, kept: Kept) -> bytes | None:
        """Change what a store that was plain once still has in plain, as it is."""
        told = self._change(kept)
        if told is None or told == kept.data:
            return told if told is None else kept.data
        key_id, cipher = self._lease.keys[NO_OWNER]
        return envelope.seal(cipher, key_id, told, _PLACES[kept.kind] + self._tag + kept.key)

    def _layered(self, kept: Kept, place: bytes) -> bytes | None:
        """Change a memo of several owners."""
        layers: list[bytes] = []
        data: bytes | None = kept.data
        while data is not None and envelope.is_sealed(data):
            layers.append(envelope.key_id_of(data))
            data = self._opened(data, place)
        if data is None or not any(one in self._owners for one in layers):
            return kept.data
        told = self._change(Kept(kept.kind, kept.key, kept.version, data, kept.live))
        if told is None:
            return None
        for number, layer in enumerate(reversed(layers)):
            owner = self._owners.get(layer)
            if owner is not None:
                key_id, cipher = self._lease.keys[owner]
            else:
                known = self._keyring.cipher(layer)
                if known is None:
                    return None
                key_id, cipher = layer, known
            told = envelope.seal(cipher, key_id, told, place, outer=number > 0)
        return told

    def _opened(self, data: bytes, place: bytes) -> bytes | None:
        cipher = self._keyring.cipher(envelope.key_id_of(data))
        return None if cipher is None else envelope.open_sealed(cipher, data, place)
