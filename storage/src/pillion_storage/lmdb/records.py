"""Rows of the data file to and from bytes, as laid out in ``schema``. Pure.

Each row carries a CRC-32 over its database's number, its key and its content. That is enough for
what it is there for: noticing bits that rotted or were torn on their way to and from the disk
(any burst of up to 32 bits, others with 1 - 2^-32). It is no defence against somebody who edits
the file; that is the job of the authenticated encryption of the values above this layer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from pillion_storage import schema
from pillion_storage.api import Change, ChangeKind, Entry, Partition
from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

U32 = struct.Struct(">I")
U64 = struct.Struct(">Q")
_U64_MAX = 2**64 - 1
_ENDED = struct.Struct(">QH")
_HISTORY = struct.Struct(">QQH")
_ARCHIVED = struct.Struct(">QBH")
_CHANGE = struct.Struct(">QHH")
_CHANGED_KEY = struct.Struct(">BH")
_TOKEN = struct.Struct(">QQB")
_PARTITION = struct.Struct(">IQ")
_HEAD = struct.Struct(">10Q")
CRC_BYTES = 4
# What decoding raises when the checksum is right but the layout isn't: a bug, or a forged row.
LayoutError = struct.error
_SEEDS = {database.number: crc32(bytes([database.number])) for database in schema.DATABASES}
# For those who check rows of ``current`` elsewhere.
CURRENT_SEED = _SEEDS[schema.CURRENT.number]


def seal(database: schema.Database, key: bytes, content: bytes) -> bytes:
    """Put the checksum before the content of a row."""
    return U32.pack(crc32(content, crc32(key, _SEEDS[database.number]))) + content


def unseal(database: schema.Database, key: bytes, row: bytes) -> bytes:
    """Give the content of a row; raise Corrupt, naming the row, if the checksum is wrong."""
    content = row[CRC_BYTES:]
    if row[:CRC_BYTES] != U32.pack(crc32(content, crc32(key, _SEEDS[database.number]))):
        raise Corrupt(describe(database, key), "checksum mismatch")
    return content


def unseal_meta(name: bytes, row: bytes) -> bytes:
    """Give the content of a row of ``meta``."""
    return unseal(schema.META, name, row)


def describe(database: schema.Database, key: bytes) -> str:
    """Name a row for people: keys hold hashes, never content."""
    return f"{database.name} row {key.hex()}"


def partition_key(partition: Partition) -> bytes:
    """Encode the key of a partition; the length byte keeps ("a", "bc") and ("ab", "c") apart."""
    namespace = partition.namespace.encode()
    return bytes([len(namespace)]) + namespace + partition.tenant.encode()


def unpack_partition_key(key: bytes) -> Partition:
    """Decode the key of a partition."""
    end = 1 + key[0]
    return Partition(key[1:end].decode(), key[end:].decode())


class PartitionRow(NamedTuple):
    """The identity of a partition. Never changes."""

    number: int
    created: int
    secret: bytes


def pack_partition(key: bytes, row: PartitionRow) -> bytes:
    """Encode a row of ``partitions``."""
    return seal(schema.PARTITIONS, key, _PARTITION.pack(row.number, row.created) + row.secret)


def unpack_partition(key: bytes, row: bytes) -> PartitionRow:
    """Decode a row of ``partitions``."""
    content = unseal(schema.PARTITIONS, key, row)
    number, created = _PARTITION.unpack_from(content)
    return PartitionRow(number, created, content[_PARTITION.size :])


@dataclass(slots=True)
class HeadRow:
    """Where a partition stands. The writer changes copies; a published one never changes."""

    prefix: bytes  # the partition's number: the row's key, and the start of its other keys
    revision: int = 0
    recorded_at: int = 0
    live_keys: int = 0
    live_bytes: int = 0
    kept_versions: int = 0
    kept_bytes: int = 0
    tokens: int = 0
    oldest_history: int = 0
    oldest_change: int = 1
    before_feed_recorded_at: int = 0

    def copy(self) -> HeadRow:
        """Give a copy to change."""
        return replace(self)

    def pack(self) -> bytes:
        """Encode a row of ``heads``."""
        content = _HEAD.pack(
            self.revision,
            self.recorded_at,
            self.live_keys,
            self.live_bytes,
            self.kept_versions,
            self.kept_bytes,
            self.tokens,
            self.oldest_history,
            self.oldest_change,
            self.before_feed_recorded_at,
        )
        return seal(schema.HEADS, self.prefix, content)


def unpack_head(prefix: bytes, row: bytes) -> HeadRow:
    """Decode a row of ``heads``."""
    return HeadRow(prefix, *_HEAD.unpack(unseal(schema.HEADS, prefix, row)))


def unpack_head_revision(prefix: bytes, row: bytes) -> int:
    """Decode the revision of a row of ``heads``, for those who need nothing else of it."""
    return int.from_bytes(unseal(schema.HEADS, prefix, row)[:8])


def pack_current(key: bytes, version: int, value: bytes) -> bytes:
    """Encode a row of ``current``."""
    return seal(schema.CURRENT, key, U64.pack(version) + value)


def unpack_current(key: bytes, row: bytes) -> Entry:
    """Decode a row of ``current``."""
    content = unseal(schema.CURRENT, key, row)
    return Entry(int.from_bytes(content[:8]), content[8:])


class Ended(NamedTuple):
    """A reference from ``history`` to the value in ``archive``."""

    version: int
    ended: int
    ordinal: int

    def archive_key(self, prefix: bytes) -> bytes:
        """Encode the key of the row in ``archive``."""
        return prefix + _ENDED.pack(self.ended, self.ordinal)


def pack_history(key: bytes, ended: Ended) -> bytes:
    """Encode a value of ``history``. Inverting the version makes the newest sort first."""
    content = _HISTORY.pack(_U64_MAX - ended.version, ended.ended, ended.ordinal)
    return content + seal(schema.HISTORY, key, content)[:CRC_BYTES]


def unpack_history(key: bytes, value: bytes) -> Ended:
    """Decode a value of ``history``."""
    content, checksum = value[:-CRC_BYTES], value[-CRC_BYTES:]
    unseal(schema.HISTORY, key, checksum + content)
    inverted, ended, ordinal = _HISTORY.unpack(content)
    return Ended(_U64_MAX - inverted, ended, ordinal)


def history_seek(at: int) -> bytes:
    """Give what the newest version at or below a revision sorts at or after."""
    return U64.pack(_U64_MAX - at)


class Archived(NamedTuple):
    """An ended version: its key without the partition, and its value."""

    version: int
    deleted: bool
    key: bytes
    value: bytes


def pack_archived(archive_key: bytes, row: Archived) -> bytes:
    """Encode a row of ``archive``."""
    head = _ARCHIVED.pack(row.version, row.deleted, len(row.key))
    return seal(schema.ARCHIVE, archive_key, head + row.key + row.value)


def unpack_archived(archive_key: bytes, row: bytes) -> Archived:
    """Decode a row of ``archive``."""
    content = unseal(schema.ARCHIVE, archive_key, row)
    version, deleted, key_bytes = _ARCHIVED.unpack_from(content)
    value_at = _ARCHIVED.size + key_bytes
    return Archived(version, bool(deleted), content[_ARCHIVED.size : value_at], content[value_at:])


def unpack_archive_key(archive_key: bytes) -> tuple[int, int]:
    """Give the ended revision and the ordinal of a key of ``archive``."""
    ended, ordinal = _ENDED.unpack_from(archive_key, U32.size)
    return ended, ordinal


def pack_change(
    feed_key: bytes, recorded_at: int, note: bytes, keys: Sequence[tuple[bytes, int]]
) -> bytes:
    """Encode a row of ``feed``. The kinds are numbers of ``ChangeKind``."""
    parts = [_CHANGE.pack(recorded_at, len(note), len(keys)), note]
    for key, kind in keys:
        parts.append(_CHANGED_KEY.pack(kind, len(key)))
        parts.append(key)
    return seal(schema.FEED, feed_key, b"".join(parts))


def unpack_change(feed_key: bytes, row: bytes) -> Change:
    """Decode a row of ``feed``."""
    content = unseal(schema.FEED, feed_key, row)
    recorded_at, note_bytes, count = _CHANGE.unpack_from(content)
    position = _CHANGE.size + note_bytes
    note = content[_CHANGE.size : position]
    keys = []
    for _ in range(count):
        kind, length = _CHANGED_KEY.unpack_from(content, position)
        position += _CHANGED_KEY.size
        keys.append((content[position : position + length], ChangeKind(kind)))
        position += length
    return Change(int.from_bytes(feed_key[U32.size :]), recorded_at, tuple(keys), note)


def has_note(row: bytes) -> bool:
    """Say whether a row of ``feed`` has a note, without decoding the rest of it."""
    _, note_bytes, _ = _CHANGE.unpack_from(row, CRC_BYTES)
    return bool(note_bytes)


class TokenRow(NamedTuple):
    """The first outcome of a token. The memo is None once it was dropped."""

    revision: int
    recorded_at: int
    memo: bytes | None


def pack_token(token_key: bytes, row: TokenRow) -> bytes:
    """Encode a row of ``tokens``."""
    head = _TOKEN.pack(row.revision, row.recorded_at, row.memo is not None)
    return seal(schema.TOKENS, token_key, head + (row.memo or b""))


def unpack_token(token_key: bytes, row: bytes) -> TokenRow:
    """Decode a row of ``tokens``."""
    content = unseal(schema.TOKENS, token_key, row)
    revision, recorded_at, has_memo = _TOKEN.unpack_from(content)
    return TokenRow(revision, recorded_at, content[_TOKEN.size :] if has_memo else None)


def pack_token_order(order_key: bytes, token_id: bytes) -> bytes:
    """Encode a row of ``token_order``."""
    return seal(schema.TOKEN_ORDER, order_key, token_id)


def unpack_token_order(order_key: bytes, row: bytes) -> bytes:
    """Decode a row of ``token_order``: the token's id."""
    return unseal(schema.TOKEN_ORDER, order_key, row)
