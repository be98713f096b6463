"""The blocking client is what the generator makes of the asyncio one, and nothing is left over."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

from pillion_client import AsyncClient, Client

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts/gen_sync_client.py"
GENERATED = sorted((ROOT / "clients/python/src/pillion_client/_sync").glob("*.py"))


def test_the_committed_client_is_fresh():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_asynchronous_is_left():
    assert len(GENERATED) == 10
    for path in GENERATED:
        body = path.read_text(encoding="utf-8").partition("\n")[2]
        assert re.findall(r"\b(async|await|Async\w+|asyncio|aio|a?waitable)\b", body) == []


def test_both_clients_have_the_same_face():
    def face(kind):
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in inspect.getmembers(kind, callable)
            if not name.startswith("_")
        }

    assert face(AsyncClient) == face(Client)
