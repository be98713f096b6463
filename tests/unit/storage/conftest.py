"""Fixtures of the storage tests: an LMDB store with a small map, and a way to hold its writer."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store


@pytest.fixture
def settings(tmp_path):
    return StoreSettings(
        directory=tmp_path / "store", size_bytes_initial=1 << 20, size_bytes_max=64 << 20
    )


@pytest.fixture
def store(settings):
    store = open_store(settings)
    yield store
    store.close()


@pytest.fixture
def held(store):
    """Hold the writer inside a job, so that what is submitted meanwhile forms one group."""

    @contextmanager
    def hold():
        entered, release = threading.Event(), threading.Event()

        def job(_unit):
            entered.set()
            release.wait(60.0)

        future = store._writer.submit(job)
        entered.wait(60.0)
        try:
            yield
        finally:
            release.set()
            future.result(60.0)

    return hold
