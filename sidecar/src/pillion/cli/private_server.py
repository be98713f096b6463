"""A server of one's own for a moment: in a temporary directory, stopped and removed at the end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pillion_client import Client, NoServer, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS_MAX: Final = 60.0
"""A first start loads the embedder, which takes a few seconds on a slow machine."""

STOP_SECONDS_MAX: Final = 15.0
_POLL_SECONDS: Final = 0.5
_LOG_BYTES_SHOWN: Final = 2000


@contextlib.contextmanager
def private_server() -> Iterator[str]:
    """Start ``pillion serve`` in a temporary directory; yield its target once it answers.

    Raises:
        Unavailable: It ended, or did not answer in time; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="pillion-demo-") as folder:
        data, log = Path(folder) / "data", Path(folder) / "serve.log"
        socket = Path(folder) / "s.sock"
        # The caller's own settings are for another server.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PILLION_")
        }
        command = [
            *(sys.executable, "-m", "pillion.cli", "serve"),
            *("--directory", str(data), "--socket", str(socket)),
        ]
        with log.open("wb") as sink:
            process = subprocess.Popen(  # noqa: S603  (our own command, no shell)
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        try:
            target = f"unix:{socket}"
            _wait_until_ready(process, target, log)
            yield target
        finally:
            _stop(process)


def _wait_until_ready(process: subprocess.Popen[bytes], target: str, log: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS_MAX
    with Client(target) as client:
        while time.monotonic() < ends_at:
            with contextlib.suppress(NoServer):
                client.wait_until_ready(_POLL_SECONDS)
                return
            if process.poll() is not None:
                why = f"`pillion serve` ended with {process.returncode}"
                break
        else:
            why = f"`pillion serve` did not answer within {START_SECONDS_MAX:g} s"
    tail = log.read_bytes()[-_LOG_BYTES_SHOWN:].decode("utf-8", errors="replace")
    message = f"{why}; its log ends with:\n{tail}"
    raise Unavailable(message)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask it to drain and wait; a server that does not end by itself is killed."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
