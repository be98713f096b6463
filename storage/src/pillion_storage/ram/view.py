"""A view of the reference store, of which the caller holds the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillion_storage.api import Entry, Partition, Row, Store


class LockedView:
    """See ``pillion_storage.api.HeadView``."""

    def __init__(self, store: Store, partition: Partition) -> None:
        self._store = store
        self._partition = partition
        self.revision = store.head(partition).revision

    def get(self, key: bytes) -> Entry | None:
        """See ``HeadView.get``."""
        return self._store.read(self._partition, (key,), at=self.revision).entries.get(key)

    def last(self, start: bytes, end: bytes) -> Row | None:
        """See ``HeadView.last``."""
        page = self._store.scan(
            self._partition, start, end, limit=1, reverse=True, at=self.revision
        )
        return page.rows[0] if page.rows else None
