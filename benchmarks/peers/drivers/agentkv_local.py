"""AgentKV: one memory-mapped file with its own HNSW graph."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from agentkv import AgentKV
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

# Its file has a fixed size: rows with their links and texts, and room to spare.
MEGABYTES_A_THOUSAND_ROWS = 8


class AgentKvLocal:
    """See the module."""

    batch = 100

    def open(self, folder: Path, dimension: int, count: int) -> str:
        size_mb = 64 + MEGABYTES_A_THOUSAND_ROWS * count // 1_000
        self._store = AgentKV(str(folder / "store.db"), size_mb=size_mb, dim=dimension)
        self._numbers: dict[str, int] = {}
        return metadata.version("agentkv")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        for place, (vector, text) in enumerate(zip(vectors, texts, strict=True)):
            self._store.add(text, vector)
            self._numbers[text] = first + place

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return query

    def search(self, asked: Any, k: int) -> Any:
        return [(self._store.get_text(one), score) for one, score in self._store.search(asked, k=k)]

    def rows(self, answer: Any) -> list[int]:
        return [self._numbers[text] for text, _ in answer]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(AgentKvLocal())
