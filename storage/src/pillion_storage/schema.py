"""The data file on one page: every database of the LMDB store, its keys, values and history.

``docs/data-file.md`` shows the same table, and a test compares the two. Numbers are never reused:
they seed the checksums, so that a record that strays into another database is found out.
"""

from __future__ import annotations

from dataclasses import dataclass

# Raised by one whenever an older version could misread what a newer one writes.
FORMAT_VERSION = 2


@dataclass(frozen=True, slots=True)
class Database:
    """One named database. Integers are big-endian, so byte order is numeric order."""

    number: int
    name: str
    key: str
    value: str  # after the leading CRC-32, except where duplicates says otherwise
    purpose: str
    since_format: int
    duplicates: bool = False  # several sorted fixed-size values per key; CRC-32 at the end


META = Database(
    1,
    "meta",
    "name",
    "bytes",
    "`format` (u32), `created` (u64 µs), `partitions` (u32, how many numbers are given out), "
    "`probe` and `turnover` (u64 µs, when last written)",
    1,
)
PARTITIONS = Database(
    2,
    "partitions",
    "namespace length u8, namespace, tenant",
    "number u32, created u64, secret 32 bytes",
    "gives each partition a number, which prefixes its other keys",
    1,
)
HEADS = Database(
    3,
    "heads",
    "partition u32",
    "revision, recorded_at, live_keys, live_bytes, kept_versions, kept_bytes, tokens, "
    "oldest_history, oldest_change, before_feed_recorded_at: u64 each",
    "where a partition stands, and its counters",
    1,
)
CURRENT = Database(
    4,
    "current",
    "partition u32, key",
    "version u64, value",
    "the live version of every key",
    1,
)
HISTORY = Database(
    5,
    "history",
    "partition u32, key",
    "inverted version u64, ended u64, ordinal u16, CRC-32",
    "the ended versions of a key, newest first",
    1,
    duplicates=True,
)
ARCHIVE = Database(
    6,
    "archive",
    "partition u32, ended u64, ordinal u16",
    "version u64, deleted u8, key length u16, key, value",
    "the values of ended versions, in the order in which they ended",
    1,
)
FEED = Database(
    7,
    "feed",
    "partition u32, revision u64",
    "recorded_at u64, note length u16, key count u16, note, then per key: kind u8, length u16, key",
    "what each commit changed",
    1,
)
TOKENS = Database(
    8,
    "tokens",
    "partition u32, token",
    "revision u64, recorded_at u64, has memo u8, memo",
    "the first outcome of each token",
    1,
)
TOKEN_ORDER = Database(
    9,
    "token_order",
    "partition u32, revision u64",
    "token",
    "tokens by age, to forget the oldest",
    1,
)

DATABASES = (META, PARTITIONS, HEADS, CURRENT, HISTORY, ARCHIVE, FEED, TOKENS, TOKEN_ORDER)
