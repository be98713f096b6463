"""JSON Schema (draft 2020-12) by jsonschema-rs.

Nothing is fetched. Patterns run on an engine whose time is linear in the text, so that no pattern
can hold up the server; it has no look-around and no back-references, and says so.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import jsonschema_rs

from pillion.domain.errors import PillionError
from pillion.domain.schema_text import FIELD
from pillion.domain.schemas import Problem

# Bytes that one compiled pattern may take.
PATTERN_BYTES_MAX: Final = 1 << 19
PROBLEMS_MAX: Final = 8
_DESCRIPTION_MAX: Final = 200
_MASK: Final = "the value"
# Kinds of problems whose message quotes the schema alone: the value is masked in all of them, and
# names of properties that the value alone has are in none.
_SAYING: Final = frozenset(
    (
        "AnyOf",
        "Constant",
        "Contains",
        "Enum",
        "ExclusiveMaximum",
        "ExclusiveMinimum",
        "Format",
        "MaxItems",
        "MaxLength",
        "MaxProperties",
        "Maximum",
        "MinItems",
        "MinLength",
        "MinProperties",
        "Minimum",
        "MultipleOf",
        "Not",
        "OneOfMultipleValid",
        "OneOfNotValid",
        "Pattern",
        "Required",
        "Type",
    )
)
_INSTEAD: Final = {
    "FalseSchema": "nothing is allowed there",
    "AdditionalProperties": "a property is not among those that are allowed",
    "UnevaluatedProperties": "a property is not among those that are allowed",
    "AdditionalItems": "there are more items than are allowed",
    "UnevaluatedItems": "there are more items than are allowed",
    "PropertyNames": "a property's name is not allowed",
    "UniqueItems": "items repeat",
}
# What JSON Schema knows as types, where it says only that a word is none.
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


class CompiledSchema:
    """One schema, ready to check values."""

    def __init__(self, validator: jsonschema_rs.Draft202012Validator) -> None:
        self._validator = validator

    def problems(self, instance: object) -> list[Problem]:
        """Return what is wrong with a value; empty: it fits."""
        try:
            if self._validator.is_valid(instance):
                return []
            errors = list(islice(self._validator.iter_errors(instance), PROBLEMS_MAX))
        except ValueError:  # nested beyond what the library follows
            return [Problem("", "it is nested too deeply")]
        return [_problem(error) for error in errors]


class JsonSchemaCompiler:
    """Compiles schemas."""

    def compile(self, json_schema: str) -> CompiledSchema:
        """Return the check that a schema describes.

        Raises:
            PillionError: INVALID_FIELD, saying where it is no schema.
        """
        try:
            return CompiledSchema(
                jsonschema_rs.Draft202012Validator(
                    json_schema,
                    validate_formats=True,
                    pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES_MAX),
                    offline=True,
                    mask=_MASK,
                )
            )
        except jsonschema_rs.ValidationError as error:
            where = _pointer(error.instance_path)
            raise PillionError.of_field(FIELD, f"at #{where}: {_why(error, where)}") from None
        except ValueError as error:
            raise PillionError.of_field(FIELD, _shortened(str(error))) from None


def _why(error: jsonschema_rs.ValidationError, where: str) -> str:
    if where.endswith("/pattern") or "/patternProperties" in where:
        return (
            "is no regular expression that this server takes: look-around and back-references are "
            "not supported, and large repetitions are too expensive"
        )
    if where.endswith("/type") and type(error.kind).__name__.endswith("AnyOf"):
        return f"is none of {', '.join(_TYPES)}, and no list of some of them"
    return _shortened(error.message.replace(_MASK, "it"))


def _problem(error: jsonschema_rs.ValidationError) -> Problem:
    kind = type(error.kind).__name__.rpartition("_")[2]
    instead = _INSTEAD.get(kind, "")
    said = _shortened(error.message) if kind in _SAYING else instead
    return Problem(_pointer(error.schema_path), said)


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{str(one).replace('~', '~0').replace('/', '~1')}" for one in path)


def _shortened(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_MAX else text[:_DESCRIPTION_MAX] + "..."
