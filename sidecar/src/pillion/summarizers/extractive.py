# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""Summarize by choosing sentences: no model, the same answer every time, every word traceable.

1. Sentences are cut, and those that say the same are merged: their sources add up.
2. Each is scored by centrality (LexRank, Erkan & Radev 2004): a sentence is worth what the
   sentences that resemble it are worth.
3. First come the fewest sentences that together hold every detail (a number, date, name,
   identifier, quotation): explicit facts survive, even beyond `sentences_max`.
4. What room is left goes to the most central of the rest that say something new.

Statements are verbatim pieces of the composed (NFC) source, in the order of the sources.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from pillion.domain.statements import ExtractedStatement
from pillion.summarizers.details import compose, find_details, lower_case_words
from pillion.summarizers.sentences import split_sentences
from pillion.summarizers.words import NEGATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

TEXTS_MAX = 1_000
SENTENCES_CONSIDERED_MAX = 2_000
"""Centrality compares all pairs: 2,000 sentences are a matrix of 32 MB and about a second."""

_DAMPING = 0.85
_ITERATIONS = 30
_SIMILARITY_FLOOR = 0.1
"""LexRank's threshold: weaker resemblances are chance."""

_REDUNDANCY_MAX = 0.6
"""A sentence this like a chosen one adds too little to take the room of another."""

