"""Command-line words as values: instants, spans, subjects and a fact's value."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click
from pillion_client import RecallSection, Subject

from pillion.cli.documents import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_client import Value


# Few digits enough that no number of days is too large for a timedelta.
_SPAN: Final = re.compile(r"([0-9]{1,8})([mhd])")
_UNITS: Final = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


class InstantType(click.ParamType[datetime]):
    """ISO 8601 with an offset."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the instant, or fail as click does."""
        if isinstance(value, datetime):
            return value
        try:
            return parse_instant(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SubjectType(click.ParamType[Subject]):
    """``type:id``."""

    name = "type:id"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Subject:
        """Return the subject, or fail as click does."""
        if isinstance(value, Subject):
            return value
        try:
            return Subject.parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class SpanType(click.ParamType[timedelta]):
    """A whole number of minutes, hours or days."""

    name = "span"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the span, or fail as click does."""
        if isinstance(value, timedelta):
            return value
        found = _SPAN.fullmatch(str(value))
        if found is None:
            message = f"{str(value)!r} is no span: write minutes, hours or days: 90m, 12h, 30d"
            self.fail(message, param, ctx)
        return int(found[1]) * _UNITS[found[2]]


class SectionBudgetType(click.ParamType[tuple[RecallSection, int]]):
    """``section=tokens``."""

    name = "section=tokens"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[RecallSection, int]:
        """Return the section and its tokens, or fail as click does."""
        if isinstance(value, tuple):
            return value
        name, _, tokens = str(value).partition("=")
        known = [one.value for one in RecallSection if one is not RecallSection.UNSPECIFIED]
        if name not in known or not tokens.isdecimal():
            self.fail(f"write one of {', '.join(known)}, and tokens: related=300", param, ctx)
        return RecallSection(name), int(tokens)


INSTANT: Final = InstantType()
SPAN: Final = SpanType()
SUBJECT: Final = SubjectType()


def fact_value(text: str, kind: str, hint: str = "VALUE") -> Value:
    """Return the value that a word stands for, by its type of `VALUE_TYPES`.

    Raises:
        BadParameter: The word is no such thing.
    """
    try:
        value: Value = _READERS[kind](text)
    except ValueError as error:
        message = f"{text!r} is not of type {kind}: {error}"
        raise click.BadParameter(message, param_hint=hint) from error
    return value


def _read_bool(text: str) -> bool:
    if text not in {"true", "false"}:
        message = "write true or false"
        raise ValueError(message)
    return text == "true"


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": _read_bool,
    "time": parse_instant,
    "subject": Subject.parse,
    "json": json.loads,
}
VALUE_TYPES: Final = tuple(_READERS)


def text_or_stdin(text: str) -> str:
    """Return the text, or what stdin holds when the text is ``-``."""
    return sys.stdin.read() if text == "-" else text
