"""The rules of the type registry: what may be registered, what may change, what a fact must be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.domain.field_checks import check_count, check_pii_labels, check_text
from pillion.domain.schema_text import canonical_schema
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind, format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pillion.domain.memory import Memory
    from pillion.domain.schemas import AttributeSchema, Problem

# What the server fills in: the rest is what a registration says.
_FILLED_IN: Final = {"schema_version": 1, "registered_at": 0, "version": 0}


def checked_schema(schema: AttributeSchema) -> AttributeSchema:
    """Return what is to be registered in canonical form.

    Raises:
        PillionError: A field of it is at fault. Whether the JSON Schema means anything is not
            checked here.
    """
    check_text("attribute", schema.attribute, limits.NAME_BYTES_MAX, required=True)
    check_count("subject_types", len(schema.subject_types), limits.SUBJECT_TYPES_MAX)
    for one in schema.subject_types:
        check_text("subject_types", one, limits.SUBJECT_TYPE_BYTES_MAX, required=True)
    check_text("retention_class", schema.retention_class, limits.NAME_BYTES_MAX)
    check_pii_labels("pii_labels", schema.pii_labels)
    half_life = schema.half_life
    if half_life is not None and not (
        limits.HALF_LIFE_MIN_US <= half_life <= limits.HALF_LIFE_MAX_US
    ):
        raise PillionError.of_field("half_life", "must be from 1 minute to 100 years")
    return replace(
        schema,
        json_schema=canonical_schema(schema.json_schema),
        subject_types=tuple(sorted(set(schema.subject_types))),
        pii_labels=tuple(sorted(set(schema.pii_labels))),
    )


def says_the_same(one: AttributeSchema, other: AttributeSchema) -> bool:
    """Return whether two registrations mean the same, whenever they were made."""
    return replace(one, **_FILLED_IN) == replace(other, **_FILLED_IN)  # type: ignore[arg-type]


def refuse_change(old: AttributeSchema | None, new: AttributeSchema) -> None:
    """Refuse a change that rows which are there would not survive.

    Args:
        old: What is registered; None: nothing, so that a key has one value.
        new: What is to be.

    Raises:
        PillionError: SCHEMA_VIOLATION.
    """
    cardinality = old.cardinality if old is not None else type(new.cardinality).ONE
    if new.cardinality is not cardinality:
        raise PillionError.of_field(
            "cardinality",
            f"is {cardinality.name} and there are facts: register another attribute, and state "
            "them there",
            Reason.SCHEMA_VIOLATION,
        )
    if old is not None and new.subject_types != old.subject_types:
        raise PillionError.of_field(
            "subject_types",
            "cannot change while there are facts: register another attribute",
            Reason.SCHEMA_VIOLATION,
        )


def instance_of(value: Value) -> object:
    """Return a value in JSON's types, as a JSON Schema sees it.

    Text, numbers and truth values are themselves; an instant is text in RFC 3339 with Z (format
    date-time), a subject is an object of ``type`` and ``id``, JSON is what it says.
    """
    data = value.data
    match value.kind:
        case ValueKind.INSTANT if isinstance(data, int):
            return format_instant(data)
        case ValueKind.JSON if isinstance(data, str):
            return json.loads(data)
        case _ if isinstance(data, Subject):
            return {"type": data.type, "id": data.id}
        case _:
            return data


def value_refused(schema: AttributeSchema, problems: Sequence[Problem]) -> PillionError:
    """Return the error for a value that does not fit: it quotes the schema, never the value."""
    violations = [FieldViolation("value", _sentence(schema, one)) for one in problems]
    return PillionError(
        Reason.SCHEMA_VIOLATION,
        f"value: {violations[0].description}",
        violations=violations,
        metadata={"schema_version": str(schema.schema_version)},
    )


def return_refused(schema: AttributeSchema, memory_id: UUID) -> PillionError:
    """Return the error for a memory that would hold again with a value that does not fit."""
    return PillionError(
        Reason.SCHEMA_VIOLATION,
        f"memory {memory_id} would hold again, and its value does not fit schema version "
        f"{schema.schema_version}: state one that does at that instant, with the conflict policy "
        "CORRECT where another statement begins there",
        metadata={"schema_version": str(schema.schema_version), "existing_id": str(memory_id)},
    )


def _sentence(schema: AttributeSchema, problem: Problem) -> str:
    why = f": {problem.description}" if problem.description else ""
    return f"does not fit schema version {schema.schema_version} at #{problem.place}{why}"


def check_subject_type(schema: AttributeSchema, subject: Subject) -> None:
    """Refuse a subject of a type that may not have the attribute.

    Raises:
        PillionError: SCHEMA_VIOLATION.
    """
    if not takes_subject(schema, subject):
        raise PillionError.of_field(
            "subject.type",
            f"this attribute is one of {', '.join(schema.subject_types)} only",
            Reason.SCHEMA_VIOLATION,
        )


def takes_subject(schema: AttributeSchema, subject: Subject) -> bool:
    """Return whether a subject may have the attribute."""
    return not schema.subject_types or subject.type in schema.subject_types


def typed(memory: Memory, schema: AttributeSchema) -> Memory:
    """Return a fact with the marks and defaults of its attribute."""
    return replace(
        memory,
        schema_version=schema.schema_version,
        in_set=schema.is_set,
        retention_class=memory.retention_class or schema.retention_class,
        pii_labels=tuple(sorted({*memory.pii_labels, *schema.pii_labels})),
    )


def unregistered(attribute: str) -> PillionError:
    """Return the error for an attribute that nobody registered, where that is asked for."""
    return PillionError(
        Reason.ATTRIBUTE_UNREGISTERED,
        "attribute: nobody registered it, and this server takes registered ones only: register "
        "it with RegisterAttribute, or correct its name",
        violations=[FieldViolation("attribute", "is not registered")],
        metadata={"attribute": attribute},
    )
