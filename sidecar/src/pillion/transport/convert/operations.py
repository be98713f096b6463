"""Long work: its records on the wire, and the requests that begin a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import schema_service_pb2 as wire
from pillion_proto.memory.v1 import types_pb2

from pillion.domain.errors import PillionError
from pillion.domain.limits import OPERATION_KEPT_US, STEPS_MAX
from pillion.domain.migrations import (
    Convert,
    DefaultProperty,
    RemoveProperty,
    RenameProperty,
    Replace,
    Unwrap,
    ValueType,
    Wrap,
)
from pillion.domain.operations import BackgroundForget, MigrateCommand, Migration, OperationState
from pillion.domain.reindexing import Reindexing
from pillion.transport.convert.commands import body_digest, check_length
from pillion.transport.convert.instants import duration_to_wire, put_instant
from pillion.transport.convert.scalars import enum_from_wire, required, value_from_wire

if TYPE_CHECKING:
    from pillion.domain.migrations import Step
    from pillion.domain.operations import MigrateAnswer, Operation, Work


def migrate_from_wire(request: wire.MigrateAttributeRequest) -> MigrateCommand:
    """Return a migration."""
    check_length(request.steps, "steps", 0, STEPS_MAX)
    return MigrateCommand(
        attribute=request.attribute,
        schema_version=request.to_schema_version,
        steps=tuple(_step(one, f"steps[{at}]") for at, one in enumerate(request.steps)),
        dry_run=request.dry_run,
        request_id=request.request_id,
        body_digest=body_digest(request),
    )


def _step(step: wire.ValueStep, field: str) -> Step:  # noqa: PLR0911  (one a kind)
    match step.WhichOneof("kind"):
        case "convert":
            return Convert(enum_from_wire(ValueType, step.convert.to, f"{field}.convert.to"))
        case "replace":
            required(step.replace, "from", f"{field}.replace.from")
            required(step.replace, "to", f"{field}.replace.to")
            old: types_pb2.Value = getattr(step.replace, "from")  # a keyword of Python
            return Replace(
                value_from_wire(old, f"{field}.replace.from"),
                value_from_wire(step.replace.to, f"{field}.replace.to"),
            )
        case "rename_property":
            renamed = step.rename_property
            return RenameProperty(getattr(renamed, "from"), renamed.to)
        case "default_property":
            return DefaultProperty(step.default_property.name, step.default_property.json_value)
        case "remove_property":
            return RemoveProperty(step.remove_property.name)
        case "wrap":
            return Wrap(step.wrap.name)
        case "unwrap":
            return Unwrap(step.unwrap.name)
        case _:
            raise PillionError.of_field(field, "one kind of step must be set")


def migrate_to_wire(answer: MigrateAnswer) -> wire.MigrateAttributeResponse:
    """Return what a migration began with."""
    return wire.MigrateAttributeResponse(
        operation=operation_to_wire(answer.operation) if answer.operation is not None else None,
        values=answer.values,
        misfit_ids=[str(one) for one in answer.misfit_ids],
    )


def operation_to_wire(operation: Operation) -> types_pb2.Operation:
    """Return long work; its result once it succeeded."""
    made = types_pb2.Operation(
        name=str(operation.id),
        verb=operation.verb,
        done_units=operation.done,
        total_units=operation.total,
        unit=operation.work.unit,
        state=operation.state,  # type: ignore[arg-type]
        failure_reason=operation.failure_reason,
        kept_for=duration_to_wire(OPERATION_KEPT_US),
    )
    put_instant(made.started_at, operation.started_at)
    if operation.ended_at:
        put_instant(made.ended_at, operation.ended_at)
    if operation.state is OperationState.SUCCEEDED:
        made.progress = 1.0
        _put_result(made, operation.work)
    elif operation.total:
        made.progress = min(operation.done / operation.total, 1.0)
    return made


def _put_result(made: types_pb2.Operation, work: Work) -> None:
    """Set the result that the work of a verb comes to."""
    match work:
        case Migration():
            made.migration.CopyFrom(_migration_to_wire(work))
        case BackgroundForget():
            made.forget.CopyFrom(_forget_to_wire(work))
        case Reindexing():
            made.reindex.CopyFrom(
                types_pb2.ReindexReport(memories=work.memories, re_embedded=work.target is not None)
            )
        case _:
            raise TypeError(f"no result is known of {made.verb}")


def _forget_to_wire(work: BackgroundForget) -> types_pb2.ForgetReport:
    return types_pb2.ForgetReport(
        memories=work.memories,
        episodes=work.episodes,
        derived=work.derived,
        sample_ids=map(str, work.sample_ids),
        exempt_ids=map(str, work.exempt_ids),
        unpreviewed=work.unpreviewed,
    )


def _migration_to_wire(work: Migration) -> types_pb2.MigrationReport:
    return types_pb2.MigrationReport(
        attribute=work.attribute,
        schema_version=work.schema_version,
        migrated=work.migrated,
        misfits=work.misfits,
        misfit_ids=[str(one) for one in work.misfit_ids],
    )
