"""Timelines in memory: the reference model, and one that carries the domain's plans out.

``Model`` is what a timeline means: a set of statements, folded anew for every question. The other
one keeps entries, as ``service.timelines`` does in a draft, and must never differ from it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import UUID

from pillion.domain.errors import Reason
from pillion.domain.memory import FOREVER, SourceKind
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.retractions import (
    Taken,
    check_retract,
    leaves_the_set,
    plan_restore,
    plan_retract,
    plan_withdraw,
)
from pillion.domain.segments import Entry, Made, Sleep
from pillion.domain.timeline import SOURCE_PRECEDENCE, Around, Plan, Statement, plan_put

from pillion_testing.service import refusal

if TYPE_CHECKING:
    from pillion.domain.mutations import Outcome


@dataclass(frozen=True)
class Told:
    """One statement of the model: [start, to) with a value; None: a retraction."""

    start: int
    to: int
    value: bytes | None
    source: SourceKind = SourceKind.USER_STATEMENT


class Model:
    """The set of statements of one key, by when they begin and whether they say anything."""

    def __init__(self, told=()) -> None:
        self.told: dict[tuple[int, bool], Told] = {}
        for one in told:
            self.tell(one)

    def tell(self, new: Told) -> None:
        """Add a statement; the strongest source of an instant speaks for it."""
        place = new.start, new.value is not None
        old = self.told.get(place)
        if old is None or new.value is None:
            self.told[place] = new
            return
        rank, other = SOURCE_PRECEDENCE[new.source], SOURCE_PRECEDENCE[old.source]
        if rank > other or (rank == other and new.value == old.value and new.to > old.to):
            self.told[place] = new

    def holder(self, instant: int) -> Told | None:
        """Who holds at an instant: of those that cover it, the one that began last."""
        covering = [one for one in self.told.values() if one.start <= instant < one.to]
        return max(covering, key=lambda one: (one.start, one.value is not None), default=None)

    def value(self, instant: int) -> bytes | None:
        holder = self.holder(instant)
        return holder.value if holder is not None else None

    def coverage(self, probes) -> list[bytes | None]:
        return [self.value(instant) for instant in probes]

    def holders(self, probes) -> list[tuple[int, bytes] | None]:
        """Which statement holds at each instant, by its start and its value."""
        found = [self.holder(instant) for instant in probes]
        return [
            None if one is None or one.value is None else (one.start, one.value) for one in found
        ]


class PureTimeline:
    """Carries plans out in memory. It looks at the whole timeline for each of them."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self.taken: dict[UUID, tuple[Entry, int, int]] = {}
        self.sleeps: dict[int, Sleep] = {}
        self.displaced: dict[int, dict[int, Entry]] = {}  # by retraction, then by instant
        self.epoch = 1
        self._ids = 0

    def _id(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids)

    def _segments(self) -> list[Entry]:
        segments = (one for one in self.entries.values() if not one.is_evidence)
        return sorted(segments, key=lambda one: one.valid_from)

    def rows(self) -> list[Entry]:
        return [one for one in self._segments() if one.is_row]

    def segment(self, instant: int) -> Entry | None:
        """The row, or retraction, whose interval has the instant."""
        found = [
            one
            for one in self.entries.values()
            if not one.is_evidence and one.valid_from <= instant < one.valid_to
        ]
        assert len(found) <= 1, "segments overlap"
        return found[0] if found else None

    def holding(self, instant: int) -> Entry | None:
        segment = self.segment(instant)
        return segment if segment is not None and segment.is_row else None

    def value(self, instant: int) -> bytes | None:
        row = self.holding(instant)
        return row.fingerprint if row is not None else None

    def coverage(self, probes) -> list[bytes | None]:
        return [self.value(instant) for instant in probes]

    def holders(self, probes) -> list[tuple[int, bytes] | None]:
        """Which statement holds at each instant, found from the entries alone."""
        evidence = [
            (self.segment(one.valid_from), one)
            for one in self.entries.values()
            if one.is_evidence and self._awake(one)
        ]
        found = []
        for instant in probes:
            row = self.holding(instant)
            if row is None:
                found.append(None)
                continue
            begun = [
                one.valid_from
                for supported, one in evidence
                if supported is row and one.valid_from <= instant < one.stated_to
            ]
            found.append((max([row.begun, *begun]), row.fingerprint))
        return found

    def _awake(self, entry: Entry) -> bool:
        segment = self.segment(entry.valid_from)
        return segment is not None and self.counts(entry, segment)

    def counts(self, entry: Entry, row: Entry) -> bool:
        """Whether evidence counts inside a row."""
        return (
            entry.is_evidence
            and entry.supports(row)
            and not any(one.holds(entry) for one in self.sleeps.values())
        )

    def around(self, instant: int, hidden=(), without: Entry | None = None) -> Around:
        entries = [
            one
            for one in sorted(self.entries.values(), key=lambda one: one.valid_from)
            if not one.is_evidence or self._awake(one)
        ]
        if without is not None:
            entries = [
                one
                for one in entries
                if not one.is_evidence or one.valid_from < instant or not self.counts(one, without)
            ]
        earlier = [one for one in entries if one.valid_from < instant]
        before = next((one for one in reversed(earlier) if not one.is_evidence), None)
        behind = earlier[earlier.index(before) + 1 :] if before is not None else []
        ahead = tuple(one for one in entries if one.valid_from > instant)
        made = Around(
            before=before,
            behind=tuple(behind),
            at=next((one for one in entries if one.valid_from == instant), None),
            ahead=ahead,
            row_follows=any(one.is_row for one in ahead),
            earlier=tuple(earlier),
            epoch=self.epoch,
        )
        holding = made.holding(instant)
        return replace(made, hidden=holding is not None and holding.memory_id in hidden)

    def _displace(self, instant: int) -> None:
        """Keep evidence asleep whose place something is about to take."""
        there = self.entries.get(instant)
        if there is None or not there.is_evidence:
            return
        epoch = self._taken_by(there)
        if epoch is not None:
            self.displaced.setdefault(epoch, {})[instant] = there

    def _taken_by(self, evidence: Entry) -> int | None:
        """Which retraction took some evidence: the first of those that hold it."""
        return next((epoch for epoch, one in self.sleeps.items() if one.holds(evidence)), None)

    def _carry_out(self, plan: Plan, row_id: UUID | None = None) -> None:
        for one in plan.gone:
            del self.entries[one.valid_from]
        for one in plan.segments:
            entry = one.entry
            if one.made is Made.STATED and row_id is not None:
                entry = replace(entry, memory_id=row_id)
            elif one.made is not Made.KEPT:
                entry = replace(entry, memory_id=self._id())
            if one.made in {Made.STATED, Made.RESUMED}:
                self._displace(entry.valid_from)
            self.entries[entry.valid_from] = entry

    def put(self, statement: Statement, hidden=(), row_id: UUID | None = None) -> Outcome:
        """Carry a statement out. ``hidden``: rows out of recall; ``row_id``: of a new row."""
        plan = plan_put(self.around(statement.valid_from, hidden), statement)
        if plan.mark is not None:
            self._displace(plan.mark.valid_from)
            self.entries[plan.mark.valid_from] = plan.mark
        self._carry_out(plan, row_id or self._id())
        return plan.outcome

    def retract(self, instant: int, row: Entry | None = None) -> UUID:
        """Retract the row that holds at an instant, or one that is given; return its id."""
        row = row or self.holding(instant)
        assert row is not None
        begin = check_retract(row, instant)
        around = self.around(begin, without=row)
        to = max(
            row.valid_to,
            row.stated_to,
            *(one.stated_to for one in self.entries.values() if self.counts(one, row)),
        )
        plan = (
            plan_withdraw(around, row)
            if leaves_the_set(row, instant)
            else plan_retract(around, row, begin, to)
        )
        self.taken[row.memory_id] = row, begin, self.epoch
        self.sleeps[self.epoch] = Sleep(row.fingerprint, begin, row.valid_to, row.epoch, self.epoch)
        self.epoch += 1
        self._carry_out(plan)
        return row.memory_id

    def restore(self, memory_id: UUID) -> None:
        """Take a retraction back."""
        row, instant, epoch = self.taken[memory_id]
        sleep = self.sleeps[epoch]
        in_place = tuple(
            one
            for one in self.entries.values()
            if one.is_evidence and instant < one.valid_from and self._taken_by(one) == epoch
        )
        displaced = self.displaced.get(epoch, {})
        evidence = (*displaced.values(), *in_place)
        del self.sleeps[epoch]
        try:
            plan = plan_restore(self.around(instant), Taken(row, instant, evidence))
        except BaseException:
            self.sleeps[epoch] = sleep
            self.sleeps = dict(sorted(self.sleeps.items()))
            raise
        del self.taken[memory_id]
        self._carry_out(plan, memory_id)
        for place, one in self.displaced.pop(epoch, {}).items():
            self.entries.setdefault(place, one)


