"""What a JSON Schema may look like: bounded, closed, and refused with the place at fault."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.schema_text import canonical_schema

FIELD, LIMIT = Reason.INVALID_FIELD, Reason.LIMIT_EXCEEDED


def refused(schema):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(PillionError) as caught:
        canonical_schema(text)
    assert [one.field for one in caught.value.violations] == ["json_schema"]
    return caught.value.reason, caught.value.message


def nested(depth):
    made = {}
    for _ in range(depth):
        made = {"not": made}
    return made


def doubling(levels):
    """A schema of a few lines that is 2**levels once its references are written out."""
    defs = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "reason", "said"),
    [
        ("", FIELD, "required"),
        ("{", FIELD, "not JSON"),
        ('{"a":1,"a":2}', FIELD, "repeats a key"),
        ('{"const":NaN}', FIELD, "NaN"),
        ("[]", FIELD, "object"),
        ("1", FIELD, "object"),
        ('"\\ud800"', FIELD, "surrogate"),
        ("[" * 100_000, LIMIT, "bytes"),
        ("[" * 60_000, FIELD, "deep"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, FIELD, "#/$schema"),
        ({"$schema": 5}, FIELD, "#/$schema"),
        ({"$ref": "http://example.org/x.json"}, FIELD, "#/$ref: must lead within"),
        ({"$ref": "x.json"}, FIELD, "nothing is fetched"),
        ({"$ref": "#anchor"}, FIELD, "must lead within"),
        ({"$ref": 5}, FIELD, "must be text"),
        ({"$ref": "#/$defs/a"}, FIELD, "leads to nothing"),
        ({"$ref": "#"}, FIELD, "itself"),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, FIELD, "itself"),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}},
            },
            FIELD,
            "itself",
        ),
        ({"$ref": "#/%24defs/a", "$defs": {"a": True}}, FIELD, "percent"),
        ({"items": {"$dynamicRef": "#x"}}, FIELD, "only $ref"),
        ({"items": {"$id": "http://example.org/"}}, FIELD, "#/items/$id"),
        (nested(101), LIMIT, "deep"),
        (doubling(11), LIMIT, "subschemas"),
        (doubling(30), LIMIT, "subschemas"),
        ({"allOf": [{"pattern": "a"}] * 65}, LIMIT, "regular expressions"),
        ({"patternProperties": {str(n): True for n in range(65)}}, LIMIT, "regular expressions"),
    ],
)
def test_a_schema_that_is_refused_says_where_and_why(schema, reason, said):
    found, message = refused(schema)
    assert found is reason, message
    assert said in message


@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "http://example.org/x"},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}, "pattern": True}},
        {"const": {"$ref": "http://example.org/"}, "examples": [{"$dynamicRef": "x"}]},
        {"$ref": "#/$defs/a~1b/items/1", "$defs": {"a/b": {"items": [True, {"type": "string"}]}}},
        nested(90),
        doubling(8),
    ],
)
def test_a_schema_that_is_fine_comes_back_in_one_form(schema):
    text = canonical_schema(json.dumps(schema, indent=3))
    assert json.loads(text) == schema
    assert canonical_schema(text) == text


def test_the_bounds_are_exact():
    room = limits.SCHEMA_BYTES_MAX - len('{"const":""}')
    assert canonical_schema(json.dumps({"const": "x" * room}, separators=(",", ":")))
    assert refused(json.dumps({"const": "x" * (room + 1)}, separators=(",", ":")))[0] is LIMIT
    assert canonical_schema(json.dumps({"allOf": [True] * (limits.SCHEMA_NODES_MAX - 1)}))
    assert refused({"allOf": [True] * limits.SCHEMA_NODES_MAX})[0] is LIMIT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["$ref", "$defs", "properties", "items", "pattern", "$id", "not", "allOf", "a"]
            )
            | st.text(max_size=3),
            inner | st.sampled_from(["#", "#/$defs/a", "#/properties/a", "#/items"]),
            max_size=4,
        )
    ),
    max_leaves=20,
)


def canonical_or_none(document):
    try:
        return canonical_schema(json.dumps(document))
    except PillionError:
        return None


@given(JSON)
def test_any_json_is_a_schema_or_refused(document):
    text = canonical_or_none(document)
    if text is not None:
        assert json.loads(text) == document
        assert canonical_schema(text) == text
