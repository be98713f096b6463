"""What a registered attribute means. Values only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.mutations import ConflictPolicy, Precondition


class Cardinality(IntEnum):
    """How many values a key may have at one instant. Numbers as in the contract."""

    ONE = 1
    SET = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSchema:
    """One version of a registered attribute.

    Attributes:
        attribute: Its name.
        json_schema: The JSON Schema of its values (draft 2020-12), in canonical form.
        subject_types: Types of subject that may have it; empty: any.
        cardinality: How many values at one instant.
        half_life: Its half-life in ranking, microseconds; None: that of its kind.
        retention_class: Of new values; empty: the partition's default.
        pii_labels: Kinds of personal data in its values.
        conflict_policy: For statements that name none; None: REJECT.
        schema_version: 1, 2, 3 ...
        registered_at: When, in microseconds since the epoch.
        version: The revision that registered it; 0 while that is being written.
    """

    attribute: str
    json_schema: str
    subject_types: tuple[str, ...] = ()
    cardinality: Cardinality = Cardinality.ONE
    half_life: int | None = None
    retention_class: str = ""
    pii_labels: tuple[str, ...] = ()
    conflict_policy: ConflictPolicy | None = None
    schema_version: int = 1
    registered_at: int = 0
    version: int = 0

    @property
    def is_set(self) -> bool:
        """Whether a key may have many values at one instant, each with its own timeline."""
        return self.cardinality is Cardinality.SET


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """Where an attribute's registration stands: what every write of a fact of it reads.

    A proposal is a schema version that is being checked against the values that are there. While
    it is live, writers satisfy it as well as the latest version.

    Attributes:
        attribute: Its name.
        latest: The schema version that holds; 0: none does yet.
        digest: Of the record of that version; empty: none.
        proposed: The schema version that is being checked; 0: none is.
        proposed_digest: Of its record; empty: none.
        proposed_until: When it lapses, in microseconds since the epoch.
        vouched: Whether the values that hold have to fit the latest version (MUST_FIT): then none
            comes back that does not.
        proposed_vouched: The same of the proposal.
        migration: The operation that migrates its values, or takes that back; empty: none does.
    """

    attribute: str
    latest: int = 0
    digest: bytes = b""
    proposed: int = 0
    proposed_digest: bytes = b""
    proposed_until: int = 0
    vouched: bool = False
    proposed_vouched: bool = False
    migration: bytes = b""

    def proposal_is_live(self, now: int) -> bool:
        """Return whether a proposal binds writers at an instant."""
        return self.proposed > 0 and now < self.proposed_until

    def without_proposal(self) -> Registration:
        """Return the registration as it is without its proposal."""
        return replace(
            self, proposed=0, proposed_digest=b"", proposed_until=0, proposed_vouched=False
        )

    def same_proposal(self, other: Registration) -> bool:
        """Return whether two registrations are of one and the same proposal."""
        return (self.proposed, self.proposed_digest, self.proposed_until) == (
            other.proposed,
            other.proposed_digest,
            other.proposed_until,
        )

    def with_latest(self) -> Registration:
        """Return the registration with its proposal as the version that holds."""
        made = replace(
            self,
            latest=self.proposed,
            digest=self.proposed_digest,
            vouched=self.proposed_vouched,
        )
        return made.without_proposal()


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value does not fit a schema. Quotes the schema, never the value.

    Attributes:
        place: What in the schema it breaks, as a JSON pointer.
        description: What that asks for; empty: the place says enough.
    """

    place: str
    description: str = ""


class ExistingValues(IntEnum):
    """What becomes of a registration that values do not fit. Numbers as in the contract."""

    MUST_FIT = 1
    MAY_DIFFER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterCommand:
    """A registration. ``body_digest`` tells a retry from another request of the same id."""

    schema: AttributeSchema
    precondition: Precondition
    existing_values: ExistingValues = ExistingValues.MUST_FIT
    validate_only: bool = False
    request_id: str = ""
    body_digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAnswer:
    """What a registration did, or would do.

    Attributes:
        schema: As stored.
        revision: Of the commit; of what it was checked against where nothing was committed.
        misfits: Values that are held now and do not fit.
        misfit_ids: The memories of those, at most `limits.MISFITS_SHOWN_MAX`.
    """

    schema: AttributeSchema
    revision: int
    misfits: int = 0
    misfit_ids: tuple[UUID, ...] = ()
