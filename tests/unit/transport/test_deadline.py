"""Deadlines of calls: the caller's own up to a limit, or else the server's."""

from __future__ import annotations

import pytest
from pillion.domain.limits import DEADLINE_MAX_MS
from pillion.transport.deadline import CallDeadline


class Context:
    """A call of which only the time left is known."""

    def __init__(self, remaining) -> None:
        self._remaining = remaining

    def time_remaining(self):
        return self._remaining


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (None, 30),
        (292 * 365 * 86_400.0, 30),
        (5.0, 5),
        (DEADLINE_MAX_MS / 1000, DEADLINE_MAX_MS / 1000),
        (300 * 86_400.0, DEADLINE_MAX_MS / 1000),
    ],
)
def test_how_long_a_call_may_take(asked, seconds):
    deadline = CallDeadline(Context(asked), 30.0)
    assert seconds - 10 < deadline.remaining_seconds() <= seconds
