"""Values: two are the same exactly when their fingerprints are, and all can be written down."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import checked_value
from pillion.domain.rendering import render_fact
from pillion.domain.scope import FactKey, Subject
from pillion.domain.values import Value, ValueKind, canonical_json, format_instant

names = st.text(st.sampled_from("ab\0:'\"\\"), min_size=1, max_size=4)
values = st.one_of(
    st.builds(Value, st.just(ValueKind.TEXT), st.text(max_size=4) | names),
    st.builds(Value, st.just(ValueKind.INTEGER), st.integers(-3, 3)),
    st.builds(Value, st.just(ValueKind.DOUBLE), st.sampled_from([0.0, 1.0, -1.0, 0.1, 1e300])),
    st.builds(Value, st.just(ValueKind.BOOLEAN), st.booleans()),
    st.builds(Value, st.just(ValueKind.INSTANT), st.integers(-3, 3)),
    st.builds(Value, st.just(ValueKind.SUBJECT), st.builds(Subject, names, names)),
    st.builds(Value, st.just(ValueKind.JSON), st.sampled_from(["1", '"a"', "{}", "[]"])),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=3
    ),
    max_leaves=8,
)  # fmt: skip


@given(values, values)
def test_fingerprints_tell_values_apart(one, other):
    same = one.kind is other.kind and one.data == other.data
    assert (one.fingerprint == other.fingerprint) == same
    assert len(one.fingerprint) == 16


def test_a_subjects_parts_are_kept_apart():
    one = Value(ValueKind.SUBJECT, Subject("a\0b", "c"))
    other = Value(ValueKind.SUBJECT, Subject("a", "b\0c"))
    assert one.fingerprint != other.fingerprint


@given(json_values)
def test_canonical_json_means_the_same_and_is_unique(value):
    spaced = json.dumps(value, indent=2)
    canonical = canonical_json(spaced)
    assert json.loads(canonical) == value
    assert canonical_json(canonical) == canonical
    assert canonical == canonical_json(json.dumps(value, sort_keys=True))


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", "[Infinity]", "-Infinity", '{"a":1,"a":1}', "1e999", "[" * 100_000]
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        canonical_json(text)


def test_a_complaint_about_json_does_not_repeat_it():
    with pytest.raises(PillionError) as caught:
        checked_value("value", Value(ValueKind.JSON, '{"secret": canary}'))
    assert "canary" not in caught.value.message


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (limits.INSTANT_MIN_US, "0001-01-01T00:00:00Z"),
        (limits.INSTANT_MAX_US, "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_instants_are_shown_in_full(instant, shown):
    assert format_instant(instant) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Value(ValueKind.TEXT, "tea"), "tea"),
        (Value(ValueKind.INTEGER, 7), "7"),
        (Value(ValueKind.DOUBLE, 0.1), "0.1"),
        (Value(ValueKind.BOOLEAN, True), "yes"),
        (Value(ValueKind.BOOLEAN, False), "no"),
        (Value(ValueKind.SUBJECT, Subject("user", "ada")), "user:ada"),
        (Value(ValueKind.INSTANT, 0), "1970-01-01T00:00:00Z"),
    ],
)
def test_a_fact_is_a_sentence(value, shown):
    key = FactKey(Subject("user", "mira"), "work", "likes_most.now")
    assert render_fact(key, value) == f"mira likes most now (work): {shown}"


@given(values)
def test_checking_a_value_keeps_it(value):
    assert checked_value("value", value).fingerprint == value.fingerprint


def test_negative_zero_is_zero():
    checked = checked_value("value", Value(ValueKind.DOUBLE, -0.0))
    assert checked.fingerprint == Value(ValueKind.DOUBLE, 0.0).fingerprint


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (ValueKind.TEXT, 1),
        (ValueKind.INTEGER, True),
        (ValueKind.INSTANT, False),
        (ValueKind.DOUBLE, 1),
        (ValueKind.BOOLEAN, 1),
        (ValueKind.SUBJECT, "user:ada"),
        (ValueKind.JSON, 1),
    ],
)
def test_a_value_of_another_kind_is_refused(kind, data):
    with pytest.raises(PillionError) as caught:
        checked_value("value", Value(kind, data))
    assert caught.value.reason is Reason.INVALID_FIELD
