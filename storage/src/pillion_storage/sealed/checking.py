"""Authenticating every value of a store that nobody has open, for ``verify``."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from pillion_storage.errors import Corrupt, KeyringUnusable
from pillion_storage.sealed import envelope
from pillion_storage.sealed.books import MARKER, PLAIN
from pillion_storage.sealed.keyring import Keyring
from pillion_storage.sealed.opener import Opener
from pillion_storage.sealed.reading import BOOKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pillion.domain.scope import Partition

    from pillion_storage.sealed.master import MasterKeys
    from pillion_storage.values import Row


class SealCheck:
    """See ``pillion_storage.verify.Seals``."""

    def __init__(self, keyring: Keyring, rows_of: Callable[[Partition], Iterable[Row]]) -> None:
        """Read what the store remembers of its sealing.

        Raises:
            KeyringUnusable: the keyring is another store's, or older than the data.
        """
        self._keyring = keyring
        tag = keyring.partition_tag(BOOKS)
        books = Opener(keyring, {})
        plain_until = {}
        try:
            for row in rows_of(BOOKS):
                value = books.opened(tag, envelope.VALUE, row.key, row.value, row.version)
                number = int.from_bytes(value or b"")
                if row.key == MARKER and keyring.generation < number:
                    raise KeyringUnusable(f"the keyring {keyring.path} is older than the data")
                if row.key.startswith(PLAIN):
                    plain_until[row.key[len(PLAIN) :]] = number
        except Corrupt as error:
            raise KeyringUnusable(
                f"the keyring {keyring.path} is not the one of this store ({error.record})"
            ) from error
        self._opener = Opener(keyring, plain_until)

    def problem(
        self, partition: Partition, kind: bytes, key: bytes, data: bytes, version: int
    ) -> str | None:
        """See ``Seals.problem``."""
        tag = self._keyring.partition_tag(partition)
        try:
            self._opener.opened(tag, kind, key, data, version)
        except Corrupt as error:
            return str(error)
        return None


@contextlib.contextmanager
def opened_check(
    keys_directory: Path, master: MasterKeys
) -> Iterator[Callable[[Callable[[Partition], Iterable[Row]]], SealCheck]]:
    """Give what ``verify`` takes as ``open_seals``. Nothing is changed but a torn end cut off.

    Raises:
        StoreLocked, KeyringUnusable, MasterKeyUnusable: as in opening the store.
    """
    keyring = Keyring(keys_directory, master, clock_us=lambda: time.time_ns() // 1000)
    try:
        keyring.load()
        yield lambda rows_of: SealCheck(keyring, rows_of)
    finally:
        keyring.close()
