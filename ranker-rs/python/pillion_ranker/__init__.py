"""Filtering, scoring and exact top-k of one partition's memories, computed in Rust.

Make a `Table` per partition, feed it with `upsert`, ask it with `search`. `Profile` says how
results are ranked and `Filter` what may be one; both are immutable and checked when made.
`pillion_ranker.reference` computes the same in plain numpy and is what the Rust is tested against.
"""

from typing import Final

from pillion_ranker._native import (
    DIMENSION_MAX,
    FILTER_VALUES_MAX,
    FLAG_CONSOLIDATED,
    FLAG_EPISODE,
    FLAG_EXPIRED,
    FLAG_PINNED,
    FLAG_RETRACTED,
    PART_WEIGHT_MAX,
    RESULTS_MAX,
    ROW_LABELS_MAX,
    SLOT_ABSENT,
    SOURCE_SHIFT,
    TEXT_BYTES_MAX,
    TEXT_PARTS_MAX,
    TIME_OPEN,
    Filter,
    Hits,
    Loader,
    Profile,
    Rows,
    Table,
    calibrate,
    cpu_path,
    query_words,
    tokenize,
)

KIND_EPISODIC: Final = 1
KIND_SEMANTIC: Final = 2
KIND_PROCEDURAL: Final = 3
KIND_SESSION: Final = 4
KIND_OPEN_ITEM: Final = 5

STATUS_CANDIDATE: Final = 1
STATUS_STATED: Final = 2
STATUS_CONFIRMED: Final = 3

ANCHOR_VALID_FROM: Final = 0
ANCHOR_LAST_USED: Final = 1


def mask_of(*values: int) -> int:
    """Return the mask of those kinds or statuses, as `Filter` takes it: bit n for the value n."""
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


__all__ = [
    "ANCHOR_LAST_USED",
    "ANCHOR_VALID_FROM",
    "DIMENSION_MAX",
    "FILTER_VALUES_MAX",
    "FLAG_CONSOLIDATED",
    "FLAG_EPISODE",
    "FLAG_EXPIRED",
    "FLAG_PINNED",
    "FLAG_RETRACTED",
    "KIND_EPISODIC",
    "KIND_OPEN_ITEM",
    "KIND_PROCEDURAL",
    "KIND_SEMANTIC",
    "KIND_SESSION",
    "PART_WEIGHT_MAX",
    "RESULTS_MAX",
    "ROW_LABELS_MAX",
    "SLOT_ABSENT",
    "SOURCE_SHIFT",
    "STATUS_CANDIDATE",
    "STATUS_CONFIRMED",
    "STATUS_STATED",
    "TEXT_BYTES_MAX",
    "TEXT_PARTS_MAX",
    "TIME_OPEN",
    "Filter",
    "Hits",
    "Loader",
    "Profile",
    "Rows",
    "Table",
    "calibrate",
    "cpu_path",
    "mask_of",
    "query_words",
    "tokenize",
]
