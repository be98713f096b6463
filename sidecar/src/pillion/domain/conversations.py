"""The order of turns in their conversations: who comes before whom, and who must be told.

Turns are ordered by when they were said, then by id. The order kept here is a function of the
turns that are in it, whatever the order in which they came and went.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion.domain.indexed_text import BORROWED_WEIGHTS, SESSIONLESS_GAP_US

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pillion.domain.indexed_text import Conversation

REACH: Final = len(BORROWED_WEIGHTS)
"""How many turns a turn reaches: back to borrow, and ahead to lend."""

TURN_BYTES: Final = 400
"""What a turn takes here: its place and id, a tuple, a number, and their entries."""

# From how many new turns on sorting a conversation again is cheaper than finding each its place.
_SORT_FROM: Final = 32
_SIGN: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn as its neighbours know it.

    Attributes:
        memory_id: The 16 bytes of its memory's id.
        conversation: What it is a turn of.
        instant: When it was said, in microseconds since the epoch.
        mark: Differs whenever what it lends may differ.
    """

    memory_id: bytes
    conversation: Conversation
    instant: int
    mark: int


class Conversations:
    """Turns in their order. Not safe to share between threads that change it."""

    def __init__(self) -> None:
        # A place is the instant, so that bytes sort as instants do, and the id behind it.
        self._orders: dict[Conversation, list[bytes]] = {}
        self._turns: dict[bytes, tuple[Conversation, bytes, int]] = {}

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def memory_bytes(self) -> int:
        """About how many bytes it takes."""
        return len(self._turns) * TURN_BYTES

    def put(self, turns: Iterable[Turn]) -> set[bytes]:
        """Add turns, or replace those of the same ids; the last of an id counts.

        Returns:
            The ids of the turns that may borrow something else now.
        """
        told: set[bytes] = set()
        changed: list[tuple[Conversation, bytes]] = []
        added: dict[Conversation, list[bytes]] = {}
        for turn in {turn.memory_id: turn for turn in turns}.values():
            conversation, place = turn.conversation, _place(turn)
            known = self._turns.get(turn.memory_id)
            if known == (conversation, place, turn.mark):
                continue
            changed.append((conversation, place))
            if known is not None and known[:2] != (conversation, place):
                told |= self.remove([turn.memory_id])
                known = None
            if known is None:
                added.setdefault(conversation, []).append(place)
            self._turns[turn.memory_id] = (conversation, place, turn.mark)
        for conversation, places in added.items():
            order = self._orders.setdefault(conversation, [])
            if len(places) < _SORT_FROM:
                for place in places:
                    insort(order, place)
            else:
                order.extend(places)
                order.sort()
        for conversation, place in changed:
            told.update(self._after(conversation, place))
        return told

    def remove(self, memory_ids: Iterable[bytes]) -> set[bytes]:
        """Take turns out; unknown ids are fine. Returns the ids of those that borrowed of them."""
        told: set[bytes] = set()
        for memory_id in memory_ids:
            known = self._turns.pop(memory_id, None)
            if known is None:
                continue
            conversation, place, _ = known
            order = self._orders[conversation]
            at = bisect_left(order, place)
            del order[at]
            told.update(one[8:] for one in order[at : at + REACH])
            told.discard(memory_id)
            if not order:
                del self._orders[conversation]
        return told

    def before(self, memory_id: bytes) -> list[bytes]:
        """Return the ids of the turns that a turn may borrow of, the nearest first."""
        known = self._turns.get(memory_id)
        if known is None:
            return []
        conversation, place, _ = known
        order = self._orders[conversation]
        at = bisect_left(order, place)
        near = order[max(at - REACH, 0) : at]
        if not conversation.session_id:
            earliest = _instant(place) - SESSIONLESS_GAP_US
            near = [one for one in near if _instant(one) >= earliest]
        return [one[8:] for one in reversed(near)]

    def _after(self, conversation: Conversation, place: bytes) -> list[bytes]:
        order = self._orders[conversation]
        at = bisect_left(order, place) + 1
        return [one[8:] for one in order[at : at + REACH]]


def _place(turn: Turn) -> bytes:
    return (turn.instant + _SIGN).to_bytes(8, "big") + turn.memory_id


def _instant(place: bytes) -> int:
    return int.from_bytes(place[:8], "big") - _SIGN
