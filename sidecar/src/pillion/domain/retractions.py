"""Taking a row of a timeline back, and putting it back. Pure: values in, a plan out.

A retraction is a statement of no value; one from the row's very beginning takes its statement out
of the set. See ``timeline`` for what a timeline is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pillion.domain.errors import PillionError, Reason
from pillion.domain.mutations import Outcome
from pillion.domain.segments import NO_VALUE, Entry, Made, Said, Shape
from pillion.domain.timeline import Around, Plan, end_of, nothing_to_of, relaid


def check_retract(row: Entry, instant: int) -> int:
    """Return from where a row that is retracted from ``instant`` on holds no longer.

    Raises:
        PillionError: ALREADY_ENDED when the row had ended by then.
    """
    if instant >= row.valid_to:
        raise PillionError(
            Reason.ALREADY_ENDED,
            "the memory had ended by that instant: give an earlier valid_to",
        )
    return max(instant, row.valid_from)


def leaves_the_set(row: Entry, instant: int) -> bool:
    """Return whether a retraction from ``instant`` means that the row's statement was never so.

    A row that continues a statement from before is no statement of its own: only what it
    continues is retracted from there on.
    """
    return instant <= row.valid_from and row.continues is None


def plan_retract(around: Around, row: Entry, instant: int, to: int) -> Plan:
    """Return what retracting a row from an instant inside it, until ``to``, does.

    ``around`` lies around the instant, without the row's own evidence from the instant on, which
    is taken back with it.
    """
    statements = _without_taken(around, row, instant)
    segments = around.segments()
    at = around.at
    nothing = Entry(
        instant,
        row.memory_id,
        NO_VALUE,
        row.source_kind,
        Shape.NOTHING,
        stated_to=to,
        epoch=around.epoch,
    )
    if at is not None and at.continues is None:
        raise AssertionError("a statement of the row itself leaves the set instead")
    segments.pop(instant, None)
    statements[nothing.rank] = Said(nothing.rank, to, NO_VALUE, row.source_kind)
    laid, gone = relaid(around, instant, statements, segments, nothing)
    return Plan(Outcome.UPDATED, tuple(laid), tuple(gone), around.following)


def _without_taken(around: Around, row: Entry, instant: int) -> dict[tuple[int, bool], Said]:
    """Return the statements without those of a row from an instant on.

    Some of those may go on behind a later row.
    """
    return {
        rank: said
        for rank, said in around.statements().items()
        if not (rank[1] and instant <= rank[0] < row.valid_to)
    }


def plan_withdraw(around: Around, row: Entry) -> Plan:
    """Return what it does that a row's statement, and the evidence for it, was never so.

    ``around`` lies around the row's instant and has ``earlier``; the row's own evidence is left
    out. What the statements before it say holds then.
    """
    statements = _without_taken(around, row, row.valid_from)
    segments = around.segments()
    segments.pop(row.valid_from, None)
    laid, gone = relaid(around, row.valid_from, statements, segments)
    return Plan(Outcome.UPDATED, tuple(laid), tuple(gone), around.following, withdrawn=row.rank)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a retraction took from a timeline, for it to be put back one day.

    Attributes:
        row: The row's entry as it was.
        instant: From where it was taken: its own instant, when it was never so.
        evidence: Evidence of the row that was taken with it and has slept since, in its place or
            out of it.
    """

    row: Entry
    instant: int
    evidence: tuple[Entry, ...] = ()


def plan_restore(around: Around, taken: Taken) -> Plan:
    """Return what taking a retraction back does, in the light of everything stated meanwhile.

    ``around`` lies around the instant and has ``earlier``.

    Raises:
        PillionError: FACT_CONFLICT when a statement has begun at the instant of one that was
            withdrawn.
    """
    row, instant, at = taken.row, taken.instant, around.at
    statements = around.statements()
    segments = around.segments()
    nothing_to: int | None = None
    if leaves_the_set(row, instant):
        if at is not None and at.continues is None:
            if at.shape is not Shape.NOTHING:
                raise _taken_since(at)
            segments.pop(instant, None)
            nothing_to = nothing_to_of(at)
        statements[row.rank] = Said(row.rank, end_of(row, row), row.fingerprint, row.source_kind)
    else:
        statements.pop((instant, False), None)
        if at is not None and at.shape is Shape.NOTHING:
            segments.pop(instant, None)
        elif at is not None and at.nothing_to is not None:
            segments[instant] = replace(at, nothing_to=None)
    stated = replace(row, nothing_to=nothing_to) if instant <= row.valid_from else None
    for one in taken.evidence:
        if one.rank not in statements:
            there = segments.get(one.valid_from)
            statements[one.rank] = Said(
                one.rank,
                end_of(one, row),
                one.fingerprint,
                one.source_kind,
                one,
                row,
                nothing_to_of(there) if there is not None and there.continues is None else None,
            )
    laid, gone = relaid(around, instant, statements, segments, stated)
    if stated is not None and all(one.made is not Made.STATED for one in laid):
        raise _taken_since(laid[0].entry if laid else row)
    for segment in laid:
        if segment.was is not None and segment.was is segments.get(instant):
            segment.was = at
    return Plan(Outcome.UPDATED, tuple(laid), tuple(gone), around.following)


def _taken_since(by: Entry) -> PillionError:
    """Return the error for a row whose place another statement has taken."""
    return PillionError(
        Reason.FACT_CONFLICT,
        "another statement holds at the same instant by now: retract that one first",
        metadata={"existing_id": str(by.memory_id)},
    )
