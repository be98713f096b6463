"""What encryption at rest costs: opening a value beside bare AES-GCM, sealing, and the keyring."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pillion_storage.api import Batch, Partition, StoreSettings
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.sealed.keyring import Keyring

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pillion_storage.api import Store
    from pytest_benchmark.fixture import BenchmarkFixture

VALUES = 2000
OWNERS = 100
KEYS = 100_000
P = Partition("bench", "tenant")
SIZES = {"memory": 300, "vector of 384": 1536}


@pytest.fixture(params=["plain", "sealed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    settings = StoreSettings(directory=tmp_path / "store")
    seals = SealSettings(tmp_path / "store" / "keys", FileMasterKey(tmp_path / "master.key"))
    sealed = request.param == "sealed"
    opened = open_sealed(open_store, settings, seals) if sealed else open_store(settings)
    yield opened
    opened.close()


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_scan(benchmark: BenchmarkFixture, store: Store, size: int) -> None:
    owners = [os.urandom(16) for _ in range(OWNERS)]
    for first in range(0, VALUES, 500):
        puts = {b"%06d" % n: os.urandom(size) for n in range(first, first + 500)}
        by_key = {key: owners[n % OWNERS] for n, key in enumerate(puts)}
        store.commit(P, Batch(puts=puts, owners=by_key))
    page = benchmark(store.scan, P, b"", b"9", limit=VALUES)
    assert len(page.rows) == VALUES


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_bare_aes_gcm(benchmark: BenchmarkFixture, size: int) -> None:
    """The floor of what a sealed scan adds."""
    cipher, nonce, place = AESGCM(os.urandom(32)), os.urandom(12), os.urandom(40)
    sealed = [cipher.encrypt(nonce, os.urandom(size), place) for _ in range(VALUES)]
    benchmark(lambda: [cipher.decrypt(nonce, one, place) for one in sealed])


def test_load_of_100_000_keys(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    master = FileMasterKey(tmp_path / "master.key")

    def opened() -> Keyring:
        return Keyring(tmp_path / "keys", master, clock_us=lambda: 1)

    ring = opened()
    ring.create()
    tag = ring.partition_tag(P)
    for _ in range(KEYS // 1000):
        ring.lease(tag, [os.urandom(16) for _ in range(1000)], 1).release()
    ring.close()

    def load() -> None:
        loaded = opened()
        loaded.load()
        loaded.close()

    benchmark.pedantic(load, rounds=5)
