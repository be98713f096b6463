"""What a JSON Schema may look like, so that no value costs more than a bounded time to check.

References stay within the document and never lead back to themselves: with them written out, a
schema is a tree of a bounded size. Meaning and validity are the validator's business.
"""

from __future__ import annotations

import json
from typing import Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.values import canonical_json

FIELD: Final = "json_schema"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# Keywords whose value is data, or schemas that count only where something refers to them.
_NOT_APPLIED: Final = frozenset(
    ("const", "enum", "default", "examples", "$defs", "definitions", "$comment", "$vocabulary")
)
# Keywords whose value maps names to schemas: the names are no keywords.
_MAPS: Final = frozenset(("properties", "patternProperties", "dependentSchemas"))
_ELSEWHERE: Final = frozenset(("$dynamicRef", "$recursiveRef"))


def canonical_schema(text: str) -> str:
    """Return a schema's text in canonical form.

    Raises:
        PillionError: INVALID_FIELD or LIMIT_EXCEEDED at ``json_schema``, saying where and why.
    """
    if not text.strip():
        raise _refused("", "is required")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise _refused("", "holds a lone surrogate: it is not UTF-8") from None
    if size > limits.SCHEMA_BYTES_MAX:
        raise _too_much("", f"has {size} bytes; at most {limits.SCHEMA_BYTES_MAX} are allowed")
    try:
        canonical = canonical_json(text)
        size = len(canonical.encode())
    except UnicodeEncodeError:
        raise _refused("", "holds a lone surrogate: it is not UTF-8") from None
    except ValueError as error:
        raise _refused("", f"is not JSON: {error}") from None
    if size > limits.SCHEMA_BYTES_MAX:
        raise _too_much("", f"has {size} bytes; at most {limits.SCHEMA_BYTES_MAX} are allowed")
    document = json.loads(canonical)
    if not isinstance(document, dict | bool):
        raise _refused("", "must be a JSON object, or true or false")
    dialect = document.get("$schema", DIALECT) if isinstance(document, dict) else DIALECT
    if dialect not in (DIALECT, f"{DIALECT}#"):
        raise _refused("/$schema", f"must be {DIALECT}, or left out")
    _Walk(document).measure()
    return canonical


class _Walk:
    """Goes once through a schema as it is applied, references and all."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._sizes: dict[str, int] = {}
        self._open: set[str] = set()
        self._patterns = 0

    def measure(self) -> None:
        size = self._size(self._root, "", 0)
        if size > limits.SCHEMA_NODES_MAX:
            raise _too_much(
                "",
                f"comes to {size} subschemas with its references written out; at most "
                f"{limits.SCHEMA_NODES_MAX} are allowed",
            )

    def _size(self, schema: object, place: str, depth: int) -> int:
        """Return how many subschemas apply from here on down, this one included."""
        if depth > limits.SCHEMA_DEPTH_MAX:
            raise _too_much(place, f"nests more than {limits.SCHEMA_DEPTH_MAX} deep")
        if isinstance(schema, list):
            return sum(self._size(one, f"{place}/{at}", depth + 1) for at, one in enumerate(schema))
        if not isinstance(schema, dict):
            return 1
        size = 1
        for keyword, value in schema.items():
            below = f"{place}/{_escaped(keyword)}"
            if keyword == "$ref":
                size += self._target(value, below, depth + 1)
            elif keyword in _ELSEWHERE:
                raise _refused(below, "only $ref is supported")
            elif keyword == "$id" and place:
                raise _refused(below, "only the whole schema may have an $id")
            elif keyword in _MAPS and isinstance(value, dict):
                self._count(len(value) if keyword == "patternProperties" else 0, below)
                for name, one in value.items():
                    size += self._size(one, f"{below}/{_escaped(name)}", depth + 1)
            elif keyword not in _NOT_APPLIED:
                self._count(keyword == "pattern", below)
                if isinstance(value, dict | list):
                    size += self._size(value, below, depth + 1)
        return size

    def _count(self, patterns: int, place: str) -> None:
        self._patterns += patterns
        if self._patterns > limits.SCHEMA_PATTERNS_MAX:
            raise _too_much(
                place, f"at most {limits.SCHEMA_PATTERNS_MAX} regular expressions are allowed"
            )

    def _target(self, reference: object, place: str, depth: int) -> int:
        if not isinstance(reference, str):
            raise _refused(place, "must be text")
        if reference != "#" and not reference.startswith("#/"):
            raise _refused(
                place, "must lead within this schema, for example #/$defs/name: nothing is fetched"
            )
        if "%" in reference:
            raise _refused(place, "must be written without percent-encoding")
        if reference in self._open or reference == "#":
            raise _refused(place, "leads back to itself: recursive schemas are not supported")
        known = self._sizes.get(reference)
        if known is None:
            self._open.add(reference)
            known = self._size(self._resolved(reference, place), reference[1:], depth)
            self._open.remove(reference)
            self._sizes[reference] = known
        return known

    def _resolved(self, reference: str, place: str) -> object:
        found: object = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and name in found:
                found = found[name]
            elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                raise _refused(place, "leads to nothing")
        return found


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _at(place: str) -> str:
    return f"at #{place}: " if place else ""


def _refused(place: str, why: str) -> PillionError:
    return PillionError.of_field(FIELD, f"{_at(place)}{why}")


def _too_much(place: str, why: str) -> PillionError:
    return PillionError.of_field(FIELD, f"{_at(place)}{why}", Reason.LIMIT_EXCEEDED)
