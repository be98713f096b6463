"""The timeline of one fact key: where a statement's interval goes. Pure: values in, a plan out.

A timeline is a sequence of *entries* with distinct instants. A ROW entry begins an interval with
a value. An EVIDENCE entry says that at its instant the value of the row that holds there was
stated again. Evidence does not cut a row, but its instant is remembered: when a late arrival lands
between a row's start and its evidence, the evidence speaks again and becomes a row. So the order
in which statements arrive never decides what was so.

Invariants, at any recorded instant:
  1. Rows of a key never overlap.
  2. An entry's instant is unique within its key.
  3. Evidence counts only inside a row of the same value; elsewhere (after a retraction) it is
     asleep, and ``Surroundings`` leaves it out.
Instants are microseconds since the epoch; intervals are half-open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import FOREVER, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

# Precedence of source kinds under PREFER_SOURCE: a higher number wins.
SOURCE_PRECEDENCE: Final[Mapping[SourceKind, int]] = {
    SourceKind.USER_CONFIRMATION: 5,
    SourceKind.USER_STATEMENT: 4,
    SourceKind.TOOL_RESULT: 3,
    SourceKind.DOCUMENT: 2,
    SourceKind.CONSOLIDATION: 1,
    SourceKind.INFERENCE: 0,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a timeline.

    Attributes:
        valid_from: Its instant.
        memory_id: The row's memory; for evidence, the memory of the row that it first supported.
        fingerprint: The fingerprint of the value that it states.
        source_kind: The strongest source that states it at this instant.
        is_row: Whether it begins an interval.
        valid_to: Where the interval ends; meaningless for evidence.
    """

    valid_from: int
    memory_id: UUID
    fingerprint: bytes
    source_kind: SourceKind
    is_row: bool = True
    valid_to: int = FOREVER


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What lies around an instant of one timeline.

    Attributes:
        holding: The row whose interval holds the instant, if any.
        at: The entry that begins at the very instant, if any: a row, or evidence that is awake.
        next_evidence: The first evidence after the instant that supports ``holding``, if any.
        next_row: The first row that begins after the instant, if any.
        hidden: Whether ``holding`` is out of recall (forgotten, or past its expiry): a statement
            that is made anew takes its place, whatever it says and whatever its policy.
    """

    holding: Entry | None = None
    at: Entry | None = None
    next_evidence: Entry | None = None
    next_row: Entry | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the key: when it begins, what it says, and who says so.

    ``valid_to`` None means: until whatever is there next.
    """

    valid_from: int
    fingerprint: bytes
    source_kind: SourceKind
    valid_to: int | None = None
    policy: ConflictPolicy = ConflictPolicy.REJECT


@dataclass(frozen=True, slots=True)
class PutPlan:
    """What a statement does to a timeline.

    Attributes:
        outcome: What becomes of the statement.
        new_row_to: Where the new row, which begins at the statement's instant, ends; None when
            no row is made.
        ended_by: The row that begins where the new row ends, if one does.
        supports: The row that the statement is evidence for, or that was kept instead of it.
        mark_evidence: Whether an EVIDENCE entry is put at the statement's instant.
        strengthen: The entry at the statement's instant, row or evidence, that this statement
            repeats with a stronger source: it is kept with that source from now on.
        close: The row that now ends at the statement's instant.
        correct: The row that leaves the recorded present.
        promote: Evidence for the closed or corrected row that becomes a row of its value, from
            its own instant to ``resume_to``.
        resume_from: Where the closed row's value goes on after an explicit end, to ``resume_to``.
        resume_to: The closed row's former end.
    """

    outcome: Outcome
    new_row_to: int | None = None
    ended_by: UUID | None = None
    supports: UUID | None = None
    mark_evidence: bool = False
    strengthen: Entry | None = None
    close: Entry | None = None
    correct: Entry | None = None
    promote: Entry | None = None
    resume_from: int | None = None
    resume_to: int = FOREVER


def plan_put(around: Surroundings, statement: Statement) -> PutPlan:
    """Return what the statement does to the timeline.

    Raises:
        PillionError: INTERVAL_EMPTY when the statement's end does not come after its start;
            FACT_CONFLICT when another value begins at the same instant and the policy does not
            settle it, or when an explicit end runs into statements that are already there.
    """
    if statement.valid_to is not None and statement.valid_to <= statement.valid_from:
        raise PillionError.of_field("valid_to", "must come after valid_from", Reason.INTERVAL_EMPTY)
    holding = around.holding
    if holding is not None and around.hidden:
        # Nobody sees what holds here, so it neither stands for the statement nor against it.
        return _plan_cut(around, holding, statement)
    if holding is not None and _agrees(holding, statement):
        stronger = around.at is not None and _outranks(statement, around.at)
        return PutPlan(
            Outcome.EVIDENCE,
            supports=holding.memory_id,
            mark_evidence=around.at is None,
            strengthen=around.at if stronger else None,
        )
    if holding is None:
        return _plan_in_gap(around, statement)
    if around.at is not None and not _statement_prevails(around.at, holding, statement):
        return PutPlan(Outcome.KEPT_EXISTING, supports=holding.memory_id)
    return _plan_cut(around, holding, statement)


