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
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

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
    from collections.abc import Callable, Collection, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

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
    "FutureRevision",
    "Head",
    "HistoryGone",
    "InvalidBatch",
    "InvalidRange",
    "KeyStillLive",
    "KeyTooLong",
    "KeyVersion",
    "NewerFormat",
    "NotSupported",
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

KEY_BYTES_MAX = 480
# Sorts after every key: ``scan(partition, b"", KEY_SPACE_END, ...)`` covers a whole partition.
KEY_SPACE_END = b"\xff" * (KEY_BYTES_MAX + 1)


@dataclass(frozen=True, slots=True)
class Features:
    """What a store can do and its bounds. A feature left undeclared refuses with NotSupported.

    The bounds have defaults that are the same in every backend, so that what one accepts the
    others accept; a backend may not lower them.
    """

    name: str
    durable: bool  # an acknowledged commit survives kill -9 and power loss
    shared: bool  # several processes may open the same data at once
    history: bool  # reads at older revisions, ``versions``
    backup: bool  # ``backup``
    key_bytes_max: int = KEY_BYTES_MAX
    value_bytes_max: int = 64 * 1024
    batch_ops_max: int = 2048  # puts + deletes; expectations are counted apart, same bound
    batch_bytes_max: int = 4 * 1024 * 1024  # keys, values, expected keys, note and memo
    token_bytes_max: int = 64
    memo_bytes_max: int = 64 * 1024
    note_bytes_max: int = 4 * 1024
    read_keys_max: int = 4096
    page_rows_max: int = 10_000
    page_bytes_max: int = 4 * 1024 * 1024  # a page ends early here, after at least one row
    namespace_bytes_max: int = 128
    tenant_bytes_max: int = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """A key's value, and the revision of the commit that wrote it."""

    version: int
    value: bytes


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What ``read`` saw: all entries at one ``revision``. Missing keys are absent."""

    revision: int
    entries: dict[bytes, Entry]


@dataclass(frozen=True, slots=True)
class Row:
    """One key of a scan. ``value`` is empty in a keys-only scan."""

    key: bytes
    version: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a scan.

    ``next_start`` is None at the end of the range, and only there: a page may hold fewer rows
    than its limit, but at least one before the end. Otherwise pass it on as ``start`` (as ``end``
    when going backwards), with ``at=revision`` so that all pages see one revision.
    """

    revision: int
    rows: tuple[Row, ...]
    next_start: bytes | None


@dataclass(frozen=True, slots=True)
class Token:
    """Names a batch so that a retry finds the first outcome. ``memo`` is given back to it."""

    id: bytes  # 1..64 bytes
    memo: bytes = b""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one commit does, all or nothing.

    ``expect`` maps a key to the version it must have now: 0 means that it must be absent. Keys
    that are only expected need not be written. A key may not be put and deleted at once. ``note``
    is kept in the change feed beside the keys.
    """

    puts: Mapping[bytes, bytes] = field(default_factory=dict)
    deletes: Collection[bytes] = ()
    expect: Mapping[bytes, int] = field(default_factory=dict)
    token: Token | None = None
    note: bytes = b""


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is in force, and on disk if the store is durable.

    ``recorded_at`` is in microseconds UTC and never decreases within a partition, even when the
    clock does. ``memo`` is the first caller's, None without a token or after the memo was dropped
    (see ``Store.trim``). ``replayed`` says that this token had been committed before, at this
    ``revision``, and that nothing was done now.
    """

    revision: int
    recorded_at: int
    replayed: bool
    memo: bytes | None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Nothing was done: every key whose expectation failed, with its version now (0: absent)."""

    current: dict[bytes, int]


class ChangeKind(Enum):
    """What a commit did to a key."""

    PUT = 1
    DELETE = 2


@dataclass(frozen=True, slots=True)
class Change:
    """One commit in the feed. Keys in byte order; deletes of absent keys leave no trace."""

    revision: int
    recorded_at: int
    keys: tuple[tuple[bytes, ChangeKind], ...]
    note: bytes


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Part of the feed. ``oldest_revision`` is the first still kept (head + 1 if none is)."""

    changes: tuple[Change, ...]
    oldest_revision: int
    head_revision: int


@dataclass(frozen=True, slots=True)
class Head:
    """The newest commit of a partition; both 0 before the first."""

    revision: int
    recorded_at: int


@dataclass(frozen=True, slots=True)
class KeyVersion:
    """One version of a key. ``ended`` is the revision that replaced or deleted it, None if live.

    Two versions adjoin (``ended`` of one is ``version`` of the next) exactly when the second
    replaced the first; otherwise the key was absent in between.
    """

    version: int
    ended: int | None
    value: bytes


@dataclass(frozen=True, slots=True)
class TrimReport:
    """What ``trim`` took away."""

    versions: int
    changes: int
    tokens: int
    memos: int  # memos dropped from tokens that stay


@dataclass(frozen=True, slots=True)
class PartitionStats:
    """Counters of one partition; bytes are keys plus values, without overhead."""

    live_keys: int
    live_bytes: int
    kept_versions: int  # ended, still in history
    kept_bytes: int
    tokens: int
    oldest_history: int  # the oldest revision that can be read
    oldest_change: int  # the oldest revision in the feed


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Counters of the whole store. Sizes are 0 where the engine has no file."""

    partitions: int
    live_keys: int
    live_bytes: int
    kept_versions: int
    kept_bytes: int
    tokens: int
    size_bytes: int
    size_bytes_max: int
    queued_batches: int
    commits: int  # batches committed since the store was opened
    groups: int  # shared transactions that carried them


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
    clock_us: Callable[[], int] = _system_clock_us
    random_bytes: Callable[[int], bytes] = secrets.token_bytes


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
