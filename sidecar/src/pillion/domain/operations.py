"""Long work that goes on after its call answered: its durable record. Values only.

An operation is of a **verb**, the call that began it. What is particular to a verb is its **work**:
a frozen value that says what is to be done and how far it is, and is the result once the operation
has succeeded. `service.operating` goes on with operations, and says how a verb is added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from pillion.domain.limits import MISFITS_SHOWN_MAX

if TYPE_CHECKING:
    from uuid import UUID

    from pillion.domain.migrations import Step

MIGRATE: Final = "MigrateAttribute"
ROLL_BACK: Final = "RollBackMigration"
FORGET: Final = "Forget"


class OperationState(IntEnum):
    """Where an operation is. Numbers as in the contract and the stored format."""

    RUNNING = 1
    SUCCEEDED = 2
    FAILED = 3
    CANCELLED = 4


class Work(Protocol):
    """What an operation is to do, and what it has done.

    Attributes:
        unit: What is counted, for example "values".
    """

    unit: ClassVar[str]

    @property
    def done(self) -> int:
        """Units done so far."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a migration, or its roll-back, is to do and has done.

    Attributes:
        attribute: Whose values.
        schema_version: To which version, or back from which.
        steps: How a value becomes one of it.
        undoes: The operation that is taken back; None: this is no roll-back.
        cursor: The last memory that was looked at; None: none yet.
        migrated: Values that were changed or stamped, or restored.
        misfits: Values that were left as they are.
        misfit_ids: The memories of some of those.
        closing: All is done but for what a roll-back would have needed: it cannot be taken back.
    """

    unit: ClassVar[str] = "values"

    attribute: str
    schema_version: int
    steps: tuple[Step, ...] = ()
    undoes: UUID | None = None
    cursor: UUID | None = None
    migrated: int = 0
    misfits: int = 0
    misfit_ids: tuple[UUID, ...] = ()
    closing: bool = False

    @property
    def done(self) -> int:
        """Values that were looked at."""
        return self.migrated + self.misfits

    def with_misfit(self, memory_id: UUID) -> Migration:
        """Return it with one more value left as it is."""
        shown = self.misfit_ids
        if len(shown) < MISFITS_SHOWN_MAX:
            shown = (*shown, memory_id)
        return replace(self, misfits=self.misfits + 1, misfit_ids=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundForget:
    """What a Forget in the background is to do and has done. Nothing of what it selected by.

    The ids are in notes beside the operation, ``u`` rows under ``notes``, which go at its end.

    Attributes:
        selector: The kind of selector, for receipts.
        mode: How, by the contract's number.
        reason_code: Why: the caller's code.
        notes: Under which id the notes are.
        chunks: How many notes there are.
        revision: At which revision they were selected.
        named, with_derived, preview_revision: As in `service.forgetting.Manner`.
        unchanged_only: What changed since the selection is left alone.
        with_following: Statements that go on once a later one is retracted are retracted too.
        chunk, place: Where it goes on.
        looked: Records that were dealt with.
        memories, episodes, derived, sample_ids, exempt_ids, unpreviewed: As in `ForgetReport`.
    """

    unit: ClassVar[str] = "records"

    selector: str
    mode: int
    notes: UUID
    chunks: int
    revision: int
    named: bool
    with_derived: bool
    unchanged_only: bool
    with_following: bool
    reason_code: str = ""
    preview_revision: int = 0
    chunk: int = 0
    place: int = 0
    looked: int = 0
    memories: int = 0
    episodes: int = 0
    derived: int = 0
    unpreviewed: int = 0
    sample_ids: tuple[UUID, ...] = ()
    exempt_ids: tuple[UUID, ...] = ()

    @property
    def done(self) -> int:
        """Records that were dealt with."""
        return self.looked


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Long work of a partition.

    Attributes:
        id: Its name.
        verb: The call that began it.
        state: Where it is.
        work: What it does, and how far it is.
        total: Units in all, as counted when it began; 0: not known.
        started_at: In microseconds since the epoch.
        ended_at: 0: it has not.
        failure_reason: Why it failed, for programs; empty: it did not.
    """

    id: UUID
    verb: str
    state: OperationState
    work: Work
    started_at: int
    total: int = 0
    ended_at: int = 0
    failure_reason: str = ""

    @property
    def done(self) -> int:
        """Units done so far."""
        return self.work.done

    @property
    def migration(self) -> Migration:
        """The work of MigrateAttribute and RollBackMigration.

        Raises:
            TypeError: It is of another verb.
        """
        if not isinstance(self.work, Migration):
            raise TypeError(f"{self.verb} is no migration")
        return self.work

    def ended(self, state: OperationState, now: int, reason: str = "") -> Operation:
        """Return it as it ended."""
        return replace(self, state=state, ended_at=now, failure_reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateCommand:
    """A migration. ``body_digest`` tells a retry from another request of the same id."""

    attribute: str
    schema_version: int
    steps: tuple[Step, ...] = ()
    dry_run: bool = False
    request_id: str = ""
    body_digest: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrateAnswer:
    """The migration that began (None: a dry run), and what it will find."""

    operation: Operation | None
    values: int
    misfit_ids: tuple[UUID, ...]
