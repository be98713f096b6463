"""The validator: what is no schema, and that no problem quotes the value."""

import json

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.schemas.json_schema import PROBLEMS_MAX, JsonSchemaCompiler

NAME, SECRET = "canary-name", "canary-value"
COMPILER = JsonSchemaCompiler()


def problems(schema, instance):
    return COMPILER.compile(json.dumps(schema)).problems(instance)


@pytest.mark.parametrize(
    ("schema", "instance", "place"),
    [
        ({"type": "integer"}, SECRET, "/type"),
        ({"maxLength": 1}, SECRET, "/maxLength"),
        ({"minLength": 100}, SECRET, "/minLength"),
        ({"enum": ["a"]}, SECRET, "/enum"),
        ({"const": 1}, SECRET, "/const"),
        ({"pattern": "^x"}, SECRET, "/pattern"),
        ({"format": "date-time"}, SECRET, "/format"),
        (
            {"properties": {}, "additionalProperties": False},
            {NAME: SECRET},
            "/additionalProperties",
        ),
        ({"additionalProperties": False}, {NAME: SECRET}, "/additionalProperties"),
        ({"unevaluatedProperties": False}, {NAME: SECRET}, "/unevaluatedProperties"),
        ({"propertyNames": {"maxLength": 1}}, {NAME: SECRET}, "/propertyNames/maxLength"),
        ({"propertyNames": {"pattern": "x"}}, {NAME: SECRET}, "/propertyNames/pattern"),
        ({"required": ["x"]}, {NAME: SECRET}, "/required"),
        ({"uniqueItems": True}, [SECRET, SECRET], "/uniqueItems"),
        ({"contains": {"type": "integer"}}, [SECRET], "/contains"),
        ({"anyOf": [{"type": "integer"}, {"maxLength": 1}]}, SECRET, "/anyOf"),
        ({"oneOf": [{"type": "integer"}, {"maxLength": 1}]}, SECRET, "/oneOf"),
        ({"oneOf": [{}, {}]}, SECRET, "/oneOf"),
        ({"not": {"type": "string"}}, SECRET, "/not"),
        ({"prefixItems": [{}], "items": False}, [1, SECRET], "/items"),
        ({"unevaluatedItems": False}, [SECRET], "/unevaluatedItems"),
        ({"maxItems": 0}, [SECRET], "/maxItems"),
        ({"minItems": 9}, [SECRET], "/minItems"),
        ({"maxProperties": 0}, {NAME: SECRET}, "/maxProperties"),
        ({"minProperties": 9}, {NAME: SECRET}, "/minProperties"),
        ({"multipleOf": 7}, 123457, "/multipleOf"),
        ({"maximum": 7}, 123457, "/maximum"),
        ({"minimum": 200000}, 123457, "/minimum"),
        ({"exclusiveMaximum": 7}, 123457, "/exclusiveMaximum"),
        ({"dependentRequired": {NAME: ["y"]}}, {NAME: SECRET}, "/dependentRequired"),
        (False, SECRET, ""),
    ],
)
def test_a_problem_says_where_and_never_quotes_the_value(schema, instance, place):
    (found,) = problems(schema, instance)
    assert found.place == place
    for canary in (NAME, SECRET, "123457"):
        assert canary not in found.description
    assert found.description


def test_only_so_many_problems_are_named():
    assert len(problems({"items": {"type": "integer"}}, ["x"] * 1000)) == PROBLEMS_MAX
    (found,) = problems({"enum": ["y" * 9000]}, "x")
    assert len(found.description) < 300


def test_a_value_that_nests_deeply_is_checked_or_refused():
    deep = json.loads("[" * 900 + "]" * 900)
    assert problems({"items": {"items": {"type": "array"}}}, deep) == []
    assert problems({"const": 1}, deep)


def test_a_pattern_that_would_backtrack_for_ever_does_not():
    assert problems({"pattern": "^(a+)+$"}, "a" * 16_000 + "b")


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "strin"}',
        '{"minimum": "x"}',
        '{"required": "x"}',
        '{"pattern": "("}',
        '{"pattern": "(?=a)"}',
        '{"pattern": "(a)\\\\1"}',
        '{"pattern": "((a{1,1000}){1,1000}){1,1000}"}',
        '{"patternProperties": {"(": true}}',
        '{"$ref": "http://127.0.0.1:9/x.json"}',
        '{"$ref": "file:///etc/passwd"}',
        '{"$ref": "#/nowhere"}',
        "[",
    ],
)
def test_what_is_no_schema_is_refused(schema):
    with pytest.raises(PillionError) as caught:
        COMPILER.compile(schema)
    assert caught.value.reason is Reason.INVALID_FIELD
    assert [one.field for one in caught.value.violations] == ["json_schema"]
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ('{"type": "strin"}', "#/type"),
        ('{"properties": {"type": {"type": ["string", "int"]}}}', "#/properties/type/type"),
    ],
)
def test_a_type_that_is_none_is_answered_with_those_that_are(schema, place):
    with pytest.raises(PillionError) as caught:
        COMPILER.compile(schema)
    assert f"at {place}: is none of array, boolean, integer, null" in caught.value.message


def test_formats_are_checked_and_unknown_ones_ignored():
    assert problems({"format": "date-time"}, "2026-06-30T00:00:00Z") == []
    assert problems({"format": "no such format"}, "x") == []
