"""How answers are cut into pages, and how pages are walked: the same in every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.api import KEY_SPACE_END, Features, Partition, Row, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_EXPORT_ROWS = 1000


def count_fitting(sizes: Iterable[int], limit: int, features: Features) -> int:
    """Count the items that fit in a page: up to ``limit`` and page_bytes_max, at least one."""
    total = count = 0
    for size in sizes:
        total += size
        if count == limit or (count and total > features.page_bytes_max):
            break
        count += 1
    return count


def export_rows(store: Store, partition: Partition, at: int | None) -> Iterator[Row]:
    """Walk over a partition page by page, at one revision."""
    start: bytes | None = b""
    while start is not None:
        page = store.scan(partition, start, KEY_SPACE_END, limit=_EXPORT_ROWS, at=at)
        yield from page.rows
        start, at = page.next_start, page.revision
