"""The reference store. Being obviously right comes before being fast.

Invariants, all guarded by one lock:

* ``_Shelf.versions[key]`` is in order of version; only the last one may be live.
* The feed holds exactly the revisions ``feed_oldest..revision``.
* Tokens are in order of revision, for they are only ever appended and dropped.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from pillion_storage.api import (
    Batch,
    Change,
    ChangeKind,
    ChangePage,
    Committed,
    Conflict,
    Entry,
    Features,
    Head,
    HistoryGone,
    KeyStillLive,
    KeyVersion,
    NotSupported,
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
from pillion_storage.paging import count_fitting, export_rows
from pillion_storage.ram.view import LockedView
from pillion_storage.recorded_clock import RecordedClock
from pillion_storage.scrubbing import Kept, KeptKind, ScrubReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from pillion_storage.api import HeadView

T = TypeVar("T")
FEATURES = Features(name="ram", durable=False, shared=False, history=True, backup=False)


@dataclass(slots=True)
class _Version:
    version: int
    value: bytes
    ended: int | None = None
    deleted: bool = False  # ended by a delete

    def visible(self, at: int) -> bool:
        return self.version <= at and (self.ended is None or at < self.ended)


@dataclass(slots=True)
class _Token:
    revision: int
    recorded_at: int
    memo: bytes | None


@dataclass(slots=True)
class _Shelf:
    """Everything about one partition."""

    secret: bytes
    revision: int = 0
    recorded_at: int = 0
    versions: dict[bytes, list[_Version]] = field(default_factory=dict)
    feed: dict[int, Change] = field(default_factory=dict)
    tokens: dict[bytes, _Token] = field(default_factory=dict)
    history_oldest: int = 0
    feed_oldest: int = 1
    before_feed_recorded_at: int = 0  # of the revision just before the feed

    def live(self, key: bytes) -> _Version | None:
        kept = self.versions.get(key)
        return kept[-1] if kept and kept[-1].ended is None else None

    def at(self, key: bytes, revision: int) -> _Version | None:
        return next((v for v in self.versions.get(key, ()) if v.visible(revision)), None)

    def drop_versions(self, key: bytes, doomed: Callable[[_Version], bool]) -> tuple[int, int]:
        """Remove ended versions; return how many, and how many memos went with them."""
        gone = [v for v in self.versions.get(key, ()) if v.ended is not None and doomed(v)]
        if not gone:
            return 0, 0
        kept = [v for v in self.versions[key] if v not in gone]
        if kept:
            self.versions[key] = kept
        else:
            del self.versions[key]
        revisions = {v.version for v in gone} | {v.ended for v in gone if v.deleted}
        memos = 0
        for token in self.tokens.values():
            if token.revision in revisions and token.memo is not None:
                token.memo = None
                memos += 1
        return len(gone), memos


def scrub_shelf(shelf: _Shelf, change: Callable[[Kept], bytes | None]) -> ScrubReport:
    """See ``Scrubs.scrub``."""
    changed = dropped = 0
    for key, versions in list(shelf.versions.items()):
        for one in [version for version in versions if version.value]:
            live = one.ended is None
            value = change(Kept(KeptKind.VALUE, key, one.version, one.value, live))
            if value is None:
                if live:
                    raise ValueError("a live value is deleted by a commit, never by scrubbing")
                for before in versions:
                    before.deleted |= before.ended == one.version
                dropped += shelf.drop_versions(key, lambda v, gone=one: v is gone)[0]  # type: ignore[misc]
            elif value is not one.value:
                one.value = value
                changed += 1
    for token_id, token in shelf.tokens.items():
        if token.memo:
            memo = change(Kept(KeptKind.MEMO, token_id, token.revision, token.memo, False))
            changed += memo is not None and memo is not token.memo
            dropped += memo is None
            token.memo = memo
    for revision, told in list(shelf.feed.items()):
        if told.note:
            note = change(Kept(KeptKind.NOTE, b"", revision, told.note, False))
            changed += note is not None and note is not told.note
            dropped += note is None
            shelf.feed[revision] = replace(told, note=note or b"")
    return ScrubReport(changed, dropped)


class RamStore:
    """See ``pillion_storage.api.Store``."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._clock = RecordedClock(settings.clock_us)
        self._features = bounds_of(FEATURES, settings)
        self._shelves: dict[Partition, _Shelf] = {}
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._pid = os.getpid()
        self._commits = 0

    @property
    def features(self) -> Features:
        """What the reference declares."""
        return self._features

    def _shelf(self, partition: Partition) -> _Shelf:
        """Give the shelf of a partition; an unknown one gets a new shelf that is not kept yet."""
        check_partition(partition, self._features)
        shelf = self._shelves.get(partition)
        return _Shelf(self._settings.random_bytes(32)) if shelf is None else shelf

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked("this store was opened before a fork; open it in the child")
        if self._closed:
            raise StoreClosed("the store is closed")

    def read(
        self, partition: Partition, keys: Collection[bytes], *, at: int | None = None
    ) -> ReadResult:
        """See ``Store.read``."""
        self._check_open()
        check_keys(keys, self._features.read_keys_max, self._features)
        with self._changed:
            shelf = self._shelf(partition)
            revision = check_revision(at, shelf.history_oldest, shelf.revision)
            entries = {}
            for key in keys:
                found = shelf.at(key, revision)
                if found is not None:
                    entries[key] = Entry(found.version, found.value)
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
        with self._changed:
            shelf = self._shelf(partition)
            revision = check_revision(at, shelf.history_oldest, shelf.revision)
            rows = []
            for key in sorted((k for k in shelf.versions if start <= k < end), reverse=reverse):
                found = shelf.at(key, revision)
                if found is not None:
                    rows.append(Row(key, found.version, b"" if keys_only else found.value))
        fitting = count_fitting(
            (len(row.key) + len(row.value) for row in rows), limit, self._features
        )
        page, rest = rows[:fitting], rows[fitting:]
        next_start = (page[-1].key if reverse else rest[0].key) if rest else None
        return Page(revision, tuple(page), next_start)

    def look(self, partition: Partition, ask: Callable[[HeadView], T]) -> T:
        """See ``Store.look``."""
        self._check_open()
        with self._changed:
            return ask(LockedView(self, partition))

    def commit(self, partition: Partition, batch: Batch) -> Committed | Conflict:
        """See ``Store.commit``."""
        self._check_open()
        check_batch(batch, self._features)
        with self._changed:
            self._check_open()
            shelf = self._shelf(partition)
            outcome = self._apply(shelf, batch)
            if isinstance(outcome, Committed):
                self._shelves.setdefault(partition, shelf)
                self._changed.notify_all()
            return outcome

    def _apply(self, shelf: _Shelf, batch: Batch) -> Committed | Conflict:
        token = batch.token
        if token is not None and token.id in shelf.tokens:
            first = shelf.tokens[token.id]
            return Committed(first.revision, first.recorded_at, replayed=True, memo=first.memo)
        now = {key: shelf.live(key) for key in batch.expect}
        current = {key: 0 if live is None else live.version for key, live in now.items()}
        failed = {key: v for key, v in current.items() if v != batch.expect[key]}
        if failed:
            return Conflict(failed)

        revision = shelf.revision + 1
        recorded_at = self._clock.stamp(shelf.recorded_at)
        touched = []
        for key in sorted({*batch.puts, *batch.deletes}):
            live = shelf.live(key)
            kind = ChangeKind.PUT if key in batch.puts else ChangeKind.DELETE
            if live is None and kind is ChangeKind.DELETE:
                continue
            if live is not None:
                live.ended = revision
                live.deleted = kind is ChangeKind.DELETE
            if kind is ChangeKind.PUT:
                shelf.versions.setdefault(key, []).append(_Version(revision, batch.puts[key]))
            touched.append((key, kind))
        shelf.feed[revision] = Change(revision, recorded_at, tuple(touched), batch.note)
        if token is not None:
            shelf.tokens[token.id] = _Token(revision, recorded_at, token.memo)
            while len(shelf.tokens) > self._settings.tokens_max:
                del shelf.tokens[next(iter(shelf.tokens))]
        shelf.revision, shelf.recorded_at = revision, recorded_at
        self._commits += 1
        return Committed(
            revision, recorded_at, replayed=False, memo=None if token is None else token.memo
        )

    def submit(self, partition: Partition, batch: Batch) -> Future[Committed | Conflict]:
        """See ``Store.submit``. Here the batch is applied before this returns."""
        future: Future[Committed | Conflict] = Future()
        future.set_result(self.commit(partition, batch))
        return future

    def find_token(self, partition: Partition, token_id: bytes) -> Committed | None:
        """See ``Store.find_token``."""
        self._check_open()
        check_token_id(token_id, self._features)
        with self._changed:
            first = self._shelf(partition).tokens.get(token_id)
            if first is None:
                return None
            return Committed(first.revision, first.recorded_at, replayed=True, memo=first.memo)

    def changes(self, partition: Partition, after_revision: int, *, limit: int) -> ChangePage:
        """See ``Store.changes``."""
        self._check_open()
        check_limit(limit, self._features)
        with self._changed:
            shelf = self._shelf(partition)
            check_after(after_revision, shelf.feed_oldest, shelf.revision)
            found = [shelf.feed[r] for r in range(after_revision + 1, shelf.revision + 1)]
            sizes = (len(c.note) + sum(len(key) for key, _ in c.keys) for c in found)
            fitting = count_fitting(sizes, limit, self._features)
            return ChangePage(tuple(found[:fitting]), shelf.feed_oldest, shelf.revision)

    def wait(self, partition: Partition, after_revision: int, timeout_seconds: float) -> bool:
        """See ``Store.wait``."""
        self._check_open()
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._shelf(partition).revision > after_revision,
                timeout_seconds,
            )
            return not self._closed and self._shelf(partition).revision > after_revision

    def head(self, partition: Partition) -> Head:
        """See ``Store.head``."""
        self._check_open()
        with self._changed:
            shelf = self._shelf(partition)
            return Head(shelf.revision, shelf.recorded_at)

    def revision_at(self, partition: Partition, recorded_at: int) -> int:
        """See ``Store.revision_at``."""
        self._check_open()
        with self._changed:
            shelf = self._shelf(partition)
            if recorded_at >= shelf.recorded_at:
                self._clock.answer(recorded_at)
            for revision in range(shelf.revision, shelf.feed_oldest - 1, -1):
                if shelf.feed[revision].recorded_at <= recorded_at:
                    return revision
            before = shelf.feed_oldest - 1
            if before > 0 and recorded_at < shelf.before_feed_recorded_at:
                raise HistoryGone(before, shelf.feed_oldest)
            return before

    def versions(
        self, partition: Partition, key: bytes, *, before: int | None = None, limit: int = 1000
    ) -> list[KeyVersion]:
        """See ``Store.versions``."""
        self._check_open()
        check_key(key, self._features)
        check_limit(limit, self._features)
        with self._changed:
            kept = self._shelf(partition).versions.get(key, ())
            newest_first = [
                KeyVersion(v.version, v.ended, v.value)
                for v in reversed(kept)
                if before is None or v.version < before
            ]
        fitting = count_fitting((len(v.value) for v in newest_first), limit, self._features)
        return newest_first[:fitting][::-1]

    def purge(self, partition: Partition, keys: Collection[bytes]) -> int:
        """See ``Store.purge``."""
        self._check_open()
        check_keys(keys, self._features.batch_ops_max, self._features)
        with self._changed:
            shelf = self._shelf(partition)
            live = {key for key in keys if shelf.live(key)}
            if live:
                raise KeyStillLive(live)
            return sum(shelf.drop_versions(key, lambda _: True)[0] for key in set(keys))

    def scrub(
        self,
        partition: Partition,
        change: Callable[[Kept], bytes | None],
        *,
        key_ids: Collection[bytes] = (),
    ) -> ScrubReport:
        """See ``Scrubs.scrub``. Here it is one step."""
        del key_ids
        self._check_open()
        with self._changed:
            return scrub_shelf(self._shelf(partition), change)

    def compact(self) -> int:
        """See ``Compacts.compact``: there is no file."""
        self._check_open()
        return 0

    def find_bytes(self, pieces: Collection[bytes]) -> list[bytes]:
        """See ``Compacts.find_bytes``: there is no file."""
        self._check_open()
        del pieces
        return []

    def partitions(self) -> list[Partition]:
        """See ``Store.partitions``."""
        self._check_open()
        with self._changed:
            return sorted(self._shelves)

    def export(self, partition: Partition, *, at: int | None = None) -> Iterator[Row]:
        """See ``Store.export``."""
        self._check_open()
        return export_rows(self, partition, at)

    def partition_secret(self, partition: Partition) -> bytes:
        """See ``Store.partition_secret``."""
        self._check_open()
        with self._changed:
            return self._shelves.setdefault(partition, self._shelf(partition)).secret

    def trim(
        self, partition: Partition, *, history_before: int, feed_before: int, tokens_before_us: int
    ) -> TrimReport:
        """See ``Store.trim``."""
        self._check_open()
        with self._changed:
            shelf = self._shelf(partition)
            oldest = max(shelf.history_oldest, min(history_before, shelf.revision))
            shelf.history_oldest = oldest
            versions = memos = 0
            for key in list(shelf.versions):
                dropped = shelf.drop_versions(
                    key, lambda v: v.ended is not None and v.ended <= oldest
                )
                versions += dropped[0]
                memos += dropped[1]
            changes = 0
            for revision in range(shelf.feed_oldest, min(feed_before, shelf.revision + 1)):
                shelf.before_feed_recorded_at = shelf.feed.pop(revision).recorded_at
                shelf.feed_oldest = revision + 1
                changes += 1
            old = [i for i, t in shelf.tokens.items() if t.recorded_at < tokens_before_us]
            for token_id in old:
                del shelf.tokens[token_id]
            return TrimReport(versions, changes, len(old), memos)

    def partition_stats(self, partition: Partition) -> PartitionStats:
        """See ``Store.partition_stats``. Here it is linear in the number of versions."""
        self._check_open()
        with self._changed:
            shelf = self._shelf(partition)
            live: list[int] = []
            ended: list[int] = []
            for key, versions in shelf.versions.items():
                for version in versions:
                    size = len(key) + len(version.value)
                    (live if version.ended is None else ended).append(size)
            return PartitionStats(
                live_keys=len(live),
                live_bytes=sum(live),
                kept_versions=len(ended),
                kept_bytes=sum(ended),
                tokens=len(shelf.tokens),
                oldest_history=shelf.history_oldest,
                oldest_change=shelf.feed_oldest,
                before_feed_recorded_at=shelf.before_feed_recorded_at,
            )

    def stats(self) -> StoreStats:
        """See ``Store.stats``."""
        self._check_open()
        with self._changed:
            each = [self.partition_stats(partition) for partition in self._shelves]
            return StoreStats(
                partitions=len(each),
                live_keys=sum(s.live_keys for s in each),
                live_bytes=sum(s.live_bytes for s in each),
                kept_versions=sum(s.kept_versions for s in each),
                kept_bytes=sum(s.kept_bytes for s in each),
                tokens=sum(s.tokens for s in each),
                size_bytes=0,
                size_bytes_max=0,
                queued_batches=0,
                commits=self._commits,
                groups=self._commits,
            )

    def probe(self) -> None:
        """See ``Store.probe``: on a scratch store, so that no partition shows up."""
        self._check_open()
        scratch = RamStore(self._settings)
        where = Partition("probe", "probe")
        scratch.commit(where, Batch(puts={b"probe": b"written"}))
        entry = next(islice(scratch.export(where), 1), None)
        if entry is None or entry.value != b"written":
            raise StoreError("what the probe wrote could not be read back")

    def backup(self, destination: Path) -> None:
        """Not declared."""
        self._check_open()
        raise NotSupported(f"the ram store keeps nothing on disk to copy to {destination}")

    def close(self) -> None:
        """See ``Store.close``."""
        if self._pid != os.getpid():
            self._check_open()
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def open_store(settings: StoreSettings) -> RamStore:
    """Open an empty store. The directory of the settings is not used."""
    return RamStore(settings)
