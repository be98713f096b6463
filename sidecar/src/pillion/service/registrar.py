"""RegisterAttribute.

A registration is two commits with a survey in between. The first proposes it: from then on writers
satisfy the proposal too, and a write that was planned before is planned again, since it had read
the registration. So the survey sees every value that does not fit. The second makes it the latest
version, or takes it back. A proposal that a crash leaves behind lapses.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec, registry_codec
from pillion_storage.api import Committed, StoreError, Token
from pillion_storage.keys import REGISTRATIONS, prefix_end

from pillion.domain import limits
from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.domain.field_checks import check_partition, check_request_id
from pillion.domain.memory import MemoryStatus
from pillion.domain.mutations import PreconditionKind
from pillion.domain.schema_policy import checked_schema, refuse_change, says_the_same
from pillion.domain.schemas import ExistingValues, RegisterAnswer, Registration
from pillion.domain.validation import check_precondition
from pillion.service.answers import check_same_body
from pillion.service.attribute_rows import AttributeRows
from pillion.service.catalogue import current_schema
from pillion.service.draft import Draft
from pillion.service.preconditions import require
from pillion.service.registry import withdraw
from pillion.service.writer import changed_too_often, token_id

if TYPE_CHECKING:
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.schemas import AttributeSchema, RegisterCommand
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.catalogue import Catalogue
    from pillion.service.partitions import KeySpaces
    from pillion.service.registry import CheckedSchema, Registry

# A proposal outlives the call that made it by this much, in microseconds.
PROPOSAL_SPARE_US: Final = 5_000_000
_VERB: Final = "register"

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Survey:
    """What a schema finds among the facts that are there.

    Attributes:
        rows: Facts that ever were on a timeline.
        misfits: Those that hold now or later and do not fit.
        misfit_ids: Some of them.
    """

    rows: int = 0
    misfits: int = 0
    misfit_ids: list[UUID] = field(default_factory=list)

    def add(self, memory: Memory, checked: CheckedSchema, now: int) -> None:
        """Count a fact."""
        if memory.status is MemoryStatus.CANDIDATE:
            return
        self.rows += 1
        held = memory.on_timeline and memory.valid_to > now and memory.recallable_at(now)
        if held and not checked.admits(memory):
            self.misfits += 1
            if len(self.misfit_ids) < limits.MISFITS_SHOWN_MAX:
                self.misfit_ids.append(memory.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One try at a registration: what it was asked, and what it goes by."""

    partition: Partition
    command: RegisterCommand
    checked: CheckedSchema
    keys: KeySpace
    now: int
    deadline: Deadline

    @property
    def schema(self) -> AttributeSchema:
        """What is to be registered."""
        return self.checked.schema


