"""A timeline in memory that carries the domain's plans out, as ``service.timelines`` does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from pillion.domain.timeline import Entry, Statement, Surroundings, plan_put, plan_retract

if TYPE_CHECKING:
    from pillion.domain.mutations import Outcome


class PureTimeline:
    """Carries plans out in memory, as ``service.timelines`` does in a draft."""

    def __init__(self) -> None:
        self.entries: dict[int, Entry] = {}
        self._ids = 0

    def _id(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids)

    def rows(self) -> list[Entry]:
        return sorted(
            (one for one in self.entries.values() if one.is_row), key=lambda one: one.valid_from
        )

    def holding(self, instant: int) -> Entry | None:
        rows = [one for one in self.rows() if one.valid_from <= instant < one.valid_to]
        assert len(rows) <= 1, "rows overlap"
        return rows[0] if rows else None

    def value(self, instant: int) -> bytes | None:
        row = self.holding(instant)
        return row.fingerprint if row is not None else None

    def coverage(self, probes) -> list[bytes | None]:
        return [self.value(instant) for instant in probes]

    def around(self, instant: int, hidden=()) -> Surroundings:
        holding = self.holding(instant)
        at = self.entries.get(instant)
        if at is not None and not at.is_row and not self._awake(at):
            at = None
        later = sorted(one for one in self.entries if one > instant)
        evidence = [
            self.entries[one]
            for one in later
            if not self.entries[one].is_row
            and holding is not None
            and one < holding.valid_to
            and self.entries[one].fingerprint == holding.fingerprint
        ]
        rows = [self.entries[one] for one in later if self.entries[one].is_row]
        return Surroundings(
            holding,
            at,
            evidence[0] if evidence else None,
            rows[0] if rows else None,
            holding is not None and holding.memory_id in hidden,
        )

    def _awake(self, entry: Entry) -> bool:
        holding = self.holding(entry.valid_from)
        return holding is not None and holding.fingerprint == entry.fingerprint

    def put(self, statement: Statement, hidden=(), row_id: UUID | None = None) -> Outcome:
        """Carry a statement out. ``hidden``: rows out of recall; ``row_id``: of a new row."""
        plan = plan_put(self.around(statement.valid_from, hidden), statement)
        at = statement.valid_from
        if plan.new_row_to is None:
            assert plan.supports is not None
            if plan.mark_evidence:
                self.entries[at] = Entry(
                    at, plan.supports, statement.fingerprint, statement.source_kind, is_row=False
                )
            elif plan.strengthen is not None:
                self.entries[at] = replace(plan.strengthen, source_kind=statement.source_kind)
            return plan.outcome
        if plan.close is not None:
            self.entries[plan.close.valid_from] = replace(plan.close, valid_to=at)
        self.entries[at] = Entry(
            at,
            row_id or self._id(),
            statement.fingerprint,
            statement.source_kind,
            valid_to=plan.new_row_to,
        )
        old = plan.close or plan.correct
        start = plan.resume_from
        if plan.promote is not None:
            assert start is None
            start = plan.promote.valid_from
        if start is not None:
            assert old is not None
            assert start == plan.new_row_to
            said_by = (plan.promote or old).source_kind
            self.entries[start] = Entry(
                start, self._id(), old.fingerprint, said_by, valid_to=plan.resume_to
            )
        return plan.outcome

    def retract(self, instant: int) -> None:
        row = self.holding(instant)
        assert row is not None
        end = plan_retract(row, instant)
        if end is None:
            del self.entries[row.valid_from]
        else:
            self.entries[row.valid_from] = replace(row, valid_to=end)
