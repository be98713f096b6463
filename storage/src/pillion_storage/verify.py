"""Offline check of an LMDB data directory: every record, reference and counter.

``verify`` reads only. It takes the directory's lock, so nothing changes underneath. First the
pages are walked without the engine, for a damaged tree could crash it; only a sound file is then
opened and its records checked against each other. What is checked is listed in
``docs/data-file.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import lmdb
import lmdb.verify
from pillion.domain.scope import Partition

from pillion_storage.errors import Corrupt, NewerFormat, StoreUnusable
from pillion_storage.lmdb import records
from pillion_storage.lmdb.environment import Databases, open_databases
from pillion_storage.lmdb.unit import load_identity
from pillion_storage.lockfile import DirectoryLock
from pillion_storage.migrations import read_format
from pillion_storage.schema import (
    ARCHIVE,
    CURRENT,
    DATABASES,
    FEED,
    FORMAT_VERSION,
    HEADS,
    HISTORY,
    META,
    PARTITIONS,
    TOKEN_ORDER,
    TOKENS,
    Database,
)
from pillion_storage.values import Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pillion_storage.lmdb.records import Ended, HeadRow

FINDINGS_MAX = 1000
_PREFIX_BYTES = records.U32.size
T = TypeVar("T")
_PAGE_COUNT: Final = re.compile(
    r"main/history DB: walked (\d+) (?:leaf|branch) pages"
    r"(?: \((\d+) with dup sub-trees\))?, record says (\d+)"
)
# Gives the live rows of a partition, for what a store remembers of its own sealing.
LiveRows = Callable[[Partition], "Iterator[Row]"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong: where, and what."""

    record: str
    problem: str


