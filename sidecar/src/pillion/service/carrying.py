"""Writing what a plan for a timeline changes: its entries, and the memories of its rows."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pillion_storage import codec
from pillion_storage.keys import taken_key

from pillion.domain.memory import FOREVER, EndReason, Memory, Recurrence
from pillion.domain.mutations import Outcome
from pillion.domain.segments import Entry, Made
from pillion.service.asleep import displace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Segment
    from pillion.domain.timeline import Plan
    from pillion.service.draft import Draft
    from pillion.service.records import Records
    from pillion.service.surroundings import Surveyor


@dataclass(frozen=True, slots=True)
class Stated:
    """The memory whose statement a plan is about.

    Attributes:
        memory: As stated, or as it is put back.
        vector: The caller's own vector, if any.
    """

    memory: Memory
    vector: bytes = b""


class Carrier:
    """Carries plans out in one draft."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        records: Records,
        surveyor: Surveyor,
        *,
        now: int,
        new_id: Callable[[], UUID],
        check_return: Callable[[Memory], None],
    ) -> None:
        """Begin with what the draft has; the arguments are as those of ``Timelines``."""
        self._draft = draft
        self._keys = keys
        self._records = records
        self._surveyor = surveyor
        self._now = now
        self._new_id = new_id
        self._check_return = check_return

    def carry_out(
        self,
        key: FactKey,
        plan: Plan,
        stated: Stated | None = None,
        out_of_place: Mapping[Entry, bytes] | None = None,
    ) -> None:
        """Write what a plan changes.

        Args:
            key: The timeline.
            plan: What is to become of it.
            stated: Whose statement it is about, if it states one.
            out_of_place: Evidence that may speak again and is not in its place, as stored.
        """
        words = [self._words(key, one, stated, out_of_place or {}) for one in plan.segments]
        segments = [
            replace(one.entry, memory_id=memory.id) if memory is not None else one.entry
            for one, (memory, _, _) in zip(plan.segments, words, strict=True)
        ]
        for entry in plan.gone:
            self._draft.delete(self._keys.entry(key, entry.valid_from))
        for one, entry in zip(plan.segments, segments, strict=True):
            if one.made in {Made.STATED, Made.RESUMED}:
                self.displace(key, entry.valid_from)
            if entry != one.was:
                self._draft.put(
                    self._keys.entry(key, entry.valid_from),
                    codec.encode_segment(entry),
                    owner=self._keys.subject(key.subject),
                )
        for entry in plan.gone:
            if entry.is_row:
                over = _over(entry, segments) if entry.rank != plan.withdrawn else None
                self._leave_timeline(entry, over)
        cut = {one.valid_from for one in plan.gone}
        following = [*segments, plan.following][1:]
        for place, (one, entry, after) in enumerate(
            zip(plan.segments, segments, following, strict=True)
        ):
            adjoining = after if after is not None and after.valid_from == one.end else None
            if not entry.is_row:
                continue
            if one.made is not Made.KEPT:
                previous = segments[place - 1] if place else None
                self._begin(words[place], one, entry, previous, adjoining)
                continue
            renewed = place + 1 < len(segments) and plan.segments[place + 1].made is not Made.KEPT
            moved = one.was is None or one.was.valid_to != one.end or one.end in cut
            if moved or (adjoining is not None and renewed):
                row = self._ended(self._records.memory(entry.memory_id), entry, adjoining)
                self._records.update(replace(row, updated_at=self._now))
        self._check_returning(plan, segments)

    def _check_returning(self, plan: Plan, segments: Sequence[Entry]) -> None:
        """Refuse a plan by which a value comes to hold again that must not."""
        for one, entry in zip(plan.segments, segments, strict=True):
            if not entry.is_row or entry.valid_to <= self._now:
                continue
            held = one.was is not None and one.was.valid_to > self._now
            if held or (one.made is Made.STATED and plan.outcome is not Outcome.UPDATED):
                continue
            row = self._records.memory(entry.memory_id)
            if one.made is not Made.STATED and one.said is not None and one.said.row is not None:
                row = replace(row, id=one.said.row.memory_id)  # that of a new row tells nobody
            if row.recallable_at(self._now):
                self._check_return(row)

    def displace(self, key: FactKey, instant: int) -> None:
        """Keep what sleeps at an instant, before something takes its place."""
        displace(self._draft, self._keys, key, instant, self._surveyor.epoch(key))

    def _words(
        self,
        key: FactKey,
        segment: Segment,
        stated: Stated | None,
        out_of_place: Mapping[Entry, bytes],
    ) -> tuple[Memory | None, bytes, Memory | None]:
        """Return the memory of a row that is to be made, before anything is written.

        With it come its own vector, and the memory that has another one if it has the same text.
        """
        entry, said = segment.entry, segment.said
        if segment.made is Made.KEPT or not entry.is_row:
            return None, b"", None
        if said is None:
            raise AssertionError("a row that is made begins with a statement")
        if segment.made is Made.STATED or said.entry is None:
            if stated is None:
                raise AssertionError("a plan that states a row has its memory")
            if segment.made is Made.STATED:
                return stated.memory, stated.vector, None
            base, vector, row = stated.memory, stated.vector, stated.memory
        else:
            row = self._records.memory((said.row or said.entry).memory_id)
            base, vector = row, b""
            if said.entry.is_evidence:
                data = out_of_place.get(said.entry)
                if data is None:
                    data = self._draft.get(self._keys.entry(key, said.entry.valid_from))
                if data is None:
                    raise AssertionError("evidence that speaks again is in the draft")
                base, vector = codec.decode_evidence_statement(row.id, data)
            elif said.entry.memory_id != row.id:
                base = self._records.memory(said.entry.memory_id)
        made = replace(
            base,
            id=self._new_id(),
            valid_from=entry.valid_from,
            expired_at=row.expired_at,  # what was forgotten does not come back by a late arrival
            recurrence=Recurrence(),
            retracted_at=FOREVER,
            created_at=self._now,
            updated_at=self._now,
        )
        return made, vector, row

    def _begin(
        self,
        words: tuple[Memory | None, bytes, Memory | None],
        segment: Segment,
        entry: Entry,
        previous: Entry | None,
        adjoining: Entry | None,
    ) -> None:
        """Write the memory of a row that begins."""
        memory, vector, like = words
        if memory is None:
            raise AssertionError("a row has a memory")
        if segment.made is not Made.STATED:
            before = previous if previous is not None and previous.is_row else None
            touches = before is not None and before.valid_to == entry.valid_from
            memory = replace(
                memory, supersedes=before.memory_id if before is not None and touches else None
            )
        memory = self._ended(memory, entry, adjoining)
        if like is not None:
            self._records.create_like(memory, like, vector)
        elif self._records.find_memory(memory.id) is not None:
            self._records.update(replace(memory, updated_at=self._now))
        else:
            self._records.create(memory, vector)
        self._draft.put(self._keys.row(memory.fact_key, memory.id))

    def _ended(self, row: Memory, entry: Entry, after: Entry | None) -> Memory:
        """Return a row with its end, why it ends there, and what comes after it."""
        retracted_at, successor = FOREVER, None
        if entry.valid_to == FOREVER:
            reason = EndReason.OPEN
        elif after is not None and after.is_row:
            reason, successor = EndReason.SUPERSEDED, after.memory_id
        elif after is not None and after.continues is None:
            reason = EndReason.RETRACTED
            retracted_at = self._retracted_at(row, after)
        else:
            reason = EndReason.STATED
        return replace(
            row,
            valid_to=entry.valid_to,
            end_reason=reason,
            superseded_by=successor,
            retracted_at=retracted_at,
        )

    def _retracted_at(self, row: Memory, nothing: Entry) -> int:
        """Return when a retraction that ends a row was recorded."""
        data = self._draft.get(taken_key(nothing.memory_id))
        if data is not None:
            taken = codec.decode_taken(data)
            if taken.instant == nothing.begun:
                return taken.recorded_at
        return row.retracted_at if row.retracted_at != FOREVER else self._now

    def _leave_timeline(self, entry: Entry, over: Entry | None) -> None:
        """Take a row's memory out of the recorded present; ``over`` has its place."""
        row = self._records.memory(entry.memory_id)
        self._records.update(
            replace(
                row,
                end_reason=EndReason.CORRECTED if over is not None else EndReason.WITHDRAWN,
                superseded_by=over.memory_id if over is not None else None,
                retracted_at=self._now,
                updated_at=self._now,
            )
        )


def _over(entry: Entry, segments: Sequence[Entry]) -> Entry | None:
    """Return the row, if any, that holds at the instant at which another one began."""
    place = bisect_right(segments, entry.valid_from, key=lambda one: one.valid_from) - 1
    over = segments[place] if place >= 0 else None
    if over is None or not over.is_row or over.valid_to <= entry.valid_from:
        return None
    return over
