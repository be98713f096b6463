# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""Cut text into sentences, in any script, without a model or breaking what must stay whole.

Rules, not statistics: a terminator ends a sentence unless what stands around it says otherwise.
When in doubt the text stays together, because half a sentence is worse than two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillion.summarizers.words import ABBREVIATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLOSERS = "\"'”’»›)\\]）」』】》"
_BOUNDARY = re.compile(
    rf"[.!?…؟۔।॥։]+[{_CLOSERS}]*(?=\s)"  # written with spaces: a space must follow
    rf"|[。！？．]+[{_CLOSERS}]*"  # written without
    r"|\s*\n\s*"  # a line of a list or a dialogue
)
_LAST_WORD = re.compile(r"([^\W_]+(?:\.[^\W_]+)*)\.$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A piece of a text: ``text[start:stop]``, without surrounding white space, never empty."""

    start: int
    stop: int


def split_sentences(text: str, *, unbroken: Iterable[tuple[int, int]] = ()) -> list[Sentence]:
    """The sentences of `text`, in order. Everything but white space is in exactly one of them.

    `unbroken` are half-open ranges inside which no sentence may end: quotations, dates, addresses.
    """
    inside = {position for start, stop in unbroken for position in range(start + 1, stop)}
    sentences: list[Sentence] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        end = match.end()
        if end in inside or match.start() in inside or not _ends(text, start, match):
            continue
        _append(sentences, text, start, end)
        start = end
    _append(sentences, text, start, len(text))
    return sentences


def _append(sentences: list[Sentence], text: str, start: int, stop: int) -> None:
    piece = text[start:stop]
    stripped = piece.strip()
    if stripped:
        first = start + len(piece) - len(piece.lstrip())
        sentences.append(Sentence(first, first + len(stripped)))


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether the terminator that `match` found really ends a sentence."""
    if "\n" in match.group() or not match.group().startswith("."):
        return True
    if match.group().startswith(".."):
        following = text[match.end() :].lstrip()[:1]
        return not following.islower()
    following = text[match.end() :].lstrip()[:1]
    if following.islower():
        return False
    word = _LAST_WORD.search(text[start : match.start() + 1])
    if word is None:
        return True
    last = word.group(1)
    is_initial = len(last) == 1 and last.isupper()
    is_number_of_list = last.isdigit() and not text[start : match.start() - len(last)].strip()
    return not (is_initial or is_number_of_list or last.casefold() in ABBREVIATIONS)
