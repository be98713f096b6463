"""The value of a fact: typed, comparable, and free of floating-point surprises."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum

from pillion.domain.scope import Subject

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ValueKind(IntEnum):
    """The type of a fact's value. Numbers are part of the stored format."""

    TEXT = 1
    INTEGER = 2
    DOUBLE = 3
    BOOLEAN = 4
    INSTANT = 5
    SUBJECT = 6
    JSON = 7


@dataclass(frozen=True, slots=True)
class Value:
    """A fact's value.

    ``data`` is a str for TEXT and JSON (canonical), an int for INTEGER, a finite float for
    DOUBLE, a bool for BOOLEAN, microseconds since the epoch for INSTANT, a Subject for SUBJECT.
    Two values are the same only when kind and data both are: the integer 1 is not the double 1.0.
    """

    kind: ValueKind
    data: str | int | float | bool | Subject

    @property
    def fingerprint(self) -> bytes:
        """16 bytes that are equal exactly when two values are the same."""
        data = (self.data.type, self.data.id) if isinstance(self.data, Subject) else self.data
        return hashlib.blake2b(f"{self.kind}\0{data!r}".encode(), digest_size=16).digest()

    def render(self) -> str:
        """Return the value as a person would write it, for the indexed sentence."""
        match self.kind:
            case ValueKind.INSTANT if isinstance(self.data, int):
                return format_instant(self.data)
            case ValueKind.BOOLEAN:
                return "yes" if self.data else "no"
            case _:
                return str(self.data)


def canonical_json(text: str) -> str:
    """Return JSON text with sorted keys and no spaces, so that equal values are equal text.

    Raises:
        ValueError: It is not JSON, repeats a key, or holds NaN or an infinity.
    """

    def refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("an object repeats a key")
        return made

    def refuse_constant(name: str) -> float:
        raise ValueError(f"{name} is not JSON")

    try:
        parsed = json.loads(text, object_pairs_hook=refuse_repeats, parse_constant=refuse_constant)
        return json.dumps(
            parsed, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def format_instant(instant_us: int) -> str:
    """Return an instant (microseconds since the epoch) in ISO 8601, in UTC."""
    moment = _EPOCH + timedelta(microseconds=instant_us)
    shown = moment.strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
    fraction = f".{moment.microsecond:06d}" if moment.microsecond else ""
    return f"{shown}{fraction}Z"
