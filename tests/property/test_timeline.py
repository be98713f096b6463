"""Laws of a fact's timeline, at the level of pure plans and through the whole service.

The model is brute force: a set of statements, each of which holds until the next one begins.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import FOREVER, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.timeline import (
    SOURCE_PRECEDENCE,
    Statement,
    Surroundings,
    plan_put,
)
from pillion_testing.service import refusal
from pillion_testing.timeline import PureTimeline

INSTANTS = st.integers(0, 11)
VALUES = st.sampled_from([b"a", b"b", b"c"])
PROBES = range(-1, 14)


def statement(instant, value, *, valid_to=None, policy=ConflictPolicy.REJECT):
    return Statement(instant, value, SourceKind.USER_STATEMENT, valid_to, policy)


def model_coverage(statements: dict[int, bytes]) -> list[bytes | None]:
    """Each statement holds until the next one begins."""
    shown = []
    for probe in PROBES:
        begun = [instant for instant in statements if instant <= probe]
        shown.append(statements[max(begun)] if begun else None)
    return shown


@given(st.dictionaries(INSTANTS, VALUES, max_size=9), st.randoms(use_true_random=False))
def test_any_arrival_order_gives_the_coverage_of_the_sorted_statements(statements, random):
    order = list(statements)
    random.shuffle(order)
    timeline = PureTimeline()
    for instant in order:
        timeline.put(statement(instant, statements[instant]))
    assert timeline.coverage(PROBES) == model_coverage(statements)


@st.composite
def actions(draw):
    kind = draw(st.sampled_from(["put", "put", "put", "end", "correct", "retract"]))
    instant = draw(st.integers(0, 6))
    value = draw(st.sampled_from([b"a", b"b"]))
    end = instant + draw(st.integers(1, 4)) if kind == "end" else None
    return kind, instant, value, end


@given(st.lists(actions(), max_size=14))
def test_an_action_changes_coverage_only_inside_its_own_interval(steps):
    timeline = PureTimeline()
    for kind, instant, value, end in steps:
        before = timeline.coverage(PROBES)
        row = timeline.holding(instant)
        if kind == "retract":
            if row is None:
                continue
            timeline.retract(instant)
        else:
            policy = ConflictPolicy.CORRECT if kind == "correct" else ConflictPolicy.REJECT
            stated = statement(instant, value, valid_to=end, policy=policy)
            error = refusal(lambda stated=stated: timeline.put(stated))
            if error is not None:
                assert error.reason is Reason.FACT_CONFLICT
                assert timeline.coverage(PROBES) == before
                continue
            row = timeline.holding(instant)
            assert row is not None
        touched = range(instant, row.valid_to if row.valid_to != FOREVER else 99)
        after = timeline.coverage(PROBES)
        for probe, old, new in zip(PROBES, before, after, strict=True):
            if probe not in touched:
                assert old == new, f"{kind} at {instant} changed what was so at {probe}"
        if kind != "retract":
            assert timeline.value(instant) == value
            if end is not None and end in PROBES:
                # An explicit end never makes the statement's own value last longer.
                index = PROBES.index(end)
                assert after[index] == before[index]
            if end is not None:
                assert all(timeline.value(one) == value for one in range(instant, end))
        else:
            assert timeline.value(instant) is None


@given(
    st.dictionaries(INSTANTS, VALUES, min_size=1, max_size=8),
    st.randoms(use_true_random=False),
)
def test_stating_everything_again_changes_nothing(statements, random):
    timeline = PureTimeline()
    for instant, value in statements.items():
        timeline.put(statement(instant, value))
    before = dict(timeline.entries)
    order = list(statements)
    random.shuffle(order)
    for instant in order:
        assert timeline.put(statement(instant, statements[instant])) is Outcome.EVIDENCE
    assert timeline.entries == before


@given(
    st.dictionaries(INSTANTS, VALUES, min_size=2, max_size=8),
    st.randoms(use_true_random=False),
    INSTANTS,
)
def test_a_statement_of_one_instant_with_two_values_is_settled_by_the_policy(
    statements, random, place
):
    instant = sorted(statements)[place % len(statements)]
    order = list(statements)
    random.shuffle(order)
    timeline = PureTimeline()
    for one in order:
        timeline.put(statement(one, statements[one]))
    holding = timeline.holding(instant)
    other = b"x"
    with pytest.raises(PillionError) as caught:
        timeline.put(statement(instant, other))
    assert caught.value.reason is Reason.FACT_CONFLICT
    assert caught.value.metadata["existing_id"] == str(holding.memory_id)
    timeline.put(statement(instant, other, policy=ConflictPolicy.CORRECT))
    assert timeline.coverage(PROBES) == model_coverage({**statements, instant: other})


def test_evidence_wakes_up_when_a_late_arrival_lands_before_it():
    timeline = PureTimeline()
    assert timeline.put(statement(1, b"a")) is Outcome.CREATED
    assert timeline.put(statement(5, b"a")) is Outcome.EVIDENCE
    assert timeline.put(statement(3, b"b")) is Outcome.INSERTED
    assert [(one.valid_from, one.valid_to, one.fingerprint) for one in timeline.rows()] == [
        (1, 3, b"a"),
        (3, 5, b"b"),
        (5, FOREVER, b"a"),
    ]


def test_the_same_value_with_a_later_end_is_no_conflict_with_its_own_evidence():
    timeline = PureTimeline()
    timeline.put(statement(1, b"a", valid_to=5))
    timeline.put(statement(4, b"a", valid_to=5))
    timeline.put(statement(3, b"a", valid_to=8))
    assert [timeline.value(one) for one in range(1, 9)] == [b"a"] * 7 + [None]


def test_an_end_before_the_start_is_refused_by_name():
    with pytest.raises(PillionError) as caught:
        plan_put(Surroundings(), statement(3, b"a", valid_to=3))
    assert caught.value.reason is Reason.INTERVAL_EMPTY
    assert caught.value.violations[0].field == "valid_to"


@settings(max_examples=20)
@given(st.sampled_from(list(SourceKind)), st.sampled_from(list(SourceKind)))
def test_prefer_source_lets_the_better_source_win(first, second):
    timeline = PureTimeline()
    timeline.put(Statement(1, b"a", first))
    other = Statement(1, b"b", second, None, ConflictPolicy.PREFER_SOURCE)
    if first is second:
        with pytest.raises(PillionError) as caught:
            timeline.put(other)
        assert caught.value.reason is Reason.FACT_CONFLICT
        return
    better = SOURCE_PRECEDENCE[second] > SOURCE_PRECEDENCE[first]
    assert timeline.put(other) is (Outcome.CORRECTED if better else Outcome.KEPT_EXISTING)
    assert timeline.value(1) == (b"b" if better else b"a")


# Statements that share an instant: each from a source of its own, so that one of them is strongest.
SHARED = st.dictionaries(
    st.tuples(st.integers(0, 5), st.sampled_from(list(SourceKind))),
    st.sampled_from([b"a", b"b"]),
    max_size=12,
)


def strongest(statements: dict[tuple[int, SourceKind], bytes]) -> dict[int, bytes]:
    """What the strongest source says at each instant."""
    ranked = sorted(statements, key=lambda one: SOURCE_PRECEDENCE[one[1]])
    return {instant: statements[instant, kind] for instant, kind in ranked}


@settings(max_examples=settings.default.max_examples * 3)
@given(SHARED, st.randoms(use_true_random=False))
def test_any_arrival_order_lets_the_strongest_source_of_an_instant_win(statements, random):
    order = list(statements)
    random.shuffle(order)
    timeline = PureTimeline()
    for instant, kind in order:
        said = statements[instant, kind]
        timeline.put(Statement(instant, said, kind, None, ConflictPolicy.PREFER_SOURCE))
    assert timeline.coverage(PROBES) == model_coverage(strongest(statements))


@pytest.mark.parametrize("begun", [1, 20])
def test_a_weaker_source_does_not_override_a_confirmation_that_was_evidence(begun):
    timeline = PureTimeline()
    prefer = ConflictPolicy.PREFER_SOURCE
    timeline.put(Statement(begun, b"a", SourceKind.DOCUMENT))
    confirmed = Statement(20, b"a", SourceKind.USER_CONFIRMATION)
    assert timeline.put(confirmed) is Outcome.EVIDENCE
    other = Statement(20, b"b", SourceKind.TOOL_RESULT, None, prefer)
    assert timeline.put(other) is Outcome.KEPT_EXISTING
    assert timeline.value(20) == b"a"
