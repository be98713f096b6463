"""The laws of a context: within the budget, in order, nothing lost, exact state first."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind
from pillion.domain.recall import (
    BUDGET,
    DUPLICATE,
    HEADINGS,
    OLDER_STATEMENT,
    SERVED,
    Candidate,
    Section,
    assemble,
)
from pillion.domain.rendering import render_line
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind
from pillion.token_counters.estimate import EstimatingCounter
from pillion.token_counters.lengths import ByteCounter, CharacterCounter
from pillion_testing.fakes import START, uuid7

KINDS = {
    Section.PROCEDURES: MemoryKind.PROCEDURAL,
    Section.FACTS: MemoryKind.SEMANTIC,
    Section.OPEN_ITEMS: MemoryKind.OPEN_ITEM,
    Section.SESSIONS: MemoryKind.SESSION,
    Section.RELATED: MemoryKind.EPISODIC,
}
COUNTERS = {
    "estimate": EstimatingCounter().count,
    "characters": CharacterCounter().count,
    "bytes": ByteCounter().count,
    "words": lambda text: len(text.split()),
}


def quarrelsome(text):
    """A counter that finds more in a text than in its lines."""
    return len(text.split()) + text.count("\n") ** 2


texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["tea", "TEA ", "a b c d e f g", "# What is so", "x\n- y", "слово " * 9]),
    st.integers(1, 1500).map(lambda size: "w" * size),
)


@st.composite
def candidate(draw, section):
    number = draw(st.integers(1, 12))  # few ids, so that some come twice
    typed = section is Section.FACTS and draw(st.booleans())
    memory = Memory(
        id=uuid7(number),
        subject=Subject("user", draw(st.sampled_from(["mira", "jo"]))),
        kind=KINDS[section],
        text=draw(texts),
        source=Source(SourceKind.USER_STATEMENT),
        valid_from=START,
        created_at=START,
        updated_at=START,
    )
    if typed:
        value = Value(ValueKind.TEXT, memory.text)
        memory = replace(memory, attribute=draw(st.sampled_from("abc")), value=value)
    place = (memory.attribute, number) if section is Section.FACTS else ()
    older = section is Section.RELATED and draw(st.booleans())
    return Candidate(memory, render_line(memory), place, older)


@st.composite
def asked(draw):
    """Candidates, and a split of a budget."""
    candidates = {
        section: draw(st.lists(candidate(section), max_size=6))
        for section in draw(st.sets(st.sampled_from(Section)))
    }
    budget = draw(st.one_of(st.integers(1, 120), st.integers(1, 5_000)))
    own, left = {}, budget
    for section in draw(st.sets(st.sampled_from(Section), max_size=3)):
        own[section] = draw(st.integers(0, left))
        left -= own[section]
    return candidates, budget, own


def context_of(candidates, budget, own, count):
    return assemble(candidates, token_budget=budget, section_budgets=own, count=count)


@given(asked(), st.sampled_from([*COUNTERS.values(), quarrelsome]))
def test_the_text_as_a_whole_is_within_the_budget_and_is_its_lines(given_, count):
    candidates, budget, own = given_
    context = context_of(candidates, budget, own, count)
    assert context.tokens == count(context.text) <= budget
    shown = [HEADINGS[section] for section in Section]
    lines = [line for line in context.text.split("\n") if line and line not in shown]
    assert lines == [line.text for line in context.lines]
    assert all(line.tokens == count(line.text) for line in context.lines)


@given(asked(), st.sampled_from(list(COUNTERS.values())))
def test_sections_come_in_order_and_each_under_one_heading(given_, count):
    context = context_of(*given_, count)
    sections = [line.section for line in context.lines]
    assert sections == sorted(sections)
    # Whatever the content holds, a line that is a heading is one of ours, in its place.
    headings = [line for line in context.text.splitlines() if not line.startswith("- ")]
    assert headings == [HEADINGS[section] for section in dict.fromkeys(sections)]


@given(asked(), st.sampled_from([*COUNTERS.values(), quarrelsome]))
def test_each_candidate_is_a_line_or_is_omitted_exactly_once(given_, count):
    candidates, budget, own = given_
    context = context_of(candidates, budget, own, count)
    asked_for = sorted(
        (section, one.memory.id) for section, some in candidates.items() for one in some
    )
    told = [(line.section, line.memory.id) for line in context.lines]
    told += [(one.section, one.memory_id) for one in context.omitted]
    assert sorted(told) == asked_for
    assert {one.reason for one in context.omitted} <= {BUDGET, DUPLICATE, OLDER_STATEMENT}
    ids = [line.memory.id for line in context.lines]
    assert len(ids) == len(set(ids))


@given(asked(), st.integers(1, 400), st.sampled_from(list(COUNTERS.values())))
def test_a_larger_budget_never_costs_a_line_of_exact_state(given_, more, count):
    candidates, budget, own = given_

    def exact(context):
        return {line.memory.id for line in context.lines if line.section is Section.FACTS}

    small = context_of(candidates, budget, own, count)
    large = context_of(candidates, budget + more, own, count)
    assert exact(small) <= exact(large)


@given(asked(), asked(), st.sampled_from(list(COUNTERS.values())))
def test_no_neighbour_displaces_exact_state(given_, other, count):
    """Whatever else there is, the facts that go in are those that would go in alone."""
    candidates, budget, _ = given_
    facts = {Section.FACTS: candidates.get(Section.FACTS, [])}
    crowd = {section: some for section, some in other[0].items() if section is not Section.FACTS}
    alone = context_of(facts, budget, {}, count)
    crowded = context_of(facts | crowd, budget, {}, count)
    chosen = [line.memory.id for line in crowded.lines if line.section is Section.FACTS]
    assert chosen == [line.memory.id for line in alone.lines]


@given(asked(), st.sampled_from(list(COUNTERS.values())))
def test_what_is_set_aside_for_a_section_is_there_for_it(given_, count):
    """A section with a budget of its own is empty only if nothing in it fits that."""
    candidates, budget, own = given_
    context = context_of(candidates, budget, own, count)
    shown = {line.section for line in context.lines}
    crowded_out = {(one.section, one.memory_id) for one in context.omitted if one.reason == BUDGET}
    for section in own.keys() - shown - {Section.FACTS}:
        for one in candidates.get(section, ()):
            if (section, one.memory.id) in crowded_out and not one.older_statement:
                least = count(HEADINGS[section] + "\n") + count(one.line + "\n")
                assert least > own[section]


@given(asked(), st.sampled_from(list(COUNTERS.values())))
def test_the_same_inputs_give_the_same_bytes(given_, count):
    candidates, budget, own = given_
    copies = {section: [replace(one) for one in some] for section, some in candidates.items()}
    reordered = dict(reversed(copies.items()))
    assert context_of(candidates, budget, own, count) == context_of(reordered, budget, own, count)


def one(section, number, text):
    memory = Memory(
        id=uuid7(number),
        subject=Subject("user", "mira"),
        kind=KINDS[section],
        text=text,
        source=Source(SourceKind.USER_STATEMENT),
        valid_from=START,
        created_at=START,
        updated_at=START,
    )
    return Candidate(memory, render_line(memory))


def test_what_was_served_last_goes_first_where_the_whole_costs_more_than_its_lines():
    def count(text):
        return len(text.split()) + (5 if text.count("\n") > 8 else 0)

    sections = Section.OPEN_ITEMS, Section.RELATED
    some = {
        section: [one(section, section * 10 + at, f"{section}{at}") for at in range(6)]
        for section in sections
    }
    whole = context_of(some, 1_000, {}, count)
    context = context_of(some, whole.tokens - 5, {}, count)
    assert [line.section for line in whole.lines] == [sections[0]] * 6 + [sections[1]] * 6
    assert context.lines == whole.lines[:10]  # two lines of four words make up for the five
    assert context.tokens <= whole.tokens - 5
    assert {left.reason for left in context.omitted} == {BUDGET}


def test_what_a_section_leaves_rolls_over_to_the_next_one_served():
    served_next = SERVED[SERVED.index(Section.OPEN_ITEMS) + 1]
    items, procedures = Section.OPEN_ITEMS, Section.PROCEDURES
    assert served_next is procedures
    some = {items: [one(items, 1, "short")], procedures: [one(procedures, 2, "p" * 100)]}
    spent = len(f"{HEADINGS[items]}\n{some[items][0].line}\n")
    needed = len(f"{HEADINGS[procedures]}\n{some[procedures][0].line}\n")

    def shown(own_items, own_procedures):
        own = {items: own_items, procedures: own_procedures, Section.RELATED: 500}
        return {line.section for line in context_of(some, 2_000, own, len).lines}

    assert shown(spent, needed) == {items, procedures}
    assert shown(spent, needed - 1) == {items}
    assert shown(spent + 1, needed - 1) == {items, procedures}
    assert shown(spent - 1, needed) == {procedures}
