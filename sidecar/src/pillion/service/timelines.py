"""Reading and changing one fact's timeline in a draft: the domain plans, this carries it out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import after, instant_of, memory_key, prefix_end

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import FOREVER, EndReason, Memory, Recurrence
from pillion.domain.mutations import MutationResult, Outcome
from pillion.domain.timeline import Entry, PutPlan, Statement, Surroundings, plan_put, plan_retract

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import SourceKind
    from pillion.domain.mutations import ConflictPolicy
    from pillion.domain.scope import FactKey
    from pillion.service.draft import Draft
    from pillion.service.records import Records

# Entries read at a time where nothing but evidence lies between here and a row.
ASLEEP_STEP: Final = 256


class Timelines:
    """The timelines of one partition as one draft sees and changes them."""

    def __init__(self, draft: Draft, keys: KeySpace, records: Records, now: int) -> None:
        self._draft = draft
        self._keys = keys
        self._records = records
        self._now = now

    # --- reading ---------------------------------------------------------------------------

    def surroundings(self, key: FactKey, instant: int) -> Surroundings:
        """Return what lies around an instant.

        A fact that is stated again and again has much evidence, so none of these reads goes
        through it: the row's own end says where the next row may begin.
        """
        prefix = self._keys.entries(key)
        beyond = after(self._keys.entry(key, instant))
        holding, at = _looking_back(self._draft, self._keys, key, instant)
        if (
            at is not None
            and not at.is_row
            and (holding is None or holding.fingerprint != at.fingerprint)
        ):
            at = None  # evidence asleep: nothing of its value holds there
        next_evidence: Entry | None = None
        if holding is None:
            next_row = self._first_row(beyond, prefix_end(prefix))
        else:
            end = prefix_end(prefix)
            next_row = None
            if holding.valid_to != FOREVER:
                end = self._keys.entry(key, holding.valid_to)
                next_row = self._first_row(end, prefix_end(prefix))
            for stored_key, data in self._draft.scan(beyond, end):
                entry = codec.decode_entry(instant_of(stored_key[-8:]), data)
                if entry.fingerprint == holding.fingerprint:
                    next_evidence = entry
                    break
        hidden = holding is not None and not self._records.memory(holding.memory_id).recallable_at(
            self._now
        )
        return Surroundings(holding, at, next_evidence, next_row, hidden)

    def _first_row(self, start: bytes, end: bytes) -> Entry | None:
        """Return the first row of a range, past the evidence asleep in a gap."""
        for stored_key, data in self._draft.scan(start, end, step=ASLEEP_STEP):
            entry = codec.decode_entry(instant_of(stored_key[-8:]), data)
            if entry.is_row:
                return entry
        return None

    def holding(self, key: FactKey, instant: int) -> Entry | None:
        """Return the row that holds at an instant, if any."""
        return find_holding(self._draft, self._keys, key, instant)

    # --- writing ---------------------------------------------------------------------------

    def put(
        self,
        memory: Memory,
        policy: ConflictPolicy,
        valid_to: int | None,
        new_id: Callable[[], UUID],
        *,
        vector: bytes = b"",
        stored: bool = False,
        said_by: SourceKind | None = None,
    ) -> MutationResult:
        """State a fact.

        Args:
            memory: The row that it becomes, if it becomes one.
            policy: What to do when another statement begins at the same instant.
            valid_to: The end that the statement names, if it names one.
            new_id: Makes the id of a row that goes on after this one.
            vector: The caller's own vector, if any.
            stored: The memory is in the store already, with its vector and indexes.
            said_by: Who vouches for the statement; None: its source.

        Raises:
            PillionError: FACT_CONFLICT or INTERVAL_EMPTY, as planned by the domain.
        """
        key = memory.fact_key
        if memory.value is None:
            raise PillionError.of_field("value", "a fact needs a value")
        fingerprint = memory.value.fingerprint
        said_by = said_by if said_by is not None else memory.source.kind
        statement = Statement(memory.valid_from, fingerprint, said_by, valid_to, policy)
        plan = plan_put(self.surroundings(key, memory.valid_from), statement)
        if plan.new_row_to is None:
            return self._keep(memory, plan, statement, vector)
        self.touch_head(key)
        replaced = plan.close or plan.correct
        old = self._records.memory(replaced.memory_id) if replaced is not None else None
        resumed, own_vector = None, b""
        if old is not None:
            resumed, own_vector = self._resumed(plan, old, plan.new_row_to, new_id)
        row = _placed(memory, plan, plan.new_row_to, old, resumed)
        if plan.close is not None:
            self._close(plan.close, row.valid_from, EndReason.SUPERSEDED, row.id)
        if plan.correct is not None:
            # The new row takes the very entry of the corrected one, so there is none to delete.
            self._leave_timeline(plan.correct, EndReason.CORRECTED, row.id)
        self._put_entry(row, said_by)
        if stored:
            self._records.update(row)
        else:
            self._records.create(row, vector)
        if resumed is not None and old is not None:
            resumed = replace(resumed, supersedes=row.id)
            self._put_entry(resumed, (plan.promote or replaced or statement).source_kind)
            self._records.create_like(resumed, old, own_vector)
        return MutationResult(
            row.id,
            plan.outcome,
            superseded_id=old.id if old is not None else None,
            fact_version=-1,
            valid_to=row.valid_to,
        )

    def _keep(
        self, memory: Memory, plan: PutPlan, statement: Statement, vector: bytes
    ) -> MutationResult:
        """Carry out a plan that makes no row: evidence, or the existing row was kept."""
        supported = plan.supports
        if supported is None:
            raise AssertionError("a plan makes a row or supports one")
        row = self._records.memory(supported)
        if plan.outcome is not Outcome.EVIDENCE:  # nothing changes, so no version does either
            return MutationResult(
                row.id,
                plan.outcome,
                version=self._records.written_version(row.id),
                fact_version=self._head_version(memory.fact_key),
                valid_to=row.valid_to,
            )
        self.touch_head(memory.fact_key)
        if plan.mark_evidence:
            entry = Entry(
                memory.valid_from,
                supported,
                statement.fingerprint,
                statement.source_kind,
                is_row=False,
            )
            self._put_evidence(entry, memory, vector)
        elif plan.strengthen is not None:
            entry = replace(plan.strengthen, source_kind=statement.source_kind)
            if entry.is_row:
                place = self._keys.entry(memory.fact_key, entry.valid_from)
                self._draft.put(place, codec.encode_row(entry))
            else:  # the stronger statement is the one that may become a row one day
                self._put_evidence(entry, memory, vector)
        self._records.update(_with_evidence(row, memory, self._now))
        return MutationResult(row.id, plan.outcome, fact_version=-1, valid_to=row.valid_to)

    def _put_evidence(self, entry: Entry, statement: Memory, vector: bytes) -> None:
        """Put evidence on a timeline, with the statement by which it may become a row."""
        self._records.check_vector(vector)
        self._draft.put(
            self._keys.entry(statement.fact_key, entry.valid_from),
            codec.encode_evidence(entry, statement, vector),
        )

    def _head_version(self, key: FactKey) -> int:
        """Return a head's version, on which the commit then depends; -1: this write makes it."""
        head = self._keys.head(key)
        version = self._draft.version(head)
        return -1 if self._draft.changed(head) else version

    def _resumed(
        self, plan: PutPlan, old: Memory, start: int, new_id: Callable[[], UUID]
    ) -> tuple[Memory | None, bytes]:
        """Return the row by which the old row's value goes on after the new one, if it does.

        With it comes the vector that evidence brought along, if it did.
        """
        if plan.promote is None and plan.resume_from is None:
            return None, b""
        base, vector = old, b""
        if plan.promote is not None:
            data = self._draft.get(self._keys.entry(old.fact_key, plan.promote.valid_from))
            if data is None:
                raise AssertionError("promoted evidence is in the draft")
            base, vector = codec.decode_evidence_statement(old.id, data)
        resumed = replace(
            base,
            id=new_id(),
            valid_from=start,
            valid_to=plan.resume_to,
            end_reason=old.end_reason,
            superseded_by=old.superseded_by,
            retracted_at=old.retracted_at,
            expired_at=old.expired_at,  # what was forgotten does not come back by a late arrival
            recurrence=Recurrence(),
            created_at=self._now,
            updated_at=self._now,
        )
        return resumed, vector

    def _put_entry(self, row: Memory, said_by: SourceKind) -> None:
        """Put a row on its timeline."""
        if row.value is None:
            raise AssertionError("a row of a timeline has a value")
        entry = Entry(row.valid_from, row.id, row.value.fingerprint, said_by, valid_to=row.valid_to)
        self._draft.put(self._keys.entry(row.fact_key, row.valid_from), codec.encode_row(entry))
        self._draft.put(self._keys.row(row.fact_key, row.id))

    def _close(self, entry: Entry, end: int, why: EndReason, successor: UUID | None) -> None:
        """End a row at an instant."""
        row = self._records.memory(entry.memory_id)
        self._draft.put(
            self._keys.entry(row.fact_key, entry.valid_from),
            codec.encode_row(replace(entry, valid_to=end)),
        )
        retracted_at = self._now if why is EndReason.RETRACTED else row.retracted_at
        self._records.update(
            replace(
                row,
                valid_to=end,
                end_reason=why,
                superseded_by=successor,
                retracted_at=retracted_at,
                updated_at=self._now,
            )
        )

    def _leave_timeline(self, entry: Entry, why: EndReason, successor: UUID | None) -> None:
        """Take a row's memory out of the recorded present. Its entry is the caller's business."""
        row = self._records.memory(entry.memory_id)
        self._records.update(
            replace(
                row,
                end_reason=why,
                superseded_by=successor,
                retracted_at=self._now,
                updated_at=self._now,
            )
        )

    def retract(self, row: Memory, instant: int) -> MutationResult:
        """Retract a row from an instant on.

        Raises:
            PillionError: ALREADY_ENDED when it had ended by then or left the recorded present.
        """
        key = row.fact_key
        if not row.on_timeline:
            raise PillionError(Reason.ALREADY_ENDED, "the memory was already taken back")
        data = self._draft.get(self._keys.entry(key, row.valid_from))
        if data is None:
            raise AssertionError("a row on the timeline has an entry")
        entry = codec.decode_entry(row.valid_from, data)
        end = plan_retract(entry, instant)
        self.touch_head(key)
        if end is None:
            self._draft.delete(self._keys.entry(key, row.valid_from))
            self._leave_timeline(entry, EndReason.WITHDRAWN, None)
        else:
            self._close(entry, end, EndReason.RETRACTED, None)
        return MutationResult(
            row.id,
            Outcome.UPDATED,
            fact_version=-1,
            valid_to=end if end is not None else row.valid_from,
        )

    def touch_head(self, key: FactKey) -> None:
        """Write the head, so that the key's version becomes this commit's revision."""
        head = self._keys.head(key)
        self._draft.get(head)
        self._draft.put(head, codec.pack({}))


