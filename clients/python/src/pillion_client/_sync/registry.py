# Generated from _async/registry.py by scripts/gen_sync_client.py (`make gen`). Do not edit.
"""The type registry: what attributes mean."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Unpack

from pillion_proto.memory.v1 import schema_service_pb2 as registry

from pillion_client import _from_wire, _methods
from pillion_client import _to_wire as wire
from pillion_client._sync.caller import Caller
from pillion_client.enums import Cardinality, ConflictPolicy, ExistingValues
from pillion_client.schemas import AttributeSchema, JsonSchema, RegisterResult, schema_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pillion_client.options import CallOptions
    from pillion_client.preconditions import Precondition


class Registry(Caller):
    """The part of the client that says what attributes mean."""

    def register_attribute(
        self,
        attribute: str,
        json_schema: JsonSchema,
        *,
        precondition: Precondition,
        subject_types: Sequence[str] = (),
        cardinality: Cardinality | str = Cardinality.UNSPECIFIED,
        retention_class: str = "",
        pii_labels: Sequence[str] = (),
        conflict_policy: ConflictPolicy | str = ConflictPolicy.UNSPECIFIED,
        existing_values: ExistingValues | str = ExistingValues.UNSPECIFIED,
        validate_only: bool = False,
        request_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> RegisterResult:
        """Register an attribute, or a new schema version of one; the same again changes nothing.

        Args:
            attribute: Its name, 1 to 128 bytes.
            json_schema: Of its values: JSON or its text (draft 2020-12), or a pydantic model.
            precondition: What must hold of the registration.
            subject_types: Types of subject that may have it; none: any.
            cardinality: "one" value at an instant, or a "set".
            retention_class: Of new values; "": the partition's default.
            pii_labels: Kinds of personal data in its values.
            conflict_policy: Of statements that name none.
            existing_values: Values that are there "must_fit" (the default) or "may_differ".
            validate_only: Check everything, change nothing.
            request_id: 1 to 64 bytes; None: a new UUID.
            **options: Where and how long to wait.

        Raises:
            InvalidArgument: SCHEMA_VIOLATION when values that are there do not fit.
        """
        request = registry.RegisterAttributeRequest(
            partition=wire.partition(self._where(options)),
            request_id=request_id or str(uuid.uuid4()),
            schema=registry.AttributeSchema(
                attribute=attribute,
                json_schema=schema_text(json_schema),
                subject_types=subject_types,
                cardinality=wire.enum_number(Cardinality, cardinality),
                retention_class=retention_class,
                pii_labels=pii_labels,
                conflict_policy=wire.enum_number(ConflictPolicy, conflict_policy),
            ),
            precondition=wire.precondition(precondition),
            existing_values=wire.enum_number(ExistingValues, existing_values),
            validate_only=validate_only,
        )
        response = self._call(_methods.REGISTER_ATTRIBUTE, request, options)
        return _from_wire.register_result(response)

    def get_attribute(
        self, attribute: str, *, schema_version: int = 0, **options: Unpack[CallOptions]
    ) -> AttributeSchema:
        """Return one version of a registered attribute; 0: the latest.

        Raises:
            NotFound: It is not registered, or has no such version.
        """
        request = registry.GetAttributeRequest(
            partition=wire.partition(self._where(options)),
            attribute=attribute,
            schema_version=schema_version,
        )
        response = self._call(_methods.GET_ATTRIBUTE, request, options)
        return _from_wire.attribute_schema(response.schema)

    def list_attributes(
        self, *, page_size: int = 0, **options: Unpack[CallOptions]
    ) -> Iterator[AttributeSchema]:
        """Yield the latest versions of registered attributes, by name.

        Args:
            page_size: Attributes fetched at once, up to 100; 0: the server's own.
            **options: Where and how long to wait, for each page.
        """
        request = registry.ListAttributesRequest(
            partition=wire.partition(self._where(options)), page_size=page_size
        )
        while True:
            response = self._call(_methods.LIST_ATTRIBUTES, request, options)
            for schema in response.schemas:
                yield _from_wire.attribute_schema(schema)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token
