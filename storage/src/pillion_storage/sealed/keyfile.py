"""The keyring file on disk: read, appended to, rewritten whole.

Invariants:

* An append is flushed before anybody uses its keys, so the file may end in a torn append, and in
  nothing else that is not sound.
* A rewriting makes a new file, flushes it, and renames it over the old one: after a stop at any
  point there is the old file or the new one, whole. Then the bytes of the old one are overwritten
  before it is let go. That is the best that can be done from here; journals, snapshots of the file
  system and the spare cells of an SSD may keep them.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from pillion_storage.errors import KeyringUnusable, StoreFailed, StoreFull
from pillion_storage.files import sync_directory
from pillion_storage.lockfile import DirectoryLock
from pillion_storage.sealed import layout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pillion_storage.sealed.layout import Header, RingKeys

NAME: Final = "keyring"
_DRAFT: Final = "keyring.new"
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CHUNK: Final = 1 << 20


class KeyFile:
    """The open and locked file. Not safe to use from several threads at once."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory, which is made (mode 0700) unless it exists.

        Raises:
            StoreLocked: another process has the keyring open.
            KeyringUnusable: the directory can't be made or used.
        """
        self._directory = _prepared(directory)
        self.path = directory / NAME
        self._lock = DirectoryLock(directory)
        self._fd = -1
        self._end = 0
        self._header: Header | None = None
        self._failed = False

    def read(self) -> bytes:
        """Open the file and give all of its bytes; ``adopt`` says what was sound."""
        self._forget_draft()
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(os.dup(self._fd), "rb") as file:
                return file.read()
        except OSError as error:
            raise KeyringUnusable(f"{self.path} can't be read: {error.strerror}") from None

    def adopt(self, header: Header, end: int) -> None:
        """Go on from here: what lies beyond the end is a torn append, and is cut off."""
        self._header, self._end = header, end
        if os.fstat(self._fd).st_size != end:
            os.ftruncate(self._fd, end)
            os.fsync(self._fd)

    def append(self, bodies: Sequence[bytes], keys: RingKeys) -> None:
        """Add records; they are on disk when this returns.

        Raises:
            StoreFull: no space; nothing was added.
            StoreFailed: the disk failed; the keyring takes no more keys until it is reopened.
        """
        header = self._usable()
        place = (self._end - layout.HEADER_BYTES) // layout.RECORD_BYTES
        data = layout.sealed_records(bodies, keys, header.generation, place)
        try:
            _write(self._fd, data, self._end)
            os.fdatasync(self._fd)
        except OSError as error:
            self._take_back(error)
            raise
        self._end += len(data)

    def _take_back(self, error: OSError) -> None:
        """Cut off a failed append. After a failed flush nothing is known of the file any more."""
        if error.errno in _NO_SPACE:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
                os.fdatasync(self._fd)
                raise StoreFull(
                    "no space for a key in the keyring; make room on its disk"
                ) from error
        self._failed = True
        raise StoreFailed(
            f"the keyring can't be written ({error.strerror}); reopen the store"
        ) from error

    def rewrite(self, header: Header, bodies: Sequence[bytes], keys: RingKeys) -> None:
        """Replace the whole file at once. After an error the old one is as it was.

        Raises:
            StoreFull: no space.
            StoreFailed: the disk failed.
        """
        if self._header is not None:
            self._usable()
        data = layout.pack_header(header, keys) + layout.sealed_records(
            bodies, keys, header.generation, 0
        )
        draft = self._directory / _DRAFT
        try:
            fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.fchmod(fd, 0o600)
                _write(fd, data, 0)
                os.fsync(fd)
                draft.rename(self.path)
            except BaseException:
                os.close(fd)
                _overwrite_and_unlink(draft)
                raise
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise StoreFull("no space to rewrite the keyring; make room on its disk") from error
            raise StoreFailed(f"the keyring can't be rewritten: {error.strerror}") from error
        old, self._fd = self._fd, fd
        self._header, self._end = header, len(data)
        try:
            sync_directory(self._directory)
        except OSError as error:
            self._failed = True
            raise StoreFailed(f"the keyring's folder can't be flushed: {error.strerror}") from error
        finally:
            if old >= 0:
                _overwrite(old)
                os.close(old)

    def _usable(self) -> Header:
        if self._failed or self._header is None:
            raise StoreFailed("the keyring failed before; reopen the store")
        return self._header

    def _forget_draft(self) -> None:
        """Do away with a rewriting that a stop cut short: the file itself is the truth."""
        draft = self._directory / _DRAFT
        if draft.exists():
            _overwrite_and_unlink(draft)

    def close(self) -> None:
        """Close and unlock. Repeated calls do nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._lock.release()


def _prepared(directory: Path) -> Path:
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise KeyringUnusable(f"{directory} can't be made: {error.strerror}") from None
    else:
        directory.chmod(0o700)
        sync_directory(directory.parent)
    if not directory.is_dir() or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise KeyringUnusable(f"{directory} is no directory that user {os.geteuid()} can write to")
    return directory


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def _overwrite(fd: int) -> None:
    with contextlib.suppress(OSError):
        size = os.fstat(fd).st_size
        for at in range(0, size, _CHUNK):
            _write(fd, bytes(min(_CHUNK, size - at)), at)
        os.fsync(fd)


def _overwrite_and_unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            _overwrite(fd)
        finally:
            os.close(fd)
    with contextlib.suppress(OSError):
        path.unlink()
