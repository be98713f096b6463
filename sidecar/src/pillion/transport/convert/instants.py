"""Timestamps and durations of the wire, and microseconds as integers in the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from pillion.domain.errors import PillionError
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US

if TYPE_CHECKING:
    from google.protobuf.message import Message

_US: Final = 1_000_000
_NANOS_PER_US: Final = 1000
_NANOS_END: Final = 1_000_000_000
# The range that protobuf gives to a Duration: about 10,000 years.
_DURATION_SECONDS_MAX: Final = 315_576_000_000


class _SecondsAndNanos(Protocol):
    seconds: int
    nanos: int


def instant_from_wire(stamp: Timestamp, field: str) -> int:
    """Return microseconds since the epoch; digits finer than that are dropped.

    Raises:
        PillionError: INVALID_FIELD, when it lies outside the years 1 to 9999 or its nanoseconds
            are not below a second.
    """
    if not 0 <= stamp.nanos < _NANOS_END:
        raise PillionError.of_field(field, "nanos must lie within 0 and 999,999,999")
    instant: int = stamp.seconds * _US + stamp.nanos // _NANOS_PER_US
    if not INSTANT_MIN_US <= instant <= INSTANT_MAX_US:
        raise PillionError.of_field(field, "an instant must lie within the years 1 to 9999")
    return instant


def optional_instant(message: Message, name: str, field: str) -> int | None:
    """Return the instant in field ``name`` of a message, None when it is absent."""
    return instant_from_wire(getattr(message, name), field) if message.HasField(name) else None


def put_instant(stamp: _SecondsAndNanos, instant_us: int) -> None:
    """Write an instant into a timestamp. Setting the parts is what marks it as present."""
    seconds, rest = divmod(instant_us, _US)
    stamp.seconds = seconds
    stamp.nanos = rest * _NANOS_PER_US


def duration_from_wire(duration: Duration, field: str) -> int:
    """Return a duration in microseconds.

    Raises:
        PillionError: INVALID_FIELD, when it is outside protobuf's range or its parts disagree.
    """
    seconds, nanos = duration.seconds, duration.nanos
    mixed_signs = seconds * nanos < 0
    if mixed_signs or abs(seconds) > _DURATION_SECONDS_MAX or abs(nanos) >= _NANOS_END:
        raise PillionError.of_field(field, "it is not a valid duration")
    total_us: int = seconds * _US + int(nanos / _NANOS_PER_US)
    return total_us


def duration_to_wire(duration_us: int) -> Duration:
    """Return a non-negative duration as a message."""
    seconds, rest = divmod(duration_us, _US)
    return Duration(seconds=seconds, nanos=rest * _NANOS_PER_US)


def instant_to_wire(instant_us: int) -> Timestamp:
    """Return an instant as a message of its own."""
    stamp = Timestamp()
    put_instant(stamp, instant_us)
    return stamp
