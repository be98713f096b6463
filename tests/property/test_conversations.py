"""The order of turns is a function of the turns, and whoever may borrow otherwise is named."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.conversations import REACH, Conversations, Turn
from pillion.domain.indexed_text import SESSIONLESS_GAP_US, Conversation
from pillion.domain.scope import Subject

CONVERSATIONS = [
    Conversation(Subject("user", "mira"), "", ""),
    Conversation(Subject("user", "mira"), "", "monday"),
    Conversation(Subject("user", "noor"), "", "monday"),
]
# Few ids, instants and conversations, so that turns meet; instants on both sides of the epoch.
INSTANTS = st.sampled_from(
    [-2, -1, 0, 1, SESSIONLESS_GAP_US - 1, SESSIONLESS_GAP_US, SESSIONLESS_GAP_US + 1]
)
TURNS = st.builds(
    Turn,
    memory_id=st.integers(0, 11).map(lambda n: n.to_bytes(16, "big")),
    conversation=st.sampled_from(CONVERSATIONS),
    instant=INSTANTS,
    mark=st.integers(0, 1),
)
# So many of one conversation at once that it is sorted again.
MANY = st.lists(
    st.builds(
        Turn,
        memory_id=st.integers(0, 60).map(lambda n: n.to_bytes(16, "big")),
        conversation=st.just(CONVERSATIONS[0]),
        instant=INSTANTS,
        mark=st.just(0),
    ),
    min_size=40,
    max_size=48,
    unique_by=lambda turn: turn.memory_id,
)
STEPS = st.lists(
    st.one_of(
        st.lists(TURNS, min_size=1, max_size=4),
        MANY,
        st.sets(st.integers(0, 11).map(lambda n: n.to_bytes(16, "big")), min_size=1, max_size=3),
    ),
    max_size=8,
)


def before(turns: dict[bytes, Turn], turn: Turn) -> list[Turn]:
    """The definition: the latest that were said before it, within its own conversation."""
    earlier = [
        one
        for one in turns.values()
        if one.conversation == turn.conversation
        and (one.instant, one.memory_id) < (turn.instant, turn.memory_id)
    ]
    nearest = sorted(earlier, key=lambda one: (one.instant, one.memory_id), reverse=True)[:REACH]
    if turn.conversation.session_id:
        return nearest
    return [one for one in nearest if turn.instant - one.instant <= SESSIONLESS_GAP_US]


def borrowed(turns: dict[bytes, Turn]) -> dict[bytes, list[tuple[bytes, int]]]:
    return {
        memory_id: [(one.memory_id, one.mark) for one in before(turns, turn)]
        for memory_id, turn in turns.items()
    }


@given(STEPS)
def test_the_order_is_that_of_the_turns_and_those_who_borrow_are_told(steps):
    conversations = Conversations()
    turns: dict[bytes, Turn] = {}
    for step in steps:
        was = borrowed(turns)
        if isinstance(step, list):
            put = {turn.memory_id for turn in step}
            turns = turns | {turn.memory_id: turn for turn in step}
            told = conversations.put(step)
        else:
            put = set()
            turns = {one: turn for one, turn in turns.items() if one not in step}
            told = conversations.remove(step)
        now = borrowed(turns)
        assert {one: conversations.before(one) for one in turns} == {
            one: [other for other, _ in others] for one, others in now.items()
        }
        # A turn that came in is indexed anyway; any other whose borrowings differ must be named.
        changed = {one for one in now.keys() & was.keys() if now[one] != was[one]}
        assert changed - put <= told
        assert len(conversations) == len(turns)


@given(st.lists(TURNS, max_size=12), st.randoms(use_true_random=False))
def test_any_order_of_arrival_comes_to_the_same(turns, random):
    turns = list({turn.memory_id: turn for turn in turns}.values())
    shuffled = random.sample(turns, len(turns))
    one, other = Conversations(), Conversations()
    one.put(turns)
    for turn in shuffled:
        other.put([turn])
    assert [one.before(turn.memory_id) for turn in turns] == [
        other.before(turn.memory_id) for turn in turns
    ]


def test_an_unknown_turn_has_nothing_before_it_and_can_be_removed():
    conversations = Conversations()
    assert conversations.before(bytes(16)) == []
    assert conversations.remove([bytes(16)]) == set()
