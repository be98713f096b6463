"""The command line against a scripted server."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from pillion.cli.main import run
from pillion_client.testing import ScriptedServer


class Outcome(NamedTuple):
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The one JSON document on stdout."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def documents(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def folder():
    # Not tmp_path: its name grows with the test's, and a socket's path may not.
    made = Path(tempfile.mkdtemp(prefix="pillion-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, folder):
    """Nothing of the machine that runs the tests, and no server in the current directory."""
    for name in ("TARGET", "NAMESPACE", "TENANT", "CLIENT_TOKEN_FILE"):
        monkeypatch.delenv(f"PILLION_{name}", raising=False)
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)


@pytest.fixture
def server(folder):
    with ScriptedServer(folder / "s.sock") as running:
        yield running


@pytest.fixture
def pillion(capsys):
    """Run a command line in this process."""

    def go(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return go


@pytest.fixture
def at(pillion, server):
    """Run a command line against the scripted server."""
    return lambda *arguments: pillion("--target", server.target, *arguments)
