"""Opening a sealed store: which keyring belongs to which data, and what is refused.

    keyring  marker  what it is                              what happens
    none     none    a new store, or one that was plain      a keyring is made, the store is marked
    none     there   the keyring was lost                    refused
    there    none    a first start that was cut short        the store is marked
    there    none    but the keyring knows of a marker:      refused: other data, or an older copy
                     the data was swapped
    there    there   as it should be; the keyring is at      opened
                     least as new as the marker says
    there    there   the keyring is older, or another one    refused

Nothing is written before the master key was found to be the right one.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pillion_storage.errors import KeyringUnusable
from pillion_storage.sealed import envelope
from pillion_storage.sealed.books import Books, is_marked
from pillion_storage.sealed.keyfile import NAME
from pillion_storage.sealed.keyring import Keyring
from pillion_storage.sealed.store import SealedStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pillion_storage.api import Store, StoreSettings
    from pillion_storage.sealed.master import MasterKeys

# Beside the data; also where the file of the master key is by default.
KEYS_DIRECTORY: Final = "keys"


@dataclass(frozen=True, slots=True)
class SealSettings:
    """How to seal. ``keys_directory`` holds the keyring; its parent must exist by then."""

    keys_directory: Path
    master: MasterKeys


def with_room(settings: StoreSettings) -> StoreSettings:
    """Give the settings of the store below: its bounds leave room for the seals."""
    return replace(
        settings,
        value_room_bytes=envelope.OVERHEAD_BYTES,
        memo_layers_max=envelope.LAYERS_MAX,
    )


def open_sealed(
    open_store: Callable[[StoreSettings], Store], settings: StoreSettings, seals: SealSettings
) -> Store:
    """Open a store and seal over it.

    Raises:
        MasterKeyUnusable: the master key is missing, wrong, or open to others.
        KeyringUnusable: the keyring is missing, damaged, older than the data, or another store's.
        StoreError: as the store below.
    """
    with contextlib.ExitStack() as opened:
        keyring = _existing_keyring(settings, seals)
        if keyring is not None:
            opened.callback(keyring.close)
        inner = open_store(with_room(settings))
        opened.callback(inner.close)
        if keyring is None:
            _refuse_lost(inner, seals)
            keyring = _keyring(settings, seals)
            opened.callback(keyring.close)
            keyring.create()
        books = Books(inner, keyring)
        store = SealedStore(inner, keyring, books, books.check())
        opened.pop_all()
    return store


def _refuse_lost(inner: Store, seals: SealSettings) -> None:
    if is_marked(inner):
        raise KeyringUnusable(
            f"the store is encrypted, and its keyring ({seals.keys_directory / NAME}) is missing: "
            "copy its newest file there; without it nothing can be read"
        )


def _keyring(settings: StoreSettings, seals: SealSettings) -> Keyring:
    return Keyring(
        seals.keys_directory,
        seals.master,
        clock_us=settings.clock_us,
        secret_bytes=settings.random_bytes,
    )


def _existing_keyring(settings: StoreSettings, seals: SealSettings) -> Keyring | None:
    """Load the keyring, if there is one, before anything else is opened."""
    if not (seals.keys_directory / NAME).exists():
        return None
    keyring = _keyring(settings, seals)
    try:
        keyring.load()
    except BaseException:
        keyring.close()
        raise
    return keyring
