"""What every file that must survive a power cut needs."""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_CHUNK = 1 << 20
_START = 8  # bytes by which a piece is recognised at first


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


def find_in_file(path: Path, pieces: Collection[bytes]) -> list[bytes]:
    """Return those of some pieces, of 8 bytes and more each, that are anywhere in a file.

    Linear in the file, whatever the number of pieces.
    """
    by_start: dict[int, list[bytes]] = {}
    for piece in pieces:
        by_start.setdefault(int.from_bytes(piece[:_START], "little"), []).append(piece)
    if not by_start:
        return []
    starts = np.sort(np.fromiter(by_start, dtype="<u8", count=len(by_start)))
    found: set[bytes] = set()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        size = len(data)
        for begin in range(0, size, _CHUNK):
            # Every place of this chunk, those included whose first bytes reach into the next.
            chunk = data[begin : begin + _CHUNK + _START - 1]
            for offset in range(min(_START, len(chunk))):
                count = (len(chunk) - offset) // _START
                words = np.frombuffer(chunk, dtype="<u8", count=count, offset=offset)
                near = starts[np.searchsorted(starts, words).clip(max=len(starts) - 1)]
                for place in np.flatnonzero(near == words):
                    at = begin + offset + int(place) * _START
                    for piece in by_start[int(words[place])]:
                        if data[at : at + len(piece)] == piece:
                            found.add(piece)
    return sorted(found)
