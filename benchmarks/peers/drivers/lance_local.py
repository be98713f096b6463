"""LanceDB, local folder: a table without a vector index, which is how one begins; cosine."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import lancedb
import pyarrow as pa
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path


class LanceLocal:
    """See the module."""

    batch = 50_000  # each add makes a fragment: few large ones are kinder to it

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        self._schema = pa.schema(
            [
                pa.field("number", pa.int64()),
                pa.field("text", pa.string()),
                pa.field("vector", pa.list_(pa.float32(), dimension)),
            ]
        )
        self._table = lancedb.connect(str(folder)).create_table("memories", schema=self._schema)
        return metadata.version("lancedb")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        flat = pa.array(vectors.reshape(-1))
        columns = [
            pa.array(range(first, first + len(texts))),
            pa.array(texts),
            pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]),
        ]
        self._table.add(pa.table(columns, schema=self._schema))

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> Any:
        return query

    def search(self, asked: Any, k: int) -> Any:
        wanted = self._table.search(asked).distance_type("cosine").select(["number", "text"])
        return wanted.limit(k).to_list()

    def rows(self, answer: Any) -> list[int]:
        return [one["number"] for one in answer]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(LanceLocal())
