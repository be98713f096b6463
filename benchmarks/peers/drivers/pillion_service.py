"""Pillion in process: the server's own use cases over its encrypted LMDB store.

Everything is as configured by default but for the embedder, since vectors are given. A search does
all that one over RPC does, short of the messages: default filter, ranking and grouping, records
read back from the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pillion import __version__, bootstrap
from pillion.config import Settings
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.mutations import (
    AddMemory,
    EmbeddingMode,
    MemoryDraft,
    Precondition,
    PreconditionKind,
)
from pillion.domain.queries import SearchQuery
from pillion.domain.scope import Partition, Subject
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

PARTITION = Partition("bench", "peers")
MIRA = Subject("user", "mira")
SOURCE = Source(SourceKind.USER_STATEMENT)
NEW = Precondition(PreconditionKind.MUST_NOT_EXIST)
# All became true at one instant, so that the default ranking orders them by cosine as peers do.
TRUE_FROM_US = 1_790_000_000_000_000


class Unhurried:
    """A caller that waits."""

    def remaining_seconds(self) -> float:
        """Return a long time."""
        return 3600.0

    def check(self) -> None:
        """Never mind."""


class PillionService:
    """See the module."""

    batch = 100

    def __init__(self) -> None:
        self._deadline = Unhurried()
        self._numbers: dict[str, int] = {}

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._running = bootstrap.start(
            Settings(directory=folder, socket=folder / "s", embedder="none")
        )
        self._searcher = self._running.use_cases.searcher
        return __version__

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        items = [
            AddMemory(
                MemoryDraft(
                    subject=MIRA,
                    source=SOURCE,
                    kind=MemoryKind.SEMANTIC,
                    text=text,
                    vector=vector.tobytes(),
                    valid_from=TRUE_FROM_US,
                ),
                NEW,
            )
            for text, vector in zip(texts, vectors, strict=True)
        ]
        importer = self._running.use_cases.importer
        ack = importer.import_batch(PARTITION, items, EmbeddingMode.QUEUED, self._deadline)
        if ack.rejections:
            raise RuntimeError(f"refused: {ack.rejections[0].error}")
        self._numbers |= {text: first + place for place, text in enumerate(texts)}

    def ready(self) -> None:
        """Nothing: the first search loads the partition."""

    def prepare(self, query: Any) -> bytes:
        return bytes(query.tobytes())

    def search(self, asked: bytes, k: int) -> Any:
        query = SearchQuery(top_k=k, vector=asked)
        return self._searcher.search(PARTITION, query, self._deadline)

    def rows(self, answer: Any) -> list[int]:
        return [self._numbers[hit.memory.text] for hit in answer.hits]

    def close(self) -> None:
        self._running.stop()


if __name__ == "__main__":
    serve(PillionService())
