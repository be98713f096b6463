"""The other end of a driver: its environment, its process, and its answers within a time."""

from __future__ import annotations

import hashlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.peers.catalogue import NUMPY

if TYPE_CHECKING:
    from types import TracebackType

    from benchmarks.peers.catalogue import Entry

DRIVERS = Path(__file__).resolve().parent / "drivers"
INSTALL_SECONDS = 600.0
CLOSE_SECONDS = 20.0
TOLD_MAX = 300


class PeerError(Exception):
    """A product cannot be measured. The message says why, for the table."""


def interpreter_for(entry: Entry, folder: Path) -> Path:
    """Return the Python that a driver runs in, with what it needs installed.

    A product gets an environment of its own under ``folder``; one that is there is used again.

    Raises:
        PeerError: Its packages cannot be installed here.
    """
    if not entry.packages:
        return Path(sys.executable)
    wanted = [*entry.packages, NUMPY]
    name = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:8]
    environment = folder / f"{entry.driver.removesuffix('.py')}-{name}"
    python = environment / "bin" / "python"
    done = environment / "installed"
    if done.exists():
        return python
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", *wanted],
    ):
        try:
            ran = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=INSTALL_SECONDS,
                env=_bare_environment(),
            )
        except subprocess.TimeoutExpired:
            raise PeerError(f"not installed within {INSTALL_SECONDS:.0f} s") from None
        if ran.returncode:
            lines = ran.stderr.strip().splitlines() or ["no reason given"]
            raise PeerError(f"not installed: {lines[-1][:TOLD_MAX]}")
    done.write_text("\n".join(wanted) + "\n", encoding="utf-8")
    return python


def _bare_environment() -> dict[str, str]:
    """Return this process's environment without what leads to our own packages."""
    return {name: one for name, one in os.environ.items() if name != "PYTHONPATH"}


class Driven:
    """A running driver. Commands raise PeerError; after that it is of no more use."""

    def __init__(self, entry: Entry, python: Path, folder: Path) -> None:
        self.entry = entry
        folder.mkdir(parents=True)
        self._log = folder / "log"
        self._data = folder / "data"
        self._data.mkdir()
        environment = _bare_environment() if entry.packages else dict(os.environ)
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), str(DRIVERS / entry.driver)],
                bufsize=0,  # so that closing a pipe has nothing to say to a process that is gone
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                env=environment,
            )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def open(self, dimension: int, count: int, *, within: float) -> str:
        """Make the store; return the product's version."""
        folder = str(self._data)
        answer = self.ask(within, do="open", folder=folder, dimension=dimension, count=count)
        return str(answer["version"])

    def ask(self, within: float, **command: object) -> dict[str, Any]:
        """Send a command and return the answer.

        Raises:
            PeerError: It failed, ended, or did not answer within so many seconds.
        """
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
        except BrokenPipeError:
            raise PeerError(f"ended: {self._last_line()}") from None
        answer: dict[str, Any] = json.loads(self._line(time.monotonic() + within, within))
        if "error" in answer:
            raise PeerError(answer["error"][:TOLD_MAX])
        return answer

    def _line(self, end: float, within: float) -> bytes:
        assert self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            readable, _, _ = select.select([pipe], [], [], max(end - time.monotonic(), 0))
            if not readable:
                self._process.kill()
                raise PeerError(f"no answer within {within:.0f} s")
            read = os.read(pipe, 1 << 20)
            if not read:
                raise PeerError(f"ended: {self._last_line()}")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _last_line(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:TOLD_MAX] if lines else "without a word"

    def stop(self) -> None:
        """Close the store and end the process. Repeated calls do nothing."""
        if self._process.poll() is None:
            try:
                self.ask(CLOSE_SECONDS, do="close")
                self._process.wait(CLOSE_SECONDS)
            except (PeerError, subprocess.TimeoutExpired):
                self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
