"""The timeline of one fact key: what a statement does to it. Pure: values in, a plan out.

A timeline is a function of the *set* of its statements, so the order in which they arrive never
decides what was so. A statement holds from its instant until its end, if it names one; of several
that cover an instant, the one that began last holds. A retraction is a statement of no value. A
statement that was never so, or was corrected, leaves the set. ``segments`` turns a set into rows;
a plan says which rows change, and reads no more of the timeline than can change.

Invariants, at any recorded instant:
  1. Segments of a key never overlap.
  2. An entry's instant is unique within its key.
  3. Every statement of the set has an entry at its own instant.
  4. Evidence that a retraction took with its row is asleep, and ``Around`` leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import FOREVER, SourceKind
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.segments import (
    Entry,
    Made,
    Said,
    Segment,
    Shape,
    fold,
    lay_out,
    statements_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOBODY: Final = UUID(int=0)  # stands for the memory of a row that is yet to be named
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
class Around:
    """What lies around an instant of one timeline, as far as it can matter.

    Attributes:
        before: The last segment that begins before the instant, whether or not it reaches it.
        behind: Evidence for ``before`` from before the instant, in order of time: at least back
            to a statement without an end.
        at: The entry at the very instant, unless it is evidence asleep.
        ahead: Segments after the instant, and evidence awake, in order of time, up to ``end``.
        end: Up to where the plan at hand can change anything.
        following: The segment that begins at ``end``, if one does.
        row_follows: Whether any row begins after the instant.
        earlier: Where a statement leaves the set: those before the instant that may show then,
            in order of time.
        hidden: Whether the row that holds is out of recall (forgotten, or past its expiry): a
            statement that is made anew takes its place, whatever it says and whatever its policy.
        epoch: How many retractions the timeline has seen.
    """

    before: Entry | None = None
    behind: tuple[Entry, ...] = ()
    at: Entry | None = None
    ahead: tuple[Entry, ...] = ()
    end: int = FOREVER
    following: Entry | None = None
    row_follows: bool = False
    earlier: tuple[Entry, ...] = ()
    hidden: bool = False
    epoch: int = 1

    def holding(self, instant: int) -> Entry | None:
        """Return the row that holds at the instant, if any."""
        segment = self.before
        if self.at is not None and not self.at.is_evidence:
            segment = self.at
        if segment is None or not segment.is_row or segment.valid_to <= instant:
            return None
        return segment

    def statements(self) -> dict[tuple[int, bool], Said]:
        """Return the statements that hold anywhere here, by rank."""
        before = (self.before,) if self.before is not None else ()
        at = (self.at,) if self.at is not None else ()
        near = statements_of((*before, *self.behind, *at, *self.ahead))
        return {**statements_of(self.earlier), **near}

    def segments(self) -> dict[int, Entry]:
        """Return the segments from the instant on, by where they begin."""
        at = (self.at,) if self.at is not None else ()
        return {one.valid_from: one for one in (*at, *self.ahead) if not one.is_evidence}


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the key: when it begins, what it says, and who says so.

    ``valid_to`` None means that it names no end.
    """

    valid_from: int
    fingerprint: bytes
    source_kind: SourceKind
    valid_to: int | None = None
    policy: ConflictPolicy = ConflictPolicy.REJECT

    @property
    def to(self) -> int:
        """Where it ends by its own words."""
        return FOREVER if self.valid_to is None else self.valid_to


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of a timeline.

    Attributes:
        outcome: What becomes of the statement.
        segments: What is there then from ``before`` to ``end``, in order of time.
        gone: Segments that are no longer there.
        following: The segment that comes after ``segments``, if it adjoins them.
        supports: The row that the statement is evidence for, or that was kept instead of it.
        mark: The evidence entry at the statement's instant, new or with a stronger source.
        replaced: The row that the statement ended or took the place of.
        withdrawn: The rank of the statement that was never so, if one leaves the set.
    """

    outcome: Outcome
    segments: tuple[Segment, ...] = ()
    gone: tuple[Entry, ...] = ()
    following: Entry | None = None
    supports: UUID | None = None
    mark: Entry | None = None
    replaced: Entry | None = None
    withdrawn: tuple[int, bool] | None = None


def plan_put(around: Around, statement: Statement) -> Plan:
    """Return what the statement does to the timeline.

    Raises:
        PillionError: INTERVAL_EMPTY when the statement's end does not come after its start;
            FACT_CONFLICT when another value begins at the same instant and the policy does not
            settle it.
    """
    if statement.valid_to is not None and statement.valid_to <= statement.valid_from:
        raise PillionError.of_field("valid_to", "must come after valid_from", Reason.INTERVAL_EMPTY)
    at, holding = around.at, around.holding(statement.valid_from)
    resumed = at is not None and at.continues is not None
    if holding is not None and not around.hidden and not resumed:
        if holding.fingerprint == statement.fingerprint:
            return _plan_evidence(around, holding, statement)
        if at is not None and not _statement_prevails(at, holding, statement):
            return Plan(Outcome.KEPT_EXISTING, supports=holding.memory_id)
    return _plan_row(around, holding, statement)


def _plan_evidence(around: Around, holding: Entry, statement: Statement) -> Plan:
    """Plan a statement of the value that holds: no row begins, but one may last longer."""
    at = around.at
    if at is None:
        told = Entry(
            statement.valid_from,
            holding.memory_id,
            statement.fingerprint,
            statement.source_kind,
            Shape.EVIDENCE,
            stated_to=statement.to,
            epoch=around.epoch,
        )
    else:
        told = _heard_again(at, holding, statement)
    segments = around.segments()
    if told.is_row:
        segments[told.valid_from] = told
    said = Said(told.rank, end_of(told, holding), told.fingerprint, told.source_kind, told, holding)
    statements = {**around.statements(), told.rank: said}
    laid, gone = relaid(around, statement.valid_from, statements, segments)
    for one in laid:
        if one.was is told:
            one.was = at
    return Plan(
        Outcome.EVIDENCE,
        tuple(laid),
        tuple(gone),
        around.following,
        supports=holding.memory_id,
        mark=told if told.is_evidence and told != at else None,
    )


def _heard_again(at: Entry, holding: Entry, statement: Statement) -> Entry:
    """Return the entry of an instant that is stated once more with the same value.

    The strongest source of an instant speaks for it, in its end too; of equal ones, the later end.
    """
    new = SOURCE_PRECEDENCE[statement.source_kind]
    old = SOURCE_PRECEDENCE[at.source_kind]
    if new > old:
        return replace(at, source_kind=statement.source_kind, stated_to=statement.to)
    if new == old and statement.to > end_of(at, holding):
        return replace(at, stated_to=statement.to)
    return at


def end_of(entry: Entry, row: Entry) -> int:
    """Return where an entry's statement ends by its own words."""
    stated_to = entry.stated_to if entry.stated_to is not None else row.stated_to
    return FOREVER if stated_to is None else stated_to


