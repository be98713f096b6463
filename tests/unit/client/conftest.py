"""A scripted server, and a way to run one test body against both clients."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from pillion_client import AsyncClient, Client, RetryPolicy
from pillion_client._runtime import asynchronous, synchronous
from pillion_client.testing import ScriptedServer

STREAMS = {"list", "list_episodes", "history", "import_", "watch"}


@pytest.fixture
def socket():
    # Not tmp_path: its name grows with the test's, and a socket's path may not.
    folder = Path(tempfile.mkdtemp(prefix="pillion-"))
    yield folder / "s.sock"
    shutil.rmtree(folder)


@pytest.fixture
def server(socket):
    with ScriptedServer(socket) as running:
        yield running


class AsyncFace:
    """The blocking client behind the asyncio client's face, so that one body tests both."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        attribute = getattr(self._client, name)
        if not callable(attribute):
            return attribute
        if name in STREAMS:

            async def stream(*args, **kwargs):
                items = attribute(*args, **kwargs)
                try:
                    for item in items:
                        yield item
                finally:
                    items.close()

            return stream

        async def call(*args, **kwargs):
            return attribute(*args, **kwargs)

        return call


@pytest.fixture(params=["asyncio", "blocking"])
def run(request, socket):
    """Run ``body(client)`` with a client of either kind."""

    def go(body, **arguments):
        arguments.setdefault("target", f"unix:{socket}")
        arguments.setdefault("retry", RetryPolicy(backoff_first_seconds=0.001))

        async def main():
            if request.param == "asyncio":
                async with AsyncClient(**arguments) as client:
                    return await body(client)
            with Client(**arguments) as client:
                return await body(AsyncFace(client))

        return asyncio.run(main())

    return go


@pytest.fixture
def pauses(monkeypatch):
    """Make the client's pauses take no time, and return their lengths in seconds."""
    taken = []

    async def pause(seconds):
        taken.append(seconds)

    monkeypatch.setattr(asynchronous, "sleep", pause)
    monkeypatch.setattr(synchronous, "sleep", taken.append)
    return taken
