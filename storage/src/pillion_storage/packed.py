"""Many rows at once, packed side by side: for whoever loads a partition.

A page of ``Store.scan`` is a tuple of values, each of which Python checked and opened. What is
packed is checked and opened by the ranker's Rust with the GIL released, many times as fast, and
stays in Rust until it is in a table. Where Rust declines, ``Store.scan`` is asked instead: it gives
the same rows, or says what is wrong with which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from pillion_ranker import Rows

if TYPE_CHECKING:
    from pillion.domain.scope import Partition

    from pillion_storage.api import Page, Store

# A page ends early here. In memory twice for a moment: as the engine gave it, and packed.
PACKED_BYTES_MAX: Final = 16 << 20


class PackedPage(NamedTuple):
    """Rows of the newest commit, in order. ``next_start`` None: the end of the range is reached.

    Unlike a page of ``scan`` it may be empty without being the last.
    """

    rows: Rows
    next_start: bytes | None


@runtime_checkable
class PackedScans(Protocol):
    """What a store may offer beside ``Store``."""

    def scan_packed(
        self, partition: Partition, start: bytes, end: bytes, *, limit: int
    ) -> PackedPage:
        """Read the keys of [start, end) with their values, each page as its newest commit has it.

        Raises:
            InvalidRange, Corrupt: as ``Store.scan``.
        """
        ...


def scan_packed(
    store: Store, partition: Partition, start: bytes, end: bytes, *, limit: int
) -> PackedPage:
    """Scan any store; see ``PackedScans``."""
    if isinstance(store, PackedScans):
        return store.scan_packed(partition, start, end, limit=limit)
    return packed_scan(store, partition, start, end, limit=limit)


class _Scans(Protocol):
    """The part of ``Store`` that is needed here."""

    def scan(self, partition: Partition, start: bytes, end: bytes, *, limit: int) -> Page: ...


def packed_scan(
    store: _Scans, partition: Partition, start: bytes, end: bytes, *, limit: int
) -> PackedPage:
    """Give a page of ``Store.scan``, packed."""
    page = store.scan(partition, start, end, limit=limit)
    rows = [(row.key, row.version, row.value) for row in page.rows]
    return PackedPage(Rows(rows), page.next_start)
