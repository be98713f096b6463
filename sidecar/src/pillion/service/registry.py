"""The type registry as writes see it: what an attribute means, and whether a fact fits that.

Every write of a fact reads the registration of its attribute in its draft, registered or not. So
a registration that changes meanwhile makes the commit fail, and the write is planned again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from pillion_storage import registry_codec

from pillion.domain.errors import PillionError, Reason
from pillion.domain.schema_policy import (
    check_subject_type,
    instance_of,
    return_refused,
    takes_subject,
    typed,
    unregistered,
    value_refused,
)

if TYPE_CHECKING:
    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.schemas import AttributeSchema, Registration
    from pillion.ports import SchemaCompiler, ValueCheck
    from pillion.service.draft import Draft
    from pillion.service.partitions import KeySpaces

# Compiled schemas that are kept; most take a few kilobytes.
COMPILED_MAX: Final = 512


class CheckedSchema(NamedTuple):
    """A schema and the check that it describes."""

    schema: AttributeSchema
    check: ValueCheck

    def require(self, memory: Memory) -> None:
        """Refuse a fact that does not fit.

        Raises:
            PillionError: SCHEMA_VIOLATION at ``value`` or ``subject.type``.
        """
        check_subject_type(self.schema, memory.subject)
        if memory.value is None:
            raise PillionError.of_field("value", "a fact needs a value")
        problems = self.check.problems(instance_of(memory.value))
        if problems:
            raise value_refused(self.schema, problems)

    def admits(self, memory: Memory) -> bool:
        """Return whether a fact fits."""
        return (
            memory.value is not None
            and takes_subject(self.schema, memory.subject)
            and not self.check.problems(instance_of(memory.value))
        )


class Registry:
    """What attributes mean. Safe to share between threads."""

    def __init__(
        self,
        store: Store,
        keys: KeySpaces,
        compiler: SchemaCompiler,
        *,
        refuse_unregistered: bool = False,
    ) -> None:
        self._store = store
        self._keys = keys
        self._compiler = compiler
        self._refuse_unregistered = refuse_unregistered
        self._lock = threading.Lock()
        self._compiled: OrderedDict[bytes, CheckedSchema] = OrderedDict()

    # --- what writes ask -------------------------------------------------------------------

    def schema_for(self, draft: Draft, attribute: str) -> AttributeSchema | None:
        """Return what an attribute means as a draft sees it; None: nobody registered it.

        The commit then depends on it. ``version`` is 0.
        """
        keys = self._keys.at(draft.partition, draft.revision)
        registration = self.registration(draft, keys, attribute)
        if registration is None or not registration.latest:
            return None
        return self._latest(draft, keys, registration).schema

    def checked(
        self, draft: Draft, memory: Memory, now: int
    ) -> tuple[Memory, AttributeSchema | None]:
        """Return a fact that is about to be stated as its attribute wants it, and the attribute.

        Raises:
            PillionError: SCHEMA_VIOLATION at ``value`` or ``subject.type``;
                ATTRIBUTE_UNREGISTERED where only registered attributes are taken; OVERLOADED
                while the number of values of a key may be about to change.
        """
        keys = self._keys.at(draft.partition, draft.revision)
        registration = self.registration(draft, keys, memory.attribute)
        if registration is not None and registration.proposed:
            if registration.proposal_is_live(now):
                self._require_proposed(draft, keys, registration, memory)
            else:
                # Whoever made it is gone or too late. Taking it away makes him find that out.
                withdraw(draft, keys, registration)
        if registration is None or not registration.latest:
            if self._refuse_unregistered:
                raise unregistered(memory.attribute)
            return memory, None
        latest = self._latest(draft, keys, registration)
        latest.require(memory)
        return typed(memory, latest.schema), latest.schema

    def _require_proposed(
        self, draft: Draft, keys: KeySpace, registration: Registration, memory: Memory
    ) -> None:
        proposed = self._version(
            draft, keys, memory.attribute, registration.proposed, registration.proposed_digest
        )
        cardinality = type(proposed.schema.cardinality).ONE
        if registration.latest:
            cardinality = self._latest(draft, keys, registration).schema.cardinality
        if proposed.schema.cardinality is not cardinality:
            raise PillionError(
                Reason.OVERLOADED,
                "the attribute is being registered anew: try again",
                retry_after_ms=100,
            )
        proposed.require(memory)

    def check_return(self, draft: Draft, memory: Memory, now: int) -> None:
        """Refuse that a value holds again which a registration with MUST_FIT vouches against.

        It looked at values that held then or later. One that had ended comes back by a restore, or
        where what came after it is taken out.

        Raises:
            PillionError: SCHEMA_VIOLATION, with the memory that would hold again.
        """
        keys = self._keys.at(draft.partition, draft.revision)
        registration = self.registration(draft, keys, memory.attribute)
        if registration is None:
            return
        vouched: list[CheckedSchema] = []
        if registration.latest and registration.vouched:
            vouched.append(self._latest(draft, keys, registration))
        if registration.proposal_is_live(now) and registration.proposed_vouched:
            version, digest = registration.proposed, registration.proposed_digest
            vouched.append(self._version(draft, keys, memory.attribute, version, digest))
        for checked in vouched:
            if not checked.admits(memory):
                raise return_refused(checked.schema, memory.id)

    # --- what the registrar and migrations ask ---------------------------------------------

    def registration(self, draft: Draft, keys: KeySpace, attribute: str) -> Registration | None:
        """Return where an attribute's registration stands; None: nobody tried."""
        data = draft.get(keys.registration(attribute))
        return registry_codec.decode_registration(data) if data is not None else None

    def compile(self, schema: AttributeSchema) -> CheckedSchema:
        """Return a schema with its check, made now.

        Raises:
            PillionError: INVALID_FIELD at ``json_schema``.
        """
        return CheckedSchema(schema, self._compiler.compile(schema.json_schema))

    def _latest(self, draft: Draft, keys: KeySpace, registration: Registration) -> CheckedSchema:
        return self._version(
            draft, keys, registration.attribute, registration.latest, registration.digest
        )

    def _version(
        self, draft: Draft, keys: KeySpace, attribute: str, version: int, digest: bytes
    ) -> CheckedSchema:
        """Return one version of an attribute; what it says never changes under its digest."""
        key = keys.schema(attribute, version)
        known = key + digest
        with self._lock:
            found = self._compiled.get(known)
            if found is not None:
                self._compiled.move_to_end(known)
                return found
        data = draft.get(key)
        if data is None or registry_codec.digest_of(data) != digest:
            raise PillionError(
                Reason.CORRUPT, "a registered schema is not what its registration says"
            )
        made = self.compile(registry_codec.decode_schema(data, 0))
        with self._lock:
            self._compiled[known] = made
            if len(self._compiled) > COMPILED_MAX:
                self._compiled.popitem(last=False)
        return made


def withdraw(draft: Draft, keys: KeySpace, registration: Registration) -> None:
    """Take a proposal away in a draft, and with it all that it wrote."""
    key = keys.registration(registration.attribute)
    if registration.latest:
        draft.put(key, registry_codec.encode_registration(registration.without_proposal()))
    else:
        draft.delete(key)
    draft.delete(keys.schema(registration.attribute, registration.proposed))
