"""The type registry: what attributes mean, and how their values are migrated."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Unpack

from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import schema_service_pb2 as registry

from pillion_client import _from_wire, _methods
from pillion_client import _to_wire as wire
from pillion_client._async.caller import AsyncCaller
from pillion_client.enums import Cardinality, ConflictPolicy, ExistingValues
from pillion_client.schemas import (
    AttributeSchema,
    JsonSchema,
    MigrateResult,
    RegisterResult,
    ValueStep,
    schema_text,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from datetime import timedelta

    from pillion_client.options import CallOptions
    from pillion_client.preconditions import Precondition
    from pillion_client.results import Operation


class AsyncRegistry(AsyncCaller):
    """The part of the client that says what attributes mean."""

    async def register_attribute(
        self,
        attribute: str,
        json_schema: JsonSchema,
        *,
        precondition: Precondition,
        subject_types: Sequence[str] = (),
        cardinality: Cardinality | str = Cardinality.UNSPECIFIED,
        half_life: timedelta | None = None,
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
            half_life: Its half-life in ranking, 1 minute to 100 years; None: that of its kind.
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
                half_life=None if half_life is None else wire.duration(half_life),
                retention_class=retention_class,
                pii_labels=pii_labels,
                conflict_policy=wire.enum_number(ConflictPolicy, conflict_policy),
            ),
            precondition=wire.precondition(precondition),
            existing_values=wire.enum_number(ExistingValues, existing_values),
            validate_only=validate_only,
        )
        response = await self._call(_methods.REGISTER_ATTRIBUTE, request, options)
        return _from_wire.register_result(response)

    async def get_attribute(
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
        response = await self._call(_methods.GET_ATTRIBUTE, request, options)
        return _from_wire.attribute_schema(response.schema)

    async def list_attributes(
        self, *, page_size: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncIterator[AttributeSchema]:
        """Yield the latest versions of registered attributes, by name.

        Args:
            page_size: Attributes fetched at once, up to 100; 0: the server's own.
            **options: Where and how long to wait, for each page.
        """
        request = registry.ListAttributesRequest(
            partition=wire.partition(self._where(options)), page_size=page_size
        )
        while True:
            response = await self._call(_methods.LIST_ATTRIBUTES, request, options)
            for schema in response.schemas:
                yield _from_wire.attribute_schema(schema)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def migrate_attribute(
        self,
        attribute: str,
        to_schema_version: int,
        *,
        steps: Sequence[ValueStep] = (),
        dry_run: bool = False,
        request_id: str | None = None,
        **options: Unpack[CallOptions],
    ) -> MigrateResult:
        """Bring values of older schema versions to one; the work goes on in the background.

        Args:
            attribute: Whose values.
            to_schema_version: To which version.
            steps: How an old value becomes a new one; none: values that fit get the version.
            dry_run: Say what would change and what does not fit; change nothing.
            request_id: 1 to 64 bytes; None: a new UUID.
            **options: Where and how long to wait.

        Raises:
            AlreadyRunning: The attribute is being migrated or rolled back.
        """
        request = registry.MigrateAttributeRequest(
            partition=wire.partition(self._where(options)),
            request_id=request_id or str(uuid.uuid4()),
            attribute=attribute,
            to_schema_version=to_schema_version,
            dry_run=dry_run,
            steps=[wire.value_step(one) for one in steps],
        )
        response = await self._call(_methods.MIGRATE_ATTRIBUTE, request, options)
        return _from_wire.migrate_result(response)

    async def roll_back_migration(
        self, operation_name: str, **options: Unpack[CallOptions]
    ) -> Operation:
        """Take a migration back before its end; return the work that does it.

        Values that others changed meanwhile stay. Called again, it starts another roll-back,
        which finds nothing left to do.

        Raises:
            FailedPrecondition: ALREADY_ENDED: it came to its end.
        """
        request = registry.RollBackMigrationRequest(
            partition=wire.partition(self._where(options)), operation_name=operation_name
        )
        response = await self._call(_methods.ROLL_BACK_MIGRATION, request, options)
        return _from_wire.operation(response.operation)

    async def get_operation(self, name: str, **options: Unpack[CallOptions]) -> Operation:
        """Return long work.

        Raises:
            NotFound: There is none of the name, or its record was dropped 7 days after its end.
        """
        request = service.GetOperationRequest(
            partition=wire.partition(self._where(options)), name=name
        )
        response = await self._call(_methods.GET_OPERATION, request, options)
        return _from_wire.operation(response.operation)

    async def wait_operation(self, name: str, **options: Unpack[CallOptions]) -> Operation:
        """Return long work once it has ended, or as it is shortly before the deadline.

        Raises:
            NotFound: There is none of the name.
        """
        request = service.WaitOperationRequest(
            partition=wire.partition(self._where(options)), name=name
        )
        response = await self._call(_methods.WAIT_OPERATION, request, options)
        return _from_wire.operation(response.operation)

    async def cancel_operation(self, name: str, **options: Unpack[CallOptions]) -> Operation:
        """Stop long work; what it has committed stays.

        Raises:
            NotFound: There is none of the name.
        """
        request = service.CancelOperationRequest(
            partition=wire.partition(self._where(options)), name=name
        )
        response = await self._call(_methods.CANCEL_OPERATION, request, options)
        return _from_wire.operation(response.operation)

    async def list_operations(
        self, *, page_size: int = 0, **options: Unpack[CallOptions]
    ) -> AsyncIterator[Operation]:
        """Yield long work, the latest first.

        Args:
            page_size: Operations fetched at once, up to 100; 0: the server's own.
            **options: Where and how long to wait, for each page.
        """
        request = service.ListOperationsRequest(
            partition=wire.partition(self._where(options)), page_size=page_size
        )
        while True:
            response = await self._call(_methods.LIST_OPERATIONS, request, options)
            for one in response.operations:
                yield _from_wire.operation(one)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token
