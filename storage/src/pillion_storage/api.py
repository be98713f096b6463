"""The store interface: tenant-scoped atomic batches, with their semantics written down.

Words used throughout:

* A *partition* is one (namespace, tenant). Nothing here ever spans two partitions.
* A *revision* is the partition's commit counter: 0 before the first commit, then +1 per accepted
  batch, gapless and in commit order.
* A key's *version* is the revision of the commit that last wrote it, so a version never repeats,
  not even after a delete and a re-create.
* ``at`` is the revision that a read sees; ``None`` is the newest. Reads at a kept revision are
  exact for ever: deletes, re-creates and all. Only ``purge`` takes something out of the past.

No open transaction crosses the interface, every method may be called from any thread, and every
method raises ``StoreClosed`` after ``close`` and ``StoreForked`` in a forked child. A partition
that was never written to reads as empty at revision 0. The errors are in ``errors``; the tree is
drawn there.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from pillion.domain.scope import Partition

from pillion_storage.errors import (
    BatchTooLarge,
    Corrupt,
    FutureRevision,
    HistoryGone,
    InvalidBatch,
    InvalidRange,
    KeyStillLive,
    KeyTooLong,
    NewerFormat,
    NotSupported,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreFailed,
    StoreForked,
    StoreFull,
    StoreLocked,
    StoreUnusable,
    ValueTooLong,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from pathlib import Path
from pillion_storage.values import (
    KEY_SPACE_END,
    Batch,
    Change,
    ChangeKind,
    ChangePage,
    Committed,
    Conflict,
    Entry,
    Features,
    Head,
    KeyVersion,
    Page,
    PartitionStats,
    ReadResult,
    Row,
    StoreStats,
    Token,
    TrimReport,
)

__all__ = [
    "KEY_SPACE_END",
    "Batch",
    "BatchTooLarge",
    "Change",
    "ChangeKind",
    "ChangePage",
    "Committed",
    "Conflict",
    "Corrupt",
    "Entry",
    "Features",
    "FileSeals",
    "FutureRevision",
    "Head",
    "HeadView",
    "HistoryGone",
    "InvalidBatch",
    "InvalidRange",
    "KeyStillLive",
    "KeyTooLong",
    "KeyVersion",
    "NewerFormat",
    "NotSupported",
    "OwnerKeys",
    "Page",
    "Partition",
    "PartitionStats",
    "ReadResult",
    "Row",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreError",
    "StoreFailed",
    "StoreForked",
    "StoreFull",
    "StoreLocked",
    "StoreSettings",
    "StoreStats",
    "StoreUnusable",
    "Token",
    "TrimReport",
    "ValueTooLong",
]


T = TypeVar("T")


def _system_clock_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How to open a store. A backend ignores what it has no use for."""

    directory: Path | None = None
    # Address space to reserve at first and at most: the file itself grows only as it is used.
    size_bytes_initial: int = 1 << 30
    size_bytes_max: int = 256 << 30
    # Batches waiting for the writer beyond either bound are refused with StoreBusy.
    queue_batches_max: int = 4096
    queue_bytes_max: int = 64 << 20
    # Tokens kept per partition: each commit beyond it forgets the oldest.
    tokens_max: int = 1_000_000
    # What a layer above adds to each value and note, and as many times to a memo: the bounds of
    # the engine are that much wider, so that those of the whole are the usual ones.
    value_room_bytes: int = 0
    memo_layers_max: int = 1
    clock_us: Callable[[], int] = _system_clock_us
    random_bytes: Callable[[int], bytes] = secrets.token_bytes


class HeadView(Protocol):
    """One partition as its newest commit left it, whatever is committed meanwhile; see ``look``."""

    @property
    def revision(self) -> int:
        """The revision of that commit; 0 for a partition without one."""
        ...

    def get(self, key: bytes) -> Entry | None:
        """Read one key; None when it is missing.

        Raises:
            InvalidBatch: the key is empty or too long.
            Corrupt: the record does not match its checksum.
        """
        ...

    def last(self, start: bytes, end: bytes) -> Row | None:
        """Read the last key of the half-open range [start, end); None when it is empty.

        Raises:
            InvalidRange: ``start > end``, or a bound too long.
            Corrupt: as in ``get``.
        """
        ...


