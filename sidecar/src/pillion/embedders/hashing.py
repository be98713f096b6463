"""The fallback that needs no model: words and pieces of words, hashed into a vector.

It knows spelling, not meaning: it finds "deploy" for "deployment" and "Käse" for "Käsekuchen",
never "car" for "automobile". Its worth is that a vector search always answers, with the same
vectors in every process and on every platform (CRC-32 and a fixed mixer, never `hash()`).

Features: each word, its character 3- to 5-grams with the word's ends marked, and for scripts
written without spaces single characters and pairs. Signed feature hashing (Weinberger et al. 2009),
square-root term frequency, unit length.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pillion.domain.embedding import EmbedderIdentity
from pillion.embedders.options import EmbedderOptions, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

NAME = "hashing"
VERSION = "1"
"""Raise it when a change here would move the vector of any text."""

UNRELATED_COSINE = 0.05
"""Median over unrelated query and passage pairs; measured, see docs/adr/0005."""

TEXT_CHARS_MAX = 32_768
"""What is read of a text: about 30 ms of work. Longer texts are chunked upstream or cut here."""

WORD_CHARS_MAX = 64
"""A longer run is cut: it is a blob or an unspaced script, and its parts are what matches."""

_WORD = re.compile(rf"\w{{1,{WORD_CHARS_MAX}}}")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_WORD_WEIGHT = 2.0
"""A whole word says more than one of its pieces; set once by hand, not tuned."""

_MIX_ODD_1 = np.uint64(0x9E3779B97F4A7C15)
_MIX_ODD_2 = np.uint64(0xBF58476D1CE4E5B9)


class Options(EmbedderOptions):
    """Options of embedder `hashing`."""

    dimension: int = Field(default=1024, ge=64, le=16_384)
    """Components of a vector. Fewer means more collisions: 384 suits a store made for 384."""


class HashingEmbedder:
    """Stateless but for a cache of word features; safe to share between threads."""

    def __init__(self, options: Options) -> None:
        self._dimension = options.dimension

    @property
    def identity(self) -> EmbedderIdentity:
        """The space of the vectors; there are no weights, so the version is all that names it."""
        return EmbedderIdentity(NAME, VERSION, self._dimension, "", UNRELATED_COSINE)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension)."""
        vectors = np.empty((len(texts), self._dimension), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self._embed(text)
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same as `embed_passages`: spelling has no sides."""
        return self.embed_passages(texts)

    def close(self) -> None:
        """Nothing to release."""

    def _embed(self, text: str) -> NDArray[np.float64]:
        folded = unicodedata.normalize("NFKC", text[:TEXT_CHARS_MAX]).casefold()
        words = _WORD.findall(folded)
        vector = np.zeros(self._dimension)
        if words:
            features = np.concatenate([_word_features(word)[0] for word in words])
            weights = np.concatenate([_word_features(word)[1] for word in words])
            unique, inverse = np.unique(features, return_inverse=True)
            frequency = np.bincount(inverse)
            weight = np.zeros(len(unique))
            weight[inverse] = weights  # equal features have equal weights
            mixed = _mix(unique)
            sign = np.where(mixed >> np.uint64(63), 1.0, -1.0)
            index = (mixed & np.uint64(0xFFFFFFFF)) % np.uint64(self._dimension)
            np.add.at(vector, index.astype(np.int64), sign * weight * np.sqrt(frequency))
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            # No word, or a perfect cancellation: the whole text is the one feature.
            vector[zlib.crc32(_bytes(folded)) % self._dimension] = length = 1.0
        return vector / length


@lru_cache(maxsize=16_384)
def _word_features(word: str) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """Hashes and weights of the features of one word. Callers must not write to them."""
    features = [f"w{word}"]
    if _UNSPACED.search(word):
        features += [f"c{character}" for character in word]
        features += [f"c{word[i : i + 2]}" for i in range(len(word) - 1)]
    marked = f"<{word}>"
    for size in (3, 4, 5):
        features += [marked[i : i + size] for i in range(len(marked) - size + 1)]
    hashes = np.array([zlib.crc32(_bytes(feature)) for feature in features], np.uint32)
    weights = np.ones(len(features))
    weights[0] = _WORD_WEIGHT
    return hashes, weights


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _mix(hashes: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Spread CRC-32, which is linear, over 64 bits: sign and index must not hang together."""
    mixed = hashes.astype(np.uint64) * _MIX_ODD_1
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX_ODD_2
    mixed ^= mixed >> np.uint64(27)
    return mixed


def create(options: Mapping[str, object]) -> HashingEmbedder:
    """Entry point `hashing` of group `pillion.embedders`."""
    return HashingEmbedder(parse_options(Options, options, embedder=NAME))
