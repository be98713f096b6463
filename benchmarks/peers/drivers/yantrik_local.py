"""YantrikDB, embedded, with its own HNSW graph.

It ranks by vector, importance and recency; a recall here does not reinforce what it returns.
"""

from __future__ import annotations

import time
from importlib import metadata
from typing import TYPE_CHECKING, Any

import yantrikdb
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path


class YantrikLocal:
    """See the module."""

    batch = 100

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._store = yantrikdb.YantrikDB(str(folder / "store.db"), embedding_dim=dimension)
        self._numbers: dict[str, int] = {}
        return metadata.version("yantrikdb")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        for place, (vector, text) in enumerate(zip(vectors, texts, strict=True)):
            self._record(text, vector.tolist())
            self._numbers[text] = first + place

    def _record(self, text: str, vector: list[float]) -> None:
        while True:
            try:
                self._store.record(text, embedding=vector, namespace="mira", importance=0.5)
            except yantrikdb.Backpressure:
                time.sleep(0.05)  # what it asks for
            else:
                return

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return query.tolist()

    def search(self, asked: Any, k: int) -> Any:
        return self._store.recall(
            query_embedding=asked, top_k=k, namespace="mira", skip_reinforce=True
        )

    def rows(self, answer: Any) -> list[int]:
        return [self._numbers[one["text"]] for one in answer]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(YantrikLocal())