def _agrees(holding: Entry, statement: Statement) -> bool:
    """Return whether the statement says nothing that the holding row does not."""
    return holding.fingerprint == statement.fingerprint and (
        statement.valid_to is None or statement.valid_to <= holding.valid_to
    )


def _plan_in_gap(around: Surroundings, statement: Statement) -> PutPlan:
    """Plan a statement that begins where nothing holds: it ends where the next row begins."""
    end = _explicit_end(around, statement)
    following = around.next_row
    if end is None:
        end = following.valid_from if following is not None else FOREVER
    touches = following is not None and following.valid_from == end
    return PutPlan(
        Outcome.CREATED if following is None else Outcome.INSERTED,
        new_row_to=end,
        ended_by=following.memory_id if following is not None and touches else None,
    )


def _plan_cut(around: Surroundings, holding: Entry, statement: Statement) -> PutPlan:
    """Plan a statement that begins inside a row: it takes the row's interval from there on."""
    explicit = _explicit_end(around, statement)
    evidence = _contrary_evidence(around, statement)
    promote: Entry | None = None
    resume_from: int | None = None
    if evidence is not None and (explicit is None or evidence.valid_from == explicit):
        end = evidence.valid_from
        promote = evidence
    elif explicit is not None and explicit < holding.valid_to:
        end = explicit
        resume_from = explicit
    else:
        end = holding.valid_to if explicit is None else explicit
    corrects = holding.valid_from == statement.valid_from
    following = around.next_row
    touches = following is not None and following.valid_from == end
    goes_on = promote is not None or resume_from is not None
    if corrects:
        outcome = Outcome.CORRECTED
    else:
        outcome = Outcome.INSERTED if goes_on or touches else Outcome.SUPERSEDED
    return PutPlan(
        outcome,
        new_row_to=end,
        ended_by=following.memory_id if following is not None and touches else None,
        close=None if corrects else holding,
        correct=holding if corrects else None,
        promote=promote,
        resume_from=resume_from,
        resume_to=holding.valid_to,
    )


def _contrary_evidence(around: Surroundings, statement: Statement) -> Entry | None:
    """Return the next evidence for the holding row, unless it says what the statement says."""
    evidence = around.next_evidence
    if evidence is None or evidence.fingerprint == statement.fingerprint:
        return None
    return evidence


def _explicit_end(around: Surroundings, statement: Statement) -> int | None:
    """Return the end that the statement names, once nothing that is there contradicts it."""
    end = statement.valid_to
    if end is None:
        return None
    for entry in (_contrary_evidence(around, statement), around.next_row):
        if entry is not None and entry.valid_from < end:
            raise PillionError(
                Reason.FACT_CONFLICT,
                "valid_to runs past another statement of this key: end where that one begins, "
                "or leave valid_to out",
                metadata={"existing_id": str(entry.memory_id)},
            )
    return end


def _outranks(statement: Statement, entry: Entry) -> bool:
    """Return whether the statement's source takes precedence over the entry's."""
    return SOURCE_PRECEDENCE[statement.source_kind] > SOURCE_PRECEDENCE[entry.source_kind]


def _statement_prevails(at: Entry, holding: Entry, statement: Statement) -> bool:
    """Settle two values that are stated at one instant by the statement's policy.

    What counts is who states the other value at that very instant (``at``, which may be
    evidence), not who began the row that holds there: else the order of arrival would decide.
    """
    if statement.policy is ConflictPolicy.CORRECT:
        return True
    if statement.policy is ConflictPolicy.PREFER_SOURCE:
        new = SOURCE_PRECEDENCE[statement.source_kind]
        old = SOURCE_PRECEDENCE[at.source_kind]
        if new != old:
            return new > old
    raise PillionError(
        Reason.FACT_CONFLICT,
        "another statement begins at the same instant: use another valid_from, or say that this "
        "one corrects it (conflict policy CORRECT)",
        metadata={"existing_id": str(holding.memory_id)},
    )


def plan_retract(row: Entry, instant: int) -> int | None:
    """Return where the row ends when it is retracted from ``instant`` on.

    None means that it was never so: the row leaves the recorded present.

    Raises:
        PillionError: ALREADY_ENDED when the row had ended by then.
    """
    if instant >= row.valid_to:
        raise PillionError(
            Reason.ALREADY_ENDED,
            "the memory had ended by that instant: give an earlier valid_to",
        )
    return instant if instant > row.valid_from else None
