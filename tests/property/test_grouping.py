"""Laws of groups of statements and of diverse answers, over random candidate lists."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.diversity import diversified
from pillion.domain.grouping import CosineBars, grouped, states_the_same, wording
from pillion.domain.memory import FOREVER, Memory, MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.scope import Subject

INSTANTS = {"as_of": 5, "now": 5}
BARS = CosineBars(alone=0.9, changed=0.8, together=0.7, worded=0.6, less_relevant=0.1)
TEXTS = (
    "The customer is on the Free plan.",
    "The customer is on the Pro plan.",
    "They changed the plan of the customer, it is Team now.",
    "My gym session starts at 7.",
    "My gym session starts at 9 nowadays.",
    "We watched a film.",
    "",
)


@st.composite
def candidates(draw: st.DrawFn) -> list[Memory]:
    """Memories about few things, at few instants, so that much competes."""
    count = draw(st.integers(0, 12))
    return [
        Memory(
            id=UUID(int=number + 1),
            subject=draw(st.sampled_from([Subject("user", "mira"), Subject("user", "bob")])),
            context=draw(st.sampled_from(["", "work"])),
            attribute=draw(st.sampled_from(["", "", "", "plan"])),
            kind=draw(st.sampled_from(MemoryKind)),
            text=draw(st.sampled_from(TEXTS)),
            source=Source(SourceKind.USER_STATEMENT),
            valid_from=draw(st.integers(0, 4)),
            valid_to=draw(st.sampled_from([FOREVER, FOREVER, FOREVER, 5])),
            status=draw(st.sampled_from([MemoryStatus.STATED] * 3 + [MemoryStatus.CANDIDATE])),
            expires_at=draw(st.sampled_from([FOREVER, FOREVER, FOREVER, 5])),
            created_at=0,
            updated_at=0,
        )
        for number in range(count)
    ]


def cosines(draw: st.DataObject, count: int):
    share = st.sampled_from([None, 0.0, 0.65, 0.75, 0.85, 0.95])
    made = {
        (one, other): draw.draw(share) for one in range(count) for other in range(one + 1, count)
    }
    return lambda one, other: 1.0 if one == other else made[min(one, other), max(one, other)]


def rows(alike, count):
    return lambda one: [alike(one, other) for other in range(count)]


def likenesses(alike, best):
    return lambda one: [alike(one, other) or 0.0 for other in range(len(best))]


@given(st.data(), candidates(), st.sampled_from(["", "Which plan?", "When is the gym?"]))
def test_only_places_within_a_group_change(data, memories, query):
    bars = data.draw(st.none() | st.just(BARS))
    alike = cosines(data, len(memories))
    relevance = data.draw(
        st.lists(st.sampled_from([None, 0.0, 0.5]), min_size=len(memories), max_size=len(memories))
    )
    found = grouped(memories, query, rows(alike, len(memories)), bars, relevance, **INSTANTS)
    assert sorted(found.order) == list(range(len(memories)))
    groups: dict[int, set[int]] = {}
    for follower, leader in found.leader.items():
        assert leader not in found.leader, "a leader follows nobody"
        groups.setdefault(leader, {leader}).add(follower)
        one, later = memories[follower], memories[leader]
        assert one.valid_from < later.valid_from
        assert later.valid_to == later.expires_at == FOREVER, "what is over leads nobody"
        assert later.status is not MemoryStatus.CANDIDATE, "nor does a guess"
        if bars is not None and None not in (relevance[leader], relevance[follower]):
            assert relevance[leader] >= relevance[follower] - bars.less_relevant
        assert (one.subject, one.context, one.kind) == (later.subject, later.context, later.kind)
        assert not one.attribute
        assert not later.attribute
    in_groups = set().union(*groups.values()) if groups else set()
    for at, place in enumerate(found.order):
        if place not in in_groups:
            assert at == place, "what is in no group stays where it is"
    for leader, members in groups.items():
        held = [at for at, place in enumerate(found.order) if place in members]
        assert held == sorted(members), "its places are those that its members had"
        assert found.order[held[0]] == leader
        instants = [memories[found.order[at]].valid_from for at in held]
        assert instants == sorted(instants, reverse=True)


@given(st.data(), candidates())
def test_grouping_twice_changes_nothing_more(data, memories):
    alike = cosines(data, len(memories))
    same = [0.0] * len(memories)
    order = grouped(memories, "", rows(alike, len(memories)), BARS, same, **INSTANTS).order
    again = grouped(
        [memories[place] for place in order],
        "",
        rows(lambda one, other: alike(order[one], order[other]), len(order)),
        BARS,
        same,
        **INSTANTS,
    )
    assert again.order == tuple(range(len(memories)))


scores = st.lists(st.floats(0, 1, width=32), max_size=12).map(lambda one: sorted(one)[::-1])


@given(st.data(), scores, st.floats(0, 1), st.integers(1, 12))
def test_a_diverse_order_is_an_order_that_begins_with_the_best(data, best, diversity, wanted):
    alike = cosines(data, len(best))
    asked: list[int] = []

    def likeness(one):
        asked.append(one)
        return likenesses(alike, best)(one)

    order = diversified(best, likeness, diversity=diversity, wanted=wanted)
    assert len(asked) == len(set(asked)), "once for each that was chosen"
    assert sorted(order) == list(range(len(best)))
    assert order[:1] == [0][: len(best)]
    again = diversified(best, likenesses(alike, best), diversity=diversity, wanted=wanted)
    assert order == again


@given(st.data(), scores)
def test_no_diversity_is_the_plain_order(data, best):
    alike = cosines(data, len(best))
    order = diversified(best, likenesses(alike, best), diversity=0.0, wanted=len(best))
    assert order == list(range(len(best)))


@given(st.data(), scores, st.floats(0.01, 1))
def test_each_choice_is_the_best_by_the_formula(data, best, diversity):
    alike = cosines(data, len(best))
    order = diversified(best, likenesses(alike, best), diversity=diversity, wanted=len(best))

    def gain(place, chosen):
        nearest = max((alike(place, one) or 0.0 for one in chosen), default=0.0)
        return (1 - diversity) * best[place] - diversity * nearest

    for at in range(1, len(order)):
        chosen = order[:at]
        assert gain(order[at], chosen) == max(gain(place, chosen) for place in order[at:])


def test_twins_make_room_at_once_when_diversity_is_all_that_counts():
    twins = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    order = diversified([0.9, 0.8, 0.1], twins.__getitem__, diversity=1, wanted=3)
    assert order == [0, 2, 1]


@pytest.mark.parametrize(
    ("older", "newer", "query", "same"),
    [
        ("Mira is on the Free plan.", "Mira is on the Pro plan.", "Which plan?", True),
        ("Anna's birthday is on 4 May.", "Ben's birthday is on 9 June.", "Anna's birthday?", False),
        ("The Apollo project ends soon.", "The Zeus project ends late.", "Apollo's end?", False),
        ("The budget meeting is on Monday.", "The hiring meeting is on Friday.", "budget", False),
        ("I report to Ben.", "The report is due on Monday.", "report", False),
        ("Ich wohne in Berlin.", "Ich wohne jetzt in Hamburg.", "Wo wohnt sie?", True),
        ("Ich wohne in Berlin.", "Ich arbeite in Hamburg.", "Wo wohnt sie?", False),
        ("Moro em Lisboa.", "Agora moro no Porto.", "", True),
        ("Я живу в Москве.", "Теперь я живу в Казани.", "", True),
        ("我住在北京。", "我住在上海。", "", True),
        ("我住在北京。", "我喜欢猫。", "", False),
        ("", "", "", False),
        ("12", "13", "", False),
    ],
)
def test_words_alone_tell_what_is_the_same_thing(older, newer, query, same):
    asked = wording(query) if query else None
    assert states_the_same(wording(older), wording(newer), asked, None, None) is same


@pytest.mark.parametrize(
    ("older", "newer", "cosine", "same"),
    [
        ("My flat is in Oslo.", "I have moved to Ghent.", 0.81, True),
        ("My flat is in Oslo.", "We stayed in Ghent.", 0.81, False),
        ("My flat is in Oslo.", "We stayed in Ghent.", 0.91, True),
        ("My gym session starts at 7.", "My gym session starts at 9.", 0.61, True),
        ("My gym session starts at 7.", "My gym session starts at 9.", 0.59, False),
    ],
)
def test_vectors_help_where_their_cosines_were_measured(older, newer, cosine, same):
    first, second = wording(older), wording(newer)
    assert states_the_same(first, second, None, cosine, BARS) is same
