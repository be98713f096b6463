"""The exclusive lock of a store directory, taken before anything else in it is opened.

``flock`` belongs to the open file, so the kernel releases it when the process dies, however it
dies, and a second open in the same process is refused too. A forked child shares the open file
and would keep the lock after its parent's death, so children close their copy at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import weakref
from typing import TYPE_CHECKING

from pillion_storage.errors import StoreLocked

if TYPE_CHECKING:
    from pathlib import Path

_held: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


class DirectoryLock:
    """Holds ``DIRECTORY/LOCK``; the file says who does."""

    def __init__(self, directory: Path) -> None:
        path = directory / "LOCK"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._fd, 32, 0).strip()
            self.abandon()
            pid = int(holder) if holder.isdigit() else None
            raise StoreLocked(str(directory), pid) from error
        os.fchmod(self._fd, 0o600)
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)
        _held.add(self)

    def release(self) -> None:
        """Unlock. Repeated calls do nothing. The file stays: removing it would race."""
        if self._fd >= 0:
            fcntl.flock(self._fd, fcntl.LOCK_UN)  # for a child just forked, too
            self.abandon()

    def abandon(self) -> None:
        """Close the file without unlocking it for others who share it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _abandon_in_child() -> None:
    for lock in list(_held):
        with contextlib.suppress(OSError):
            lock.abandon()


os.register_at_fork(after_in_child=_abandon_in_child)
