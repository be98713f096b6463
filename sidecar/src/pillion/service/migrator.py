"""MigrateAttribute and RollBackMigration: how they begin. `migrating` carries them out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from pillion_storage import codec, registry_codec
from pillion_storage.api import Committed, Token

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition, check_request_id, check_text
from pillion.domain.migrations import check_steps
from pillion.domain.operations import (
    MIGRATE,
    ROLL_BACK,
    MigrateAnswer,
    Migration,
    Operation,
    OperationState,
)
from pillion.domain.schemas import Cardinality
from pillion.service.attribute_rows import AttributeRows
from pillion.service.catalogue import schema_of
from pillion.service.draft import Draft
from pillion.service.migrating import is_older, value_for
from pillion.service.operations import (
    find_operation,
    memo_of,
    operation_id_of,
    put_operation,
)
from pillion.service.records import not_found
from pillion.service.writer import changed_too_often, token_id

if TYPE_CHECKING:
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.operations import MigrateCommand
    from pillion.domain.schemas import Registration
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline, IdSource
    from pillion.service.beginning import Beginner
    from pillion.service.operations import RunningOperations
    from pillion.service.partitions import KeySpaces
    from pillion.service.registry import CheckedSchema, Registry


class _Found(NamedTuple):
    """What a migration will find: values that fit afterwards, and those that do not."""

    values: int
    misfits: int
    misfit_ids: tuple[UUID, ...]


class Migrator:
    """Begins migrations and their roll-backs."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        ids: IdSource,
        registry: Registry,
        running: RunningOperations,
        beginner: Beginner,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._registry = registry
        self._running = running
        self._beginner = beginner
        self._rows = AttributeRows(store)

    def migrate(
        self, partition: Partition, command: MigrateCommand, deadline: Deadline
    ) -> MigrateAnswer:
        """Begin a migration, or in a dry run say what it would find.

        Raises:
            PillionError: A field is at fault; NOT_FOUND when there is no such schema version;
                ALREADY_RUNNING while the attribute is migrated or rolled back.
        """
        check_partition(partition)
        check_request_id(command.request_id)
        check_text("attribute", command.attribute, limits.NAME_BYTES_MAX, required=True)
        check_steps(command.steps)
        if command.request_id:
            earlier = self._store.find_token(partition, token_id(MIGRATE, command.request_id))
            if earlier is not None:
                return self._replayed(partition, command, earlier)
        for _ in range(limits.COMMIT_TRIES_MAX):
            deadline.check()
            answer = self._try(partition, command, deadline)
            if answer is not None:
                return answer
        raise changed_too_often()

    def _try(
        self, partition: Partition, command: MigrateCommand, deadline: Deadline
    ) -> MigrateAnswer | None:
        draft = Draft(self._store, partition)
        keys = self._keys.at(partition, draft.revision)
        registration = self._registry.registration(draft, keys, command.attribute)
        checked = self._target(draft, keys, registration, command)
        if registration is None:
            raise not_found("registered attribute", command.attribute)
        if registration.migration:
            raise _already_running(registration)
        found = self._survey(draft, keys, checked, command, deadline)
        if command.dry_run:
            return MigrateAnswer(operation=None, values=found.values, misfit_ids=found.misfit_ids)
        self._rows.complete(partition, keys, deadline)
        self._beginner.sweep(partition)
        operation = Operation(
            id=self._ids.new_id(),
            verb=MIGRATE,
            state=OperationState.RUNNING,
            started_at=self._clock.now_us(),
            total=found.values + found.misfits,
            work=Migration(
                attribute=command.attribute,
                schema_version=command.schema_version,
                steps=command.steps,
            ),
        )
        self._put(draft, keys, registration, operation)
        memo = memo_of(
            command.body_digest, operation, found.values, [one.bytes for one in found.misfit_ids]
        )
        token = Token(token_id(MIGRATE, command.request_id), memo) if command.request_id else None
        outcome = self._store.commit(partition, draft.batch(token))
        if not isinstance(outcome, Committed):
            return None
        if outcome.replayed:
            return self._replayed(partition, command, outcome)
        self._running.add(partition, operation.id)
        return MigrateAnswer(operation=operation, values=found.values, misfit_ids=found.misfit_ids)

    def _target(
        self,
        draft: Draft,
        keys: KeySpace,
        registration: Registration | None,
        command: MigrateCommand,
    ) -> CheckedSchema:
        latest = registration.latest if registration is not None else 0
        if not latest:
            raise not_found("registered attribute", command.attribute)
        if not 1 <= command.schema_version <= latest:
            raise PillionError.of_field(
                "to_schema_version", f"is no version of this attribute: the latest is {latest}"
            )
        schema = schema_of(draft, keys, command.attribute, command.schema_version)
        if schema.cardinality is Cardinality.SET and command.steps:
            raise PillionError(
                Reason.NOT_SERVED,
                "steps: values of sets are not migrated yet: state them anew, or migrate without "
                "steps to give those that fit the new version",
                metadata={"capability": "CAPABILITY_MIGRATIONS"},
            )
        return self._registry.compile(schema)

    def _survey(
        self,
        draft: Draft,
        keys: KeySpace,
        checked: CheckedSchema,
        command: MigrateCommand,
        deadline: Deadline,
    ) -> _Found:
        values = misfits = 0
        ids: list[UUID] = []
        for memories in self._rows.of(draft.partition, keys, command.attribute, draft.revision):
            deadline.check()
            for memory in memories:
                if not is_older(memory, command.schema_version):
                    continue
                if value_for(memory, checked, command.steps) is not None:
                    values += 1
                    continue
                misfits += 1
                if len(ids) < limits.MISFITS_SHOWN_MAX:
                    ids.append(memory.id)
        return _Found(values, misfits, tuple(ids))

    def _put(
        self, draft: Draft, keys: KeySpace, registration: Registration, operation: Operation
    ) -> None:
        put_operation(draft, operation)
        held = replace(registration, migration=operation.id.bytes)
        draft.put(
            keys.registration(registration.attribute), registry_codec.encode_registration(held)
        )

    def _replayed(
        self, partition: Partition, command: MigrateCommand, earlier: Committed
    ) -> MigrateAnswer:
        operation = self._beginner.replayed(partition, earlier, command.body_digest)
        _, _, values, ids = codec.unpack(earlier.memo or b"")
        return MigrateAnswer(
            operation=operation,
            values=values,
            misfit_ids=tuple(UUID(bytes=one) for one in ids),
        )

    def roll_back(self, partition: Partition, name: str, deadline: Deadline) -> Operation:
        """Stop a migration and begin to take back what it changed.

        Raises:
            PillionError: NOT_FOUND; ALREADY_ENDED when it came to its end, or is no migration;
                ALREADY_RUNNING when the attribute is being migrated or rolled back otherwise.
        """
        check_partition(partition)
        for _ in range(limits.COMMIT_TRIES_MAX):
            deadline.check()
            draft, now = Draft(self._store, partition), self._clock.now_us()
            keys = self._keys.at(partition, draft.revision)
            target = find_operation(draft, operation_id_of(name))
            if target is None:
                raise not_found("operation", name)
            work = target.migration
            done = target.state is OperationState.SUCCEEDED or work.closing
            if target.verb != MIGRATE or done:
                raise PillionError(
                    Reason.ALREADY_ENDED, "only a migration that has not come to its end goes back"
                )
            registration = self._registry.registration(draft, keys, work.attribute)
            if registration is None:
                raise not_found("registered attribute", work.attribute)
            if registration.migration not in (b"", target.id.bytes):
                other = find_operation(draft, UUID(bytes=registration.migration))
                if other is not None and other.migration.undoes == target.id:
                    return other  # asked for before
                raise _already_running(registration)
            undo = Operation(
                id=self._ids.new_id(),
                verb=ROLL_BACK,
                state=OperationState.RUNNING,
                started_at=now,
                total=work.migrated,
                work=Migration(
                    attribute=work.attribute,
                    schema_version=work.schema_version,
                    undoes=target.id,
                ),
            )
            if target.state is OperationState.RUNNING:
                put_operation(draft, target.ended(OperationState.CANCELLED, now))
            self._put(draft, keys, registration, undo)
            if isinstance(self._store.commit(partition, draft.batch(None)), Committed):
                self._running.add(partition, undo.id)
                return undo
        raise changed_too_often()


def _already_running(registration: Registration) -> PillionError:
    name = str(UUID(bytes=registration.migration))
    return PillionError(
        Reason.ALREADY_RUNNING,
        f"operation {name} is migrating this attribute or taking that back: wait for it",
        metadata={"operation": name},
    )
