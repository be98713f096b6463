"""mem0 without a language model (infer=False), over Qdrant in local mode, on disk.

One `add` a memory would take longer than a run may: rows go in batches through the store that mem0
itself made, with the payload that `add` gives a memory. Searches are mem0's own.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import uuid
from importlib import metadata
from typing import TYPE_CHECKING, Any

from known_texts import KnownTexts
from protocol import serve

if TYPE_CHECKING:
    from pathlib import Path

USER = "mira"


class Mem0Local:
    """See the module."""

    batch = 1_000

    def open(self, folder: Path, dimension: int, count: int) -> str:  # noqa: ARG002
        # It reads these when imported; the key is asked for by a client that is never used.
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), OPENAI_API_KEY="unused")
        from mem0 import Memory
        from mem0.embeddings.base import EmbeddingBase

        known = self._known = KnownTexts()

        class LooksUp(EmbeddingBase):
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
                return known([text])[0]

            def embed_batch(
                self,
                texts: list[str],
                memory_action: str | None = None,  # noqa: ARG002
            ) -> list[list[float]]:
                return known(texts)

        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "memories",
                        "embedding_model_dims": dimension,
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                    },
                },
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = LooksUp()
        return metadata.version("mem0ai")

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        now = dt.datetime.now(dt.UTC).isoformat()
        payloads = [
            {
                "user_id": USER,
                "number": first + place,
                "data": text,
                "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
                "created_at": now,
                "updated_at": now,
                "text_lemmatized": text.lower(),
            }
            for place, text in enumerate(texts)
        ]
        ids = [str(uuid.uuid4()) for _ in texts]
        self._memory.vector_store.insert(vectors=vectors.tolist(), payloads=payloads, ids=ids)

    def ready(self) -> None:
        """Nothing."""

    def prepare(self, query: Any) -> str:
        return self._known.ask(query)

    def search(self, asked: str, k: int) -> Any:
        return self._memory.search(asked, filters={"user_id": USER}, top_k=k, threshold=0.0)

    def rows(self, answer: Any) -> list[int]:
        return [one["metadata"]["number"] for one in answer["results"]]

    def close(self) -> None:
        """Nothing."""


if __name__ == "__main__":
    serve(Mem0Local())
