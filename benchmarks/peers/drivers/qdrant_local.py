"""Qdrant's client in local mode, in a folder: an exact scan in Python."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from protocol import serve
from qdrant_client import QdrantClient, models

if TYPE_CHECKING:
    from pathlib import Path


class QdrantLocal:
    """See the module."""

    batch = 1_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._client = QdrantClient(path=str(folder))
        self._client.create_collection(
            "memories",
            vectors_config=models.VectorParams(size=dimension, distance=models.Distance.COSINE),
        )
        return metadata.version("qdrant-client")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        points = [
            models.PointStruct(id=first + place, vector=vector.tolist(), payload={"text": text})
            for place, (vector, text) in enumerate(zip(vectors, texts, strict=True))
        ]
        self._client.upsert("memories", points)

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return query.tolist()

    def search(self, asked: Any, k: int) -> Any:
        return self._client.query_points("memories", query=asked, limit=k)

    def rows(self, answer: Any) -> list[int]:
        return [point.id for point in answer.points]

    def close(self) -> None:
        self._client.close()


if __name__ == "__main__":
    serve(QdrantLocal())
