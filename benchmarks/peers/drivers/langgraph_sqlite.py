"""LangGraph's SqliteStore, in a file: scans exactly by sqlite-vec."""

from __future__ import annotations

import sqlite3
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

if not hasattr(sqlite3.Connection, "enable_load_extension"):
    import pysqlite3  # this Python's own cannot load sqlite-vec

    sys.modules["sqlite3"] = pysqlite3

from known_texts import KnownTexts
from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = ("memories", "mira")


class LangGraphSqlite:
    """See the module."""

    batch = 1_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._known = KnownTexts()
        self._context = SqliteStore.from_conn_string(
            str(folder / "store.db"),
            index={"dims": dimension, "embed": self._known, "text_fields": ["text"]},
        )
        self._store = self._context.__enter__()
        self._store.setup()
        return metadata.version("langgraph-checkpoint-sqlite")

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
        self._context.__exit__(None, None, None)


if __name__ == "__main__":
    serve(LangGraphSqlite())
