"""How a value of an older schema version becomes one of a newer: pure steps.

Every step is total and deterministic: it gives a value, or says why there is none.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError
from pillion.domain.field_checks import check_count, check_text, checked_value
from pillion.domain.schema_policy import instance_of
from pillion.domain.values import Value, ValueKind, canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

_INT_TEXT: Final = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_NUMBER_TEXT: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_INSTANT_TEXT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_INT64_MAX: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ValueType(IntEnum):
    """What a value is converted to. Numbers as in the contract."""

    STRING = 1
    INT = 2
    DOUBLE = 3
    BOOL = 4
    TIME = 5


@dataclass(frozen=True, slots=True)
class Convert:
    """The value becomes one of another type."""

    to: ValueType


@dataclass(frozen=True, slots=True)
class Replace:
    """This value becomes that one; others stay."""

    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """A property gets another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DefaultProperty:
    """A property that is absent gets a value, given as JSON text."""

    name: str
    json_value: str


@dataclass(frozen=True, slots=True)
class RemoveProperty:
    """A property goes, if it is there."""

    name: str


@dataclass(frozen=True, slots=True)
class Wrap:
    """The value becomes the only property of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class Unwrap:
    """An object becomes the value of one of its properties."""

    name: str


Step = Convert | Replace | RenameProperty | DefaultProperty | RemoveProperty | Wrap | Unwrap


def check_steps(steps: Sequence[Step]) -> None:
    """Refuse steps that are malformed, naming the one at fault.

    Raises:
        PillionError: INVALID_FIELD or LIMIT_EXCEEDED.
    """
    check_count("steps", len(steps), limits.STEPS_MAX)
    for at, step in enumerate(steps):
        try:
            _check(step)
        except PillionError as error:
            raise error.within(f"steps[{at}]") from None


def _check(step: Step) -> None:
    match step:
        case Convert():
            return
        case Replace(old, new):
            checked_value("replace.from", old)
            checked_value("replace.to", new)
        case RenameProperty(old, new):
            check_text("rename_property.from", old, limits.NAME_BYTES_MAX, required=True)
            check_text("rename_property.to", new, limits.NAME_BYTES_MAX, required=True)
            if old == new:
                raise PillionError.of_field("rename_property.to", "is the old name")
        case DefaultProperty(name, text):
            check_text("default_property.name", name, limits.NAME_BYTES_MAX, required=True)
            checked_value("default_property.json_value", Value(ValueKind.JSON, text))
        case RemoveProperty(name) | Wrap(name) | Unwrap(name):
            check_text("name", name, limits.NAME_BYTES_MAX, required=True)


def migrated(value: Value, steps: Sequence[Step]) -> Value | None:
    """Return what a value becomes, step by step; None: some step has nothing for it.

    The steps were checked. What comes out is in canonical form and within the bounds of values.
    """
    for step in steps:
        try:
            made = _applied(value, step)
            if made is None:
                return None
            value = checked_value("value", made)
        except (PillionError, ValueError, RecursionError):  # too long, too deep, no such year
            return None
    return value


def _applied(value: Value, step: Step) -> Value | None:
    match step:
        case Convert(to):
            return _CONVERSIONS[to](value)
        case Replace(old, new):
            same = value == checked_value("from", old)
            return checked_value("to", new) if same else value
        case Wrap(name):
            return _of_json({name: instance_of(value)})
        case _:
            return _with_property(value, step)


def _with_property(value: Value, step: Step) -> Value | None:  # noqa: PLR0911  (one a kind)
    """Carry out a step on a property; a value that is no JSON object stays as it is."""
    found = instance_of(value) if value.kind is ValueKind.JSON else None
    if not isinstance(found, dict):
        return value
    match step:
        case RenameProperty(old, new) if old in found:
            if new in found:
                return None
            return _of_json({new if name == old else name: one for name, one in found.items()})
        case DefaultProperty(name, text) if name not in found:
            return _of_json({**found, name: json.loads(text)})
        case RemoveProperty(name) if name in found:
            return _of_json({key: one for key, one in found.items() if key != name})
        case Unwrap(name):
            return _unwrapped(found[name]) if name in found else None
        case _:
            return value


def _unwrapped(found: object) -> Value:
    """Return JSON as the plainest value that says it."""
    match found:
        case bool():
            return Value(ValueKind.BOOLEAN, found)
        case str():
            return Value(ValueKind.TEXT, found)
        case int() if -_INT64_MAX - 1 <= found <= _INT64_MAX:
            return Value(ValueKind.INTEGER, found)
        case float():
            return Value(ValueKind.DOUBLE, found)
        case _:
            return _of_json(found)


def _of_json(found: object) -> Value:
    return Value(ValueKind.JSON, canonical_json(json.dumps(found)))


# --- conversions -------------------------------------------------------------------------------


def _to_text(value: Value) -> Value | None:
    found = instance_of(value)
    if isinstance(found, str):
        return Value(ValueKind.TEXT, found)
    return Value(ValueKind.TEXT, canonical_json(json.dumps(found)))


def _to_int(value: Value) -> Value | None:
    found = instance_of(value)
    if isinstance(found, str) and value.kind is not ValueKind.INSTANT:
        found = int(found) if _INT_TEXT.fullmatch(found) else None
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return Value(ValueKind.INTEGER, found)


def _to_double(value: Value) -> Value | None:
    found = instance_of(value)
    if isinstance(found, str) and _NUMBER_TEXT.fullmatch(found):
        found = float(found)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        number = float(found)
    except OverflowError:
        return None
    exact = math.isfinite(number) and number == found
    return Value(ValueKind.DOUBLE, number) if exact else None


def _to_bool(value: Value) -> Value | None:
    found = instance_of(value)
    if isinstance(found, str):
        found = {"true": True, "false": False}.get(found)
    return Value(ValueKind.BOOLEAN, found) if isinstance(found, bool) else None


def _to_instant(value: Value) -> Value | None:
    if value.kind is ValueKind.INSTANT:
        return value
    found = instance_of(value)
    if not isinstance(found, str) or not _INSTANT_TEXT.fullmatch(found):
        return None
    try:
        since = datetime.fromisoformat(found.upper()) - _EPOCH
    except (ValueError, OverflowError):
        return None
    return Value(
        ValueKind.INSTANT,
        (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds,
    )


_CONVERSIONS: Final = {
    ValueType.STRING: _to_text,
    ValueType.INT: _to_int,
    ValueType.DOUBLE: _to_double,
    ValueType.BOOL: _to_bool,
    ValueType.TIME: _to_instant,
}
