"""The laws of migration steps: total, deterministic, canonical, and what each one means."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.field_checks import checked_value
from pillion.domain.limits import INSTANT_MAX_US, INSTANT_MIN_US
from pillion.domain.migrations import (
    Convert,
    DefaultProperty,
    RemoveProperty,
    RenameProperty,
    Replace,
    Unwrap,
    ValueType,
    Wrap,
    check_steps,
    migrated,
)
from pillion.domain.schema_policy import instance_of
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind, canonical_json
from pillion_storage import operations_codec

NAMES = st.sampled_from(["a", "b", "ß", "$ref"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
VALUES = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=20).map(lambda t: Value(ValueKind.TEXT, t)),
    st.sampled_from(
        ["1", "-7", "1.5", "true", "false", "2026-06-30T00:00:00Z", "0001-01-01T00:00:00+14:00",
         "9223372036854775808", "1e400", "007", "-0", " 1", "\u0661"]
    ).map(lambda t: Value(ValueKind.TEXT, t)),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: Value(ValueKind.INTEGER, n)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda n: Value(ValueKind.DOUBLE, n)),
    st.booleans().map(lambda b: Value(ValueKind.BOOLEAN, b)),
    st.integers(INSTANT_MIN_US, INSTANT_MAX_US).map(lambda n: Value(ValueKind.INSTANT, n)),
    st.builds(lambda one: Value(ValueKind.SUBJECT, Subject("user", one)), NAMES),
    JSON.map(lambda one: Value(ValueKind.JSON, canonical_json(json.dumps(one)))),
).map(lambda value: checked_value("value", value))  # fmt: skip
STEPS = st.one_of(
    st.builds(Convert, st.sampled_from(ValueType)),
    st.builds(Replace, VALUES, VALUES),
    st.tuples(NAMES, NAMES).filter(lambda two: two[0] != two[1]).map(lambda t: RenameProperty(*t)),
    st.builds(DefaultProperty, NAMES, JSON.map(json.dumps)),
    st.builds(RemoveProperty, NAMES),
    st.builds(Wrap, NAMES),
    st.builds(Unwrap, NAMES),
)


@given(VALUES, st.lists(STEPS, max_size=5))
def test_steps_are_total_deterministic_and_give_canonical_values(value, steps):
    check_steps(steps)
    made = migrated(value, steps)
    assert made == migrated(value, steps)
    if made is not None:
        assert checked_value("value", made) == made


@given(VALUES, STEPS, STEPS)
def test_steps_one_by_one_are_the_steps_together(value, one, other):
    between = migrated(value, [one])
    apart = migrated(between, [other]) if between is not None else None
    assert migrated(value, [one, other]) == apart


@given(st.lists(STEPS, max_size=5))
def test_steps_are_stored_as_they_are(steps):
    stored = [operations_codec._step(one) for one in steps]
    assert [operations_codec._step_of(one) for one in stored] == steps


@given(VALUES, NAMES)
def test_what_was_wrapped_is_unwrapped_to_the_same_json(value, name):
    made = migrated(value, [Wrap(name), Unwrap(name)])
    assert made is not None
    assert instance_of(made) == instance_of(value)


@given(VALUES, st.sampled_from(ValueType))
def test_a_conversion_again_changes_nothing(value, to):
    once = migrated(value, [Convert(to)])
    if once is not None:
        assert migrated(once, [Convert(to)]) == once


def text(content):
    return Value(ValueKind.TEXT, content)


def value_of(found):
    return Value(ValueKind.JSON, canonical_json(json.dumps(found)))


INTEGER, DOUBLE, BOOLEAN = ValueKind.INTEGER, ValueKind.DOUBLE, ValueKind.BOOLEAN


@pytest.mark.parametrize(
    ("value", "step", "made"),
    [
        (text("7"), Convert(ValueType.INT), Value(INTEGER, 7)),
        (text("007"), Convert(ValueType.INT), None),
        (text("7.0"), Convert(ValueType.INT), None),
        (text("\u0667"), Convert(ValueType.INT), None),
        (text("9223372036854775808"), Convert(ValueType.INT), None),
        (Value(DOUBLE, 7.0), Convert(ValueType.INT), Value(INTEGER, 7)),
        (Value(DOUBLE, 7.5), Convert(ValueType.INT), None),
        (Value(DOUBLE, 1e300), Convert(ValueType.INT), None),
        (Value(BOOLEAN, True), Convert(ValueType.INT), None),
        (Value(ValueKind.INSTANT, 0), Convert(ValueType.INT), None),
        (Value(INTEGER, 2**53 + 1), Convert(ValueType.DOUBLE), None),
        (Value(INTEGER, 2**53), Convert(ValueType.DOUBLE), Value(DOUBLE, 2.0**53)),
        (text("-0"), Convert(ValueType.DOUBLE), Value(DOUBLE, 0.0)),
        (text("1e400"), Convert(ValueType.DOUBLE), None),
        (text("true"), Convert(ValueType.BOOL), Value(BOOLEAN, True)),
        (text("True"), Convert(ValueType.BOOL), None),
        (Value(INTEGER, 1), Convert(ValueType.BOOL), None),
        (text("1970-01-01T01:00:00+01:00"), Convert(ValueType.TIME), Value(ValueKind.INSTANT, 0)),
        (text("1970-01-01T00:00:00"), Convert(ValueType.TIME), None),
        (text("0001-01-01T00:00:00+14:00"), Convert(ValueType.TIME), None),
        (Value(INTEGER, 7), Convert(ValueType.STRING), text("7")),
        (Value(BOOLEAN, False), Convert(ValueType.STRING), text("false")),
        (Value(ValueKind.INSTANT, 0), Convert(ValueType.STRING), text("1970-01-01T00:00:00Z")),
        (value_of({"b": 1, "a": 2}), Convert(ValueType.STRING), text('{"a":2,"b":1}')),
        (Value(INTEGER, 1), Replace(Value(DOUBLE, 1.0), text("x")), Value(INTEGER, 1)),
        (Value(DOUBLE, 0.0), Replace(Value(DOUBLE, -0.0), text("x")), text("x")),
        (value_of({"a": 1}), RenameProperty("a", "b"), value_of({"b": 1})),
        (value_of({"a": 1, "b": 2}), RenameProperty("a", "b"), None),
        (value_of({"c": 1}), RenameProperty("a", "b"), value_of({"c": 1})),
        (text("a"), RenameProperty("a", "b"), text("a")),
        (value_of([1]), RemoveProperty("a"), value_of([1])),
        (value_of({"a": None}), DefaultProperty("a", "1"), value_of({"a": None})),
        (value_of({}), DefaultProperty("a", "[1]"), value_of({"a": [1]})),
        (value_of({"a": 1, "b": 2}), RemoveProperty("a"), value_of({"b": 2})),
        (value_of({"a": 1}), Unwrap("b"), None),
        (value_of({"a": "x"}), Unwrap("a"), text("x")),
        (value_of({"a": 2**70}), Unwrap("a"), value_of(2**70)),
        (text("x" * 16_384), Wrap("a"), None),
    ],
)
def test_what_a_step_means(value, step, made):
    assert migrated(value, [step]) == made
