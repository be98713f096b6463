"""Which failures are tried again, and when.

The loop is ours and not gRPC's service config, for three reasons. gRPC retries by status code,
but RESOURCE_EXHAUSTED means "try again" for an overload and "never" for a quota, which only the
ErrorInfo tells apart. It does not read RetryInfo. And a mutation may be sent again only because
every one carries a request_id, a rule that should be visible where the request is made.
Nothing with status ABORTED is ever sent again: the caller must decide anew from what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from pillion_client.errors import Overloaded, PillionError, Unavailable


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and with which pauses, a safe call is sent again.

    Attributes:
        attempts_max: Attempts in all; 1: never again.
        backoff_first_seconds: The longest first pause; each later one may be twice as long.
        backoff_max_seconds: No pause is longer, but one that the server asks for.
    """

    attempts_max: int = 4
    backoff_first_seconds: float = 0.05
    backoff_max_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.attempts_max < 1 or self.backoff_first_seconds < 0 or self.backoff_max_seconds < 0:
            message = "a retry policy has at least one attempt and no negative pause"
            raise ValueError(message)

    def pause_seconds(self, error: PillionError, attempt: int, draw: float) -> float | None:
        """Return how long to wait after a failed attempt, or None to give up.

        Args:
            error: How the attempt failed.
            attempt: Which one it was, from 1.
            draw: A random number in [0, 1), which spreads callers out.
        """
        if attempt >= self.attempts_max or not isinstance(error, (Unavailable, Overloaded)):
            return None
        ceiling = min(self.backoff_max_seconds, self.backoff_first_seconds * 2.0 ** (attempt - 1))
        jittered = ceiling * (0.5 + draw / 2)
        if error.retry_after_seconds is None:
            return jittered
        # What the server asks for is a floor: all who were refused would return at once.
        return error.retry_after_seconds + jittered
