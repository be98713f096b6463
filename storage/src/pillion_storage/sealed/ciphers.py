"""A bounded number of unwrapped keys. Least recently used ones go, by the half.

A look-up takes no lock: it reads one dictionary. The keyring guards the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# In each half; about 2.5 KiB each.
CIPHERS_MAX: Final = 4096


class Ciphers:
    """Keys by id, the young ones and those that were young before."""

    def __init__(self, half_max: int = CIPHERS_MAX) -> None:
        self._half_max = half_max
        self._young: dict[bytes, AESGCM] = {}
        self._old: dict[bytes, AESGCM] = {}

    def young(self, key_id: bytes) -> AESGCM | None:
        """Give a key that was used lately. From any thread."""
        return self._young.get(key_id)

    def old(self, key_id: bytes) -> AESGCM | None:
        """Give a key that is about to go, to be kept again. From any thread."""
        return self._old.get(key_id)

    def keep(self, key_id: bytes, cipher: AESGCM) -> None:
        """Keep a key."""
        if len(self._young) >= self._half_max:
            self._old, self._young = self._young, {}
        self._young[key_id] = cipher

    def drop(self, key_id: bytes) -> None:
        """Forget a key."""
        self._young.pop(key_id, None)
        self._old.pop(key_id, None)

    def clear(self) -> None:
        """Forget all."""
        self._young, self._old = {}, {}
