"""One LMDB environment: its directory, its map, its read transactions.

Invariants:

* Nothing in the directory is opened without its lock.
* The map changes size only while no transaction of this process is open: ``ReadersGate``.
* A read transaction lives inside one ``with environment.snapshot()``.
"""

from __future__ import annotations

import errno
import itertools
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import lmdb

from pillion_storage import schema
from pillion_storage.errors import (
    Corrupt,
    StoreBusy,
    StoreClosed,
    StoreFailed,
    StoreFull,
    StoreUnusable,
)
from pillion_storage.files import overwrite, sync_directory, wipe
from pillion_storage.lockfile import DirectoryLock
from pillion_storage.migrations import bring_up_to_date

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType

    from pillion_storage.api import StoreSettings

READERS_MAX = 512
_PAGE_BYTES = 4096
# The file as it is written anew, until it takes the place of the old one.
COMPACTED = "data.mdb.compacted"
_COMPACTED_MAP_MIN = 1 << 24  # for small files take more pages in another order
_COPIED_ROWS = 10_000
# What trim and purge may use beyond the limit: freeing pages takes a few pages first.
_RESERVE_BYTES_MIN = 1 << 20
_RESERVE_FRACTION = 64
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Databases(NamedTuple):
    """Handles of the named databases, in the order of ``schema.DATABASES``."""

    meta: lmdb._Database
    partitions: lmdb._Database
    heads: lmdb._Database
    current: lmdb._Database
    history: lmdb._Database
    archive: lmdb._Database
    feed: lmdb._Database
    tokens: lmdb._Database
    token_order: lmdb._Database


def open_databases(env: lmdb.Environment, *, create: bool) -> Databases:
    """Open every database of the schema."""
    return Databases(
        *(
            env.open_db(
                database.name.encode(),
                create=create,
                dupsort=database.duplicates,
                dupfixed=database.duplicates,
            )
            for database in schema.DATABASES
        )
    )


class ReadersGate:
    """Counts open read transactions, and holds new ones back while the map changes size."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # taken as it is where nobody waits: half the cost
        self._condition = threading.Condition(self._lock)
        self._readers = 0
        self._held = False
        self._closed = False

    def enter(self) -> None:
        """Register a reader; waits while the gate is held."""
        with self._lock:
            while self._held:
                self._condition.wait()
            if self._closed:
                raise StoreClosed("the store is closed")
            self._readers += 1

    def leave(self) -> None:
        """Deregister a reader."""
        with self._lock:
            self._readers -= 1
            if self._held and not self._readers:
                self._condition.notify_all()

    @contextmanager
    def hold(self, *, close: bool = False) -> Iterator[None]:
        """Wait until no reader is inside and keep it so; with ``close``, for good."""
        with self._condition:
            while self._held:
                self._condition.wait()
            self._held = True
            while self._readers:
                self._condition.wait()
        try:
            yield
        finally:
            with self._condition:
                self._closed = self._closed or close
                self._held = False
                self._condition.notify_all()


class Snapshot:
    """A read transaction as a context manager (a class: half the cost of a generator)."""

    __slots__ = ("_environment", "_gate", "_txn")

    def __init__(self, environment: Environment, gate: ReadersGate) -> None:
        self._environment = environment
        self._gate = gate

    def __enter__(self) -> lmdb.Transaction[bytes]:
        """Begin."""
        self._gate.enter()
        try:
            self._txn = self._environment.begin_read()  # of the file that is open by now
        except lmdb.ReadersFullError as error:
            self._gate.leave()
            raise StoreBusy(f"{READERS_MAX} reads are going on already; retry") from error
        except BaseException:
            self._gate.leave()
            raise
        return self._txn

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End."""
        try:
            self._txn.abort()
        finally:
            self._gate.leave()


