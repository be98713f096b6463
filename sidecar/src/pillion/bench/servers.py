"""Servers of the bench's own: in a temporary directory, stopped and removed at the end."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

READY_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.02


@dataclass(frozen=True)
class Served:
    """A process that serves on a Unix socket.

    Attributes:
        process: The process.
        socket: Its socket.
        folder: Its directory, which goes with it.
    """

    process: subprocess.Popen[bytes]
    socket: Path
    folder: Path

    @property
    def target(self) -> str:
        """The target to dial."""
        return f"unix:{self.socket}"


@contextlib.contextmanager
def serving(*arguments: str) -> Iterator[Served]:
    """Run ``pillion serve`` with further arguments.

    Raises:
        RuntimeError: It did not start; the message is its log.
    """
    with tempfile.TemporaryDirectory(prefix="pillion-bench-") as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "pillion.cli", "serve"]
        command += ["--directory", str(folder / "data"), "--socket", str(folder / "s")]
        with _running([*command, *arguments], folder) as served:
            yield served


@contextlib.contextmanager
def echoing(response: bytes) -> Iterator[Served]:
    """Run the echo server, which answers every call with these bytes.

    Raises:
        RuntimeError: It did not start; the message is its log.
    """
    with tempfile.TemporaryDirectory(prefix="pillion-echo-") as scratch:
        folder = Path(scratch)
        (folder / "response").write_bytes(response)
        command = [sys.executable, "-m", "pillion.bench.echo"]
        with _running([*command, str(folder / "s"), str(folder / "response")], folder) as served:
            yield served


@contextlib.contextmanager
def _running(command: list[str], folder: Path) -> Iterator[Served]:
    log_path, socket = folder / "log", folder / "s"
    with log_path.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  (our own command, no shell)
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
        )
    try:
        end = time.monotonic() + READY_SECONDS_MAX
        while not socket.exists():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(log_path.read_text(encoding="utf-8", errors="replace"))
            time.sleep(_POLL_SECONDS)
        yield Served(process, socket, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