@dataclass(slots=True)
class Report:
    """What was looked at and what was found. At most FINDINGS_MAX findings are kept."""

    findings: list[Finding] = field(default_factory=list)
    findings_total: int = 0
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Say whether nothing was found."""
        return not self.findings_total

    def add(self, record: str, problem: str) -> None:
        """Note a finding."""
        self.findings_total += 1
        if len(self.findings) < FINDINGS_MAX:
            self.findings.append(Finding(record, problem))


class Seals(Protocol):
    """Looks at sealed values, for somebody who has the keys."""

    def problem(
        self, partition: Partition, kind: bytes, key: bytes, data: bytes, version: int
    ) -> str | None:
        """Say what is wrong with a value, memo or note; None: nothing, or its key is destroyed.

        ``kind`` is b"v", b"m" or b"n"; ``key`` the record's key, or the token's id.
        """
        ...


def verify(directory: Path, *, open_seals: Callable[[LiveRows], Seals] | None = None) -> Report:
    """Check a data directory that no process has open.

    Args:
        directory: It.
        open_seals: Called once, with the directory locked; what it gives also checks that each
            sealed value is what was sealed, in its place. None: only structure and checksums are
            checked, which needs no key.

    Raises:
        StoreLocked: a process has it open.
        StoreUnusable: there is no data file.
        NewerFormat: a newer version wrote it.
    """
    data = directory / "data.mdb"
    if not data.is_file():
        raise StoreUnusable(f"{data} does not exist; name the directory of a store")
    lock = DirectoryLock(directory)
    try:
        report = Report()
        _check_pages(data, report)
        if report.clean:
            _check_records(directory, data.stat().st_size, report, open_seals)
        return report
    finally:
        lock.release()


def _check_pages(data: Path, report: Report) -> None:
    try:
        # The module is not typed; it returns a list of descriptions.
        for problem in lmdb.verify.verify(str(data)):  # type: ignore[no-untyped-call]
            if not _is_miscount(str(problem)):
                report.add("data.mdb", str(problem))
    except lmdb.verify.VerifyError as error:
        report.add("data.mdb", str(error))


def _is_miscount(problem: str) -> bool:
    """Say whether LMDB only counts too many pages of ``history``.

    It does so for good once it has deleted the last of very many values of one key. The count is
    used for nothing; that every page is reachable exactly once is checked without it.
    """
    found = _PAGE_COUNT.fullmatch(problem)
    return found is not None and int(found[2] or found[1]) < int(found[3])


def _check_records(
    directory: Path,
    size_bytes: int,
    report: Report,
    open_seals: Callable[[LiveRows], Seals] | None,
) -> None:
    env = lmdb.open(
        str(directory),
        map_size=size_bytes,
        max_dbs=len(DATABASES),
        readonly=True,
        lock=False,
        lib_version=0,
    )
    try:
        found = read_format(env)
        if found > FORMAT_VERSION:
            raise NewerFormat(found, FORMAT_VERSION)
        databases = open_databases(env, create=False)
        with env.begin() as txn:
            seals = open_seals(partial(_live_rows, txn, databases)) if open_seals else None
            _Check(txn, databases, report, seals).run()
    except Corrupt as error:
        report.add(error.record, str(error))
    except lmdb.Error as error:
        report.add("data.mdb", str(error))
    finally:
        env.close()


def _live_rows(
    txn: lmdb.Transaction[bytes], databases: Databases, partition: Partition
) -> Iterator[Row]:
    identity = load_identity(txn, databases, partition)
    if identity is None:
        return
    prefix = records.U32.pack(identity.number)
    with txn.cursor(databases.current) as cursor:
        if not cursor.set_range(prefix):
            return
        for full, row in cursor.iternext():
            if not full.startswith(prefix):
                return
            entry = records.unpack_current(full, row)
            yield Row(full[_PREFIX_BYTES:], entry.version, entry.value)


@dataclass(slots=True)
class _Tally:
    """What was counted for one partition, to compare with its head."""

    head: HeadRow
    live_keys: int = 0
    live_bytes: int = 0
    kept_versions: int = 0
    kept_bytes: int = 0
    tokens: int = 0
    history_rows: int = 0
    order_rows: int = 0
    next_change: int = 0
    last_recorded_at: int = 0


class _Check:
    """One pass over every database."""

    def __init__(
        self,
        txn: lmdb.Transaction[bytes],
        databases: Databases,
        report: Report,
        seals: Seals | None,
    ) -> None:
        self._txn = txn
        self._databases = databases
        self._report = report
        self._seals = seals
        self._names: dict[bytes, Partition] = {}
        self._tallies: dict[bytes, _Tally] = {}
        # Partitions with an unreadable row: gaps and wrong counts would only repeat that.
        self._damaged: set[bytes] = set()

    def run(self) -> None:
        """Check everything."""
        for _ in self._rows(META, self._databases.meta, records.unseal_meta):
            pass
        self._partitions()
        self._current()
        self._history()
        self._archive()
        self._feed()
        self._tokens()
        self._token_order()
        self._counters()

    def _rows(
        self,
        database: Database,
        handle: lmdb._Database,
        unpack: Callable[[bytes, bytes], T],
    ) -> Iterator[tuple[bytes, T]]:
        """Iterate over the readable rows of a database; note the others."""
        count = 0
        with self._txn.cursor(handle) as cursor:
            for key, row in cursor.iternext():
                count += 1
                try:
                    unpacked = unpack(key, row)
                except Corrupt as error:
                    self._damaged.add(key[:_PREFIX_BYTES])
                    self._report.add(error.record, str(error))
                except (ValueError, IndexError, records.LayoutError) as error:
                    self._damaged.add(key[:_PREFIX_BYTES])
                    self._note(database, key, f"unreadable: {error}")
                else:
                    yield key, unpacked
        self._report.rows[database.name] = count

    def _owned(
        self,
        database: Database,
        handle: lmdb._Database,
        unpack: Callable[[bytes, bytes], T],
    ) -> Iterator[tuple[_Tally, bytes, T]]:
        """Iterate over the rows of a database that belong to partitions; note strays."""
        for key, unpacked in self._rows(database, handle, unpack):
            tally = self._tallies.get(key[:_PREFIX_BYTES])
            if tally is None:
                self._report.add(records.describe(database, key), "its partition has no head")
            else:
                yield tally, key, unpacked

    def _note(self, database: Database, key: bytes, problem: str) -> None:
        self._report.add(records.describe(database, key), problem)

    def _partitions(self) -> None:
        for prefix, head in self._rows(HEADS, self._databases.heads, records.unpack_head):
            self._tallies[prefix] = _Tally(head)
        unclaimed = set(self._tallies)
        for key, row in self._rows(
            PARTITIONS, self._databases.partitions, records.unpack_partition
        ):
            prefix = records.U32.pack(row.number)
            self._names[prefix] = records.unpack_partition_key(key)
            if prefix in unclaimed:
                unclaimed.discard(prefix)
            elif prefix in self._tallies:
                self._note(PARTITIONS, key, f"shares number {row.number} with another")
            else:
                self._note(PARTITIONS, key, "has no head")
        for prefix in unclaimed:
            self._note(HEADS, prefix, "belongs to no partition")

    def _seal(
        self,
        database: Database,
        full: bytes,
        *,
        kind: bytes,
        key: bytes,
        data: bytes,
        version: int,
    ) -> None:
        """Check a sealed value, if the keys are at hand."""
        partition = self._names.get(full[:_PREFIX_BYTES])
        if self._seals is None or partition is None:
            return
        problem = self._seals.problem(partition, kind, key, data, version)
        if problem is not None:
            self._note(database, full, problem)

    def _current(self) -> None:
        for tally, key, entry in self._owned(
            CURRENT, self._databases.current, records.unpack_current
        ):
            tally.live_keys += 1
            tally.live_bytes += len(key) - _PREFIX_BYTES + len(entry.value)
            self._seal(
                CURRENT,
                key,
                kind=b"v",
                key=key[_PREFIX_BYTES:],
                data=entry.value,
                version=entry.version,
            )
            if not 0 < entry.version <= tally.head.revision:
                self._note(CURRENT, key, f"version {entry.version} was never committed")

    def _history(self) -> None:
        newer_key = b""
        newer_version: int | None = None
        for tally, key, ended in self._owned(
            HISTORY, self._databases.history, records.unpack_history
        ):
            tally.history_rows += 1
            if key != newer_key:
                newer_key, newer_version = key, self._current_version(key)
            self._ended_version(tally, key, ended, newer_version)
            newer_version = ended.version

    def _current_version(self, key: bytes) -> int | None:
        """Give the live version of a key: 0 if there is none, None if its row is damaged."""
        row = self._txn.get(key, db=self._databases.current)
        try:
            return 0 if row is None else records.unpack_current(key, row).version
        except Corrupt:
            return None

    def _ended_version(self, tally: _Tally, key: bytes, ended: Ended, newer: int | None) -> None:
        if not 0 < ended.version < ended.ended <= tally.head.revision:
            self._note(HISTORY, key, f"version {ended.version} can't end at {ended.ended}")
        if newer and ended.ended > newer:
            self._note(HISTORY, key, f"version {ended.version} overlaps version {newer}")
        archive_key = ended.archive_key(key[:_PREFIX_BYTES])
        row = self._txn.get(archive_key, db=self._databases.archive)
        if row is None:
            self._note(HISTORY, key, f"the value of version {ended.version} is missing")
            return
        try:
            archived = records.unpack_archived(archive_key, row)
        except Corrupt:
            return  # noted when the archive is walked
        if (archived.version, archived.key) != (ended.version, key[_PREFIX_BYTES:]):
            self._note(HISTORY, key, f"version {ended.version} refers to another key's value")
        if newer is not None and archived.deleted == (ended.ended == newer):
            self._note(HISTORY, key, f"version {ended.version} did not end as it says")

    def _archive(self) -> None:
        for tally, key, archived in self._owned(
            ARCHIVE, self._databases.archive, records.unpack_archived
        ):
            tally.kept_versions += 1
            tally.kept_bytes += len(archived.key) + len(archived.value)
            self._seal(
                ARCHIVE,
                key,
                kind=b"v",
                key=archived.key,
                data=archived.value,
                version=archived.version,
            )
            if not archived.version < records.unpack_archive_key(key)[0] <= tally.head.revision:
                self._note(ARCHIVE, key, "ended before it began, or after the head")

    def _feed(self) -> None:
        for tally, key, change in self._owned(FEED, self._databases.feed, records.unpack_change):
            self._seal(FEED, key, kind=b"n", key=b"", data=change.note, version=change.revision)
            head = tally.head
            expected = tally.next_change or head.oldest_change
            if change.revision != expected and key[:_PREFIX_BYTES] not in self._damaged:
                self._note(FEED, key, f"revision {expected} is missing before it")
            tally.next_change = change.revision + 1
            floor = tally.last_recorded_at or head.before_feed_recorded_at
            if change.recorded_at < floor:
                self._note(FEED, key, "recorded before its predecessor")
            tally.last_recorded_at = change.recorded_at

    def _tokens(self) -> None:
        for tally, key, token in self._owned(TOKENS, self._databases.tokens, records.unpack_token):
            tally.tokens += 1
            if not 0 < token.revision <= tally.head.revision:
                self._note(TOKENS, key, f"revision {token.revision} was never committed")
            self._seal(
                TOKENS,
                key,
                kind=b"m",
                key=key[_PREFIX_BYTES:],
                data=token.memo or b"",
                version=token.revision,
            )
            order_key = key[:_PREFIX_BYTES] + records.U64.pack(token.revision)
            row = self._txn.get(order_key, db=self._databases.token_order)
            if row is None or row[records.CRC_BYTES :] != key[_PREFIX_BYTES:]:
                self._note(TOKENS, key, "is missing in the order of tokens")

    def _token_order(self) -> None:
        for tally, key, token_id in self._owned(
            TOKEN_ORDER, self._databases.token_order, records.unpack_token_order
        ):
            tally.order_rows += 1
            if self._txn.get(key[:_PREFIX_BYTES] + token_id, db=self._databases.tokens) is None:
                self._note(TOKEN_ORDER, key, "its token is missing")

    def _counters(self) -> None:
        for prefix, tally in self._tallies.items():
            if prefix in self._damaged:
                continue
            head = tally.head
            for name in ("live_keys", "live_bytes", "kept_versions", "kept_bytes", "tokens"):
                said, counted = getattr(head, name), getattr(tally, name)
                if said != counted:
                    self._note(HEADS, prefix, f"says {said} {name}, there are {counted}")
            if tally.history_rows != tally.kept_versions:
                self._note(HEADS, prefix, "history and archive differ in length")
            if tally.order_rows != tally.tokens:
                self._note(HEADS, prefix, "tokens and their order differ in length")
            end = tally.next_change or head.oldest_change
            if end != head.revision + 1:
                self._note(HEADS, prefix, f"the feed ends before revision {end}")
            if tally.next_change and tally.last_recorded_at != head.recorded_at:
                self._note(HEADS, prefix, "its time is not that of the last change")