class Environment:
    """An open environment. Only the writer thread may call ``begin_write`` and ``grow``."""

    def __init__(self, settings: StoreSettings) -> None:
        self.directory = prepare_directory(settings.directory)
        self._gate = ReadersGate()
        self._limit = _whole_pages(settings.size_bytes_max)
        self._reserve = _whole_pages(max(_RESERVE_BYTES_MIN, self._limit // _RESERVE_FRACTION))
        self._lock = DirectoryLock(self.directory)
        try:
            initial = min(_whole_pages(settings.size_bytes_initial), self._limit)
            self._env = _open(self.directory, initial)
        except BaseException:
            self._lock.release()
            raise
        try:
            wipe(self.directory / COMPACTED)
            bring_up_to_date(self._env, settings.clock_us)
            self.databases = open_databases(self._env, create=True)
            self._harden()
            self.check_readers()
        except BaseException:
            self._env.close()
            self._lock.release()
            raise

    def _harden(self) -> None:
        for name in ("data.mdb", "lock.mdb"):
            (self.directory / name).chmod(0o600)  # whatever the umask is
        sync_directory(self.directory)  # new files survive power loss only with their directory

    def snapshot(self) -> Snapshot:
        """Give a read transaction for one ``with`` block."""
        return Snapshot(self, self._gate)

    def begin_read(self) -> lmdb.Transaction[bytes]:
        """Begin a read transaction. Only for a reader that the gate has let in."""
        return self._env.begin()

    def begin_write(self) -> lmdb.Transaction[bytes]:
        """Begin the write transaction."""
        return self._env.begin(write=True)

    def grow(self) -> bool:
        """Double the map up to the limit; False if it is there already."""
        size = self._env.info()["map_size"]
        if size >= self._limit:
            return False
        self._resize(min(size * 2, self._limit))
        return True

    @contextmanager
    def reserve(self) -> Iterator[None]:
        """Lend room beyond the limit, for work that frees space."""
        size = self._env.info()["map_size"]
        self._resize(max(size, self._limit) + self._reserve)
        try:
            yield
        finally:
            # LMDB never goes below what is in use: the file can't grow, freed pages can be used.
            self._resize(self._limit)

    def _resize(self, size: int) -> None:
        with self._gate.hold():
            self._env.set_mapsize(size)

    def check_readers(self) -> int:
        """Free the slots of dead readers, such as a killed inspection tool; return how many."""
        return self._env.reader_check()

    def size_bytes(self) -> int:
        """Give the bytes of the file that are or were in use."""
        return (self._env.info()["last_pgno"] + 1) * _PAGE_BYTES

    def size_bytes_max(self) -> int:
        """Give the limit that the map may grow to."""
        return self._limit

    def disk_is_full(self, size: int) -> bool:
        """Ask the file system whether it would let the data file grow by so many bytes.

        LMDB reports a short write, which is how most disks fill up, as EIO. A scratch file as
        long as the data file (sparse up to there) meets the same limits and says which it was.
        """
        scratch = self.directory / "space-check"
        fd = os.open(scratch, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(fd, self.size_bytes(), size)
        except OSError as error:
            return error.errno in _NO_SPACE
        else:
            return False
        finally:
            os.close(fd)
            scratch.unlink()

    def copy_to(self, directory: Path) -> None:
        """Copy everything, compacted, to a new directory, and make it durable."""
        target = prepare_directory(directory)
        if any(target.iterdir()):
            raise StoreUnusable(f"{target} is not empty; name a new directory for the backup")
        # The copy is one long read, during which the map can't grow: give it all there is first.
        if self._env.info()["map_size"] < self._limit:
            self._resize(self._limit)
        fd = os.open(target / "data.mdb", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            self._gate.enter()
            try:
                self._env.copyfd(fd, compact=True)
            finally:
                self._gate.leave()
            os.fchmod(fd, 0o600)
            os.fsync(fd)
        except lmdb.Error as error:
            raise _explain(error) from error
        finally:
            os.close(fd)
        sync_directory(target)

    def compact(self) -> int:
        """See ``Compacts.compact``. Only between transactions of the writer.

        The map of the new file has the size of the old one, so nothing else changes for callers.
        """
        draft = self.directory / COMPACTED
        file = self.directory / "data.mdb"
        try:
            wipe(draft)  # of a compaction that a stop cut short
            self._copy_compacted(draft)
            old = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            wipe(draft)
            if error.errno in _NO_SPACE:
                raise StoreFull("no space beside the data file to write it anew") from error
            raise StoreFailed(f"the data file can't be written anew: {error.strerror}") from error
        try:
            with self._gate.hold():
                map_bytes = self._env.info()["map_size"]
                self._env.close()
                try:
                    draft.rename(file)
                finally:
                    self._env = _open(self.directory, map_bytes)
                    self.databases = open_databases(self._env, create=True)
            sync_directory(self.directory)
            overwrite(old)
        except OSError as error:
            raise StoreFailed(f"the data file can't be replaced: {error.strerror}") from error
        finally:
            os.close(old)
        return file.stat().st_size

    def _copy_compacted(self, path: Path) -> None:
        """Put every row into a new file.

        LMDB's own compacting copy takes the unused ends of large values along, in which there may
        be anything that was written before.
        """
        map_bytes = max(self._env.info()["map_size"], _COMPACTED_MAP_MIN)
        try:
            with lmdb.open(
                str(path),
                map_size=map_bytes,
                subdir=False,
                max_dbs=len(schema.DATABASES),
                mode=0o600,
                lock=False,
                sync=False,
                lib_version=0,
            ) as target:
                targets = open_databases(target, create=True)
                with self.snapshot() as source:
                    for mine, theirs in zip(self.databases, targets, strict=True):
                        _copy_database(source, mine, target, theirs)
                target.sync(True)
        except lmdb.Error as error:
            raise _explain(error) from error

    def close(self) -> None:
        """Wait for the readers, then close and unlock."""
        with self._gate.hold(close=True):
            self._env.close()
            self._lock.release()


def _copy_database(
    source: lmdb.Transaction[bytes],
    mine: lmdb._Database,
    target: lmdb.Environment,
    theirs: lmdb._Database,
) -> None:
    """Copy the rows of a database in bounded transactions."""
    with source.cursor(mine) as cursor:
        rows = cursor.iternext()
        while part := list(itertools.islice(rows, _COPIED_ROWS)):
            with target.begin(write=True, db=theirs) as txn, txn.cursor(theirs) as writing:
                writing.putmulti(part, append=True)


def no_space(error: lmdb.Error) -> bool:
    """Say whether the map, the disk, a quota or a file size limit is full."""
    return isinstance(error, lmdb.MapFullError) or getattr(error, "code", 0) in _NO_SPACE


def _explain(error: lmdb.Error) -> Exception:
    return StoreFull(str(error)) if no_space(error) else error


def _whole_pages(size: int) -> int:
    return max(size // _PAGE_BYTES, 64) * _PAGE_BYTES


def _open(directory: Path, map_bytes: int) -> lmdb.Environment:
    try:
        return lmdb.open(
            str(directory),
            map_size=map_bytes,
            max_dbs=len(schema.DATABASES),
            max_readers=READERS_MAX,
            mode=0o600,
            # Durability is not for sale: data and meta page are flushed before a commit returns.
            sync=True,
            metasync=True,
            # A writable map turns a full disk into SIGBUS.
            writemap=False,
            # Written out, for the environment can change the default engine, hence the format.
            lib_version=0,
        )
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError) as error:
        raise Corrupt("data.mdb", f"not a readable LMDB file ({error})") from error
    except lmdb.Error as error:
        raise StoreUnusable(f"{directory} can't be opened: {error}") from error


def prepare_directory(directory: Path | None) -> Path:
    """Make the directory (0700), durably, unless it exists; raise StoreUnusable if that fails."""
    if directory is None:
        raise StoreUnusable("the lmdb store needs a directory; none is set")
    if not directory.parent.is_dir():
        raise StoreUnusable(f"{directory.parent} doesn't exist; create it, or mount the volume")
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass  # its mode is the operator's choice: a mounted volume can't always be changed
    except OSError as error:
        raise StoreUnusable(f"{directory} can't be made: {error.strerror}") from error
    else:
        directory.chmod(0o700)
        sync_directory(directory.parent)
    if not directory.is_dir():
        raise StoreUnusable(f"{directory} is not a directory; name another one")
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise StoreUnusable(
            f"{directory} is not writable for user {os.geteuid()}; change its owner or mode"
        )
    return directory
