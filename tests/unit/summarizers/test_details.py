# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""Details: what counts, what counts as the same, and what `lost_details` reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.summarizers.details import TEXT_CHARS_MAX, find_details, lost_details


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing of the kind here", []),
        ("The cat sat. It slept. We left.", []),
        ("Mira moved to Lisbon.", ["Mira", "Lisbon"]),
        ("I met Ana Sofia Novak and Bob's brother", ["Ana Sofia Novak", "Bob"]),
        ("born on May 3, 2026 at 10:30", ["May 3, 2026", "10:30"]),
        ("due 2026-05-03, costs -3.50 or 1,000", ["2026-05-03", "-3.50", "1,000"]),
        ("in May 35 is no date", ["May", "35"]),
        ("flight A380-800 for acme-7, v1.2.3", ["A380-800", "acme-7", "v1.2.3"]),
        (
            "write to mira.n@example.org or https://a.example/x?y=1.",
            ["mira.n@example.org", "https://a.example/x?y=1"],
        ),
        ('she calls it "the old mill" now', ["the old mill"]),
        ("он живёт в Москве, ему 31", ["Москве", "31"]),
        ("她住在北京，31岁，2026年", ["31", "2026"]),
    ],
)
def test_found(text: str, expected: list[str]) -> None:
    assert [detail.surface for detail in find_details(text)] == expected


@pytest.mark.parametrize(
    ("source", "statement", "lost"),
    [
        ("Mira has 5 cats", "Mira has 15 cats", ["5"]),
        ("it costs 1,000 euros", "costs 1000 euros", []),
        ("it is -3 degrees", "it is 3 degrees", ["-3"]),
        ("she has 1", "she has 1,000 or 2.1", ["1"]),
        ("due 2026-05-03", "due on the 3rd of May 2026", []),
        ("due May 3", "due May 3, 2026", []),
        ("due May 3, 2026", "due May 3", ["May 3, 2026"]),
        ("due May 3", "due May 13", ["May 3"]),
        ("Ann lives in Berlin", "ann lives here", ["Berlin"]),
        ("Ann called", "Annabel called", ["Ann"]),
        ("“the old mill” is hers", "She owns «The old  mill»", []),
        ("Mark said mark my words. Then Mark left", "he left", ["Mark"]),
        ("Mira. Mira. 5, 5", "", ["Mira", "5"]),
        ("她31岁", "她131岁", ["31"]),
        ("她31岁", "31岁的她", []),
    ],
)
def test_lost(source: str, statement: str, lost: list[str]) -> None:
    assert lost_details([source], [statement]) == lost


def test_a_word_seen_in_small_letters_is_no_name_at_the_head_of_a_sentence() -> None:
    assert lost_details(["Cooking is fun", "I love cooking"], ["fun"]) == []
    assert lost_details(["Cooking is fun"], ["fun"]) == ["Cooking"]  # unsure counts


def test_decomposed_accents_are_the_same() -> None:
    assert lost_details(["in Sa\u0303o Paulo"], ["in S\u00e3o Paulo"]) == []


def test_a_text_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most"):
        lost_details(["a" * (TEXT_CHARS_MAX + 1)], [])


ALPHABET = st.sampled_from(
    [*"aBç 1.,-:/\"“”'’@_²\n", "Mira ", "May 3 ", "http://", "。", "ß", "İ", "\u0301"]
)
TEXT = st.lists(ALPHABET, max_size=40).map("".join) | st.text(max_size=60)


@given(st.lists(TEXT, max_size=4))
def test_a_copy_loses_nothing(texts: list[str]) -> None:
    assert lost_details(texts, texts) == []


@given(st.lists(TEXT, max_size=3), st.lists(TEXT, max_size=3), TEXT)
def test_more_statements_never_lose_more(texts: list[str], said: list[str], more: str) -> None:
    assert set(lost_details(texts, [*said, more])) <= set(lost_details(texts, said))


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_another_number_is_another_number(a: int, b: int) -> None:
    assert lost_details([f"she has {a} of them"], [f"she has {b:,} of them"]) == (
        [] if a == b else [str(a)]
    )
