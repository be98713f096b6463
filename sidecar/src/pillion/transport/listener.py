"""The Unix socket: who may open it, and that only one server listens on it.

gRPC lets a second server bind the same path: it takes the socket over, and whichever of the two
stops first removes the file under the other. So an exclusive lock beside the socket is taken
before binding. The kernel drops it when the process ends, however it ends; the socket that a
killed server leaves behind is then bound over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The kernel's limit for the path of a Unix socket, without the closing zero byte.
PATH_BYTES_MAX: Final = 107
_SOCKET_MODE: Final = 0o660
_DIRECTORY_MODE: Final = 0o770
_UMASK: Final = 0o777 & ~_SOCKET_MODE


class ListenError(Exception):
    """The server cannot listen where it should. The message says what to do."""


class SocketLock:
    """Holds ``SOCKET.lock`` from before the bind until `release`."""

    def __init__(self, socket: Path) -> None:
        """Take the lock, making the socket's directory if it is missing.

        Raises:
            ListenError: The path is too long or cannot be used, or another server has it.
        """
        length = len(os.fsencode(socket))
        if length > PATH_BYTES_MAX:
            raise ListenError(
                f"the socket's path has {length} bytes and {PATH_BYTES_MAX} fit: {socket}; "
                "set `socket` to a shorter one"
            )
        path = socket.with_name(f"{socket.name}.lock")
        try:
            socket.parent.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
            if socket.exists() and not stat.S_ISSOCK(socket.lstat().st_mode):
                raise ListenError(
                    f"{socket} is there and is no socket; set `socket` to another path"
                )
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ListenError(
                f"no socket can be made at {socket}: {error.strerror}; "
                "set `socket` to a path in a directory that exists and is writable"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            raise ListenError(
                f"another server listens on {socket}; stop it, or set `socket`"
            ) from error

    def release(self) -> None:
        """Let go. The file stays: removing it would race with the next server."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@contextlib.contextmanager
def socket_umask() -> Iterator[None]:
    """Bind within this, so that the socket never exists with a wider mode than it should."""
    before = os.umask(_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def check_mode(socket: Path) -> None:
    """Hold the bound socket to its mode, whatever made it so.

    Raises:
        ListenError: The file system does not keep modes.
    """
    socket.chmod(_SOCKET_MODE)
    mode = stat.S_IMODE(socket.stat().st_mode)
    if mode != _SOCKET_MODE:
        raise ListenError(
            f"{socket} has mode {mode:04o} and not {_SOCKET_MODE:04o}: its file system does not "
            "keep modes; set `socket` to a path on one that does"
        )
