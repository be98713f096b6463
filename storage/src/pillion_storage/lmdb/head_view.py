"""A partition at its newest commit: single reads in one snapshot, for the shortest of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.api import Entry, Features, Row
from pillion_storage.bounds import check_key, check_range
from pillion_storage.errors import Corrupt
from pillion_storage.lmdb import records
from pillion_storage.lmdb.reading import enter_range
from pillion_storage.schema import HEADS

if TYPE_CHECKING:
    import lmdb

    from pillion_storage.lmdb.environment import Databases

_ANY_LIMIT = 1


class LmdbHeadView:
    """See ``pillion_storage.api.HeadView``. Not to be used after the snapshot ended."""

    __slots__ = ("_databases", "_features", "_prefix", "_txn", "revision")

    def __init__(
        self,
        txn: lmdb.Transaction[bytes],
        databases: Databases,
        number: int | None,
        features: Features,
    ) -> None:
        """See where the partition of this number stands in a snapshot; None: there is none."""
        self._txn = txn
        self._databases = databases
        self._features = features
        self._prefix: bytes | None = None
        self.revision = 0
        if number is not None:
            prefix = self._prefix = records.U32.pack(number)
            row = txn.get(prefix, db=databases.heads)
            if row is None:
                raise Corrupt(records.describe(HEADS, prefix), "missing")
            self.revision = records.unpack_head_revision(prefix, row)

    def get(self, key: bytes) -> Entry | None:
        """See ``HeadView.get``."""
        check_key(key, self._features)
        if self._prefix is None:
            return None
        full = self._prefix + key
        row = self._txn.get(full, db=self._databases.current)
        return records.unpack_current(full, row) if row is not None else None

    def last(self, start: bytes, end: bytes) -> Row | None:
        """See ``HeadView.last``."""
        check_range(start, end, _ANY_LIMIT, self._features)
        prefix = self._prefix
        if prefix is None:
            return None
        low, high = prefix + start, prefix + end
        with self._txn.cursor(self._databases.current) as cursor:
            if enter_range(cursor, low, high, reverse=True) is None:
                return None
            full, row = cursor.item()
        if not low <= full < high:
            return None
        entry = records.unpack_current(full, row)
        return Row(full[len(prefix) :], entry.version, entry.value)
