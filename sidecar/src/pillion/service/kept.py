"""What a cache lets go of when it is full."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import Any

K = TypeVar("K")

# Letting go of several at once costs little more than of one, and comes up that much less often.
_PART: int = 8


def make_room(kept: dict[K, Any], kept_max: int) -> None:
    """Let go of the oldest eighth of what is kept, if there are as many as may be kept.

    Whoever asks for a little more than is kept, in turn, finds most of it, where a cache that
    starts afresh when it is full finds half. Safe beside other threads: the keys are taken out in
    one step of the interpreter.
    """
    if len(kept) >= kept_max:
        for key in list(islice(kept, kept_max // _PART + 1)):
            kept.pop(key, None)
