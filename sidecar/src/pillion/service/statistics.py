"""What ``stats`` tells, and whether the store is really there."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import EMBEDDER_KEY, prefix_end

import pillion.domain.commands as domain

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Embedder
    from pillion.service.pending import PendingVectors
    from pillion.service.residents import Residents

COUNT_STEP: Final = 10_000
PARTITIONS_MAX: Final = 1000
FORMAT_VERSION_UNKNOWN: Final = 0


class StatisticsReader:
    """Counts what there is."""

    def __init__(
        self,
        *,
        store: Store,
        store_kind: str,
        residents: Residents,
        pending: PendingVectors,
        embedder: Embedder | None,
        clock: Clock,
        format_version: int,
    ) -> None:
        self._store = store
        self._store_kind = store_kind
        self._residents = residents
        self._pending = pending
        self._embedder = embedder
        self._clock = clock
        self._format_version = format_version
        self._started_at = clock.now_us()

    def statistics(self, partition: Partition | None) -> domain.Statistics:
        """Return the numbers of one partition, or of all (at most 1,000)."""
        stats = self._store.stats()
        wanted = [partition] if partition is not None else self._store.partitions()
        return domain.Statistics(
            store=domain.StoreStatistics(
                kind=self._store_kind,
                disk_bytes=stats.size_bytes,
                disk_bytes_max=stats.size_bytes_max,
                commits=stats.commits,
                flushes=stats.groups,
                queue_depth=stats.queued_batches,
                format_version=self._format_version,
            ),
            partitions=tuple(self._partition(one) for one in wanted[:PARTITIONS_MAX]),
            uptime_us=self._clock.now_us() - self._started_at,
            resident_bytes=_resident_bytes(),
        )

    def _partition(self, partition: Partition) -> domain.PartitionStatistics:
        counters = self._store.partition_stats(partition)
        resident = self._residents.peek(partition)
        entry = self._store.read(partition, (EMBEDDER_KEY,)).entries.get(EMBEDDER_KEY)
        return domain.PartitionStatistics(
            partition=partition,
            revision=self._store.head(partition).revision,
            memories=self._count(partition, b"c"),
            episodes=self._count(partition, b"k"),
            records=counters.live_keys,
            record_bytes=counters.live_bytes,
            resident=resident is not None,
            resident_bytes=resident.memory_bytes if resident is not None else 0,
            vectors_pending=self._pending.count(partition),
            vectors_failed=self._count(partition, b"x"),
            indexed_vectors=resident.view.ann.vectors if resident is not None else 0,
            index_lag=resident.view.ann.revisions_behind if resident is not None else 0,
            embedder=codec.decode_embedder(entry.value) if entry is not None else None,
        )

    def _count(self, partition: Partition, family: bytes) -> int:
        total = 0
        start: bytes | None = family
        while start is not None:
            page = self._store.scan(
                partition, start, prefix_end(family), limit=COUNT_STEP, keys_only=True
            )
            total += len(page.rows)
            start = page.next_start
        return total

    def embedder_identity(self) -> EmbedderIdentity | None:
        """Return the server's embedder, if it has one."""
        return self._embedder.identity if self._embedder is not None else None

    def probe(self) -> None:
        """Write to the store and read it back; raises what the store raises."""
        self._store.probe()


def _resident_bytes() -> int:
    """Return the process's resident memory now, or its peak where that cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  (not a user's path)
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
