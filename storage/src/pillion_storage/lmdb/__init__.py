"""The embedded store: one LMDB file, one writer thread with group commit, many readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillion_storage.api import StoreSettings
    from pillion_storage.lmdb.store import LmdbStore


def open_store(settings: StoreSettings) -> LmdbStore:
    """Open or create the store in ``settings.directory``.

    Raises:
        StoreUnusable: the directory is missing, not writable, or not a directory.
        StoreLocked: somebody has it open.
        NewerFormat: a newer version wrote it.
        Corrupt: there is data that is not a readable store.
    """
    from pillion_storage.lmdb.store import LmdbStore

    return LmdbStore(settings)
