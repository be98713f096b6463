"""Reading through the seals: what was sealed comes out plain, what was destroyed is absent."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from pillion.domain.scope import Partition

from pillion_storage.api import (
    ChangePage,
    Committed,
    Entry,
    Features,
    KeyVersion,
    Page,
    ReadResult,
    Row,
    StoreClosed,
    StoreForked,
)
from pillion_storage.bounds import check_partition
from pillion_storage.errors import Corrupt, InvalidBatch
from pillion_storage.packed import packed_scan, scan_packed
from pillion_storage.sealed import envelope
from pillion_storage.sealed.opener import Opener
from pillion_storage.sealed.view import SealedView

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from pillion_storage.api import Change, HeadView, Store
    from pillion_storage.packed import PackedPage
    from pillion_storage.sealed.books import Books
    from pillion_storage.sealed.keyring import Keyring

T = TypeVar("T")
# The store's own partition; see ``books``.
BOOKS: Final = Partition("\0pillion", "seals")
# Tags of partitions that are kept; about 200 bytes each.
_TAGS_MAX: Final = 65_536


class SealedReads:
    """The reading half of a sealed store; ``store.SealedStore`` is the whole."""

    def __init__(
        self,
        inner: Store,
        keyring: Keyring,
        books: Books | None,
        plain_until: Mapping[bytes, int],
    ) -> None:
        """Seal over an open store whose bounds leave room for the seals.

        Args:
            inner: The store.
            keyring: Its open keyring.
            books: What the store remembers of its sealing; None: this is for the books' own use.
            plain_until: The tags of partitions that may hold plain values, with the last such
                revision.
        """
        self._inner = inner
        self._keyring = keyring
        self._tags: dict[Partition, bytes] = {}
        self._pid = os.getpid()
        self._closed = False
        self._books = books
        self._plain_until = plain_until
        self._open = Opener(keyring, plain_until).opened
        below = inner.features
        room = envelope.OVERHEAD_BYTES
        usual = Features(below.name, below.durable, below.shared, below.history, below.backup)
        self._features = replace(
            below,
            value_bytes_max=min(usual.value_bytes_max, below.value_bytes_max - room),
            memo_bytes_max=min(
                usual.memo_bytes_max, below.memo_bytes_max - room * envelope.LAYERS_MAX
            ),
            note_bytes_max=min(usual.note_bytes_max, below.note_bytes_max - room),
            batch_bytes_max=min(
                usual.batch_bytes_max,
                below.batch_bytes_max - room * (below.batch_ops_max + 1 + envelope.LAYERS_MAX),
            ),
            value_overhead_bytes=below.value_overhead_bytes + room,
        )

    @property
    def features(self) -> Features:
        """What the store below declares, less the room for the seals."""
        return self._features

    @property
    def keyring(self) -> Keyring:
        """The keys, for those who destroy and rotate them."""
        return self._keyring

    # --- opening values --------------------------------------------------------------------

    def _check_open(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked("this store was opened before a fork; open it in the child")
        if self._closed:
            raise StoreClosed("the store is closed")

    def _tag(self, partition: Partition) -> bytes:
        tag = self._tags.get(partition)
        if tag is None:
            check_partition(partition, self._features)
            if partition.namespace == BOOKS.namespace and self._books is not None:
                raise InvalidBatch("this namespace is the store's own; choose another name")
            tag = self._keyring.partition_tag(partition)
            if len(self._tags) >= _TAGS_MAX:
                self._tags.clear()
            self._tags[partition] = tag
        return tag

    def _rows(self, tag: bytes, rows: Collection[Row], *, keys_only: bool) -> tuple[Row, ...]:
        opened = []
        for row in rows:
            value = self._open(tag, envelope.VALUE, row.key, row.value, row.version)
            if value is not None:
                opened.append(Row(row.key, row.version, b"" if keys_only else value))
        return tuple(opened)

    # --- reading ---------------------------------------------------------------------------

    def read(
        self, partition: Partition, keys: Collection[bytes], *, at: int | None = None
    ) -> ReadResult:
        """See ``Store.read``."""
        self._check_open()
        tag = self._tag(partition)
        found = self._inner.read(partition, keys, at=at)
        entries = {}
        for key, entry in found.entries.items():
            value = self._open(tag, envelope.VALUE, key, entry.value, entry.version)
            if value is not None:
                entries[key] = Entry(entry.version, value)
        return ReadResult(found.revision, entries)

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
        """See ``Store.scan``. Where keys were destroyed, a keys-only scan costs as a whole one."""
        self._check_open()
        tag = self._tag(partition)
        bare = keys_only and not self._keyring.has_destroyed(tag)
        while True:
            page = self._inner.scan(
                partition, start, end, limit=limit, reverse=reverse, at=at, keys_only=bare
            )
            if bare:
                return page
            rows = self._rows(tag, page.rows, keys_only=keys_only)
            if rows or page.next_start is None:
                return Page(page.revision, rows, page.next_start)
            at = page.revision  # a page that isn't the last may not be empty
            start, end = (start, page.next_start) if reverse else (page.next_start, end)

    def scan_packed(
        self, partition: Partition, start: bytes, end: bytes, *, limit: int
    ) -> PackedPage:
        """See ``PackedScans.scan_packed``."""
        self._check_open()
        tag = self._tag(partition)
        page = scan_packed(self._inner, partition, start, end, limit=limit)
        try:
            keys = {key_id: self._keyring.data_key(key_id) for key_id in page.rows.key_ids()}
            page.rows.open(keys, envelope.VALUE + tag, self._plain_until.get(tag, 0))
        except (ValueError, Corrupt):  # a usual scan says which value does not open
            return packed_scan(self, partition, start, end, limit=limit)
        return page

    def look(self, partition: Partition, ask: Callable[[HeadView], T]) -> T:
        """See ``Store.look``."""
        self._check_open()
        tag = self._tag(partition)
        return self._inner.look(partition, lambda view: ask(SealedView(view, tag, self._open)))

    def find_token(self, partition: Partition, token_id: bytes) -> Committed | None:
        """See ``Store.find_token``."""
        self._check_open()
        tag = self._tag(partition)
        found = self._inner.find_token(partition, token_id)
        return None if found is None else self._replayed(tag, token_id, found)

    def _replayed(self, tag: bytes, token_id: bytes, found: Committed) -> Committed:
        if not found.memo:
            return found
        memo = self._open(tag, envelope.MEMO, token_id, found.memo, found.revision)
        return replace(found, memo=memo)

    def changes(self, partition: Partition, after_revision: int, *, limit: int) -> ChangePage:
        """See ``Store.changes``."""
        self._check_open()
        tag = self._tag(partition)
        page = self._inner.changes(partition, after_revision, limit=limit)
        return replace(page, changes=tuple(self._change(tag, one) for one in page.changes))

    def _change(self, tag: bytes, change: Change) -> Change:
        if not change.note:
            return change
        note = self._open(tag, envelope.NOTE, b"", change.note, change.revision)
        return replace(change, note=note or b"")

    def versions(
        self, partition: Partition, key: bytes, *, before: int | None = None, limit: int = 1000
    ) -> list[KeyVersion]:
        """See ``Store.versions``."""
        self._check_open()
        tag = self._tag(partition)
        while True:
            found = self._inner.versions(partition, key, before=before, limit=limit)
            opened = []
            for one in found:
                value = self._open(tag, envelope.VALUE, key, one.value, one.version)
                if value is not None:
                    opened.append(KeyVersion(one.version, one.ended, value))
            if opened or not found:
                return opened
            before = found[0].version  # all of these were destroyed; there may be older ones
