"""A unit of work: the write transaction that a group of jobs shares, and the heads it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.errors import Corrupt
from pillion_storage.lmdb import records
from pillion_storage.lmdb.records import HeadRow, PartitionRow
from pillion_storage.schema import HEADS, META

if TYPE_CHECKING:
    from collections.abc import Mapping

    import lmdb

    from pillion_storage.api import Partition, StoreSettings
    from pillion_storage.lmdb.environment import Databases
    from pillion_storage.recorded_clock import RecordedClock

_COUNT = b"partitions"


class Unit:
    """What a job works on. Thrown away whole when the transaction aborts.

    Heads are copied from the writer's cache on first use and written back once, at the end,
    however many batches of the group advanced them.
    """

    __slots__ = ("_known", "clock", "commits", "databases", "heads", "settings", "txn")

    def __init__(
        self,
        txn: lmdb.Transaction[bytes],
        databases: Databases,
        known: Mapping[Partition, HeadRow],
        settings: StoreSettings,
        clock: RecordedClock,
    ) -> None:
        self.clock = clock
        self.txn = txn
        self.databases = databases
        self.settings = settings
        self.heads: dict[Partition, HeadRow] = {}
        self.commits = 0
        self._known = known

    def head(self, partition: Partition) -> HeadRow | None:
        """Give the head to change, or None for a partition that doesn't exist."""
        head = self.heads.get(partition)
        if head is not None:
            return head
        known = self._known.get(partition)
        head = known.copy() if known is not None else self._load(partition)
        if head is not None:
            self.heads[partition] = head
        return head

    def _load(self, partition: Partition) -> HeadRow | None:
        identity = self.identity(partition)
        if identity is None:
            return None
        return load_head(self.txn, self.databases, identity.number)

    def identity(self, partition: Partition) -> PartitionRow | None:
        """Give the number and the secret of a partition, or None."""
        return load_identity(self.txn, self.databases, partition)

    def create(self, partition: Partition) -> HeadRow:
        """Give a new partition the next number, and a secret."""
        txn, databases = self.txn, self.databases
        row = txn.get(_COUNT, db=databases.meta)
        number = 1 if row is None else int.from_bytes(records.unseal(META, _COUNT, row)) + 1
        content = records.U32.pack(number)
        txn.put(_COUNT, records.seal(META, _COUNT, content), db=databases.meta)
        key = records.partition_key(partition)
        secret = self.settings.random_bytes(32)
        identity = PartitionRow(number, self.settings.clock_us(), secret)
        txn.put(key, records.pack_partition(key, identity), db=databases.partitions)
        head = HeadRow(content)
        self.heads[partition] = head
        return head

    def finish(self) -> None:
        """Write the heads that changed back. A transaction without a write costs no fsync."""
        for partition, head in self.heads.items():
            if head == self._known.get(partition):
                continue
            self.txn.put(head.prefix, head.pack(), db=self.databases.heads)


def load_identity(
    txn: lmdb.Transaction[bytes], databases: Databases, partition: Partition
) -> PartitionRow | None:
    """Read the row of a partition, or None."""
    key = records.partition_key(partition)
    row = txn.get(key, db=databases.partitions)
    return None if row is None else records.unpack_partition(key, row)


def load_head(txn: lmdb.Transaction[bytes], databases: Databases, number: int) -> HeadRow:
    """Read the head of a partition that exists."""
    prefix = records.U32.pack(number)
    row = txn.get(prefix, db=databases.heads)
    if row is None:
        raise Corrupt(records.describe(HEADS, prefix), "missing")
    return records.unpack_head(prefix, row)
