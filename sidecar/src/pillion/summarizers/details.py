# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""The parts of a text that a summary must not lose: numbers, dates, names, identifiers, quotations.

Found by their form, so in any language that has the form. Names are words with a capital; that
misses names in scripts without capitals, and takes every German noun for a name. When unsure a
word counts as a detail: a false alarm costs a longer summary, a miss costs a fact.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillion.summarizers.words import COMMON_OPENERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEXT_CHARS_MAX = 200_000
"""Longest single text that is looked at; a longer one is refused."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s+(?P<year>\d{4}))"
_ISO_DATE = re.compile(r"(?<![\w.-])(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\w-])")
_DATES = (
    re.compile(rf"(?<!\w){_MONTH}\s+{_DAY}{_YEAR}?(?!\w)", re.IGNORECASE),
    re.compile(rf"(?<!\w){_DAY}\s+(?:of\s+)?{_MONTH}{_YEAR}?(?!\w)", re.IGNORECASE),
)
_QUOTATION = re.compile(
    r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|「[^」\n]{1,300}」"
)
_ADDRESS = re.compile(r"(?<!\w)https?://[^\s<>\"]*[\w/]|(?<!\w)[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts written without spaces: a letter of theirs beside a number is another word."""

_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_W = rf"[^\W{_UNSPACED}]"
_CODE = re.compile(
    rf"(?<!{_W})(?<!-)(?=(?:{_W}|[.-])*\d)(?=(?:{_W}|[.-])*[^\W\d_{_UNSPACED}])"
    rf"{_W}+(?:[.-]{_W}+)*(?!{_W}|-)"
)
_NUMBER = re.compile(rf"(?<!{_W})(?<!\.)[-+−]?\d+(?:[.,:/\u00a0\u202f'’]\d+)*(?!{_W})")
_WORD = re.compile(r"(?<!\w)[^\W\d_][\w'’-]*")
_HEAD = re.compile(r"(?:^|[.!?…:;。！？؟।\n])[\s\"'“„«‘(\[*-]*$")
"""What stands before the first word of a sentence, a line or a quotation."""

_LOOK_BACK_CHARS = 8
_SEPARATOR_OF_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f'’](?=\d{3}(?!\d))")

_NUMBER_PREFIX = "number "


@dataclass(frozen=True, slots=True)
class Detail:
    """One detail: `surface` as written, `key` to compare by, and its place in the text."""

    surface: str
    key: str
    start: int
    stop: int  # a quotation's range has its marks, its surface has not


def compose(text: str) -> str:
    """`text` with accents composed (NFC): the form that this package compares and cuts.

    Raises:
        ValueError: Longer than `TEXT_CHARS_MAX`.
    """
    if len(text) > TEXT_CHARS_MAX:
        raise ValueError(f"text has {len(text)} characters, at most {TEXT_CHARS_MAX} are allowed")
    return unicodedata.normalize("NFC", text)


def lower_case_words(texts: Iterable[str]) -> frozenset[str]:
    """The words, case-folded, that somewhere in `texts` begin with a small letter."""
    return frozenset(
        word.casefold() for text in texts for word in _WORD.findall(text) if word[0].islower()
    )


def find_details(text: str, *, ordinary: frozenset[str] = frozenset()) -> list[Detail]:
    """The details of a composed text, by position.

    `ordinary` are words, case-folded, that are no names even with a capital at the head of a
    sentence. A quotation is a detail, and what it quotes may hold further ones.
    """
    found: list[Detail] = []
    for match in _QUOTATION.finditer(text):
        inner = match.group()[1:-1].strip()
        if inner:
            found.append(Detail(inner, f"quotation {_folded(inner)}", match.start(), match.end()))
    taken: set[int] = set()
    for date in _dates(text):
        found.append(date)
        taken.update(range(date.start, date.stop))
    for pattern, key in ((_ADDRESS, _folded), (_CODE, _folded), (_NUMBER, _number_key)):
        for match in pattern.finditer(text):
            if taken.isdisjoint(range(*match.span())):
                found.append(_detail(match, key(match.group())))
                taken.update(range(*match.span()))
    found += _names(text, taken, ordinary)
    return sorted(found, key=lambda detail: (detail.start, -detail.stop))


