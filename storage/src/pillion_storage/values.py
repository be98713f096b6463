"""The values that cross the store interface. Import them from ``api``, which says what they do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

KEY_BYTES_MAX = 480
# Sorts after every key: ``scan(partition, b"", KEY_SPACE_END, ...)`` covers a whole partition.
KEY_SPACE_END = b"\xff" * (KEY_BYTES_MAX + 1)
OWNER_BYTES_MAX = 64


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
    value_overhead_bytes: int = 0  # what byte counters count beside each value that isn't empty


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

    ``owners`` maps a key that is put to whose content it holds: a tag of 1 to 64 bytes, such as a
    keyed hash of a person, never a name. A store that encrypts has a key for each owner, so that
    destroying it destroys all that is the owner's, wherever a copy of it lies. Values without an
    owner belong to the partition. A store that doesn't encrypt checks the tags and ignores them.
    """

    puts: Mapping[bytes, bytes] = field(default_factory=dict)
    deletes: Collection[bytes] = ()
    expect: Mapping[bytes, int] = field(default_factory=dict)
    token: Token | None = None
    note: bytes = b""
    owners: Mapping[bytes, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """The batch is in force, and on disk if the store is durable.

    ``recorded_at`` is in microseconds UTC and increases with every commit of a partition, even when
    the clock does not. ``memo`` is the first caller's, None without a token or after the memo was
    dropped (see ``Store.trim``). ``replayed`` says that this token had been committed before, at
    this ``revision``, and that nothing was done now.
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
    """Counters of one partition; bytes are keys plus values, with ``value_overhead_bytes`` each."""

    live_keys: int
    live_bytes: int
    kept_versions: int  # ended, still in history
    kept_bytes: int
    tokens: int
    oldest_history: int  # the oldest revision that can be read
    oldest_change: int  # the oldest revision in the feed
    before_feed_recorded_at: int = 0  # when the revision just before that was recorded; 0: none was


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
