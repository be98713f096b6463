"""Pillion's ranker alone: the table in memory that its searches scan, with the default filter."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pillion_ranker as ranker
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

NOW_US = 1_800_000_000_000_000
TRUE_FROM_US = 1_790_000_000_000_000
CONTEXT = 77


class PillionTable:
    """See the module."""

    batch = 10_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._table = ranker.Table(dimension)
        self._profile = ranker.Profile()
        return metadata.version("pillion-ranker")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:  # noqa: ARG002
        n = len(vectors)
        ids = np.zeros((n, 16), np.uint8)
        ids[:, :8] = np.arange(first + 1, first + n + 1, dtype=">u8").view(np.uint8).reshape(n, 8)
        since = np.full(n, TRUE_FROM_US)
        self._table.upsert(
            ids=ids,
            **dict.fromkeys(("created", "last_used", "valid_from", "recorded"), since),
            **dict.fromkeys(("valid_to", "expires"), np.full(n, ranker.TIME_OPEN)),
            importance=np.full(n, 0.5, np.float32),
            confidence=np.ones(n, np.float32),
            kind=np.full(n, ranker.KIND_SEMANTIC, np.uint8),
            status=np.full(n, ranker.STATUS_STATED, np.uint8),
            flags=np.zeros(n, np.uint16),
            subject=np.zeros(n, np.uint64),
            context=np.full(n, CONTEXT, np.uint64),
            attribute=np.zeros(n, np.uint64),
            label_offsets=np.zeros(n + 1, np.uint32),
            label_hashes=np.zeros(0, np.uint64),
            has_vector=np.ones(n, np.bool_),
            vectors=vectors,
        )

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return query

    def search(self, asked: Any, k: int) -> Any:
        admitted = ranker.Filter(contexts=[CONTEXT], valid_at=NOW_US, not_expired_at=NOW_US)
        return self._table.search(
            query=asked, now=NOW_US, profile=self._profile, filter=admitted, k=k
        ).rows()

    def rows(self, answer: Any) -> list[int]:
        return [int.from_bytes(row[0][:8], "big") - 1 for row in answer]  # id 0 is reserved

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(PillionTable())