def find_holding(draft: Draft, keys: KeySpace, key: FactKey, instant: int) -> Entry | None:
    """Return the row of a fact that holds at an instant, if any."""
    return _looking_back(draft, keys, key, instant)[0]


def _looking_back(
    draft: Draft, keys: KeySpace, key: FactKey, instant: int
) -> tuple[Entry | None, Entry | None]:
    """Return the row that holds at an instant, and the entry that begins there, awake or not."""
    start, beyond = keys.entries(key), after(keys.entry(key, instant))
    last = next(iter(draft.scan(start, beyond, reverse=True, step=1)), None)
    if last is None:
        return None, None
    entry = codec.decode_entry(instant_of(last[0][-8:]), last[1])
    at = entry if entry.valid_from == instant else None
    row: Entry | None = entry
    if not entry.is_row:
        row = _supported(draft, keys, key, entry, instant)
        if row is not None:
            return row, at
        # The row that this evidence first supported is another one by now: look for it.
        row = None
        for stored_key, data in draft.scan(start, last[0], reverse=True, step=ASLEEP_STEP):
            earlier = codec.decode_entry(instant_of(stored_key[-8:]), data)
            if earlier.is_row:
                row = earlier
                break
    return row if row is not None and instant < row.valid_to else None, at


def _supported(
    draft: Draft, keys: KeySpace, key: FactKey, evidence: Entry, instant: int
) -> Entry | None:
    """Return the row that evidence first supported, if that still holds at an instant."""
    data = draft.get(memory_key(evidence.memory_id))
    if data is None:
        return None
    row = codec.decode_memory(evidence.memory_id, data, 0)
    if not row.valid_at(instant):
        return None
    begun = draft.get(keys.entry(key, row.valid_from))
    return codec.decode_entry(row.valid_from, begun) if begun is not None else None


