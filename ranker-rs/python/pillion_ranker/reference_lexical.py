"""BM25 in plain numpy: the meaning of the lexical part of `pillion_ranker.Table`.

Terms come from the compiled `tokenize` and `query_words`, whose own meaning is in
`tests/vectors/tokens.json`; statistics and scores are computed here anew from all texts. The
formulas, in this evaluation order:

    idf(w)   = ln(1 + (N - df + 0.5) / (df + 0.5))           float64, then float32
    average  = total length / N                              float64, then float32
    norm(t)  = k1 * ((1 - b) + b * (length(t) / average))                  float32
    score(t) = sum of idf(w) * (tf / (tf + norm(t))), w in order           float32
    share(t) = score(t) / (sum of idf(w), w in order)                      float32

(Robertson and Zaragoza, 2009; idf and the missing constant as in Lucene.) N texts have a term, df
of them one of those that the query's word stands for; tf is how often the text has them, each part
of the text counting by its weight, and the length its number of terms, counted alike. A term
counts at most 255 eighths in one text.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pillion_ranker import Profile, query_words, tokenize

_TERM_WEIGHT_MAX = 255


@dataclass(frozen=True, slots=True)
class Bag:
    """The terms of one text, with their weights in eighths."""

    terms: Mapping[str, int]
    length: int
    languages: int

    @classmethod
    def of(cls, parts: Sequence[tuple[str, int]]) -> "Bag":
        """Return the bag of a text of parts (text, weight)."""
        terms: Counter[str] = Counter()
        languages = 0
        for text, weight in parts:
            found, read_in = tokenize(text)
            languages |= read_in
            for term in found:
                terms[term] += weight
        capped = {term: min(weight, _TERM_WEIGHT_MAX) for term, weight in terms.items()}
        return cls(capped, terms.total(), languages)

    def weight(self, word: Sequence[str]) -> int:
        """Return how often a query's word is in the text, in eighths."""
        return min(sum(self.terms.get(term, 0) for term in word), _TERM_WEIGHT_MAX)


@dataclass(frozen=True, slots=True)
class Question:
    """A query's text beside all texts of a table."""

    words: Sequence[Sequence[str]]
    idfs: Sequence[np.float32]
    average: np.float32
    total: np.float32
    k1: np.float32
    b: np.float32

    @classmethod
    def of(cls, text: str, bags: Iterable[Bag], profile: Profile) -> "Question | None":
        """Return the question, or None where it has no word or there is no text."""
        known = [bag for bag in bags if bag.length]
        languages = 0
        for bag in known:
            languages |= bag.languages
        words = query_words(text, languages)
        if not known or not words:
            return None
        having = [sum(bag.weight(word) > 0 for bag in known) for word in words]
        idfs = [np.float32(math.log1p((len(known) - df + 0.5) / (df + 0.5))) for df in having]
        total = np.float32(0)
        for idf in idfs:
            total += idf
        average = np.float32(sum(bag.length for bag in known) / len(known))
        k1, b = np.float32(profile.bm25_k1), np.float32(profile.bm25_b)
        return cls(words, idfs, average, total, k1, b)

    def score(self, bag: Bag | None) -> np.float32:
        """Return the BM25 of a text; 0 where no term matches."""
        score = np.float32(0)
        if bag is None or not bag.length:
            return score
        one = np.float32(1)
        norm = self.k1 * ((one - self.b) + self.b * (np.float32(bag.length) / self.average))
        for word, idf in zip(self.words, self.idfs, strict=True):
            weight = np.float32(bag.weight(word)) / np.float32(8)
            if weight:
                score += idf * (weight / (weight + norm))
        return score

    def share(self, score: np.float32) -> np.float32:
        """Return how much of the query's weight a score is, 0..1."""
        return np.float32(min(score / self.total, np.float32(1)))


def blended(
    profile: Profile, *, semantic: np.float32 | None, lexical: np.float32 | None
) -> np.float32:
    """Return relevance; None: the query has no vector, or no words."""
    if semantic is None or lexical is None:
        return semantic or lexical or np.float32(0)
    weight = np.float32(profile.lexical_weight)
    mixed = weight * lexical + (np.float32(1) - weight) * semantic
    return np.float32(min(mixed, np.float32(1)))
