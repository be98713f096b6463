"""Taking statements out of timelines as if they had never been made.

The rules are those of the timeline: what is left of the set of statements decides who holds when,
so what an erased statement had ended goes on where nothing else ended it. A retraction is a
statement of its own and stays, also of a row that is erased.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec
from pillion_storage.keys import INSTANT_BYTES, after, instant_of, prefix_end, taken_key

from pillion.domain.erasure import Fate, fate_of, without
from pillion.domain.memory import FOREVER
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.retractions import plan_withdraw
from pillion.domain.segments import Shape
from pillion.domain.timeline import end_of
from pillion.service.asleep import first_that_holds, sleeps_between
from pillion.service.carrying import Carrier
from pillion.service.surroundings import Surveyor
from pillion.service.timelines import Timelines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory
    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Entry
    from pillion.service.draft import Draft
    from pillion.service.records import Records

NOBODY: Final = UUID(int=0)
# Entries of a whole timeline that one commit deletes: well under what a commit takes.
ENTRIES_STEP: Final = 500


def _allow(_memory: Memory) -> None:
    """An erasure isn't held up by a value that holds again and no longer fits its attribute."""


class TimelineEraser:
    """Erases from the timelines of one partition, in one draft."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        records: Records,
        *,
        now: int,
        new_id: Callable[[], UUID],
        gone: AbstractSet[UUID],
    ) -> None:
        self._draft = draft
        self._keys = keys
        self._records = records
        self._now = now
        self._new_id = new_id
        self._gone = gone
        self._surveyor = Surveyor(draft, keys)
        self._timelines = Timelines(
            draft, keys, records, now=now, new_id=new_id, check_return=_allow
        )
        self._carrier = Carrier(
            draft, keys, records, self._surveyor, now=now, new_id=new_id, check_return=_allow
        )

    # --- whole timelines ---------------------------------------------------------------------

    def erase_whole(self, key: FactKey) -> bool:
        """Delete a timeline of which nothing is left; return whether that was all of it.

        The commit depends on its head, so nobody states anything of it meanwhile.
        """
        self._draft.get(self._keys.head(key))
        deleted = 0
        for prefix in (
            self._keys.entries(key),
            self._keys.sleep(key, 0)[:-INSTANT_BYTES],
            self._keys.displaced_range(key, 0)[:-INSTANT_BYTES],
            self._keys.rows(key),
        ):
            for place, _ in list(self._draft.scan(prefix, prefix_end(prefix), reverse=True)):
                self._draft.delete(place)
                deleted += 1
                if deleted >= ENTRIES_STEP:
                    return False
        self._draft.delete(self._keys.head(key))
        return True

    # --- some rows ---------------------------------------------------------------------------

    def erase_rows(self, key: FactKey, rows: Sequence[Memory], said: AbstractSet[UUID]) -> None:
        """Take all rows of a timeline that go, and what was said for them, out of it.

        Their memories are the caller's to delete.

        Args:
            key: The timeline.
            rows: The rows; a statement that shows again behind another one has several.
            said: Of these, rows of which stays what others said for them: that makes a row of its
                own. The others go as a whole.
        """
        self._erase_repetitions(key)
        stay: list[tuple[Memory, Entry, bytes, Entry]] = []
        for row in rows:
            self._drop_asleep(row)
            entry = self._place_of(row)
            if entry is not None:
                taken = self._take_evidence(key, entry, said=row.id in said)
                stay += [(row, told, data, entry) for told, data in taken]
        # What goes on behind another statement goes with the statement itself.
        begun = sorted(rows, key=lambda one: one.valid_from)
        for again in (False, True):
            for row in begun:
                entry = self._place_of(self._records.memory(row.id))
                if entry is not None and (entry.continues is not None) is again:
                    epoch = self._surveyor.epoch(key)
                    self._timelines.retract(self._records.memory(row.id), row.valid_from)
                    self._draft.delete(self._keys.sleep(key, epoch))
        for row, told, data, entry in stay:
            self._say_again(row, told, data, entry)
        for row in rows:
            self._draft.delete(taken_key(row.id))
        self._forget_id(key)

    def _place_of(self, row: Memory) -> Entry | None:
        """Return the entry of a row; None: it is not on its timeline."""
        if not row.on_timeline:
            return None
        entry = self._surveyor.entry(row.fact_key, row.valid_from)
        return entry if entry is not None and entry.memory_id == row.id else None

    def _erase_repetitions(self, key: FactKey) -> None:
        """Take out what erased records repeated, for whatever row, so that none of it speaks."""
        start = self._keys.entries(key)
        found = True
        while found:
            found = False
            row: Entry | None = None
            for place, data in list(self._draft.scan(start, prefix_end(start), step=256)):
                told = codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data)
                if not told.is_evidence:
                    row = told
                elif entry_without(place, data, self._gone) is None:
                    if row is not None:
                        self._withdraw_evidence(key, row, told)
                    self._draft.delete(place)
                    found = True  # what lies behind may be another row's by now
                    break

    def _take_evidence(
        self, key: FactKey, entry: Entry, *, said: bool
    ) -> list[tuple[Entry, bytes]]:
        """Delete a row's evidence; return what of it stays true without the row."""
        stay = []
        for place, told, data in list(self._entries(key, entry.valid_from, entry.valid_to)):
            if not told.is_evidence or told.fingerprint != entry.fingerprint:
                continue
            if said and told.supports(entry) and self._is_awake(key, told, entry):
                statement, _ = codec.decode_evidence_statement(NOBODY, data)
                if fate_of(statement, self._gone) is not Fate.GOES:
                    stay.append((told, data))
            self._draft.delete(place)
        return stay

    def _say_again(self, row: Memory, told: Entry, data: bytes, entry: Entry) -> None:
        """State anew what was evidence for a row that is gone."""
        statement, vector = codec.decode_evidence_statement(self._new_id(), data)
        ends = end_of(told, entry)
        self._timelines.put(
            replace(
                without(statement, self._gone),
                valid_from=told.valid_from,
                expired_at=row.expired_at,
                created_at=self._now,
                updated_at=self._now,
            ),
            ConflictPolicy.CORRECT,
            None if ends == FOREVER else ends,
            vector=vector,
            said_by=told.source_kind,
        )

    def _drop_asleep(self, row: Memory) -> None:
        """Delete the evidence that a retraction took with a row."""
        data = self._draft.get(taken_key(row.id))
        if data is None or not row.is_fact:
            return
        key, epoch = row.fact_key, codec.decode_taken(data).epoch
        place = self._keys.sleep(key, epoch)
        asleep = self._draft.get(place)
        if asleep is None:
            return
        sleep = codec.decode_sleep(epoch, asleep)
        for at, told, _ in list(self._entries(key, sleep.start, sleep.end)):
            if told.is_evidence and sleep.holds(told):
                self._draft.delete(at)
        displaced = self._keys.displaced_range(key, epoch)
        for at, _ in list(self._draft.scan(displaced, prefix_end(displaced))):
            self._draft.delete(at)
        self._draft.delete(place)

    # --- repetitions ---------------------------------------------------------------------------

    def erase_evidence(self, row: Memory) -> None:
        """Take what erased records said for a row that stays out of its timeline."""
        self._erase_repetitions(row.fact_key)
        self._forget_id(row.fact_key)

    def _withdraw_evidence(self, key: FactKey, row: Entry, told: Entry) -> None:
        if not told.supports(row) or not self._is_awake(key, told, row):
            return
        only = replace(told, valid_to=told.valid_from + 1)
        around = self._surveyor.around(key, told.valid_from, self._surveyor.reach(key, row))
        around = replace(around, earlier=self._surveyor.earlier(key, told.valid_from))
        self._timelines.touch_head(key)
        self._carrier.carry_out(key, plan_withdraw(around, only))

    # --- what else names them ----------------------------------------------------------------

    def _forget_id(self, key: FactKey) -> None:
        """Have nothing that stays of a timeline name erased records."""
        for prefix in (
            self._keys.entries(key),
            self._keys.displaced_range(key, 0)[:-INSTANT_BYTES],
        ):
            for place, data in list(self._draft.scan(prefix, prefix_end(prefix), step=256)):
                left = entry_without(place, data, self._gone)
                if left is None:
                    self._draft.delete(place)
                elif left is not data:
                    self._put(key, place, left)

    def _put(self, key: FactKey, place: bytes, data: bytes) -> None:
        self._draft.put(place, data, owner=self._keys.subject(key.subject))

    def _is_awake(self, key: FactKey, told: Entry, row: Entry) -> bool:
        newest = self._surveyor.epoch(key)
        sleeps = sleeps_between(self._draft, self._keys, key, row.epoch, newest)
        return first_that_holds(sleeps, told) is None

    def _entries(self, key: FactKey, start: int, end: int) -> Iterator[tuple[bytes, Entry, bytes]]:
        """Yield what lies between two instants of a timeline, without the first."""
        last = prefix_end(self._keys.entries(key))
        if end != FOREVER:
            last = self._keys.entry(key, end)
        first = after(self._keys.entry(key, start))
        for place, data in self._draft.scan(first, last):
            yield place, codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data), data


def entry_without(place: bytes, data: bytes, gone: AbstractSet[UUID]) -> bytes | None:
    """Return an entry as it is, or was, without erased records; None: it is of one.

    The same bytes where there is nothing of one in it.
    """
    entry = codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data)
    named = entry.memory_id in gone
    if entry.is_evidence:
        statement, vector = codec.decode_evidence_statement(entry.memory_id, data)
        fate = fate_of(statement, gone)
        if fate is Fate.GOES:
            return None
        if fate is Fate.STAYS and not named:
            return data
        nobody = replace(entry, memory_id=NOBODY) if named else entry
        return codec.encode_evidence(nobody, without(statement, gone), vector)
    if not named:
        return data
    if entry.shape is Shape.ROW:
        return None
    return codec.encode_segment(replace(entry, memory_id=NOBODY))
