"""Our own stores pass the public kit."""

from __future__ import annotations

from pillion_storage import lmdb, ram
from pillion_storage.testing import StoreConformance


class TestRamStore(StoreConformance):
    def open(self, settings):
        return ram.open_store(settings)


class TestLmdbStore(StoreConformance):
    def open(self, settings):
        return lmdb.open_store(settings)
