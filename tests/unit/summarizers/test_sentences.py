# ruff: noqa: RUF001
# Letters and punctuation of many scripts are the subject here.
"""The splitter: by example what ends a sentence, by law that nothing is lost or broken."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.summarizers.sentences import split_sentences


def pieces(text: str, unbroken=()) -> list[str]:
    return [text[s.start : s.stop] for s in split_sentences(text, unbroken=unbroken)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It costs 3.50 euros. Cheap.", ["It costs 3.50 euros.", "Cheap."]),
        ("See example.com for more. Bye.", ["See example.com for more.", "Bye."]),
        ("Dr. Novak met J. Smith. They spoke.", ["Dr. Novak met J. Smith.", "They spoke."]),
        ("e.g. tea, etc. and so on. End.", ["e.g. tea, etc. and so on.", "End."]),
        ("Das gilt z.B. Hier nicht. Punkt.", ["Das gilt z.B. Hier nicht.", "Punkt."]),
        ("Well... maybe. No.", ["Well... maybe.", "No."]),
        ("Well... Maybe.", ["Well...", "Maybe."]),
        ('He said "Stop!" Then he left.', ['He said "Stop!"', "Then he left."]),
        ("天气很好。我们走吧！好吗？", ["天气很好。", "我们走吧！", "好吗？"]),
        ("यह चाय है। मुझे पसंद है।", ["यह चाय है।", "मुझे पसंद है।"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟", "نعم."]),
        ("- milk\n- eggs\n\n- tea", ["- milk", "- eggs", "- tea"]),
        ("1. First thing. 2. Second", ["1. First thing.", "2. Second"]),
    ],
)
def test_examples(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_an_unbroken_range_holds() -> None:
    text = 'She wrote "Come home. Now." and left. He did.'
    start = text.index('"')
    stop = text.rindex('"') + 1
    assert len(pieces(text)) > 2
    assert pieces(text, [(start, stop)]) == ['She wrote "Come home. Now." and left.', "He did."]


@given(st.text(alphabet=st.sampled_from("ab Z.!?。\n\"'”)1é…"), max_size=80) | st.text(max_size=80))
def test_every_visible_character_is_in_one_sentence_in_order(text: str) -> None:
    sentences = split_sentences(text)
    kept = "".join(text[s.start : s.stop] for s in sentences)
    assert "".join(kept.split()) == "".join(text.split())
    assert all(a.stop <= b.start for a, b in itertools.pairwise(sentences))
    assert all(text[s.start : s.stop].strip() == text[s.start : s.stop] != "" for s in sentences)