def _placed(
    memory: Memory, plan: PutPlan, end: int, old: Memory | None, resumed: Memory | None
) -> Memory:
    """Return the new row with its end, and with what it replaced and what replaces it."""
    successor = resumed.id if resumed is not None else plan.ended_by
    retracted_at = memory.retracted_at
    if end == FOREVER:
        end_reason, successor = EndReason.OPEN, None
    elif successor is not None:
        end_reason = EndReason.SUPERSEDED
    elif old is not None and end == old.valid_to:
        # It takes the old row's end, and why that one ended.
        end_reason, retracted_at = old.end_reason, old.retracted_at
    else:
        end_reason = EndReason.STATED
    return replace(
        memory,
        valid_to=end,
        end_reason=end_reason,
        retracted_at=retracted_at,
        supersedes=old.id if old is not None else None,
        superseded_by=successor,
    )


def grown(row: Memory, episode: UUID | None) -> Recurrence:
    """Return a memory's recurrence with one more statement, perhaps by an episode."""
    episodes = row.recurrence.episode_ids
    known = episode is None or episode == row.source.episode_id or episode in episodes
    if not known and episode is not None and len(episodes) < RECURRENCE_EPISODES_MAX:
        episodes = (*episodes, episode)
    return Recurrence(row.recurrence.count + 1, episodes)


def _with_evidence(row: Memory, statement: Memory, now: int) -> Memory:
    """Return the row with one more statement behind it."""
    return replace(
        row,
        recurrence=grown(row, statement.source.episode_id),
        confidence=max(row.confidence, statement.confidence),
        status=max(row.status, statement.status),
        # A statement that names no expiry says nothing about when the memory is to go.
        expires_at=row.expires_at
        if statement.expires_at == FOREVER
        else max(row.expires_at, statement.expires_at),
        updated_at=now,
    )
