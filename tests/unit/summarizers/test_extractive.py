"""The summarizer's laws: verbatim, traceable, deterministic, bounded, and no detail lost."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.statements import ExtractedStatement
from pillion.summarizers.details import lost_details
from pillion.summarizers.extractive import SENTENCES_CONSIDERED_MAX, TEXTS_MAX, create
from pydantic import ValidationError

SUMMARIZER = create({})

CHAT = [
    "I love hiking in the hills. The hills are green. Mira moved to Lisbon in May 2026.",
    "Hiking is great for health. We talked about hiking and the hills for an hour.",
    "Mira moved to Lisbon in May 2026! Her cat is called Miso and she pays 950 euros in rent.",
]


def summary(texts, n: int) -> list[str]:
    return [statement.text for statement in SUMMARIZER.summarize(texts, sentences_max=n)]


def test_facts_come_before_talk() -> None:
    assert summary(CHAT, 1) == [
        "Mira moved to Lisbon in May 2026.",
        "Her cat is called Miso and she pays 950 euros in rent.",
    ]
    assert "We talked about hiking and the hills for an hour." in summary(CHAT, 4)


def test_what_is_said_twice_has_both_sources() -> None:
    statements = SUMMARIZER.summarize(CHAT, sentences_max=3)
    assert ExtractedStatement("Mira moved to Lisbon in May 2026.", (0, 2)) in statements


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mira is not coming to the party tonight.", "Mira is coming to the party tonight."),
        (
            "after a long talk about the plans for the summer trip she is not coming to the lake",
            "after a long talk about the plans for the summer trip she is coming to the lake",
        ),
        ("Ann calls Bob.", "Bob calls Ann."),
        ("the code for the door is 1234 as before", "the code for the door is 1243 as before"),
        ("он не придёт завтра вечером домой", "он придёт завтра вечером домой"),
    ],
)
def test_nearly_equal_words_of_another_meaning_are_not_merged(one: str, other: str) -> None:
    statements = SUMMARIZER.summarize([one, other], sentences_max=5)
    assert all(len(statement.source_indexes) == 1 for statement in statements)


def test_without_details_the_limit_holds_and_the_central_one_wins() -> None:
    texts = ["tea is nice", "green tea is nice and warm", "warm tea helps", "the printer is broken"]
    assert len(summary(texts, 1)) == 1
    assert len(summary(texts, 2)) == 2
    assert "the printer is broken" not in summary(texts, 2)


def test_nothing_in_nothing_out() -> None:
    assert summary([], 3) == []
    assert summary(["", " \n "], 3) == []


def test_limits() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        summary(["a"], 0)
    with pytest.raises(ValueError, match="texts"):
        summary(["a"] * (TEXTS_MAX + 1), 1)
    with pytest.raises(ValueError, match="sentences"):
        summary(["a.\n" * (SENTENCES_CONSIDERED_MAX + 1)], 1)
    with pytest.raises(ValidationError):
        create({"unknown": 1})


PARTS = st.sampled_from(
    ["Mira", "tea", "is", "not", "in", "Lisbon", "5", "1,000", "2026-05-03", "“old mill”", ".", "!",
     "\n", "。", "Dr.", "acme-7", "喝茶", "moved", "the", "she"]
)  # fmt: skip
TEXTS = st.lists(
    st.lists(PARTS, max_size=12).map(" ".join) | st.text(max_size=40), min_size=0, max_size=5
)


@given(TEXTS, st.integers(1, 6))
def test_no_detail_is_lost(texts: list[str], sentences_max: int) -> None:
    assert lost_details(texts, summary(texts, sentences_max)) == []


@given(TEXTS, st.integers(1, 6))
def test_every_statement_is_verbatim_in_its_first_source(texts: list[str], n: int) -> None:
    for statement in SUMMARIZER.summarize(texts, sentences_max=n):
        assert statement.source_indexes == tuple(sorted(set(statement.source_indexes)))
        first = unicodedata.normalize("NFC", texts[statement.source_indexes[0]])
        assert statement.text in first


@given(TEXTS, st.integers(1, 6))
def test_it_is_a_pure_function(texts: list[str], n: int) -> None:
    assert SUMMARIZER.summarize(texts, sentences_max=n) == create({}).summarize(
        texts, sentences_max=n
    )


@given(TEXTS, st.integers(1, 6))
def test_beyond_the_limit_only_for_details(texts: list[str], n: int) -> None:
    """Whatever is over the limit holds a detail that no other chosen sentence has."""
    statements = summary(texts, n)
    if len(statements) > n:
        # Greedy choice may make an earlier one superfluous; dropping all the extra ones must hurt.
        assert (
            lost_details(texts, statements[:n]) != [] or lost_details(texts, statements[-n:]) != []
        )


@given(TEXTS)
def test_no_statement_twice(texts: list[str]) -> None:
    statements = summary(texts, 100)
    assert len(statements) == len(set(statements))
