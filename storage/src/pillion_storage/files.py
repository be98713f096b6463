"""What every file that must survive a power cut needs."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 1 << 20


def sync_directory(directory: Path) -> None:
    """Flush a directory, so that the files in it are there after a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def overwrite(fd: int) -> None:
    """Write zeros over the whole of an open file, and flush them.

    File systems with snapshots or copy on write, journals and spare cells of an SSD may keep what
    was there all the same.

    Raises:
        OSError: the disk failed; part of it may still be there.
    """
    size = os.fstat(fd).st_size
    for at in range(0, size, _CHUNK):
        view = memoryview(bytes(min(_CHUNK, size - at)))
        place = at
        while view:
            written = os.pwrite(fd, view, place)
            view, place = view[written:], place + written
    os.fsync(fd)


def wipe(path: Path) -> None:
    """Overwrite a file and remove it, as far as that goes; one that isn't there is fine."""
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            overwrite(fd)
        finally:
            os.close(fd)
    with contextlib.suppress(OSError):
        path.unlink()