def told(statement: Statement) -> Told:
    """A statement of the domain as the model takes it."""
    return Told(statement.valid_from, statement.to, statement.fingerprint, statement.source_kind)


def check(timeline: PureTimeline, model: Model, probes) -> None:
    """The entries say what the set of statements says, and nothing overlaps."""
    assert timeline.coverage(probes) == model.coverage(probes)
    assert timeline.holders(probes) == model.holders(probes)
    segments = timeline._segments()
    for one, following in itertools.pairwise(segments):
        assert one.valid_from < one.valid_to <= following.valid_from
    for (start, has_value), one in model.told.items():
        if has_value:  # every statement has an entry of its own, at its own instant
            entry = timeline.entries[start]
            assert (entry.begun, entry.fingerprint) == (start, one.value)
            assert entry.stated_to == one.to


POLICIES = {"correct": ConflictPolicy.CORRECT, "prefer": ConflictPolicy.PREFER_SOURCE}


class Steps:
    """Carries steps out on a timeline and on the set of statements, and compares."""

    def __init__(self) -> None:
        self.timeline = PureTimeline()
        self.model = Model()
        self.taken: dict = {}

    def step(self, kind, instant, value, length, source) -> range | None:
        """Take one step; return the instants at which it may change anything."""
        if kind == "restore":
            return self.restore(instant)
        if kind in {"retract", "never"}:
            return self.retract(kind, instant)
        return self.put(kind, instant, value, length, source)

    def put(self, kind, instant, value, length, source):
        policy = {"correct": ConflictPolicy.CORRECT, "prefer": ConflictPolicy.PREFER_SOURCE}.get(
            kind, ConflictPolicy.REJECT
        )
        one = Statement(instant, value, source, length and instant + length, policy)
        old = self.model.told.get((instant, True))
        entries = dict(self.timeline.entries)
        error = refusal(lambda: self.timeline.put(one))
        if error is not None:
            assert error.reason is Reason.FACT_CONFLICT
            assert old is not None
            assert old.value != value
            assert self.timeline.entries == entries
            return None
        if policy is ConflictPolicy.CORRECT and old is not None and old.value != value:
            del self.model.told[instant, True]
        self.model.tell(told(one))
        return range(instant, max(one.to, old.to if old is not None else 0))

    def retract(self, kind, instant):
        row = self.timeline.holding(instant)
        if row is None:
            return None
        begin = row.valid_from if kind == "never" else instant
        evidence = [
            one
            for one in self.timeline.entries.values()
            if self.timeline.counts(one, row) and one.valid_from >= begin
        ]
        every = [
            one.stated_to
            for one in self.timeline.entries.values()
            if self.timeline.counts(one, row)
        ]
        to = max([row.valid_to, row.stated_to, *every])
        gone = [self.model.told.pop((one.valid_from, True)) for one in evidence]
        never = begin == row.valid_from and row.continues is None
        if never:
            gone.append(self.model.told.pop((row.valid_from, True)))
        else:
            self.model.tell(Told(begin, to, None))
        self.taken[self.timeline.retract(begin, row)] = begin, never, gone
        return range(begin, to)

    def restore(self, number):
        if not self.taken:
            return None
        memory_id = list(self.taken)[number % len(self.taken)]
        begin, never, gone = self.taken.pop(memory_id)
        before = dict(self.timeline.entries)
        error = refusal(lambda: self.timeline.restore(memory_id))
        if error is not None:
            assert error.reason is Reason.FACT_CONFLICT
            assert self.timeline.entries == before
            return None
        if not never:
            self.model.told.pop((begin, False), None)
        for one in gone:  # what was stated of the same instant since has taken its place for good
            self.model.told.setdefault((one.start, True), one)
        return range(begin, max([FOREVER, *(one.to for one in gone)]))
