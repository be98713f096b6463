# ruff: noqa: RUF001
# Letters of many scripts are the subject here.
"""Lines that a model reads: one line each, readable, and proof against what they hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind
from pillion.domain.rendering import one_line, render_line
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import DAY, START, uuid7

MIRA = Subject("user", "mira")


def memory(text="hello", *, kind=MemoryKind.EPISODIC, **more) -> Memory:
    values = {
        "id": uuid7(1),
        "subject": MIRA,
        "kind": kind,
        "text": text,
        "source": Source(SourceKind.USER_STATEMENT),
        "valid_from": START,
        "created_at": START,
        "updated_at": START,
    }
    return Memory(**(values | more))


def fact(kind, data, **more) -> Memory:
    value = Value(kind, data)
    return memory(kind=MemoryKind.SEMANTIC, attribute="deadline", value=value, **more)


@pytest.mark.parametrize(
    ("of", "line"),
    [
        (
            fact(ValueKind.TEXT, "2026-07-15"),
            "- [since 2026-06-10] user:mira deadline: 2026-07-15",
        ),
        (
            fact(ValueKind.BOOLEAN, True, context="work", valid_to=START + DAY),
            "- [2026-06-10 to 2026-06-11] user:mira (work) deadline: yes",
        ),
        (
            fact(ValueKind.SUBJECT, Subject("org", "acme"), valid_from=START + 61_000_001),
            "- [since 2026-06-10T00:01:01Z] user:mira deadline: org:acme",
        ),
        (
            fact(ValueKind.INSTANT, START),
            "- [since 2026-06-10] user:mira deadline: 2026-06-10T00:00:00Z",
        ),
        (memory("we met"), "- [2026-06-10] user:mira: we met"),
        (
            memory("ask twice", kind=MemoryKind.PROCEDURAL),
            "- [since 2026-06-10] user:mira: ask twice",
        ),
        (
            memory("we spoke", kind=MemoryKind.SESSION, session_id="s-1"),
            "- [2026-06-10] user:mira session s-1: we spoke",
        ),
        (
            memory("a\n\n  b\r\nc\u2028d", subject=Subject("user", "mira: admin")),
            '- [2026-06-10] user:"mira: admin": a ⏎ b ⏎ c ⏎ d',
        ),
        (
            memory("\u202eevil\u202c \x1b[31m\U000e0041x\ty"),
            "- [2026-06-10] user:mira: evil [31mx y",
        ),
        (memory("می\u200cخواهم 👩\u200d💻"), "- [2026-06-10] user:mira: می\u200cخواهم 👩\u200d💻"),
    ],
)
def test_a_line(of, line):
    assert render_line(of) == line


words = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)


names = words.filter(bool)


@given(words, st.builds(Subject, names, names), words, st.none() | names)
def test_content_can_neither_begin_a_line_nor_pass_for_what_is_before_it(
    text, subject, context, attribute
):
    made = memory(text, subject=subject, context=context)
    if attribute is not None:
        made = replace(made, attribute=attribute, value=Value(ValueKind.TEXT, text))
    line = render_line(made)
    assert len((line + "|").splitlines()) == 1
    assert line.startswith("- [2026-06-10] ")
    # What was said comes last, whole; a name that could end early is in quotes.
    head = render_line(replace(made, text="", value=made.value and Value(ValueKind.TEXT, "")))
    assert line == head + one_line(text)
    plain = head.removeprefix("- [2026-06-10] ").removesuffix(": ")
    assert ": " not in re.sub(r'"(?:[^"\\]|\\.)*"', "quoted", plain)


@given(words)
def test_cleaning_twice_is_cleaning_once(text):
    assert one_line(one_line(text)) == one_line(text)


@pytest.mark.parametrize("instant", [INSTANT_MIN_US, INSTANT_MAX_US])
def test_the_ends_of_time(instant):
    assert render_line(memory(valid_from=instant)).startswith(
        {INSTANT_MIN_US: "- [0001-01-01] ", INSTANT_MAX_US: "- [9999-12-31T23:59:59Z] "}[instant]
    )


def test_a_long_text_takes_no_longer_than_its_length():
    """Every step is linear: white space before and after breaks is gone over once."""
    assert one_line(" " * 200_000 + "\n" * 200_000 + "x") == "⏎ x"
