"""Chroma, persistent client: one collection, cosine, its default HNSW parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import chromadb
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path


class ChromaLocal:
    """See the module."""

    batch = 1_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=settings)
        self._collection = client.create_collection(
            "memories",
            embedding_function=None,
            configuration={"hnsw": {"space": "cosine"}},
        )
        return str(chromadb.__version__)

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        ids = [str(first + place) for place in range(len(texts))]
        self._collection.add(ids=ids, embeddings=vectors, documents=texts)

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return [query]

    def search(self, asked: Any, k: int) -> Any:
        return self._collection.query(query_embeddings=asked, n_results=k)

    def rows(self, answer: Any) -> list[int]:
        return [int(one) for one in answer["ids"][0]]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(ChromaLocal())
