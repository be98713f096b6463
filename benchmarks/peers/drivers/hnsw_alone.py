"""hnswlib alone: a graph in memory, with its default parameters; it stores no texts."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import hnswlib
import numpy as np
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path


class HnswAlone:
    """See the module."""

    batch = 10_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._index = hnswlib.Index(space="cosine", dim=dimension)
        self._index.init_index(max_elements=count)
        return metadata.version("hnswlib")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:  # noqa: ARG002
        self._index.add_items(vectors, np.arange(first, first + len(vectors)))

    def ready(self) -> None:
        """Nothing."""

    def tune(self, effort: int) -> None:
        self._index.set_ef(effort)

    def prepare(self, query: Any) -> Any:
        return query

    def search(self, asked: Any, k: int) -> Any:
        return self._index.knn_query(asked, k=k)

    def rows(self, answer: Any) -> list[int]:
        return [int(one) for one in answer[0][0]]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(HnswAlone())