class Store(Protocol):
    """An engine that keeps partitions of versioned keys."""

    @property
    def features(self) -> Features:
        """What this store declares. Constant."""
        ...

    def read(
        self, partition: Partition, keys: Collection[bytes], *, at: int | None = None
    ) -> ReadResult:
        """Read keys at one revision. Missing keys are absent; repeated ones count once.

        Raises:
            FutureRevision: ``at`` is above the head.
            HistoryGone: ``at`` is below the oldest kept revision.
            InvalidBatch: a key is empty or too long, or there are too many.
            Corrupt: a record that is needed does not match its checksum.
        """
        ...

    def scan(
        self,
        partition: Partition,
        start: bytes,
        end: bytes,
        *,
        limit: int,
        reverse: bool = False,
        at: int | None = None,
        keys_only: bool = False,
    ) -> Page:
        """Read the keys in the half-open range [start, end), in byte order or its reverse.

        ``start == end`` is an empty range. ``start`` may be empty; both may be one byte longer
        than a key, so ``KEY_SPACE_END`` and "just after this key" can be said.

        Raises:
            InvalidRange: ``start > end``, a bound too long, or limit outside 1..page_rows_max.
            FutureRevision, HistoryGone, Corrupt: as in ``read``.
        """
        ...

    def look(self, partition: Partition, ask: Callable[[HeadView], T]) -> T:
        """Ask several small questions of one moment; return what ``ask`` returns.

        For reads where the next key is in what was read before: it costs much less than as many
        calls. The view is of no use once ``ask`` has returned. While it runs an engine may not
        reuse the space of what it sees, and may hold writers back: it must be quick, and must not
        call the store.
        """
        ...

    def commit(self, partition: Partition, batch: Batch) -> Committed | Conflict:
        """Apply a batch, and return once that is durable. See ``submit``."""
        ...

    def submit(self, partition: Partition, batch: Batch) -> Future[Committed | Conflict]:
        """Queue a batch. Batches of one thread and partition apply in the order submitted.

        In this order: a known token answers ``Committed(replayed=True)``, whatever the
        expectations; then a failed expectation answers ``Conflict``; then the batch takes the
        next revision, even if it is empty or only deletes absent keys. Putting an equal value is
        a new version. A batch that fails disturbs no other. A future cancelled before its batch
        is taken up does nothing; later it can't be cancelled.

        A store that encrypts may first have to make a new key durable; that happens here.

        Raises (here, at once):
            InvalidBatch: a bound is broken or the batch contradicts itself; nothing was queued.
            StoreBusy: the queue is full; nothing was queued. Safe to retry.
        Raises (from the future):
            StoreFull: no space; nothing was done. Reads go on.
            Corrupt: a record that the batch builds on is damaged; nothing was done.
            StoreFailed: the engine gave up; the outcome is unknown, so retry with the token.
        """
        ...

    def find_token(self, partition: Partition, token_id: bytes) -> Committed | None:
        """Give what a commit with this token answered, as a retry would get it; None: unknown.

        Raises:
            InvalidBatch: the id is empty or too long.
        """
        ...

    def changes(self, partition: Partition, after_revision: int, *, limit: int) -> ChangePage:
        """Read the feed after a revision, oldest first, at most ``limit`` commits.

        A page may be shorter than its limit; the end is reached when its last change is
        ``head_revision`` (or when it is empty).

        Raises:
            HistoryGone: ``after_revision + 1`` is no longer kept: rescan, then go on from there.
            FutureRevision: ``after_revision`` is above the head.
            InvalidRange: limit outside 1..page_rows_max.
        """
        ...

    def wait(self, partition: Partition, after_revision: int, timeout_seconds: float) -> bool:
        """Block until the head is above ``after_revision``. A hint: False promises nothing.

        Returns False on a timeout and when the store closes meanwhile.
        """
        ...

    def head(self, partition: Partition) -> Head:
        """Give the newest commit. Costs no disk access for a partition in use."""
        ...

    def revision_at(self, partition: Partition, recorded_at: int) -> int:
        """Give the last revision recorded at or before a time (µs UTC); 0 before the first.

        The answer is final where the clock has reached that time: a commit under way is waited
        for, and later ones are recorded after it even if the clock stands still or goes back,
        for as long as the store is open.

        Raises:
            HistoryGone: the answer lies before the kept part of the feed.
        """
        ...

    def versions(
        self, partition: Partition, key: bytes, *, before: int | None = None, limit: int = 1000
    ) -> list[KeyVersion]:
        """Give the newest ``limit`` kept versions of a key (below ``before``), oldest first.

        Empty for a key never written. For older ones pass the first version as ``before``. Ends
        early at ``page_bytes_max``, after at least one version.
        """
        ...

    def purge(self, partition: Partition, keys: Collection[bytes]) -> int:
        """Take deleted keys out of the past; return how many versions were removed.

        Afterwards no read, at whatever revision, shows a value of these keys, and the memos of
        the tokens whose commits wrote or deleted them are dropped. The tokens themselves, the
        feed rows (which hold keys and notes, never values) and the revision counter stay.
        Unknown keys count 0, so a repeated call returns 0. Takes several commits: after an
        unclean stop call it again.

        Raises:
            KeyStillLive: a key exists; nothing was removed.
        """
        ...

    def partitions(self) -> list[Partition]:
        """List every partition that was committed to or asked for its secret, in order."""
        ...

    def export(self, partition: Partition, *, at: int | None = None) -> Iterator[Row]:
        """Iterate over a partition at one revision, in pages: no lock or transaction is held.

        Raises (while iterating):
            HistoryGone: history was trimmed beyond the revision meanwhile: start again.
        """
        ...

    def partition_secret(self, partition: Partition) -> bytes:
        """Give the partition's 32 random bytes, made durable on first use. For keyed hashes."""
        ...

    def trim(
        self, partition: Partition, *, history_before: int, feed_before: int, tokens_before_us: int
    ) -> TrimReport:
        """Forget old history, feed rows and tokens. 0 leaves the respective kind alone.

        Afterwards reads below ``history_before`` (at most the head) raise HistoryGone, feed rows
        below ``feed_before`` (at most head + 1) are gone, and so are tokens recorded before
        ``tokens_before_us``. The bounds only ever rise. When a version goes, so do the memos of
        the commits that wrote and deleted it (its token then replays with ``memo=None``), for
        otherwise ``purge`` could no longer find them; so keep history longer than tokens.
        """
        ...

    def partition_stats(self, partition: Partition) -> PartitionStats:
        """Give one partition's counters. Constant time."""
        ...

    def stats(self) -> StoreStats:
        """Give the whole store's counters. Linear in the number of partitions."""
        ...

    def probe(self) -> None:
        """Write a record and read it back; raise a StoreError if either fails. For readiness."""
        ...

    def backup(self, destination: Path) -> None:
        """Copy the whole store, at one moment, into a new directory that can be opened as is.

        Raises:
            StoreUnusable: the destination exists and isn't an empty directory, or can't be made.
            NotSupported: not declared.
        """
        ...

    def close(self) -> None:
        """Finish what is queued, wake waiters, let go of everything. Repeated calls do nothing."""
        ...


