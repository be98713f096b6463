"""Laws of a fact's timeline, at the level of pure plans.

The reference is ``pillion_testing.timeline.Model``: the whole set of statements, folded anew.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.memory import FOREVER, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.timeline import SOURCE_PRECEDENCE, Around, Statement, plan_put
from pillion_testing.timeline import Model, PureTimeline, Steps, Told, check, told

USER = SourceKind.USER_STATEMENT
INSTANTS = st.integers(0, 11)
LENGTHS = st.sampled_from([None, None, 1, 2, 4, 7])
VALUES = st.sampled_from([b"a", b"b", b"c"])
PROBES = range(-1, 20)
PREFER = ConflictPolicy.PREFER_SOURCE
CORRECT = ConflictPolicy.CORRECT


def statement(instant, value, *, valid_to=None, policy=ConflictPolicy.REJECT, source=USER):
    return Statement(instant, value, source, valid_to, policy)


@st.composite
def sets_of_statements(draw, values=VALUES):
    """Statements by instant: value and end."""
    ends = st.tuples(values, LENGTHS)
    drawn = draw(st.dictionaries(INSTANTS, ends, max_size=9))
    return {
        at: statement(at, value, valid_to=None if length is None else at + length)
        for at, (value, length) in drawn.items()
    }


@settings(max_examples=settings.default.max_examples * 2)
@given(sets_of_statements(), st.randoms(use_true_random=False))
def test_any_arrival_order_gives_what_the_set_says(statements, random):
    order = list(statements.values())
    random.shuffle(order)
    timeline, model = PureTimeline(), Model()
    for one in order:
        timeline.put(one)
        model.tell(told(one))
        check(timeline, model, PROBES)


SHARED = st.dictionaries(
    st.tuples(st.integers(0, 6), st.sampled_from(list(SourceKind))),
    st.tuples(st.sampled_from([b"a", b"b"]), LENGTHS),
    max_size=12,
)


@settings(max_examples=settings.default.max_examples * 2)
@given(SHARED, st.randoms(use_true_random=False), st.lists(st.integers(0, 99), max_size=3))
def test_any_arrival_order_lets_the_strongest_source_of_an_instant_win(shared, random, again):
    """Ties too: a source that says the same again, up to another instant."""
    statements = [
        statement(at, value, valid_to=length and at + length, policy=PREFER, source=kind)
        for (at, kind), (value, length) in shared.items()
    ]
    if statements:
        for number in again:
            one = statements[number % len(statements)]
            statements.append(
                statement(
                    one.valid_from,
                    one.fingerprint,
                    valid_to=one.valid_from + 1 + number % 9,
                    policy=PREFER,
                    source=one.source_kind,
                )
            )
    expected = Model(told(one) for one in statements)
    random.shuffle(statements)
    timeline, model = PureTimeline(), Model()
    for one in statements:
        timeline.put(one)
        model.tell(told(one))
        check(timeline, model, PROBES)
    assert model.told == expected.told


@given(sets_of_statements(), st.randoms(use_true_random=False))
def test_stating_everything_again_changes_nothing(statements, random):
    timeline = PureTimeline()
    for one in statements.values():
        timeline.put(one)
    before = dict(timeline.entries)
    order = list(statements.values())
    random.shuffle(order)
    for one in order:
        assert timeline.put(one) is Outcome.EVIDENCE
    assert timeline.entries == before


STEPS = st.tuples(
    st.sampled_from(["put", "put", "put", "correct", "prefer", "retract", "never", "restore"]),
    st.integers(0, 7),
    st.sampled_from([b"a", b"b"]),
    LENGTHS,
    st.sampled_from([USER, SourceKind.DOCUMENT, SourceKind.USER_CONFIRMATION]),
)


@settings(max_examples=settings.default.max_examples * 2)
@given(st.lists(STEPS, max_size=14))
def test_plans_are_the_fold_of_the_set_and_change_only_what_they_may(steps):
    both = Steps()
    for one in steps:
        before = both.timeline.holders(PROBES)
        touched = both.step(*one)
        check(both.timeline, both.model, PROBES)
        for probe, old, new in zip(PROBES, before, both.timeline.holders(PROBES), strict=True):
            if touched is None or probe not in touched:
                assert old == new, f"{one} changed what was so at {probe}"


@settings(max_examples=settings.default.max_examples * 2)
@given(st.lists(STEPS, max_size=10), st.integers(0, 7), st.booleans())
def test_a_retraction_that_is_taken_back_leaves_no_trace(steps, instant, never):
    both = Steps()
    for one in steps:
        both.step(*one)
    row = both.timeline.holding(instant)
    if row is None:
        return
    begin = row.valid_from if never else instant
    covered, held = both.timeline.coverage(PROBES), both.timeline.holders(PROBES)
    both.timeline.restore(both.timeline.retract(begin, row))
    assert both.timeline.coverage(PROBES) == covered
    assert both.timeline.holders(PROBES) == held


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
    timeline, model = PureTimeline(), Model()
    for one in order:
        timeline.put(statement(one, statements[one]))
        model.tell(Told(one, FOREVER, statements[one]))
    holding = timeline.holding(instant)
    other = b"x"
    with pytest.raises(PillionError) as caught:
        timeline.put(statement(instant, other))
    assert caught.value.reason is Reason.FACT_CONFLICT
    assert caught.value.metadata["existing_id"] == str(holding.memory_id)
    timeline.put(statement(instant, other, policy=CORRECT))
    model.told[instant, True] = Told(instant, FOREVER, other)
    check(timeline, model, PROBES)


def shown(timeline):
    return [(one.valid_from, one.valid_to, one.fingerprint) for one in timeline.rows()]


def test_evidence_wakes_up_when_a_late_arrival_lands_before_it():
    timeline = PureTimeline()
    assert timeline.put(statement(1, b"a")) is Outcome.CREATED
    assert timeline.put(statement(5, b"a")) is Outcome.EVIDENCE
    assert timeline.put(statement(3, b"b")) is Outcome.INSERTED
    assert shown(timeline) == [(1, 3, b"a"), (3, 5, b"b"), (5, FOREVER, b"a")]


def test_an_explicit_end_may_run_past_a_later_statement():
    timeline = PureTimeline()
    timeline.put(statement(5, b"b", valid_to=7))
    assert timeline.put(statement(1, b"a", valid_to=9)) is Outcome.INSERTED
    assert shown(timeline) == [(1, 5, b"a"), (5, 7, b"b"), (7, 9, b"a")]


def test_what_goes_on_behind_an_end_counts_from_where_it_began():
    timeline = PureTimeline()
    timeline.put(statement(1, b"a"))
    timeline.put(statement(3, b"b", valid_to=5))
    timeline.put(statement(2, b"c"))
    assert shown(timeline) == [(1, 2, b"a"), (2, 3, b"c"), (3, 5, b"b"), (5, FOREVER, b"c")]


def test_the_same_value_with_a_later_end_makes_the_row_longer():
    timeline = PureTimeline()
    timeline.put(statement(1, b"a", valid_to=5))
    timeline.put(statement(4, b"a", valid_to=5))
    assert timeline.put(statement(3, b"a", valid_to=8)) is Outcome.EVIDENCE
    assert shown(timeline) == [(1, 8, b"a")]


def test_a_late_arrival_before_a_retraction_ends_with_it():
    timeline = PureTimeline()
    timeline.put(statement(1, b"a"))
    timeline.retract(5)
    timeline.put(statement(3, b"b"))
    assert shown(timeline) == [(1, 3, b"a"), (3, 5, b"b")]


def test_a_statement_at_the_instant_of_a_retraction_does_not_undo_it():
    timeline = PureTimeline()
    timeline.put(statement(1, b"a"))
    timeline.retract(5)
    timeline.put(statement(5, b"b", valid_to=7))
    assert shown(timeline) == [(1, 5, b"a"), (5, 7, b"b")]


@pytest.mark.parametrize("value", [b"a", b"b"])
def test_the_ends_of_time_are_instants_like_others(value):
    timeline = PureTimeline()
    timeline.put(statement(INSTANT_MIN_US, b"a", valid_to=INSTANT_MAX_US))
    timeline.put(statement(INSTANT_MAX_US, value))
    assert timeline.value(INSTANT_MIN_US - 1) is None
    assert timeline.value(INSTANT_MAX_US - 1) == b"a"
    assert timeline.value(INSTANT_MAX_US) == value


def test_an_end_before_the_start_is_refused_by_name():
    with pytest.raises(PillionError) as caught:
        plan_put(Around(), statement(3, b"a", valid_to=3))
    assert caught.value.reason is Reason.INTERVAL_EMPTY
    assert caught.value.violations[0].field == "valid_to"


@settings(max_examples=20)
@given(st.sampled_from(list(SourceKind)), st.sampled_from(list(SourceKind)))
def test_prefer_source_lets_the_better_source_win(first, second):
    timeline = PureTimeline()
    timeline.put(Statement(1, b"a", first))
    other = Statement(1, b"b", second, None, PREFER)
    if first is second:
        with pytest.raises(PillionError) as caught:
            timeline.put(other)
        assert caught.value.reason is Reason.FACT_CONFLICT
        return
    better = SOURCE_PRECEDENCE[second] > SOURCE_PRECEDENCE[first]
    assert timeline.put(other) is (Outcome.CORRECTED if better else Outcome.KEPT_EXISTING)
    assert timeline.value(1) == (b"b" if better else b"a")


@pytest.mark.parametrize("begun", [1, 20])
def test_a_weaker_source_does_not_override_a_confirmation_that_was_evidence(begun):
    timeline = PureTimeline()
    timeline.put(Statement(begun, b"a", SourceKind.DOCUMENT))
    confirmed = Statement(20, b"a", SourceKind.USER_CONFIRMATION)
    assert timeline.put(confirmed) is Outcome.EVIDENCE
    other = Statement(20, b"b", SourceKind.TOOL_RESULT, None, PREFER)
    assert timeline.put(other) is Outcome.KEPT_EXISTING
    assert timeline.value(20) == b"a"
