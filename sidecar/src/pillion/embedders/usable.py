"""What an embedder returned, held to what the port promises: rows that have a direction.

A vector of zeros, of NaN or of another length would fail every later search that meets it, so
none is stored and none is searched by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def have_direction(rows: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which of the (n, dimension) rows are finite and not all zeros."""
    wide = rows.astype(np.float64)  # a square may leave the range of float32
    squares = np.einsum("ij,ij->i", wide, wide)
    good: NDArray[np.bool_] = np.isfinite(squares) & (squares > 0.0)
    return good


def usable_rows(made: object, count: int, dimension: int) -> list[NDArray[np.float32] | None]:
    """Return an embedder's answer to ``count`` texts by text; None where it cannot be used.

    An answer of another shape says of no text which vector is meant, so all are None then.
    """
    try:
        rows = np.asarray(made, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return [None] * count
    if rows.shape != (count, dimension):
        return [None] * count
    return [row if good else None for row, good in zip(rows, have_direction(rows), strict=True)]