def lost_details(source_texts: Sequence[str], statements: Sequence[str]) -> list[str]:
    """The details of `source_texts` that no statement has, as written, each once, in order.

    A detail is there when a statement has its words as whole words, or a number or date of the
    same value: "1,000" is there in "1000", "5" is not there in "15". An empty list is not a proof
    that the statements are true, only that nothing of recognisable form is missing.
    """
    sources = [compose(text) for text in source_texts]
    ordinary = lower_case_words(sources)
    composed = [compose(statement) for statement in statements]
    bodies = [f" {_folded(statement)} " for statement in composed]
    values = {value for statement in composed for value in _values(statement)}
    lost: dict[str, str] = {}
    for source in sources:
        for detail in find_details(source, ordinary=ordinary):
            if detail.key in lost or detail.key in values:
                continue
            # A number is there by value only: the words of "1" stand in "1,000" too.
            is_number = detail.key.startswith(_NUMBER_PREFIX)
            if is_number or not any(_has(body, _folded(detail.surface)) for body in bodies):
                lost[detail.key] = detail.surface
    return list(lost.values())


def _detail(match: re.Match[str], key: str) -> Detail:
    return Detail(match.group(), key, match.start(), match.end())


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _has(body: str, words: str) -> bool:
    """Whether `words` stand in `body` with no letter or digit directly at either end."""
    start = body.find(words)
    while start >= 0:
        before, after = body[start - 1 : start], body[start + len(words) : start + len(words) + 1]
        begins = not (_joins(words[:1]) and _joins(before))
        ends = not (_joins(words[-1:]) and _joins(after))
        if begins and ends and words:
            return True
        start = body.find(words, start + 1)
    return False


def _joins(character: str) -> bool:
    """Whether this character and another such one beside it belong to one word."""
    return character.isalnum() and not _IS_UNSPACED.match(character)


def _values(text: str) -> set[str]:
    """Keys of every date and number of a statement."""
    keys = {date.key for date in _dates(text)}
    keys.update(_number_key(match.group()) for match in _NUMBER.finditer(text))
    return keys


def _number_key(written: str) -> str:
    """The same for all ways to group the digits of one number; the sign counts, a plus does not."""
    plain = _SEPARATOR_OF_THOUSANDS.sub("", written.replace("−", "-").removeprefix("+"))
    return _NUMBER_PREFIX + plain


def _dates(text: str) -> list[Detail]:
    found: list[Detail] = []
    taken: set[int] = set()
    for pattern in (_ISO_DATE, *_DATES):
        for match in pattern.finditer(text):
            key = _date_key(match)
            if key and taken.isdisjoint(range(*match.span())):
                found.append(_detail(match, key))
                taken.update(range(*match.span()))
    return found


def _date_key(match: re.Match[str]) -> str:
    """One key for "2026-05-03", "May 3, 2026" and "3rd of May 2026"; "" when it is no date."""
    month, day, year = match["month"], int(match["day"]), match["year"]
    number = int(month) if month.isdigit() else _month_number(month)
    try:
        # Without a year: one that has a 29 February.
        dt.date(int(year or 2000), number, day)
    except ValueError:
        return ""
    return f"date {year or '----'}-{number:02}-{day:02}"


def _month_number(written: str) -> int:
    return _MONTHS.index(written[:3].lower()) + 1


def _names(text: str, taken: set[int], ordinary: frozenset[str]) -> list[Detail]:
    """Runs of capitalised words, without the common ones that they begin with."""
    runs: list[list[re.Match[str]]] = []
    for word in _WORD.finditer(text):
        if not word.group()[0].isupper() or not taken.isdisjoint(range(*word.span())):
            continue
        follows = bool(runs) and text[runs[-1][-1].end() : word.start()].strip(" ") == ""
        if follows and runs[-1][-1].end() != word.start():
            runs[-1].append(word)
        else:
            runs.append([word])
    found: list[Detail] = []
    for run in runs:
        kept = run
        while kept and _is_common(text, kept[0], ordinary):
            kept = kept[1:]
        if kept:
            start, stop = kept[0].start(), kept[-1].end()
            surface = re.sub(r"['’]s$", "", text[start:stop])
            found.append(Detail(surface, f"name {_folded(surface)}", start, start + len(surface)))
    return found


def _is_common(text: str, word: re.Match[str], ordinary: frozenset[str]) -> bool:
    """Whether the capital of `word` is explained by its place, or by being the English "I"."""
    folded = word.group().casefold().replace("’", "'")
    if folded == "i" or folded.startswith("i'"):
        return True
    before = text[max(0, word.start() - _LOOK_BACK_CHARS) : word.start()]
    at_head = word.start() == 0 or _HEAD.search(before) is not None
    return at_head and (folded in COMMON_OPENERS or folded in ordinary)
