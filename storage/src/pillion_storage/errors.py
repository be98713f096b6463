"""The errors of a store.

StoreError
├── InvalidBatch          the caller broke a bound or contradicted itself; nothing was done
│   ├── KeyTooLong
│   ├── ValueTooLong
│   ├── BatchTooLarge
│   ├── InvalidRange
│   └── KeyStillLive      purge of a key that exists
├── HistoryGone           the revision asked for is no longer kept
├── FutureRevision        the revision asked for does not exist yet
├── NotSupported          a feature that this store doesn't declare
├── StoreBusy             the queue is full: retry later
├── StoreFull             no space; reads go on
├── Corrupt               a record doesn't match its checksum
├── StoreFailed           the engine gave up: reopen the store
├── StoreClosed
├── StoreForked           used in a forked child
└── cannot be opened
    ├── StoreLocked       another process has it
    ├── StoreUnusable     the directory is missing, not writable, or not a store
    │   ├── MasterKeyUnusable   the master key is missing, wrong, or open to others
    │   └── KeyringUnusable     the keyring is missing, older than the data, or damaged
    └── NewerFormat       written by a newer Pillion
"""

# ruff: noqa: N818 -- the tree speaks for itself: "StoreFull" says more than "StoreFullError".

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


class StoreError(Exception):
    """The root of what a store raises on purpose."""


class InvalidBatch(StoreError):
    """The arguments break a bound or contradict themselves. Nothing was done."""


class KeyTooLong(InvalidBatch):
    """A key, or a bound of a scan, is too long."""


class ValueTooLong(InvalidBatch):
    """A value, memo or note is too long."""


class BatchTooLarge(InvalidBatch):
    """Too many operations, or too many bytes in all."""


class InvalidRange(InvalidBatch):
    """A scan whose bounds or limit make no sense."""


class KeyStillLive(InvalidBatch):
    """Only deleted keys can be purged."""

    def __init__(self, keys: Collection[bytes]) -> None:
        self.keys = tuple(sorted(keys))
        super().__init__(f"{len(self.keys)} of the keys exist: delete them first, then purge")


class HistoryGone(StoreError):
    """The revision is older than what is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        self.asked = asked
        self.oldest = oldest
        super().__init__(f"revision {asked} is no longer kept; the oldest kept one is {oldest}")


class FutureRevision(StoreError):
    """The revision has not been committed yet."""

    def __init__(self, asked: int, head: int) -> None:
        self.asked = asked
        self.head = head
        super().__init__(f"revision {asked} does not exist yet; the newest one is {head}")


class NotSupported(StoreError):
    """The store doesn't declare this feature."""


class StoreBusy(StoreError):
    """The queue of waiting batches is full. Nothing was queued."""


class StoreFull(StoreError):
    """The store's limit or the disk is full. Nothing was done; reads go on."""


class Corrupt(StoreError):
    """A stored record is damaged. ``record`` names its database and key."""

    def __init__(self, record: str, problem: str) -> None:
        self.record = record
        super().__init__(f"{record}: {problem}; run `pillion verify` and restore from a backup")


class StoreFailed(StoreError):
    """The engine reported an error that it can't go on from. Close and reopen the store."""


class StoreClosed(StoreError):
    """The store was closed."""


class StoreForked(StoreError):
    """The store was opened in a parent process. Open stores after forking."""


class StoreLocked(StoreError):
    """Another process, or another store of this process, has the directory open."""

    def __init__(self, directory: str, pid: int | None) -> None:
        self.pid = pid
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(f"{directory} is in use by {holder}; stop it or choose another directory")


class StoreUnusable(StoreError):
    """The directory can't hold a store. The message says what to do."""


class MasterKeyUnusable(StoreUnusable):
    """There is no master key, it isn't the right one, or others could read it."""


class KeyringUnusable(StoreUnusable):
    """The keyring is missing, damaged, older than the data, or another store's."""


class NewerFormat(StoreError):
    """The data was written by a newer version. Nothing was changed."""

    def __init__(self, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"the data has format {found}, this version reads up to {supported}; "
            "upgrade Pillion, or restore a backup made by this version"
        )
