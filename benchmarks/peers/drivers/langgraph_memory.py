"""LangGraph's InMemoryStore: keeps nothing on disk, scans exactly."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from known_texts import KnownTexts
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = ("memories", "mira")


class LangGraphMemory:
    """See the module."""

    batch = 1_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._known = KnownTexts()
        self._store = InMemoryStore(
            index={"dims": dimension, "embed": self._known, "fields": ["text"]}
        )
        return metadata.version("langgraph-checkpoint")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        self._known.know(texts, vectors)
        self._store.batch(
            [
                PutOp(NAMESPACE, str(first + place), {"text": text})
                for place, text in enumerate(texts)
            ]
        )

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> str:
        return self._known.ask(query)

    def search(self, asked: str, k: int) -> Any:
        return self._store.search(NAMESPACE, query=asked, limit=k)

    def rows(self, answer: Any) -> list[int]:
        return [int(item.key) for item in answer]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(LangGraphMemory())
