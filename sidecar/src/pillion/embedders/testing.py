# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""What every embedder must do, as checks that a plug-in's own tests can run (docs/plugins.md).

    from pillion.embedders.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(create({...}))

A check raises `ConformanceError` and leaves the embedder usable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pillion.domain.embedding import EmbedderIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pillion.ports import Embedder

TOLERANCE = 1e-3
"""How far a component may move between two runs: batching changes the order of float sums."""

TEXTS = (
    "Mira moved to Lisbon in May and started a new job.",
    "The deployment failed because the certificate had expired.",
    "Anna prefers tea over coffee.",
    "Анна переехала в Берлин ради работы.",
    "天气很好，我们去公园散步吧。",
    "O gato dorme no sofá.",
    "🎉",
    "a\x00b\u200b\ud800c",
    "word " * 3_000,
)
"""Ordinary ones, other scripts, an emoji, control characters and a lone surrogate, a long one."""


class ConformanceError(AssertionError):
    """The embedder breaks a rule of the port."""


def check_identity(embedder: Embedder) -> None:
    """The identity is complete, plausible, and the same each time it is asked for."""
    identity = embedder.identity
    _require(isinstance(identity, EmbedderIdentity), "identity is not an EmbedderIdentity")
    _require(bool(identity.name and identity.version), "name and version must not be empty")
    _require(identity.dimension >= 1, "dimension must be at least 1")
    _require(-1.0 <= identity.unrelated_cosine < 1.0, "unrelated_cosine must be in [-1, 1)")
    _require(embedder.identity == identity, "the identity changed between two looks")


def check_shape(embedder: Embedder) -> None:
    """(n, dimension), float32, finite, of unit length; (0, dimension) for no texts."""
    for embed in _sides(embedder):
        for texts in (TEXTS, ()):
            vectors = embed(texts)
            _require(vectors.dtype == np.float32, f"dtype is {vectors.dtype}")
            expected = (len(texts), embedder.identity.dimension)
            _require(vectors.shape == expected, f"shape is {vectors.shape}, expected {expected}")
            _require(bool(np.isfinite(vectors).all()), "a component is not finite")
            lengths = np.linalg.norm(vectors, axis=1)
            _require(bool((np.abs(lengths - 1) < TOLERANCE).all()), f"lengths are {lengths}")


def check_determinism(embedder: Embedder) -> None:
    """The same texts get the same vectors twice."""
    for embed in _sides(embedder):
        _require_close(embed(TEXTS), embed(TEXTS), "two runs differ")


def check_batch_invariance(embedder: Embedder) -> None:
    """A text's vector depends neither on its company nor on its place in the list."""
    for embed in _sides(embedder):
        together = embed(TEXTS)
        alone = np.concatenate([embed([text]) for text in TEXTS])
        _require_close(together, alone, "a batch differs from single texts")
        _require_close(together, embed(TEXTS[::-1])[::-1], "the order of texts matters")


def check_discrimination(embedder: Embedder) -> None:
    """Different texts differ, and each passage is nearest to the query that repeats it."""
    texts = TEXTS[:6]
    cosines = embedder.embed_queries(texts) @ embedder.embed_passages(texts).T
    nearest = cosines.argmax(axis=1)
    _require(
        nearest.tolist() == list(range(len(texts))), f"nearest passages are {nearest.tolist()}"
    )


CHECKS: tuple[Callable[[Embedder], None], ...] = (
    check_identity,
    check_shape,
    check_determinism,
    check_batch_invariance,
    check_discrimination,
)


def measure_unrelated_cosine(
    embedder: Embedder, queries: Sequence[str], passages: Sequence[str]
) -> float:
    """The value for `EmbedderIdentity.unrelated_cosine`: the median over all pairs.

    Give it a hundred or more of each, in the languages at hand, that have nothing to do with each
    other: questions about one conversation against turns of another will do.
    """
    cosines = embedder.embed_queries(queries) @ embedder.embed_passages(passages).T
    return float(np.median(cosines))


def _sides(
    embedder: Embedder,
) -> tuple[
    Callable[[Sequence[str]], NDArray[np.float32]], Callable[[Sequence[str]], NDArray[np.float32]]
]:
    return embedder.embed_passages, embedder.embed_queries


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


def _require_close(a: NDArray[np.float32], b: NDArray[np.float32], message: str) -> None:
    furthest = float(np.abs(a - b).max())
    _require(furthest <= TOLERANCE, f"{message}: by {furthest:.2g}")
