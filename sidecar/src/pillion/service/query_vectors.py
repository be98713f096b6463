"""The vector that a search compares with: given, made of its text, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_vector_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.queries import SearchQuery
    from pillion.embedders.cache import QueryCache
    from pillion.ports import Deadline


class QueryVectors:
    """Makes vectors of queries; without an embedder only what is given is compared."""

    def __init__(self, embedder: QueryCache | None) -> None:
        self._embedder = embedder

    def of(
        self, space: EmbedderIdentity | None, query: SearchQuery, deadline: Deadline
    ) -> NDArray[np.float32] | None:
        """Return the query's vector in the partition's space; None: only its words take part.

        Raises:
            PillionError: DIMENSION_MISMATCH for a vector of another length than the space's;
                NOT_FINITE for one without a direction; what the embedder raises.
        """
        if query.vector:
            given = given_vector(query)
            if space is None:  # no memory has a vector yet, and nobody else will look
                refuse_directionless(given)
                return None
            check_vector_shape("vector", query.vector, space.dimension)
            return given
        if not query.text or space is None:
            return None
        if self._embedder is None or not space.same_space(self._embedder.identity):
            return None  # nothing here makes vectors like the partition's: its words are searched
        embedded: NDArray[np.float32] = self._embedder.embed_queries(
            [query.text], within_seconds=deadline.remaining_seconds()
        )[0]
        return embedded


def given_vector(query: SearchQuery) -> NDArray[np.float32]:
    """Return the vector that came with a query."""
    return np.frombuffer(query.vector, dtype="<f4").astype(np.float32, copy=False)


def cosine_floor(space: EmbedderIdentity | None) -> float:
    """Return the cosine of unrelated texts in the partition's space."""
    return space.unrelated_cosine if space is not None else 0.0


def refuse_directionless(vector: NDArray[np.float32]) -> None:
    """Refuse what no cosine can be taken with.

    Raises:
        PillionError: NOT_FINITE.
    """
    wide = vector.astype(np.float64)  # a square may leave the range of float32
    squared = float(np.dot(wide, wide))
    if not np.isfinite(squared):
        raise PillionError.of_field("vector", "holds NaN or an infinity", Reason.NOT_FINITE)
    if squared == 0.0:
        raise PillionError.of_field(
            "vector", "is all zeros, which has no direction", Reason.NOT_FINITE
        )