class Registrar:
    """Registers attributes."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        registry: Registry,
        catalogue: Catalogue,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._registry = registry
        self._catalogue = catalogue
        self._rows = AttributeRows(store)

    def register(
        self, partition: Partition, command: RegisterCommand, deadline: Deadline
    ) -> RegisterAnswer:
        """Register an attribute, or a new version of one. The same again changes nothing.

        Raises:
            PillionError: A field is at fault; the precondition does not hold; SCHEMA_VIOLATION
                when values that are there do not fit, or what cannot change would;
                ALREADY_RUNNING while another registration of it is being checked, or while a
                migration changes the values that are to fit.
        """
        check_partition(partition)
        check_request_id(command.request_id)
        try:
            schema = checked_schema(command.schema)
            checked = self._registry.compile(schema)
        except PillionError as error:
            raise error.within("schema") from None
        check_precondition(
            "precondition", command.precondition, allowed=frozenset(PreconditionKind)
        )
        if command.request_id:
            earlier = self._store.find_token(partition, token_id(_VERB, command.request_id))
            if earlier is not None:
                return self._replayed(partition, command, earlier)
        for _ in range(limits.COMMIT_TRIES_MAX):
            deadline.check()
            answer = self._try(partition, command, checked, deadline)
            if answer is not None:
                return answer
        raise changed_too_often()

    def _try(
        self,
        partition: Partition,
        command: RegisterCommand,
        checked: CheckedSchema,
        deadline: Deadline,
    ) -> RegisterAnswer | None:
        """Register once; None: the registration changed meanwhile."""
        draft, now = Draft(self._store, partition), self._clock.now_us()
        if command.validate_only:  # leaves no trace of a partition that nobody wrote to
            keys = self._keys.at(partition, draft.revision)
        else:
            keys = self._keys.of(partition)
        attribute = checked.schema.attribute
        registration = self._registry.registration(draft, keys, attribute)
        current = current_schema(draft, keys, registration)
        require(command.precondition, current.version if current else 0, attribute)
        if current is not None and says_the_same(current, checked.schema):
            return self._unchanged(command, current, draft)
        if registration is None:
            self._refuse_too_many(partition, draft.revision)
            registration = Registration(attribute=attribute)
        elif registration.proposal_is_live(now):
            raise PillionError(
                Reason.ALREADY_RUNNING,
                "another registration of this attribute is being checked",
                retry_after_ms=500,
            )
        _refuse_while_migrated(command, registration)
        schema = replace(checked.schema, schema_version=registration.latest + 1, registered_at=now)
        attempt = _Attempt(
            partition=partition,
            command=command,
            checked=checked._replace(schema=schema),
            keys=keys,
            now=now,
            deadline=deadline,
        )
        if command.validate_only:
            survey = self._survey(attempt, draft.revision)
            _judge(attempt, current, survey)
            return _answer(schema, draft.revision, survey)
        self._rows.complete(partition, keys, deadline)
        proposed = _propose(draft, attempt, registration)
        outcome = self._store.commit(partition, draft.batch(None))
        if not isinstance(outcome, Committed):
            return None
        try:
            survey = self._survey(attempt, outcome.revision)
            _judge(attempt, current, survey)
            return self._activate(attempt, proposed, survey)
        except BaseException:
            self._withdraw(partition, proposed)
            raise

    def _refuse_too_many(self, partition: Partition, revision: int) -> None:
        page = self._store.scan(
            partition,
            REGISTRATIONS,
            prefix_end(REGISTRATIONS),
            limit=limits.ATTRIBUTES_MAX,
            keys_only=True,
            at=revision,
        )
        if len(page.rows) >= limits.ATTRIBUTES_MAX:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                f"a partition has at most {limits.ATTRIBUTES_MAX} registered attributes",
            )

    def _unchanged(
        self, command: RegisterCommand, current: AttributeSchema, draft: Draft
    ) -> RegisterAnswer | None:
        """Answer that the attribute is registered just so; a request id is remembered."""
        token = _token(command, current, Survey())
        if command.validate_only or token is None:
            return RegisterAnswer(schema=current, revision=draft.revision)
        outcome = self._store.commit(draft.partition, draft.batch(token))
        if not isinstance(outcome, Committed):
            return None
        if outcome.replayed:
            return self._replayed(draft.partition, command, outcome)
        return RegisterAnswer(schema=current, revision=outcome.revision)

    def _survey(self, attempt: _Attempt, revision: int) -> Survey:
        survey = Survey()
        attribute = attempt.schema.attribute
        for memories in self._rows.of(attempt.partition, attempt.keys, attribute, revision):
            attempt.deadline.check()
            for memory in memories:
                survey.add(memory, attempt.checked, attempt.now)
        return survey

    def _activate(
        self, attempt: _Attempt, proposed: Registration, survey: Survey
    ) -> RegisterAnswer:
        """Make a proposal the latest version, if it is still what binds writers."""
        draft, schema, keys = Draft(self._store, attempt.partition), attempt.schema, attempt.keys
        found = self._registry.registration(draft, keys, schema.attribute)
        if found is None or not found.same_proposal(proposed):
            raise changed_too_often()
        _refuse_while_migrated(attempt.command, found)  # one may have begun during the survey
        active = found.with_latest()
        draft.put(keys.registration(schema.attribute), registry_codec.encode_registration(active))
        # Written again, so that its version is the revision that registered it.
        draft.put(
            keys.schema(schema.attribute, schema.schema_version),
            registry_codec.encode_schema(schema),
        )
        token = _token(attempt.command, schema, survey)
        outcome = self._store.commit(attempt.partition, draft.batch(token))
        if not isinstance(outcome, Committed):
            raise changed_too_often()
        if outcome.replayed:
            self._withdraw(attempt.partition, proposed)
            return self._replayed(attempt.partition, attempt.command, outcome)
        return _answer(replace(schema, version=outcome.revision), outcome.revision, survey)

    def _withdraw(self, partition: Partition, proposed: Registration) -> None:
        """Take a proposal back as well as one can: it lapses by itself."""
        keys = self._keys.of(partition)
        with suppress(StoreError, PillionError):
            for _ in range(limits.COMMIT_TRIES_MAX):
                draft = Draft(self._store, partition)
                found = self._registry.registration(draft, keys, proposed.attribute)
                if found is None or not found.same_proposal(proposed):
                    return
                withdraw(draft, keys, found)
                if isinstance(self._store.commit(partition, draft.batch(None)), Committed):
                    return
        _log.warning("a proposed schema could not be taken back; it lapses by itself")

    def _replayed(
        self, partition: Partition, command: RegisterCommand, earlier: Committed
    ) -> RegisterAnswer:
        check_same_body(earlier.memo, command.body_digest)
        _, schema_version, misfits, ids = codec.unpack(earlier.memo or b"")
        schema = self._catalogue.get(partition, command.schema.attribute, schema_version)
        return RegisterAnswer(
            schema=schema,
            revision=earlier.revision,
            misfits=misfits,
            misfit_ids=tuple(UUID(bytes=one) for one in ids),
        )


def _refuse_while_migrated(command: RegisterCommand, registration: Registration) -> None:
    """Refuse to vouch for values that a migration, or its roll-back, is about to change."""
    if registration.migration and command.existing_values is ExistingValues.MUST_FIT:
        name = str(UUID(bytes=registration.migration))
        raise PillionError(
            Reason.ALREADY_RUNNING,
            f"operation {name} is changing the values of this attribute: wait for it, or register "
            "with MAY_DIFFER",
            metadata={"operation": name},
        )


def _propose(draft: Draft, attempt: _Attempt, registration: Registration) -> Registration:
    """Put a proposal in a draft; it outlives the call by a little."""
    schema, keys = attempt.schema, attempt.keys
    record = registry_codec.encode_schema(schema)
    left_seconds = max(attempt.deadline.remaining_seconds(), 0.0)
    left_us = int(min(left_seconds, limits.DEADLINE_MAX_MS / 1000) * 1_000_000)
    proposed = replace(
        registration,
        proposed=schema.schema_version,
        proposed_digest=registry_codec.digest_of(record),
        proposed_until=attempt.now + left_us + PROPOSAL_SPARE_US,
        proposed_vouched=attempt.command.existing_values is ExistingValues.MUST_FIT,
    )
    draft.put(keys.schema(schema.attribute, schema.schema_version), record)
    draft.put(keys.registration(schema.attribute), registry_codec.encode_registration(proposed))
    return proposed


def _judge(attempt: _Attempt, current: AttributeSchema | None, survey: Survey) -> None:
    """Refuse a registration by what a survey found."""
    if survey.rows:
        try:
            refuse_change(current, attempt.schema)
        except PillionError as error:
            raise error.within("schema") from None
    if survey.misfits and attempt.command.existing_values is ExistingValues.MUST_FIT:
        shown = ", ".join(str(one) for one in survey.misfit_ids[:5])
        what = (
            f"{survey.misfits} values that are there do not fit it, for example of {shown}: "
            "change them, or register it with MAY_DIFFER and migrate them"
        )
        raise PillionError(
            Reason.SCHEMA_VIOLATION,
            f"schema.json_schema: {what}",
            violations=[FieldViolation("schema.json_schema", what)],
            metadata={"misfits": str(survey.misfits), "misfit_ids": shown},
        )


def _answer(schema: AttributeSchema, revision: int, survey: Survey) -> RegisterAnswer:
    return RegisterAnswer(
        schema=schema,
        revision=revision,
        misfits=survey.misfits,
        misfit_ids=tuple(survey.misfit_ids),
    )


def _token(command: RegisterCommand, schema: AttributeSchema, survey: Survey) -> Token | None:
    """Return what a retry finds; None: the caller gave no request id."""
    if not command.request_id:
        return None
    ids = [one.bytes for one in survey.misfit_ids]
    memo = codec.pack([command.body_digest, schema.schema_version, survey.misfits, ids])
    return Token(token_id(_VERB, command.request_id), memo)