@runtime_checkable
class OwnerKeys(Protocol):
    """What a store that seals offers beside ``Store``: the keys of owners (see ``Batch.owners``).

    To erase an owner: retire, delete and purge what there is, destroy. To erase some of it:
    retire, write what stays once more, purge what it was before, destroy.
    """

    def retire_owner(self, partition: Partition, owner: bytes) -> list[bytes]:
        """Give the ids of the owner's keys; no value will ever be sealed with them again.

        Writes from now on get a new key. Returns once the commits under way are through.
        """
        ...

    def destroy_keys(self, key_ids: Collection[bytes]) -> int:
        """Destroy keys for good, and return how many there were: 0 in a repeated call.

        Every value sealed with them reads as absent from now on, at every revision, and can't be
        read from any copy of the data either: old pages, backups, archives. Copies of the keyring
        file are another matter, and the caller's.

        Raises:
            StoreFull, StoreFailed: they may all still be there.
        """
        ...

    def destroyed_on_disk(self, key_ids: Collection[bytes]) -> bool:
        """Read the keyring's file again: whether none of these keys is in it, and all are gone."""
        ...

    def sealed_with(self, partition: Partition, key_ids: Collection[bytes]) -> list[bytes]:
        """Give the keys of all live values that are sealed with one of these data keys."""
        ...

    def bury_keys(self, partition: Partition, key_ids: Collection[bytes]) -> None:
        """Destroy keys, also those that this keyring never had: they can't come back."""
        ...

    def holds_plain(self, partition: Partition) -> bool:
        """Say whether some of the partition may be in plain, from before there were seals."""
        ...


@runtime_checkable
class FileSeals(Protocol):
    """What a store that seals offers to files beside it that repeat what is in it.

    Such a file is sealed in parts, with a key of an owner that no record has. It is gone once that
    owner's keys are destroyed (see ``OwnerKeys``).
    """

    def sealing(
        self, partition: Partition, owner: bytes
    ) -> AbstractContextManager[Callable[[bytes | memoryview, bytes], bytes]]:
        """Lend the owner's key: a function that seals a part for its place in a file.

        While it is lent, retiring and destroying the key wait.

        Raises:
            StoreFull, StoreFailed: a new key can't be written.
        """
        ...

    def open_part(self, partition: Partition, data: bytes, place: bytes) -> bytes | None:
        """Give what was sealed for this place; None: its key was destroyed.

        Raises:
            Corrupt: it doesn't open here.
        """
        ...
