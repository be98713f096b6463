"""The LMDB store: checks arguments, then reads in a snapshot or hands work to the writer."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pillion_ranker import Rows

from pillion_storage.api import (
    Batch,
    Change,
    ChangePage,
    Committed,
    Conflict,
    Features,
    Head,
    KeyVersion,
    Page,
    Partition,
    PartitionStats,
    ReadResult,
    Row,
    StoreClosed,
    StoreError,
    StoreForked,
    StoreSettings,
    StoreStats,
    TrimReport,
)
from pillion_storage.bounds import (
    bounds_of,
    check_after,
    check_batch,
    check_key,
    check_keys,
    check_limit,
    check_partition,
    check_range,
    check_revision,
    check_token_id,
)
from pillion_storage.files import find_in_file
from pillion_storage.lmdb import reading, records
from pillion_storage.lmdb.apply import apply_batch
from pillion_storage.lmdb.environment import Environment
from pillion_storage.lmdb.head_view import LmdbHeadView
from pillion_storage.lmdb.reading import View
from pillion_storage.lmdb.records import HeadRow
from pillion_storage.lmdb.scrub import Place, scrub_step
from pillion_storage.lmdb.unit import Unit, load_head, load_identity
from pillion_storage.lmdb.upkeep import TrimBounds, purge_step, trim_step
from pillion_storage.lmdb.waiters import Waiters
from pillion_storage.lmdb.writer import Writer
from pillion_storage.packed import PACKED_BYTES_MAX, PackedPage, packed_scan
from pillion_storage.paging import count_fitting, export_rows
from pillion_storage.schema import META
from pillion_storage.scrubbing import ScrubReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    import lmdb

    from pillion_storage.api import HeadView
    from pillion_storage.lmdb.environment import Databases
    from pillion_storage.scrubbing import Kept

T = TypeVar("T")
FEATURES = Features(name="lmdb", durable=True, shared=False, history=True, backup=True)
# Numbers of partitions never change, so they are kept; about 200 bytes each.
_NUMBERS_MAX = 65_536
_PROBE = b"probe"
_TURNOVER = b"turnover"
_NO_HEAD = HeadRow(b"")


class LmdbStore:
    """See ``pillion_storage.api.Store``."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._features = bounds_of(FEATURES, settings)
        self._environment = Environment(settings)
        self._waiters = Waiters()
        self._writer = Writer(self._environment, settings, self._waiters.wake)
        self._numbers: dict[Partition, int] = {}
        self._probing = threading.Lock()
        self._closed = False
        self._pid = os.getpid()

    @property
    def features(self) -> Features:
        """What the LMDB store declares."""
        return self._features

    @property
    def _databases(self) -> Databases:
        """The handles of the file that is open now: a compaction opens another one."""
        return self._environment.databases

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked("this store was opened before a fork; open it in the child")
        if self._closed:
            raise StoreClosed("the store is closed")

    def _head(self, txn: lmdb.Transaction[bytes], partition: Partition) -> HeadRow | None:
        """Read the head as this snapshot has it; None for a partition that doesn't exist."""
        number = self._number(txn, partition)
        return None if number is None else load_head(txn, self._databases, number)

    def _number(self, txn: lmdb.Transaction[bytes], partition: Partition) -> int | None:
        number = self._numbers.get(partition)
        if number is None:
            check_partition(partition, self._features)
            identity = load_identity(txn, self._databases, partition)
            if identity is None:
                return None
            number = identity.number
            if len(self._numbers) >= _NUMBERS_MAX:
                self._numbers.clear()
            self._numbers[partition] = number
        return number

    def read(
        self, partition: Partition, keys: Collection[bytes], *, at: int | None = None
    ) -> ReadResult:
        """See ``Store.read``."""
        self._check_open()
        check_keys(keys, self._features.read_keys_max, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition)
            if head is None:
                return ReadResult(check_revision(at, 0, 0), {})
            revision = check_revision(at, head.oldest_history, head.revision)
            entries = reading.read_entries(View(txn, self._databases, head), keys, revision)
            return ReadResult(revision, entries)

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
        """See ``Store.scan``."""
        self._check_open()
        check_range(start, end, limit, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition)
            if head is None:
                return Page(check_revision(at, 0, 0), (), None)
            revision = check_revision(at, head.oldest_history, head.revision)
            view = View(txn, self._databases, head)
            rows: list[Row] = []

            def sizes() -> Iterator[int]:
                for row in reading.scan_rows(view, start, end, revision, reverse=reverse):
                    rows.append(Row(row.key, row.version, b"") if keys_only else row)
                    yield len(row.key) + (0 if keys_only else len(row.value))

            fitting = count_fitting(sizes(), limit, self._features)
        next_start = None
        if fitting < len(rows):
            next_start = rows[fitting - 1].key if reverse else rows[fitting].key
        return Page(revision, tuple(rows[:fitting]), next_start)

    def scan_packed(
        self, partition: Partition, start: bytes, end: bytes, *, limit: int
    ) -> PackedPage:
        """See ``PackedScans.scan_packed``."""
        self._check_open()
        check_range(start, end, limit, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition)
            if head is None:
                return PackedPage(Rows([]), None)
            view = View(txn, self._databases, head)
            found, next_start = reading.live_records(view, start, end, limit, PACKED_BYTES_MAX)
        try:
            rows = Rows.of_records(found, records.CURRENT_SEED, len(view.prefix))
        except ValueError:  # one is damaged: a usual scan says which
            return packed_scan(self, partition, start, end, limit=limit)
        return PackedPage(rows, next_start)

    def look(self, partition: Partition, ask: Callable[[HeadView], T]) -> T:
        """See ``Store.look``."""
        self._check_open()
        with self._environment.snapshot() as txn:
            number = self._number(txn, partition)
            return ask(LmdbHeadView(txn, self._databases, number, self._features))

    def commit(self, partition: Partition, batch: Batch) -> Committed | Conflict:
        """See ``Store.commit``."""
        size = self._check(partition, batch)
        return self._writer.do(partial(apply_batch, partition=partition, batch=batch), size=size)

    def submit(self, partition: Partition, batch: Batch) -> Future[Committed | Conflict]:
        """See ``Store.submit``."""
        size = self._check(partition, batch)
        return self._writer.submit(
            partial(apply_batch, partition=partition, batch=batch), size=size
        )

    def _check(self, partition: Partition, batch: Batch) -> int:
        """Refuse what cannot be queued; return the batch's size in bytes."""
        self._check_open()
        if partition not in self._numbers:
            check_partition(partition, self._features)
        return check_batch(batch, self._features)

    def find_token(self, partition: Partition, token_id: bytes) -> Committed | None:
        """See ``Store.find_token``."""
        self._check_open()
        check_token_id(token_id, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition)
            if head is None:
                return None
            first = reading.read_token(View(txn, self._databases, head), token_id)
        if first is None:
            return None
        return Committed(first.revision, first.recorded_at, replayed=True, memo=first.memo)

    def changes(self, partition: Partition, after_revision: int, *, limit: int) -> ChangePage:
        """See ``Store.changes``."""
        self._check_open()
        check_limit(limit, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition) or _NO_HEAD
            check_after(after_revision, head.oldest_change, head.revision)
            view = View(txn, self._databases, head)
            found: list[Change] = []

            def sizes() -> Iterator[int]:
                for change in reading.read_changes(view, after_revision):
                    found.append(change)
                    yield len(change.note) + sum(len(key) for key, _ in change.keys)

            fitting = count_fitting(sizes(), limit, self._features)
        return ChangePage(tuple(found[:fitting]), head.oldest_change, head.revision)

    def wait(self, partition: Partition, after_revision: int, timeout_seconds: float) -> bool:
        """See ``Store.wait``."""
        self._check_open()
        deadline = time.monotonic() + timeout_seconds
        with self._waiters.waiting(partition) as event, contextlib.suppress(StoreClosed):
            while self.head(partition).revision <= after_revision:
                remaining = deadline - time.monotonic()
                if remaining <= 0 or not event.wait(remaining):
                    return False
                event.clear()
            return True
        return False

    def head(self, partition: Partition) -> Head:
        """See ``Store.head``."""
        self._check_open()
        known = self._writer.heads.get(partition)
        if known is None:
            with self._environment.snapshot() as txn:
                known = self._head(txn, partition) or _NO_HEAD
        return Head(known.revision, known.recorded_at)

    def revision_at(self, partition: Partition, recorded_at: int) -> int:
        """See ``Store.revision_at``."""
        self._check_open()
        if recorded_at >= self.head(partition).recorded_at:
            self._writer.settle(recorded_at)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition) or _NO_HEAD
            return reading.revision_at(View(txn, self._databases, head), recorded_at)

    def versions(
        self, partition: Partition, key: bytes, *, before: int | None = None, limit: int = 1000
    ) -> list[KeyVersion]:
        """See ``Store.versions``."""
        self._check_open()
        check_key(key, self._features)
        check_limit(limit, self._features)
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition)
            if head is None:
                return []
            return reading.key_versions(
                View(txn, self._databases, head), key, before, limit, self._features
            )

    def purge(self, partition: Partition, keys: Collection[bytes]) -> int:
        """See ``Store.purge``."""
        self._check_open()
        check_partition(partition, self._features)
        check_keys(keys, self._features.batch_ops_max, self._features)
        step = partial(purge_step, partition=partition, keys=sorted(set(keys)))
        total, done = 0, False
        while not done:
            outcome = self._writer.submit(step, frees_space=True).result()
            if not isinstance(outcome, tuple):
                raise outcome
            removed, done = outcome
            total += removed
        self._turn_over()
        return total

    def scrub(
        self,
        partition: Partition,
        change: Callable[[Kept], bytes | None],
        *,
        key_ids: Collection[bytes] = (),
    ) -> ScrubReport:
        """See ``Scrubs.scrub``."""
        del key_ids
        self._check_open()
        check_partition(partition, self._features)
        total = ScrubReport()
        place: Place | None = Place()
        while place is not None:
            step = partial(scrub_step, partition=partition, change=change, place=place)
            report, place = self._writer.submit(step).result()
            total += report
        return total

    def compact(self) -> int:
        """See ``Compacts.compact``."""
        self._check_open()
        return self._writer.apart(self._environment.compact)

    def find_bytes(self, pieces: Collection[bytes]) -> list[bytes]:
        """See ``Compacts.find_bytes``."""
        self._check_open()
        return find_in_file(self._environment.directory / "data.mdb", pieces)

    def partitions(self) -> list[Partition]:
        """See ``Store.partitions``."""
        self._check_open()
        with self._environment.snapshot() as txn, txn.cursor(self._databases.partitions) as cursor:
            return sorted(records.unpack_partition_key(key) for key, _ in cursor.iternext())

    def export(self, partition: Partition, *, at: int | None = None) -> Iterator[Row]:
        """See ``Store.export``."""
        self._check_open()
        return export_rows(self, partition, at)

    def partition_secret(self, partition: Partition) -> bytes:
        """See ``Store.partition_secret``."""
        self._check_open()
        check_partition(partition, self._features)
        with self._environment.snapshot() as txn:
            identity = load_identity(txn, self._databases, partition)
        if identity is not None:
            return identity.secret
        return self._writer.submit(partial(_secret, partition=partition)).result()

    def trim(
        self, partition: Partition, *, history_before: int, feed_before: int, tokens_before_us: int
    ) -> TrimReport:
        """See ``Store.trim``."""
        self._check_open()
        check_partition(partition, self._features)
        bounds = TrimBounds(history_before, feed_before, tokens_before_us)
        step = partial(trim_step, partition=partition, bounds=bounds)
        total, done = TrimReport(0, 0, 0, 0), False
        while not done:
            report, done = self._writer.submit(step, frees_space=True).result()
            total = TrimReport(
                total.versions + report.versions,
                total.changes + report.changes,
                total.tokens + report.tokens,
                total.memos + report.memos,
            )
        self._turn_over()
        return total

    def _turn_over(self) -> None:
        """Commit something small, so that the next commit can use the pages that were freed.

        LMDB hands out pages freed by transaction n from n + 2 on. In a full store every commit
        would fail for want of them and abort, so n + 2 would never come.
        """
        self._writer.submit(partial(_write_mark, name=_TURNOVER), frees_space=True).result()

    def partition_stats(self, partition: Partition) -> PartitionStats:
        """See ``Store.partition_stats``."""
        self._check_open()
        with self._environment.snapshot() as txn:
            head = self._head(txn, partition) or _NO_HEAD
        return PartitionStats(
            live_keys=head.live_keys,
            live_bytes=head.live_bytes,
            kept_versions=head.kept_versions,
            kept_bytes=head.kept_bytes,
            tokens=head.tokens,
            oldest_history=head.oldest_history,
            oldest_change=head.oldest_change,
            before_feed_recorded_at=head.before_feed_recorded_at,
        )

    def stats(self) -> StoreStats:
        """See ``Store.stats``."""
        self._check_open()
        with self._environment.snapshot() as txn, txn.cursor(self._databases.heads) as cursor:
            heads = [records.unpack_head(prefix, row) for prefix, row in cursor.iternext()]
            size_bytes = self._environment.size_bytes()
        return StoreStats(
            partitions=len(heads),
            live_keys=sum(head.live_keys for head in heads),
            live_bytes=sum(head.live_bytes for head in heads),
            kept_versions=sum(head.kept_versions for head in heads),
            kept_bytes=sum(head.kept_bytes for head in heads),
            tokens=sum(head.tokens for head in heads),
            size_bytes=size_bytes,
            size_bytes_max=self._environment.size_bytes_max(),
            queued_batches=self._writer.queued,
            commits=self._writer.commits,
            groups=self._writer.groups,
        )

    def probe(self) -> None:
        """See ``Store.probe``."""
        self._check_open()
        with self._probing:  # so that nobody else writes the mark in between
            written = self._writer.submit(partial(_write_mark, name=_PROBE)).result()
            with self._environment.snapshot() as txn:
                row = txn.get(_PROBE, db=self._databases.meta)
        if row is None or records.unseal(META, _PROBE, row) != written:
            raise StoreError("what the probe wrote could not be read back")

    def backup(self, destination: Path) -> None:
        """See ``Store.backup``."""
        self._check_open()
        self._environment.copy_to(destination)

    def close(self) -> None:
        """See ``Store.close``."""
        if os.getpid() != self._pid:
            self._check_open()
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._waiters.wake_all()
        self._environment.close()


def _secret(unit: Unit, partition: Partition) -> bytes:
    identity = unit.identity(partition)
    if identity is None:
        unit.create(partition)
        identity = unit.identity(partition)
        assert identity is not None  # noqa: S101 -- it was written a line above
    return identity.secret


def _write_mark(unit: Unit, name: bytes) -> bytes:
    content = records.U64.pack(unit.settings.clock_us())
    unit.txn.put(name, records.seal(META, name, content), db=unit.databases.meta)
    return content
