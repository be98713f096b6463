"""How long the caller of a gRPC call still waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import DEADLINE_MAX_MS

if TYPE_CHECKING:
    import grpc

# Without a deadline gRPC reports about 292 years; nobody asks for more than a year.
_NO_DEADLINE_SECONDS: Final = 365 * 86_400.0


class CallDeadline:
    """The deadline of one call, or of one batch of a stream; plays `ports.Deadline`.

    A caller's own deadline counts up to `DEADLINE_MAX_MS`; one that brought none gets the default.
    """

    __slots__ = ("_context", "_default_seconds", "_ends", "_longest_seconds", "_started")

    def __init__(
        self,
        context: grpc.ServicerContext,
        default_seconds: float,
        longest_seconds: float = DEADLINE_MAX_MS / 1000,
    ) -> None:
        self._context = context
        self._default_seconds = default_seconds
        self._longest_seconds = longest_seconds
        self._started = time.monotonic()
        self._ends: float | None = None  # gRPC is asked once somebody wants to know

    def _end(self) -> float:
        ends = self._ends
        if ends is None:
            asked = self._context.time_remaining()
            if asked is not None and asked < _NO_DEADLINE_SECONDS:
                ends = time.monotonic() + min(asked, self._longest_seconds)
            else:
                ends = self._started + self._default_seconds
            self._ends = ends
        return ends

    def remaining_seconds(self) -> float:
        """Return the seconds left; 0 or less when the deadline has passed."""
        return self._end() - time.monotonic()

    def check(self) -> None:
        """Raise DEADLINE_EXCEEDED or CANCELLED when the caller is gone."""
        if self._end() <= time.monotonic():
            raise PillionError(Reason.DEADLINE_EXCEEDED, "the deadline passed before the work did")
        if not self._context.is_active():
            raise PillionError(Reason.CANCELLED, "the caller cancelled")
