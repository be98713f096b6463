"""A SentencePiece unigram tokenizer: the most likely way to cut a text into known pieces.

The pieces and their log probabilities come from the model file. Within one whitespace-separated
word the best cut is found by Viterbi; words are independent, because no piece of this vocabulary
reaches over a space (Kudo 2018, "Subword Regularization", section 3.2).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORD_START = "\u2581"
"""SentencePiece's visible space: every word begins with it."""

UNKNOWN_PENALTY = 10.0
"""How far below the least likely piece an unknown character scores; SentencePiece's constant."""

CACHED_WORDS_MAX = 50_000
CACHED_WORD_CHARS_MAX = 32
"""Together they bound the cache near 10 MB. Longer words hardly ever repeat."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The tokenizer's tables, as the model file has them.

    Attributes:
        pieces: Piece i is the text of token i.
        scores: Log probability of each piece.
        replacements: Code point to the text that replaces it (NFKC-like folding, dropped controls).
        begin: Token put before every text.
        end: Token put after every text.
        pad: Token that fills a batch.
        unknown: Token for a run of characters that no piece covers.
    """

    pieces: Sequence[str]
    scores: Sequence[float]
    replacements: Mapping[int, str]
    begin: int
    end: int
    pad: int
    unknown: int


class UnigramTokenizer:
    """Turns text into token ids. Safe to share between threads.

    The word cache is a plain dict: each entry is a pure function of its key, so the worst that a
    race can do is to compute one twice.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        control = {vocabulary.begin, vocabulary.end, vocabulary.pad, vocabulary.unknown}
        self._ids: dict[str, int] = {}
        for token, piece in enumerate(vocabulary.pieces):
            if token not in control:
                self._ids.setdefault(piece, token)
        self._scores = list(vocabulary.scores)
        self._replacements = dict(vocabulary.replacements)
        self._piece_chars_max = max(map(len, self._ids))
        self._unknown_score = min(self._scores) - UNKNOWN_PENALTY
        self._begin, self._end = vocabulary.begin, vocabulary.end
        self._unknown = vocabulary.unknown
        self._cache: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, *, tokens_max: int) -> list[int]:
        """Token ids of `text`, the begin and end tokens included, at most `tokens_max` of them.

        The text is composed (NFC) first, so that both ways to write an accent give one vector.
        Characters that can't matter are not looked at: the longest text that `tokens_max` known
        pieces can spell is `tokens_max` times the longest piece.
        """
        room = tokens_max - 2
        chars_max = room * self._piece_chars_max
        composed = unicodedata.normalize("NFC", text[: 2 * chars_max])
        folded = composed.translate(self._replacements)[:chars_max]
        tokens: list[int] = []
        for word in folded.split():
            tokens.extend(self._word(WORD_START + word))
            if len(tokens) >= room:
                break
        return [self._begin, *tokens[:room], self._end]

    def _word(self, word: str) -> tuple[int, ...]:
        known = self._cache.get(word)
        if known is not None:
            return known
        tokens = self._best_cut(word)
        if len(word) <= CACHED_WORD_CHARS_MAX and len(self._cache) < CACHED_WORDS_MAX:
            self._cache[word] = tokens
        return tokens

    def _best_cut(self, word: str) -> tuple[int, ...]:
        """The most likely pieces of `word`; neighbouring unknown characters become one token."""
        length = len(word)
        best = [0.0] + [float("-inf")] * length
        came_from = [0] * (length + 1)
        token_to = [self._unknown] * (length + 1)
        ids, scores, reach = self._ids, self._scores, self._piece_chars_max
        for start in range(length):
            base = best[start]
            for stop in range(start + 1, min(length, start + reach) + 1):
                token = ids.get(word[start:stop])
                if token is not None and base + scores[token] > best[stop]:
                    best[stop] = base + scores[token]
                    came_from[stop], token_to[stop] = start, token
            # Without this edge a character outside the vocabulary would be a wall.
            if word[start] not in ids and base + self._unknown_score > best[start + 1]:
                best[start + 1] = base + self._unknown_score
                came_from[start + 1], token_to[start + 1] = start, self._unknown

        backwards: list[int] = []
        stop = length
        while stop > 0:
            token = token_to[stop]
            if token != self._unknown or not backwards or backwards[-1] != self._unknown:
                backwards.append(token)
            stop = came_from[stop]
        return tuple(reversed(backwards))
