"""A partition's memories and vectors on their way from the store into an empty table, in bulk.

They stay in Rust from the data file to the table: checked, opened, decoded and hashed there, with
the GIL released. What Rust declines to read Python reads one by one (`TableRows`), with the same
result or an error that names the record.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import pillion_ranker as ranker
from pillion_storage import codec
from pillion_storage.keys import ACCESSES, after, id_of, prefix_end
from pillion_storage.packed import PACKED_BYTES_MAX, scan_packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import Partition
    from pillion.service.table_rows import TableRows

MEMORIES: Final = b"m"
VECTORS: Final = b"v"
# Memories of one step, if their vectors are not too long for that.
STEP_ROWS: Final = 4096
# The same where Python reads them: what is beside them takes one read of as many keys twice over.
ONE_BY_ONE_ROWS: Final = 2048
_FLOAT_BYTES: Final = 4

_log = logging.getLogger(__name__)


def load_table(
    store: Store,
    partition: Partition,
    keys: KeySpace,
    rows: TableRows,
    table: ranker.Table,
) -> Iterator[NDArray[np.uint32]]:
    """Put every memory of a partition into a table; yield the slots step by step.

    Each step reads what is newest then: after the last one the table has every change of the
    revision that was the head before the first, and perhaps later ones.

    Raises:
        PillionError, StoreError: CORRUPT, with the record's name.
    """
    loader = ranker.Loader(keys.secret)
    step = max(1, min(STEP_ROWS, PACKED_BYTES_MAX // (_FLOAT_BYTES * table.dimension)))
    start: bytes | None = MEMORIES
    while start is not None:
        page = scan_packed(store, partition, start, prefix_end(MEMORIES), limit=step)
        start = page.next_start
        bounds = page.rows.bounds()
        if bounds is None:
            continue
        try:
            vectors = _beside(store, partition, VECTORS, bounds, step)
            accesses = _beside(store, partition, ACCESSES, bounds, step)
            slots, unusable = loader.load(table, page.rows, vectors, accesses)
        except ValueError as error:
            _log.debug("some memories are read one by one: %s", error)
            memories = [
                codec.decode_memory(id_of(key), value, version)
                for key, version, value in page.rows.to_list()
            ]
            for first in range(0, len(memories), ONE_BY_ONE_ROWS):
                yield rows.upsert(table, memories[first : first + ONE_BY_ONE_ROWS], None)
        else:
            if unusable:
                rows.warn_of_unusable_vectors()
            yield slots


def _beside(
    store: Store, partition: Partition, family: bytes, bounds: tuple[bytes, bytes], step: int
) -> list[ranker.Rows]:
    """Return the records of a family of the memories between two keys, both included."""
    first, last = bounds
    found = []
    start: bytes | None = family + first[1:]
    while start is not None:
        page = scan_packed(store, partition, start, after(family + last[1:]), limit=step)
        found.append(page.rows)
        start = page.next_start
    return found
