"""The erasure ledger: what was erased, kept outside of the data, so that a backup can't undo it.

A file of its own, a line of JSON for each erasure, only ever appended to. It holds no content and
no names: keyed hashes of ids and subjects, under the secret of their partition, and the ids of the
data keys that were destroyed. Each line names the hash of the one before it, so none can be
changed, taken out or put elsewhere unseen; that lines are missing at the end can't be told from
the file alone. A line that a stop cut short was acknowledged to nobody and is cut off.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage.errors import Corrupt, StoreFailed, StoreFull
from pillion_storage.files import sync_directory

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 1
NO_ENTRY: Final = bytes(32)
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One erasure.

    Attributes:
        erasure: Its id.
        partition: What stands for the partition (``KeySpace.erased_partition``).
        recorded_at: When, µs UTC.
        subject: The keyed hash of a subject of whom nothing was left; empty: of none.
        ids: What stands for each id that went (``KeySpace.erased_id``).
        key_ids: The data keys that were destroyed.
    """

    erasure: UUID
    partition: bytes
    recorded_at: int
    subject: bytes
    ids: tuple[bytes, ...]
    key_ids: tuple[bytes, ...]


class ErasureLedger:
    """The ledger of one data directory. Safe to share between threads.

    The file is made with the first entry; without one nothing was erased.
    """

    def __init__(self, path: Path) -> None:
        """Read what there is.

        Raises:
            Corrupt: a line does not check; the line is named.
            StoreFailed: the file can't be read.
        """
        self.path = path
        self._lock = threading.Lock()
        self._last = NO_ENTRY
        self._entries: dict[UUID, tuple[LedgerEntry, bytes]] = {}
        self._end = 0
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise StoreFailed(f"the erasure ledger {path} can't be read: {error}") from error
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            entry = self._checked(number, line)
            self._last = _hash(self._last, line)
            self._entries[entry.erasure] = (entry, self._last)
            self._end += len(line) + 1
        self._torn = self._end != len(data)

    def _checked(self, number: int, line: bytes) -> LedgerEntry:
        where = f"line {number} of the erasure ledger {self.path}"
        try:
            told = json.loads(line)
            if told["format"] != FORMAT:
                raise Corrupt(where, "it is of another format")
            if bytes.fromhex(told["previous"]) != self._last:
                raise Corrupt(where, "it does not follow the line before it")
            if told["check"] != _check(told):
                raise Corrupt(where, "it was changed")
            return LedgerEntry(
                erasure=UUID(told["erasure"]),
                partition=bytes.fromhex(told["partition"]),
                recorded_at=told["recorded_at_us"],
                subject=bytes.fromhex(told["subject"]),
                ids=tuple(bytes.fromhex(one) for one in told["ids"]),
                key_ids=tuple(bytes.fromhex(one) for one in told["keys"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(where, "it is no entry") from error

    def entries(self) -> list[LedgerEntry]:
        """Return every entry, the oldest first."""
        with self._lock:
            return [entry for entry, _ in self._entries.values()]

    def find(self, erasure: UUID) -> bytes | None:
        """Return the hash of an erasure's entry; None: it has none."""
        with self._lock:
            found = self._entries.get(erasure)
        return None if found is None else found[1]

    def check_writable(self) -> None:
        """Refuse an erasure that could not be written down.

        Raises:
            StoreFailed: the file or its folder can't be written to.
        """
        try:
            os.close(self._opened())
        except OSError as error:
            raise StoreFailed(
                f"the erasure ledger {self.path} can't be written: {error.strerror}"
            ) from error

    def append(self, entry: LedgerEntry) -> bytes:
        """Write an entry down; return its hash. On disk when this returns. Repeats do nothing.

        Raises:
            StoreFull: no space; nothing was written.
            StoreFailed: the disk failed.
        """
        with self._lock:
            known = self._entries.get(entry.erasure)
            if known is not None:
                return known[1]
            line = _line(entry, self._last)
            try:
                fd = self._opened()
                try:
                    if self._torn:
                        os.ftruncate(fd, self._end)
                    _write(fd, line + b"\n", self._end)
                    os.fsync(fd)
                finally:
                    os.close(fd)
                sync_directory(self.path.parent)
            except OSError as error:
                self._torn = True
                if error.errno in _NO_SPACE:
                    raise StoreFull("no space for the erasure ledger") from error
                raise StoreFailed(
                    f"the erasure ledger {self.path} can't be written: {error.strerror}"
                ) from error
            self._torn = False
            self._end += len(line) + 1
            self._last = _hash(self._last, line)
            self._entries[entry.erasure] = (entry, self._last)
            return self._last

    def _opened(self) -> int:
        with contextlib.suppress(FileExistsError):
            self.path.parent.mkdir(mode=0o700)
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _line(entry: LedgerEntry, previous: bytes) -> bytes:
    told: dict[str, object] = {
        "format": FORMAT,
        "erasure": str(entry.erasure),
        "partition": entry.partition.hex(),
        "recorded_at_us": entry.recorded_at,
        "subject": entry.subject.hex(),
        "ids": [one.hex() for one in entry.ids],
        "keys": [one.hex() for one in entry.key_ids],
        "previous": previous.hex(),
    }
    told["check"] = _check(told)
    return json.dumps(told, separators=(",", ":")).encode()


def _check(told: dict[str, object]) -> str:
    """Return the checksum of an entry: over everything else in it."""
    rest = {name: value for name, value in told.items() if name != "check"}
    content = json.dumps(rest, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _hash(previous: bytes, line: bytes) -> bytes:
    return hashlib.sha256(previous + line).digest()


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written
