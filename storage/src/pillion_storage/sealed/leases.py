"""Keys on loan, and new keys on their way to the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    from pillion_storage.sealed.layout import KeyRecord


class Lease:
    """Keys to seal one batch with. While it is held none of them is destroyed."""

    __slots__ = ("_release", "keys")

    def __init__(
        self, keys: dict[bytes, tuple[bytes, AESGCM]], release: Callable[[], None]
    ) -> None:
        self.keys = keys  # by owner's tag: the key's id, and the cipher
        self._release = release

    def release(self) -> None:
        """Give the keys back. Called once."""
        self._release()


class Append:
    """New records that go to disk together."""

    def __init__(self) -> None:
        self.records: list[KeyRecord] = []
        self.done = False
        self.error: Exception | None = None