_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]|[^\W_]+(?:['’][^\W_]+)*"
)


class Options(BaseModel):
    """Options of summarizer `extractive`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    duplicate_similarity: float = Field(default=0.85, gt=0.5, le=1.0)
    """Share of common words and word pairs from which two sentences say the same."""


@dataclass(slots=True)
class _Candidate:
    """One sentence, or several that say the same; `text` is the first of them."""

    text: str
    tokens: list[str]
    details: frozenset[str]
    sources: set[int]


class ExtractiveSummarizer:
    """Stateless; safe to share between threads."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def summarize(self, texts: Sequence[str], *, sentences_max: int) -> list[ExtractedStatement]:
        """At most `sentences_max` statements, or as many more as it takes to lose no detail.

        ``lost_details(texts, [s.text for s in result])`` is always empty. Texts without a sentence
        give no statement.

        Raises:
            ValueError: `sentences_max` < 1, or more text than this is made for. The texts of a
                bigger job are summarized in parts.
        """
        if sentences_max < 1:
            raise ValueError("sentences_max must be at least 1")
        if len(texts) > TEXTS_MAX:
            raise ValueError(f"{len(texts)} texts, at most {TEXTS_MAX} are allowed")
        candidates = self._merged(_candidates([compose(text) for text in texts]))
        if not candidates:
            return []
        similarity = _similarities([c.tokens for c in candidates])
        centrality = _centrality(similarity)
        chosen = _cover_details(candidates, centrality)
        _fill(chosen, similarity, centrality, sentences_max)
        return [
            ExtractedStatement(candidates[i].text, tuple(sorted(candidates[i].sources)))
            for i in sorted(chosen)
        ]

    def _merged(self, candidates: list[_Candidate]) -> list[_Candidate]:
        """One candidate for all that say the same, in order of first appearance.

        The details must be equal and so must the number of negations: "Mira is not coming" is
        nearly "Mira is coming" by its words. Word pairs count too, so that "Ann calls Bob" differs
        from "Bob calls Ann".
        """
        kept: list[_Candidate] = []
        groups: dict[tuple[frozenset[str], int], list[tuple[_Candidate, frozenset[object]]]] = {}
        for candidate in candidates:
            negations = sum(token in NEGATIONS for token in candidate.tokens)
            group = groups.setdefault((candidate.details, negations), [])
            shingles = _shingles(candidate.tokens)
            for other, other_shingles in group:
                union = len(shingles | other_shingles)
                alike = len(shingles & other_shingles) / union if union else 0.0
                if alike >= self._options.duplicate_similarity or other.text == candidate.text:
                    other.sources |= candidate.sources
                    break
            else:
                group.append((candidate, shingles))
                kept.append(candidate)
        return kept


def _candidates(texts: list[str]) -> list[_Candidate]:
    ordinary = lower_case_words(texts)
    candidates: list[_Candidate] = []
    for index, text in enumerate(texts):
        details = find_details(text, ordinary=ordinary)
        for sentence in split_sentences(text, unbroken=[(d.start, d.stop) for d in details]):
            piece = text[sentence.start : sentence.stop]
            keys = frozenset(
                d.key for d in details if sentence.start <= d.start and d.stop <= sentence.stop
            )
            candidates.append(_Candidate(piece, _tokens(piece), keys, {index}))
            if len(candidates) > SENTENCES_CONSIDERED_MAX:
                raise ValueError(f"more than {SENTENCES_CONSIDERED_MAX} sentences")
    return candidates


def _tokens(sentence: str) -> list[str]:
    return [token.replace("’", "'") for token in _TOKEN.findall(sentence.casefold())]


def _shingles(tokens: list[str]) -> frozenset[object]:
    return frozenset(tokens) | frozenset(itertools.pairwise(tokens))


def _similarities(sentences: list[list[str]]) -> NDArray[np.float64]:
    """Cosines of the sentences' tf-idf vectors; a sentence without words resembles nothing."""
    frequency = Counter(token for tokens in sentences for token in set(tokens))
    column = {token: i for i, token in enumerate(sorted(frequency))}
    idf = {token: math.log(1 + len(sentences) / count) for token, count in frequency.items()}
    similarity = np.zeros((len(sentences), len(sentences)))
    postings: dict[int, list[tuple[int, float]]] = {}
    for row, tokens in enumerate(sentences):
        weights = {token: count * idf[token] for token, count in Counter(tokens).items()}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        for token, weight in sorted(weights.items()):
            postings.setdefault(column[token], []).append((row, weight / length))
    for posting in postings.values():
        rows = np.array([row for row, _ in posting])
        weights_of = np.array([weight for _, weight in posting])
        similarity[np.ix_(rows, rows)] += np.outer(weights_of, weights_of)
    return similarity


def _centrality(similarity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stationary distribution of a walk between sentences that resemble each other."""
    count = len(similarity)
    links = np.where(similarity >= _SIMILARITY_FLOOR, similarity, 0.0)
    np.fill_diagonal(links, 0.0)
    total = links.sum(axis=1, keepdims=True)
    walk = np.divide(links, total, out=np.full_like(links, 1 / count), where=total > 0)
    score = np.full(count, 1 / count)
    for _ in range(_ITERATIONS):
        score = (1 - _DAMPING) / count + _DAMPING * (score @ walk)
    # Rounded, so that ties break by position and not by the last bit of a sum.
    return score.round(12)


def _cover_details(candidates: list[_Candidate], centrality: NDArray[np.float64]) -> set[int]:
    """Few sentences that together hold every detail: greedily the one with most new ones.

    Ties go to the more central, then to the earlier. Greedy is within ln(n) + 1 of the fewest.
    """
    missing = set().union(*(c.details for c in candidates))
    chosen: set[int] = set()
    while missing:
        best = max(
            range(len(candidates)),
            key=lambda i: (len(candidates[i].details & missing), centrality[i], -i),
        )
        chosen.add(best)
        missing -= candidates[best].details
    return chosen


def _fill(
    chosen: set[int],
    similarity: NDArray[np.float64],
    centrality: NDArray[np.float64],
    sentences_max: int,
) -> None:
    """Add to `chosen` the most central sentences that are not much like a chosen one."""
    for i in sorted(range(len(centrality)), key=lambda i: (-centrality[i], i)):
        if len(chosen) >= sentences_max:
            return
        if i in chosen or not similarity[i, i]:
            continue
        if all(similarity[i, j] < _REDUNDANCY_MAX for j in chosen):
            chosen.add(i)


def create(options: Mapping[str, object]) -> ExtractiveSummarizer:
    """Entry point `extractive` of group `pillion.summarizers`.

    Raises:
        pydantic.ValidationError: An option is unknown or wrong.
    """
    return ExtractiveSummarizer(Options.model_validate(dict(options)))
