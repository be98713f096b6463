# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""What every token counter must do, as checks that a plug-in's own tests can run (docs/plugins.md).

    from pillion.token_counters.testing import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(create({...}))

A check raises `ConformanceError`.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion.ports import TokenCounter

JOIN_SLACK: Final = 2
"""How far two texts in one may cost more, or less than the dearer, than they cost apart."""

TEXTS: Final = (
    "Mira moved to Lisbon in May and started a new job.",
    "- [since 2026-06-01] user:mira passport_deadline: 2026-07-15",
    "# What is so",
    "Анна переехала в Берлин ради работы.",
    "天气很好，我们去公园散步吧。",
    "O gato dorme no sofá; o cão, não.",
    "🎉👩‍💻 \u0627\u0644\u0633\u0644\u0627\u0645",
    "for (int i = 0; i < n; ++i) { sum += a[i]; }",
    "<|endoftext|>",
    "a\x00b\u200bc",
    " ",
    "\n\n",
    "word " * 2_000,
    "x" * 2_000,
)
"""Ordinary ones, lines of a context, other scripts, code, what tokenizers may take for a signal."""


class ConformanceError(AssertionError):
    """The counter breaks a rule of the port."""


def check_says_whether_it_estimates(counter: TokenCounter) -> None:
    """It says whether it estimates, the same each time."""
    _require(isinstance(counter.estimates, bool), "estimates is not a bool")
    _require(counter.estimates == counter.estimates, "estimates changed between two looks")


def check_nothing_costs_nothing(counter: TokenCounter) -> None:
    """An empty text has no tokens, and words have some."""
    _require(counter.count("") == 0, "an empty text has tokens")
    for text in TEXTS[:8]:
        _require(counter.count(text) > 0, "a text with words has no tokens")


def check_counts(counter: TokenCounter) -> None:
    """Counts are whole numbers, never negative, and the same each time."""
    for text in TEXTS:
        found = counter.count(text)
        _require(type(found) is int, f"a count is of type {type(found).__name__}")
        _require(found >= 0, "a count is negative")
        _require(counter.count(text) == found, "two counts of one text differ")


def check_joins(counter: TokenCounter) -> None:
    """Two texts in one cost no less than either, and no more than both, but for a little slack."""
    for one, other in itertools.product(TEXTS, repeat=2):
        apart = counter.count(one), counter.count(other)
        together = counter.count(one + other)
        _require(together <= sum(apart) + JOIN_SLACK, "two texts in one cost more than both")
        _require(together >= max(apart) - JOIN_SLACK, "two texts in one cost less than one of them")


def check_threads(counter: TokenCounter) -> None:
    """Several threads get what one gets."""
    alone = list(map(counter.count, TEXTS))
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: list(map(counter.count, TEXTS)), range(8)):
            _require(found == alone, "counts differ between threads")


CHECKS: Final[tuple[Callable[[TokenCounter], None], ...]] = (
    check_says_whether_it_estimates,
    check_nothing_costs_nothing,
    check_counts,
    check_joins,
    check_threads,
)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConformanceError(message)
