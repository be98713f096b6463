"""An estimate of tokens without a tokenizer: by words, their lengths and their scripts.

A text is cut into runs of Latin letters, runs of Cyrillic letters, single digits, single
ideographs, syllables and kana, and single other characters. Short English words are one token,
longer ones grow slowly; accented and Cyrillic words cost a token for about every 3.5 letters.

Source and error of the rule: measured against o200k_base on six samples. Over a whole sample it is
off by at most 9 % (LoCoMo 7, English 2, Russian 0, Portuguese 5, Chinese 3, German 9), on a single
text by 6 to 15 % on average. Code and emoji were not measured.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PIECES: Final = re.compile(
    r"[A-Za-z\u00c0-\u024f]+"  # Latin words
    r"|\d"
    r"|[\u0400-\u04ff]+"  # Cyrillic words
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # kana, ideographs, syllables
    r"|[^\s\w]|\w"
)
_ASCII_WORDS: Final = re.compile(r"[A-Za-z]+")
# Beyond these a sum of fractions is noise, which rounding up would make a token.
_DIGITS: Final = 6
_CJK_FROM: Final = "\u3040"
_CYRILLIC_FROM: Final = "\u0250"
_TOKENS_PER_CJK: Final = 0.85
_WHOLE_WORD_LETTERS: Final = 7
_LETTERS_PER_TOKEN_ASCII: Final = 5.0
_LETTERS_PER_TOKEN_LATIN: Final = 3.6
_LETTERS_PER_TOKEN_CYRILLIC: Final = 3.4


class EstimatingCounter:
    """Counts by the rule above, rounded up."""

    @property
    def estimates(self) -> bool:
        """True: a model's own tokenizer finds somewhat more or fewer."""
        return True

    def count(self, text: str) -> int:
        """Return about how many tokens a text has."""
        if text.isascii():
            return math.ceil(_of_ascii(text))
        return math.ceil(round(sum(map(_tokens, _PIECES.findall(text))), _DIGITS))


def _of_ascii(text: str) -> float:
    """Return the same for the commonest case, in a few steps over the whole text."""
    lengths = list(map(len, _ASCII_WORDS.findall(text)))
    beyond = sum(length - _WHOLE_WORD_LETTERS for length in lengths if length > _WHOLE_WORD_LETTERS)
    single = len("".join(text.split())) - sum(lengths)
    return len(lengths) + single + round(beyond / _LETTERS_PER_TOKEN_ASCII, _DIGITS)


def _tokens(piece: str) -> float:
    if len(piece) == 1:
        return _TOKENS_PER_CJK if piece >= _CJK_FROM else 1.0
    if piece.isascii():
        return 1.0 + max(0, len(piece) - _WHOLE_WORD_LETTERS) / _LETTERS_PER_TOKEN_ASCII
    if piece[0] < _CYRILLIC_FROM:
        return max(1.0, len(piece) / _LETTERS_PER_TOKEN_LATIN)
    return max(1.0, len(piece) / _LETTERS_PER_TOKEN_CYRILLIC)


def create(options: Mapping[str, object]) -> EstimatingCounter:
    """Return the counter; it has no options."""
    del options
    return EstimatingCounter()