def _plan_row(around: Around, holding: Entry | None, statement: Statement) -> Plan:
    """Plan a statement that makes a row of its own, perhaps in the place of another one."""
    instant, at = statement.valid_from, around.at
    stated = Entry(
        instant,
        holding.memory_id if holding is not None else _NOBODY,
        statement.fingerprint,
        statement.source_kind,
        stated_to=statement.to,
        epoch=around.epoch,
    )
    statements = around.statements()
    segments = around.segments()
    if at is not None and at.continues is None:
        if at.shape is not Shape.NOTHING:
            statements.pop(at.rank, None)
            segments = {start: one for start, one in segments.items() if one.rank != at.rank}
        segments.pop(instant, None)
        stated = replace(stated, nothing_to=nothing_to_of(at))
    statements[stated.rank] = Said(
        stated.rank, statement.to, statement.fingerprint, statement.source_kind
    )
    laid, gone = relaid(around, instant, statements, segments, stated)
    corrects = holding is not None and holding is at and holding.continues is None
    place = next(number for number, one in enumerate(laid) if one.made is Made.STATED)
    after = laid[place + 1].entry if place + 1 < len(laid) else around.following
    adjoins = after is not None and after.is_row and after.valid_from == laid[place].end
    if corrects:
        outcome = Outcome.CORRECTED
    elif holding is None:
        outcome = Outcome.INSERTED if around.row_follows else Outcome.CREATED
    else:
        outcome = Outcome.INSERTED if adjoins else Outcome.SUPERSEDED
    return Plan(outcome, tuple(laid), tuple(gone), around.following, replaced=holding)


def nothing_to_of(at: Entry) -> int | None:
    """Return until when a retraction stands that begins where this entry does."""
    return at.stated_to if at.shape is Shape.NOTHING else at.nothing_to


def relaid(
    around: Around,
    instant: int,
    statements: Mapping[tuple[int, bool], Said],
    segments: Mapping[int, Entry],
    stated: Entry | None = None,
) -> tuple[list[Segment], list[Entry]]:
    """Return the segments that these statements come to, and those that go."""
    pieces = fold(statements.values(), instant, around.end)
    laid = lay_out(pieces, around.before, segments, stated=stated)
    kept = {one.was.valid_from for one in laid if one.was is not None}
    gone = [one for start, one in around.segments().items() if start not in kept]
    return laid, gone


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
