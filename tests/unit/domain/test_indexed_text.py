"""What is indexed of a memory: its parts and their weights."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.indexed_text import (
    BORROWED_WEIGHTS,
    OWN_WEIGHT,
    EpisodeIndexing,
    Part,
    borrowed_parts,
    conversation_of,
    date_in_words,
    lendable,
    lent_until,
    own_parts,
    with_speaker,
)
from pillion.domain.limits import BORROWED_CHARACTERS_MAX, INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.memory import (
    FOREVER,
    EndReason,
    Memory,
    MemoryKind,
    MemoryStatus,
    Source,
    SourceKind,
)
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind

EPISODE = UUID(int=7)
MAY_8_2023 = 1_683_504_000_000_000
TURN = Memory(
    id=UUID(int=1),
    subject=Subject("user", "mira"),
    kind=MemoryKind.EPISODIC,
    text="I went there yesterday.",
    source=Source(SourceKind.USER_STATEMENT, EPISODE, author="Mira"),
    valid_from=MAY_8_2023 + 1,
    created_at=0,
    updated_at=0,
    session_id="monday",
)


def test_a_turn_is_indexed_with_its_speaker_and_its_date():
    assert [one.text for one in own_parts(TURN, EpisodeIndexing.CONTEXT)] == [
        "I went there yesterday.",
        "8 May 2023 2023-05-08",
        "Mira",
    ]
    assert own_parts(TURN, EpisodeIndexing.PLAIN) == (Part("I went there yesterday."),)


def test_a_fact_is_indexed_by_its_sentence_as_well_as_by_the_words_that_stated_it():
    fact = replace(
        TURN,
        kind=MemoryKind.SEMANTIC,
        text="It runs out soon.",
        attribute="passport_deadline",
        value=Value(ValueKind.TEXT, "2026-07-15"),
    )
    assert [one.text for one in own_parts(fact, EpisodeIndexing.CONTEXT)] == [
        "It runs out soon.",
        "mira passport deadline: 2026-07-15",
    ]
    rendered = replace(fact, text="mira passport deadline: 2026-07-15")
    assert own_parts(rendered, EpisodeIndexing.CONTEXT) == (Part(rendered.text),)


def test_what_is_borrowed_weighs_less_the_further_back_it_was_said():
    assert borrowed_parts(["a", "b", "c", "d"]) == (Part("a", 4), Part("b", 2), Part("c", 1))
    assert max(BORROWED_WEIGHTS) < OWN_WEIGHT
    assert borrowed_parts([]) == ()


@given(st.text(max_size=3000) | st.text("ab \n", min_size=900, max_size=1100))
def test_what_is_lent_is_a_beginning_of_whole_words(text):
    lent = lendable(text)
    assert text.startswith(lent)
    assert len(lent) <= BORROWED_CHARACTERS_MAX
    if lent != text:
        assert lent.split() == text.split()[: len(lent.split())] or len(lent.split()) == 1


@pytest.mark.parametrize(
    ("change", "turn"),
    [
        ({}, True),
        ({"session_id": ""}, True),
        ({"kind": MemoryKind.SEMANTIC}, False),
        ({"session_id": "", "source": Source(SourceKind.USER_STATEMENT)}, False),
        ({"source": Source(SourceKind.USER_STATEMENT)}, True),
    ],
)
def test_turns_are_episodes_and_what_a_session_says(change, turn):
    assert (conversation_of(replace(TURN, **change)) is not None) == turn


def test_subject_context_and_session_are_walls():
    here = conversation_of(TURN)
    for change in (
        {"subject": Subject("user", "noor")},
        {"context": "work"},
        {"session_id": "tuesday"},
    ):
        assert conversation_of(replace(TURN, **change)) != here


def test_what_is_out_of_recall_or_not_established_lends_nothing():
    assert lent_until(TURN) == FOREVER
    assert lent_until(replace(TURN, expires_at=5)) == 5
    for change in (
        {"expired_at": 5},
        {"retracted_at": 5},
        {"end_reason": EndReason.WITHDRAWN},
        {"status": MemoryStatus.CANDIDATE},
    ):
        assert lent_until(replace(TURN, **change)) == 0


@given(st.integers(INSTANT_MIN_US, INSTANT_MAX_US))
def test_every_instant_of_the_contract_has_a_date(instant):
    words = date_in_words(instant).split()
    assert len(words) == 4
    assert [int(part) for part in words[3].split("-")][::2] == [int(words[2]), int(words[0])]


@pytest.mark.parametrize(
    ("text", "speaker", "quoted"),
    [
        ("Also here.", "Al", 'Al: "Also here."'),
        ("AL: here.", "Al", "AL: here."),
        ('Al said, "here"', "Al", 'Al said, "here"'),
        ("here", "", "here"),
        ("Al", "Al", "Al"),
    ],
)
def test_a_turn_names_its_speaker_once(text, speaker, quoted):
    assert with_speaker(text, speaker) == quoted
