"""Latencies in HdrHistograms: every percentile to three significant digits, and mergeable."""

from __future__ import annotations

from typing import Final

from hdrh.histogram import HdrHistogram

_LOWEST_US: Final = 1
_HIGHEST_US: Final = 600_000_000  # ten minutes
_DIGITS: Final = 3

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9, 99.99, 100.0)
"""What a table shows; the last is the maximum."""


class Latencies:
    """Seconds, recorded as whole microseconds from 1 µs to ten minutes."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(_LOWEST_US, _HIGHEST_US, _DIGITS)

    @classmethod
    def decoded(cls, text: str) -> Latencies:
        """Return what `encoded` made its text of."""
        found = cls()
        found.add(text)
        return found

    @property
    def count(self) -> int:
        """How many were recorded."""
        return int(self._histogram.get_total_count())

    def record(self, seconds: float) -> None:
        """Take one in; what is out of bounds counts as the bound."""
        micros = min(max(round(seconds * 1e6), _LOWEST_US), _HIGHEST_US)
        self._histogram.record_value(micros)

    def add(self, text: str) -> None:
        """Take in all that another one has `encoded`."""
        self._histogram.decode_and_add(text)

    def encoded(self) -> str:
        """Return the histogram in HdrHistogram's own base64 text (V2), for any of its tools."""
        encoded: bytes = self._histogram.encode()
        return encoded.decode("ascii")

    def seconds_at(self, percentile: float) -> float:
        """Return the value that ``percentile`` per cent do not exceed; 0.0 of none."""
        return float(self._histogram.get_value_at_percentile(percentile)) / 1e6

    def milliseconds(self) -> dict[str, float]:
        """Return the percentiles of `PERCENTILES` in milliseconds, by name: ``p50`` … ``max``."""
        names = ("p50", "p90", "p99", "p99_9", "p99_99", "max")
        return {
            name: round(self.seconds_at(one) * 1e3, 3)
            for name, one in zip(names, PERCENTILES, strict=True)
        }
