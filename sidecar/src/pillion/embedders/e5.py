"""The default embedder: multilingual-e5-small (MIT), 4-bit weights, numpy only.

About 100 languages, 384 dimensions, 512 tokens. The model wants to know which side of a search a
text is on, so queries and passages get different prefixes (Wang et al. 2024,
"Multilingual E5 Text Embeddings"). Its cosines are squeezed into a narrow band: read them against
`identity.unrelated_cosine`, never against 0.
"""

from __future__ import annotations

import threading
from pathlib import Path  # noqa: TC003 - pydantic reads the annotation when the class is made
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pillion.domain.embedding import EmbedderIdentity
from pillion.embedders.bert import BertEncoder
from pillion.embedders.errors import EmbedderUnavailable
from pillion.embedders.options import EmbedderOptions, parse_options
from pillion.embedders.unigram import UnigramTokenizer
from pillion.embedders.weights import SHA256, open_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

DIMENSION = 384
TOKENS_MAX = 512
RUNTIME_VERSION = "1"
"""Raise it when a change here would move the vector of any text by more than 1e-3."""

UNRELATED_COSINE = 0.70
"""5th percentile over unrelated pairs, so that clamping takes nothing related: docs/adr/0005."""

_QUERY_PREFIX = "query: "
_PASSAGE_PREFIX = "passage: "

IDENTITY = EmbedderIdentity(
    name="multilingual-e5-small-q4",
    version=RUNTIME_VERSION,
    dimension=DIMENSION,
    fingerprint=SHA256,
    unrelated_cosine=UNRELATED_COSINE,
)


class Options(EmbedderOptions):
    """Options of embedder `e5`."""

    weights_path: Path | None = None
    """The data file, when it is not in an installed package. Its SHA-256 must be the same."""

    batch_tokens_max: int = Field(default=512, ge=TOKENS_MAX, le=16_384)
    """Padded tokens in one pass. More gives no speed on a small CPU and takes more memory."""


class E5Embedder:
    """Embeds with weights that are read on first use, once, whichever thread comes first.

    The arithmetic needs no lock. Memory is about 220 MB once loaded.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._loading = threading.Lock()
        self._model: tuple[UnigramTokenizer, BertEncoder, int] | None = None
        self._closed = False

    @property
    def identity(self) -> EmbedderIdentity:
        """The space of the vectors. Does not load the weights."""
        return IDENTITY

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, 384) of texts to be found. A text is cut at 512 tokens."""
        return self._embed([_PASSAGE_PREFIX + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, 384) of texts to search by. A text is cut at 512 tokens."""
        return self._embed([_QUERY_PREFIX + text for text in texts])

    def close(self) -> None:
        """Let go of the weights. Later calls raise `EmbedderUnavailable`; closing twice is fine."""
        with self._loading:
            self._closed = True
            self._model = None

    def _loaded(self) -> tuple[UnigramTokenizer, BertEncoder, int]:
        with self._loading:
            if self._closed:
                raise EmbedderUnavailable("embedder 'e5' is closed")
            if self._model is None:
                weights = open_weights(self._options.weights_path)
                tokenizer = UnigramTokenizer(weights.vocabulary)
                self._model = (tokenizer, BertEncoder(weights), weights.vocabulary.pad)
            return self._model

    def _embed(self, prefixed: list[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(prefixed), DIMENSION), np.float32)
        if not prefixed:
            return vectors
        tokenizer, encoder, pad = self._loaded()
        encoded = [tokenizer.encode(text, tokens_max=TOKENS_MAX) for text in prefixed]
        for members in plan_batches([len(e) for e in encoded], self._options.batch_tokens_max):
            length = len(encoded[members[-1]])
            tokens = np.full((len(members), length), pad, np.int64)
            mask = np.zeros((len(members), length), np.bool_)
            for row, member in enumerate(members):
                tokens[row, : len(encoded[member])] = encoded[member]
                mask[row, : len(encoded[member])] = True
            vectors[members] = encoder(tokens, mask)
        return vectors


def plan_batches(lengths: Sequence[int], tokens_max: int) -> list[list[int]]:
    """Positions grouped so that padding is little: ascending length, padded size <= `tokens_max`.

    A single text may exceed `tokens_max`; it then has a batch of its own. Within a batch the last
    position is the longest.
    """
    batches: list[list[int]] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batches and (len(batches[-1]) + 1) * lengths[position] <= tokens_max:
            batches[-1].append(position)
        else:
            batches.append([position])
    return batches


def create(options: Mapping[str, object]) -> E5Embedder:
    """Entry point `e5` of group `pillion.embedders`. Reads no file yet."""
    return E5Embedder(parse_options(Options, options, embedder="e5"))
