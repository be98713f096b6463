"""An embedder that looks vectors up, for products that take texts and embed them themselves.

So they search among the same vectors as the others, and pay nothing for an embedding.
"""

from __future__ import annotations

from typing import Any

QUERY = "what is searched for"


class KnownTexts:
    """Vectors by text: those being added, and the one that is searched for next."""

    def __init__(self) -> None:
        self._vectors: dict[str, list[float]] = {}

    def know(self, texts: list[str], vectors: Any) -> None:
        """Know these, and forget those of before."""
        self._vectors = dict(zip(texts, vectors.tolist(), strict=True))

    def ask(self, query: Any) -> str:
        """Know the query's vector, and return a text for it."""
        self._vectors[QUERY] = query.tolist()
        return QUERY

    def __call__(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts."""
        return [self._vectors[text] for text in texts]
