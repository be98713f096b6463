"""Our own stores pass the public kit."""

from __future__ import annotations

import shutil

from pillion_storage import lmdb, ram
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.testing import StoreConformance


class TestRamStore(StoreConformance):
    def open(self, settings):
        return ram.open_store(settings)


class TestLmdbStore(StoreConformance):
    def open(self, settings):
        return lmdb.open_store(settings)


class SealedConformance(StoreConformance):
    """Sealed over another store, with the keys beside the first directory that is opened."""

    opener: object

    def open(self, settings):
        directory = settings.directory
        first = self.scratch / "store"
        directory.mkdir(exist_ok=True)
        keys = directory / "keys"
        if directory != first and not keys.exists():  # a backup: opened with the live keyring
            keys.mkdir()
            shutil.copy(first / "keys" / "keyring", keys)
        master = FileMasterKey(self.scratch / "master.key")
        return open_sealed(type(self).opener, settings, SealSettings(keys, master))


class TestSealedLmdbStore(SealedConformance):
    opener = staticmethod(lmdb.open_store)


class TestSealedRamStore(SealedConformance):
    opener = staticmethod(ram.open_store)

    def open(self, settings):
        # What it seals is gone with the process, and so must the keys be.
        shutil.rmtree(settings.directory / "keys", ignore_errors=True)
        return super().open(settings)
