"""What the use cases need from outside, as small protocols. Bootstrap chooses who plays them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    import numpy as np
    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.schemas import Problem
    from pillion.domain.statements import ExtractedStatement


class Clock(Protocol):
    """Tells the time."""

    def now_us(self) -> int:
        """Return microseconds since the Unix epoch, UTC."""
        ...


class IdSource(Protocol):
    """Makes ids."""

    def new_id(self) -> UUID:
        """Return a UUIDv7: later ids sort after earlier ones of this process."""
        ...


class Embedder(Protocol):
    """Turns texts into unit vectors. Safe to call from several threads."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Name, version, dimension and fingerprint, as stored with the vectors."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32 unit vectors of texts to be found."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return (n, dimension) float32 unit vectors of texts to find by."""
        ...

    def close(self) -> None:
        """Release what the embedder holds."""
        ...


class Summarizer(Protocol):
    """States what lasts in a few texts about one thing."""

    def summarize(self, texts: Sequence[str], *, sentences_max: int) -> list[ExtractedStatement]:
        """Return about ``sentences_max`` statements, each with the texts that it comes from.

        More than that only where explicit details (numbers, dates, names) would be lost otherwise.
        """
        ...


class TokenCounter(Protocol):
    """Counts the tokens that a text costs a model. Safe to call from several threads."""

    @property
    def estimates(self) -> bool:
        """Whether a count may differ from what the model's own tokenizer finds."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of a text: 0 for none, and the same each time."""
        ...


class Deadline(Protocol):
    """How long the caller still waits."""

    def remaining_seconds(self) -> float:
        """Return the seconds left; 0 or less when the deadline has passed."""
        ...

    def check(self) -> None:
        """Raise PillionError DEADLINE_EXCEEDED or CANCELLED when the caller is gone."""
        ...


class ValueCheck(Protocol):
    """A compiled schema. Safe to call from several threads."""

    def problems(self, instance: object) -> list[Problem]:
        """Return what is wrong with a value in JSON's types; empty: it fits.

        At most a few problems are named, and none of them quotes the value.
        """
        ...


class SchemaCompiler(Protocol):
    """Understands JSON Schema (draft 2020-12) without reaching for anything outside the text."""

    def compile(self, json_schema: str) -> ValueCheck:
        """Return the check that a schema describes.

        Raises:
            PillionError: INVALID_FIELD at ``json_schema`` for what is no schema.
        """
        ...
