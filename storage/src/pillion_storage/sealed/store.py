"""A store that seals: values go in encrypted and come out plain, whatever keeps them below.

What is sealed: every value that isn't empty, every memo, every note. What isn't: keys (hashes
under the partition's secret), the ids of tokens, the names of partitions, empty values, counters.

A value whose key was destroyed reads as absent, at every revision, and so does a memo; a note
reads as empty. In scans and versions such values are passed over, and an expectation sees version
0. Their keys stay in the feed and in the counters until somebody deletes and purges them.
"""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    Committed,
    Conflict,
    KeyStillLive,
    Row,
    StoreStats,
)
from pillion_storage.bounds import check_batch, check_keys
from pillion_storage.errors import Corrupt, NotSupported
from pillion_storage.packed import scan_packed
from pillion_storage.paging import export_rows
from pillion_storage.scrubbing import Compacts, Scrubs
from pillion_storage.sealed import envelope
from pillion_storage.sealed.batches import Sealing, Submitted, seal_batch
from pillion_storage.sealed.reading import BOOKS, SealedReads
from pillion_storage.sealed.resealing import Resealing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from pillion.domain.scope import Partition

    from pillion_storage.api import Head, PartitionStats, TrimReport
    from pillion_storage.scrubbing import Kept, ScrubReport
    from pillion_storage.sealed.master import MasterKeys

_COMMIT_TRIES_MAX: Final = 8


