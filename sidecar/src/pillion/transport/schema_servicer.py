"""SchemaService: the type registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import schema_service_pb2 as wire

from pillion.transport.convert import operations, schemas
from pillion.transport.unserved import refuse_unserved

if TYPE_CHECKING:
    from pillion.service import UseCases
    from pillion.transport.call import Call


@refuse_unserved
class SchemaServicer:
    """Serves whoever says what attributes mean."""

    def __init__(self, use_cases: UseCases) -> None:
        self._use_cases = use_cases

    def RegisterAttribute(  # noqa: N802
        self, request: wire.RegisterAttributeRequest, call: Call
    ) -> wire.RegisterAttributeResponse:
        """Register an attribute, or a new version of one."""
        command = schemas.register_from_wire(request)
        answer = self._use_cases.registrar.register(call.partition, command, call.deadline)
        return schemas.register_to_wire(answer)

    def GetAttribute(  # noqa: N802
        self, request: wire.GetAttributeRequest, call: Call
    ) -> wire.GetAttributeResponse:
        """Return one version of a registered attribute."""
        found = self._use_cases.catalogue.get(
            call.partition, request.attribute, request.schema_version
        )
        return wire.GetAttributeResponse(schema=schemas.schema_to_wire(found))

    def ListAttributes(  # noqa: N802
        self, request: wire.ListAttributesRequest, call: Call
    ) -> wire.ListAttributesResponse:
        """Return a page of registered attributes by name."""
        found, next_token = self._use_cases.catalogue.page(
            call.partition,
            page_size=request.page_size,
            page_token=request.page_token,
            deadline=call.deadline,
        )
        return schemas.schemas_to_wire(found, next_token)

    def MigrateAttribute(  # noqa: N802
        self, request: wire.MigrateAttributeRequest, call: Call
    ) -> wire.MigrateAttributeResponse:
        """Begin a migration, or say what it would find."""
        command = operations.migrate_from_wire(request)
        answer = self._use_cases.migrator.migrate(call.partition, command, call.deadline)
        return operations.migrate_to_wire(answer)

    def RollBackMigration(  # noqa: N802
        self, request: wire.RollBackMigrationRequest, call: Call
    ) -> wire.RollBackMigrationResponse:
        """Begin to take a migration back."""
        found = self._use_cases.migrator.roll_back(
            call.partition, request.operation_name, call.deadline
        )
        return wire.RollBackMigrationResponse(operation=operations.operation_to_wire(found))
