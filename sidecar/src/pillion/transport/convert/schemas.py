"""The type registry's requests and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import schema_service_pb2 as wire

from pillion.domain.mutations import ConflictPolicy
from pillion.domain.schemas import AttributeSchema, Cardinality, ExistingValues, RegisterCommand
from pillion.transport.convert.commands import body_digest
from pillion.transport.convert.instants import duration_from_wire, duration_to_wire, put_instant
from pillion.transport.convert.scalars import optional_enum, precondition_from_wire, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion.domain.schemas import RegisterAnswer


def register_from_wire(request: wire.RegisterAttributeRequest) -> RegisterCommand:
    """Return a registration. What the server fills in is ignored where a caller sends it back."""
    required(request, "schema", "schema")
    schema = request.schema
    existing = optional_enum(ExistingValues, request.existing_values, "existing_values")
    return RegisterCommand(
        schema=AttributeSchema(
            attribute=schema.attribute,
            json_schema=schema.json_schema,
            subject_types=tuple(schema.subject_types),
            cardinality=optional_enum(Cardinality, schema.cardinality, "schema.cardinality")
            or Cardinality.ONE,
            half_life=duration_from_wire(schema.half_life, "schema.half_life")
            if schema.HasField("half_life")
            else None,
            retention_class=schema.retention_class,
            pii_labels=tuple(schema.pii_labels),
            conflict_policy=optional_enum(
                ConflictPolicy, schema.conflict_policy, "schema.conflict_policy"
            ),
        ),
        precondition=precondition_from_wire(request, "precondition"),
        existing_values=existing or ExistingValues.MUST_FIT,
        validate_only=request.validate_only,
        request_id=request.request_id,
        body_digest=body_digest(request),
    )


def schema_to_wire(schema: AttributeSchema) -> wire.AttributeSchema:
    """Return a registered attribute."""
    made = wire.AttributeSchema(
        attribute=schema.attribute,
        json_schema=schema.json_schema,
        subject_types=schema.subject_types,
        cardinality=schema.cardinality,  # type: ignore[arg-type]
        retention_class=schema.retention_class,
        pii_labels=schema.pii_labels,
        conflict_policy=schema.conflict_policy or 0,  # type: ignore[arg-type]
        schema_version=schema.schema_version,
        version=schema.version,
    )
    if schema.half_life is not None:
        made.half_life.CopyFrom(duration_to_wire(schema.half_life))
    if schema.registered_at:
        put_instant(made.registered_at, schema.registered_at)
    return made


def register_to_wire(answer: RegisterAnswer) -> wire.RegisterAttributeResponse:
    """Return what became of a registration."""
    return wire.RegisterAttributeResponse(
        schema=schema_to_wire(answer.schema),
        revision=answer.revision,
        misfits=answer.misfits,
        misfit_ids=[str(one) for one in answer.misfit_ids],
    )


def schemas_to_wire(
    schemas: Sequence[AttributeSchema], next_token: str
) -> wire.ListAttributesResponse:
    """Return a page of the registry."""
    return wire.ListAttributesResponse(
        schemas=[schema_to_wire(one) for one in schemas], next_page_token=next_token
    )