class SealedStore(SealedReads):
    """See ``pillion_storage.api.Store``; ``opening.open_sealed`` makes it."""

    def export(self, partition: Partition, *, at: int | None = None) -> Iterator[Row]:
        """See ``Store.export``."""
        self._check_open()
        return export_rows(self, partition, at)

    # --- writing ---------------------------------------------------------------------------

    def commit(self, partition: Partition, batch: Batch) -> Committed | Conflict:
        """See ``Store.commit``."""
        tag, sealing = self._begin(partition, batch)
        try:
            outcome = self._inner.commit(partition, sealing.batch)
            for _ in range(_COMMIT_TRIES_MAX):
                again = self._buried(partition, tag, sealing, outcome)
                if again is None:
                    break
                sealing = again
                outcome = self._inner.commit(partition, sealing.batch)
            return self._told(tag, sealing, outcome)
        finally:
            sealing.lease.release()

    def submit(self, partition: Partition, batch: Batch) -> Future[Committed | Conflict]:
        """See ``Store.submit``."""
        tag, sealing = self._begin(partition, batch)
        try:
            inner = self._inner.submit(partition, sealing.batch)
        except BaseException:
            sealing.lease.release()
            raise
        outer = Submitted(inner)

        def tell(done: Future[Committed | Conflict]) -> None:
            try:
                outcome = done.result()
                again = self._buried(partition, tag, sealing, outcome)
                if again is not None:
                    follow(self._inner.submit(partition, again.batch))
                    return
                told = self._told(tag, sealing, outcome)
            except CancelledError:
                sealing.lease.release()
            except BaseException as error:  # noqa: BLE001 -- whoever waits must get it
                sealing.lease.release()
                outer.set_exception(error)
            else:
                sealing.lease.release()
                outer.set_result(told)

        def follow(future: Future[Committed | Conflict]) -> None:
            future.add_done_callback(tell)

        follow(inner)
        return outer

    def _begin(self, partition: Partition, batch: Batch) -> tuple[bytes, Sealing]:
        self._check_open()
        tag = self._tag(partition)
        check_batch(batch, self._features)
        return tag, seal_batch(self._keyring, tag, batch)

    def _told(
        self, tag: bytes, sealing: Sealing, outcome: Committed | Conflict
    ) -> Committed | Conflict:
        if isinstance(outcome, Conflict):
            return outcome
        if not outcome.replayed:
            return replace(outcome, memo=sealing.memo)
        token = sealing.batch.token
        return outcome if token is None else self._replayed(tag, token.id, outcome)

    def _buried(
        self, partition: Partition, tag: bytes, sealing: Sealing, outcome: Committed | Conflict
    ) -> Sealing | None:
        """Give the batch to try again after a conflict with nothing but destroyed values.

        To the caller those keys are absent, so an expected version 0 holds for them.
        """
        if not isinstance(outcome, Conflict) or not self._keyring.has_destroyed(tag):
            return None
        expect = sealing.batch.expect
        absent = self._destroyed_versions(partition, outcome.current)
        if absent.keys() != outcome.current.keys() or any(expect[key] for key in absent):
            for key in absent.keys() & outcome.current.keys():
                outcome.current[key] = 0
            return None
        return sealing._replace(batch=replace(sealing.batch, expect={**expect, **absent}))

    def _destroyed_versions(
        self, partition: Partition, keys: Collection[bytes]
    ) -> dict[bytes, int]:
        """Give the keys whose live value was sealed with a destroyed key, with its version."""
        found = self._inner.read(partition, list(keys)).entries
        return {
            key: entry.version
            for key, entry in found.items()
            if envelope.is_sealed(entry.value)
            and self._keyring.is_destroyed(envelope.key_id_of(entry.value))
        }

    # --- secrets and forgetting ------------------------------------------------------------

    def partition_secret(self, partition: Partition) -> bytes:
        """See ``Store.partition_secret``. It is in the keyring, but for once plain partitions.

        Raises:
            Corrupt: the keyring lacks it, though the partition was written to.
        """
        self._check_open()
        tag = self._tag(partition)
        if tag in self._plain_until:
            return self._inner.partition_secret(partition)
        # Asked in this order: whoever commits first made the secret before.
        written = self._inner.head(partition).revision > 0
        secret = self._keyring.secret(tag)
        if secret is not None:
            return secret
        if written:
            raise Corrupt(
                "a partition's secret",
                "not in the keyring, which is damaged or older than the data: restore its newest "
                "copy",
            )
        secret = self._keyring.make_secret(tag)
        self._inner.partition_secret(partition)  # so that the partition is listed
        return secret

    def purge(self, partition: Partition, keys: Collection[bytes]) -> int:
        """See ``Store.purge``. A value whose key was destroyed is deleted first."""
        self._check_open()
        tag = self._tag(partition)
        check_keys(keys, self._features.batch_ops_max, self._features)
        try:
            return self._inner.purge(partition, keys)
        except KeyStillLive as error:
            if not self._keyring.has_destroyed(tag):
                raise
            absent = self._destroyed_versions(partition, error.keys)
            alive = set(error.keys) - absent.keys()
            if alive:
                raise KeyStillLive(alive) from None
        outcome = self._inner.commit(partition, Batch(deletes=list(absent), expect=absent))
        if isinstance(outcome, Conflict):
            raise KeyStillLive(outcome.current)
        return self._inner.purge(partition, keys)

    def trim(
        self, partition: Partition, *, history_before: int, feed_before: int, tokens_before_us: int
    ) -> TrimReport:
        """See ``Store.trim``."""
        self._check_open()
        self._tag(partition)
        return self._inner.trim(
            partition,
            history_before=history_before,
            feed_before=feed_before,
            tokens_before_us=tokens_before_us,
        )

    # --- keys ------------------------------------------------------------------------------

    def retire_owner(self, partition: Partition, owner: bytes) -> list[bytes]:
        """See ``OwnerKeys.retire_owner``."""
        self._check_open()
        tag = self._tag(partition)
        return self._keyring.retire(tag, self._keyring.owner_tag(tag, owner))

    def destroy_keys(self, key_ids: Collection[bytes]) -> int:
        """See ``OwnerKeys.destroy_keys``."""
        self._check_open()
        count = self._keyring.destroy(key_ids)
        if self._books is not None:
            self._books.note_generation()
        return count

    def destroyed_on_disk(self, key_ids: Collection[bytes]) -> bool:
        """See ``OwnerKeys.destroyed_on_disk``."""
        self._check_open()
        return self._keyring.destroyed_on_disk(key_ids)

    def sealed_with(self, partition: Partition, key_ids: Collection[bytes]) -> list[bytes]:
        """See ``OwnerKeys.sealed_with``. A page without any costs little."""
        self._check_open()
        self._tag(partition)
        wanted = set(key_ids)
        found: list[bytes] = []
        start: bytes | None = b""
        while start is not None and wanted:
            page = scan_packed(
                self._inner, partition, start, KEY_SPACE_END, limit=self._features.page_rows_max
            )
            if not wanted.isdisjoint(page.rows.key_ids()):
                found += [
                    key
                    for key, _, value in page.rows.to_list()
                    if envelope.is_sealed(value) and envelope.key_id_of(value) in wanted
                ]
            start = page.next_start
        return found

    def bury_keys(self, partition: Partition, key_ids: Collection[bytes]) -> None:
        """See ``OwnerKeys.bury_keys``."""
        self._check_open()
        self._keyring.bury(self._tag(partition), key_ids)
        if self._books is not None:
            self._books.note_generation()

    def scrub(
        self,
        partition: Partition,
        change: Callable[[Kept], bytes | None],
        *,
        key_ids: Collection[bytes] = (),
    ) -> ScrubReport:
        """See ``Scrubs.scrub``."""
        self._check_open()
        tag = self._tag(partition)
        if not isinstance(self._inner, Scrubs):
            raise NotSupported("the store below the seals can't change what it keeps")
        resealing = Resealing(self._keyring, tag, key_ids, change)
        try:
            return self._inner.scrub(partition, resealing.changed)
        finally:
            resealing.close()

    def holds_plain(self, partition: Partition) -> bool:
        """Say whether the partition was there before the seals, so that some may be in plain."""
        return self._tag(partition) in self._plain_until

    def compact(self) -> int:
        """See ``Compacts.compact``."""
        self._check_open()
        if not isinstance(self._inner, Compacts):
            raise NotSupported("the store below the seals can't write its file anew")
        return self._inner.compact()

    def find_bytes(self, pieces: Collection[bytes]) -> list[bytes]:
        """See ``Compacts.find_bytes``."""
        self._check_open()
        if not isinstance(self._inner, Compacts):
            raise NotSupported("the store below the seals has no file to look through")
        return self._inner.find_bytes(pieces)

    def rotate_master(self, master: MasterKeys) -> None:
        """Put another master key in force; see ``Keyring.rotate``."""
        self._check_open()
        self._keyring.rotate(master)
        if self._books is not None:
            self._books.note_generation()

    # --- files beside the store --------------------------------------------------------------

    @contextlib.contextmanager
    def sealing(
        self, partition: Partition, owner: bytes
    ) -> Iterator[Callable[[bytes | memoryview, bytes], bytes]]:
        """See ``FileSeals.sealing``."""
        self._check_open()
        tag = self._tag(partition)
        owner_tag = self._keyring.owner_tag(tag, owner)
        lease = self._keyring.lease(tag, [owner_tag], envelope.PARTS_MAX)
        try:
            key_id, cipher = lease.keys[owner_tag]
            yield lambda part, place: envelope.seal(
                cipher, key_id, part, envelope.FILE + tag + place
            )
        finally:
            lease.release()

    def open_part(self, partition: Partition, data: bytes, place: bytes) -> bytes | None:
        """See ``FileSeals.open_part``."""
        self._check_open()
        whole_place = envelope.FILE + self._tag(partition) + place
        if not envelope.is_sealed(data):
            raise Corrupt(envelope.describe(whole_place), "it is not sealed, as it must be")
        cipher = self._keyring.cipher(envelope.key_id_of(data))
        return None if cipher is None else envelope.open_sealed(cipher, data, whole_place)

    # --- passed on -------------------------------------------------------------------------

    def wait(self, partition: Partition, after_revision: int, timeout_seconds: float) -> bool:
        """See ``Store.wait``."""
        self._tag(partition)
        return self._inner.wait(partition, after_revision, timeout_seconds)

    def head(self, partition: Partition) -> Head:
        """See ``Store.head``."""
        self._tag(partition)
        return self._inner.head(partition)

    def revision_at(self, partition: Partition, recorded_at: int) -> int:
        """See ``Store.revision_at``."""
        self._tag(partition)
        return self._inner.revision_at(partition, recorded_at)

    def partitions(self) -> list[Partition]:
        """See ``Store.partitions``."""
        return [one for one in self._inner.partitions() if one != BOOKS]

    def partition_stats(self, partition: Partition) -> PartitionStats:
        """See ``Store.partition_stats``."""
        self._tag(partition)
        return self._inner.partition_stats(partition)

    def stats(self) -> StoreStats:
        """See ``Store.stats``."""
        whole = self._inner.stats()
        books = self._inner.partition_stats(BOOKS)
        return replace(
            whole,
            partitions=whole.partitions - 1,
            live_keys=whole.live_keys - books.live_keys,
            live_bytes=whole.live_bytes - books.live_bytes,
            kept_versions=whole.kept_versions - books.kept_versions,
            kept_bytes=whole.kept_bytes - books.kept_bytes,
            commits=whole.commits - (self._books.commits if self._books is not None else 0),
        )

    def probe(self) -> None:
        """See ``Store.probe``."""
        self._inner.probe()

    def backup(self, destination: Path) -> None:
        """See ``Store.backup``. The keyring isn't copied: its newest file opens every backup.

        So what was destroyed after a backup was made stays destroyed in it.
        """
        self._inner.backup(destination)

    def close(self) -> None:
        """See ``Store.close``."""
        if os.getpid() == self._pid:
            self._closed = True
        self._inner.close()
        self._keyring.close()
