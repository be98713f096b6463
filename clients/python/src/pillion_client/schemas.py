"""The type registry in the client: what is registered, and schemas from models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from pillion_client.enums import Cardinality, ConflictPolicy, ValueType
    from pillion_client.models import JsonValue, Value
    from pillion_client.results import Operation


class SchemaModel(Protocol):
    """What describes itself as a JSON Schema: a pydantic model, or anything like one."""

    def model_json_schema(self) -> dict[str, object]:
        """Return the JSON Schema."""
        ...


JsonSchema: TypeAlias = "str | bool | Mapping[str, object] | SchemaModel"
"""A JSON Schema: as text, as JSON, or a model that describes itself."""


@dataclass(frozen=True, slots=True)
class AttributeSchema:
    """One version of a registered attribute. ``version`` is the token for ``version_equals``.

    ``half_life`` is its half-life in ranking; None: that of its kind.
    """

    attribute: str
    json_schema: str
    subject_types: tuple[str, ...]
    cardinality: Cardinality
    half_life: timedelta | None
    retention_class: str | None
    pii_labels: tuple[str, ...]
    conflict_policy: ConflictPolicy
    schema_version: int
    registered_at: datetime | None
    version: int


@dataclass(frozen=True, slots=True)
class RegisterResult:
    """A registration: as stored, and the values that are held now and do not fit it.

    ``misfits`` counts them; ``misfit_ids`` are the memories of the first 100.
    """

    schema: AttributeSchema
    revision: int
    misfits: int
    misfit_ids: tuple[str, ...]


def schema_of(model: SchemaModel) -> str:
    """Return the JSON Schema of a model as text: of a pydantic class, or anything like one.

    Raises:
        TypeError: It does not describe itself.
    """
    describe = getattr(model, "model_json_schema", None)
    if not callable(describe):
        message = f"{model!r} has no model_json_schema(): give a pydantic model, or a JSON Schema"
        raise TypeError(message)
    return json.dumps(describe(), ensure_ascii=False)


def schema_text(schema: JsonSchema) -> str:
    """Return a JSON Schema as text.

    Raises:
        TypeError: It is no schema, and no model either.
        ValueError: It holds what JSON has no place for.
    """
    if isinstance(schema, str):
        return schema
    if isinstance(schema, bool | dict):
        return json.dumps(schema, ensure_ascii=False, allow_nan=False)
    return schema_of(cast("SchemaModel", schema))


@dataclass(frozen=True, slots=True)
class ConvertValue:
    """A value becomes one of another type; where it cannot, it is a misfit."""

    to: ValueType | str


@dataclass(frozen=True, slots=True)
class ReplaceValue:
    """One value becomes another; others stay."""

    old: Value
    new: Value


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """A property of an object gets another name. Where that is taken, the value is a misfit."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DefaultProperty:
    """A property that is absent gets a value."""

    name: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class RemoveProperty:
    """A property goes, if it is there."""

    name: str


@dataclass(frozen=True, slots=True)
class WrapValue:
    """The value becomes the only property of an object."""

    name: str


@dataclass(frozen=True, slots=True)
class UnwrapValue:
    """An object becomes the value of one of its properties; without it, it is a misfit."""

    name: str


ValueStep: TypeAlias = (
    ConvertValue
    | ReplaceValue
    | RenameProperty
    | DefaultProperty
    | RemoveProperty
    | WrapValue
    | UnwrapValue
)
"""One step from an old value to a new one."""


@dataclass(frozen=True, slots=True)
class MigrateResult:
    """A migration that began (None: a dry run), how many values it takes, and misfits.

    ``misfit_ids`` are the memories of the first 100 values that do not fit.
    """

    operation: Operation | None
    values: int
    misfit_ids: tuple[str, ...]
