"""Changing one fact's timeline in a draft: the domain plans, this carries it out."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pillion_storage import codec
from pillion_storage.keys import taken_key

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import FOREVER, EndReason, Memory, Recurrence
from pillion.domain.mutations import MutationResult, Outcome
from pillion.domain.segments import Entry, Made, Shape, Sleep
from pillion.domain.timeline import (
    Plan,
    Statement,
    Taken,
    check_retract,
    end_of,
    leaves_the_set,
    plan_put,
    plan_restore,
    plan_retract,
    plan_withdraw,
)
from pillion.service.asleep import displace, displaced, put_back
from pillion.service.surroundings import Surveyor, find_holding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import SourceKind
    from pillion.domain.mutations import ConflictPolicy
    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Segment
    from pillion.domain.timeline import Around
    from pillion.service.draft import Draft
    from pillion.service.records import Records


@dataclass(frozen=True, slots=True)
class _Stated:
    """The memory whose statement a plan is about.

    Attributes:
        memory: As stated, or as it is put back.
        vector: The caller's own vector, if any.
    """

    memory: Memory
    vector: bytes = b""


class Timelines:
    """The timelines of one partition as one draft sees and changes them."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        records: Records,
        *,
        now: int,
        new_id: Callable[[], UUID],
        check_return: Callable[[Memory], None],
    ) -> None:
        """Begin with what the draft has.

        Args:
            draft: The commit in the making.
            keys: Of the partition.
            records: Its memories.
            now: The time of the write.
            new_id: Names rows that nobody states anew.
            check_return: Refuses, by PillionError, that a row holds again.
        """
        self._check_return = check_return
        self._draft = draft
        self._keys = keys
        self._records = records
        self._now = now
        self._new_id = new_id
        self._surveyor = Surveyor(draft, keys)

    def holding(self, key: FactKey, instant: int) -> Entry | None:
        """Return the row that holds at an instant, if any."""
        return find_holding(self._draft, self._keys, key, instant)

    # --- stating ---------------------------------------------------------------------------

    def put(
        self,
        memory: Memory,
        policy: ConflictPolicy,
        valid_to: int | None,
        *,
        vector: bytes = b"",
        said_by: SourceKind | None = None,
    ) -> MutationResult:
        """State a fact.

        Args:
            memory: The row that it becomes, if it becomes one. It may be in the store already.
            policy: What to do when another statement begins at the same instant.
            valid_to: The end that the statement names, if it names one.
            vector: The caller's own vector, if any.
            said_by: Who vouches for the statement; None: its source.

        Raises:
            PillionError: FACT_CONFLICT or INTERVAL_EMPTY, as planned by the domain;
                LIMIT_EXCEEDED when too much of the timeline lies within the interval.
        """
        key = memory.fact_key
        if memory.value is None:
            raise PillionError.of_field("value", "a fact needs a value")
        fingerprint = memory.value.fingerprint
        said_by = said_by if said_by is not None else memory.source.kind
        statement = Statement(memory.valid_from, fingerprint, said_by, valid_to, policy)
        around = self._around_put(key, statement)
        plan = plan_put(around, statement)
        if plan.supports is not None:
            return self._keep(key, plan, around, _Stated(memory, vector))
        self._touch_head(key, around.epoch)
        replaced = plan.replaced.memory_id if plan.replaced is not None else None
        memory = replace(memory, supersedes=replaced)
        self._carry_out(key, plan, _Stated(memory, vector))
        return MutationResult(
            memory.id,
            plan.outcome,
            superseded_id=replaced,
            fact_version=-1,
            valid_to=next(one.end for one in plan.segments if one.made is Made.STATED),
        )

    def _around_put(self, key: FactKey, statement: Statement) -> Around:
        """Return what lies around a statement, with all that its plan may come to need."""
        instant, to = statement.valid_from, statement.to
        around = self._surveyor.around(key, instant, to)
        at = around.at
        if at is not None and at.continues is None and at.shape is not Shape.NOTHING:
            at_to = end_of(at, around.before if around.before is not None else at)
            if at_to > to:  # it may make way, and then earlier ones show
                around = self._surveyor.around(key, instant, at_to)
                around = replace(around, earlier=self._surveyor.earlier(key, instant))
        holding = around.holding(instant)
        hidden = holding is not None and not self._records.memory(holding.memory_id).recallable_at(
            self._now
        )
        return replace(around, hidden=hidden)

    def _keep(self, key: FactKey, plan: Plan, around: Around, stated: _Stated) -> MutationResult:
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
                fact_version=self._head_version(stated.memory.fact_key),
                valid_to=row.valid_to,
            )
        self._touch_head(key, around.epoch)
        self._records.check_vector(stated.vector)
        if plan.mark is not None:
            self._displace(key, plan.mark.valid_from)
            # A stronger statement is the one that may become a row one day.
            self._draft.put(
                self._keys.entry(key, plan.mark.valid_from),
                codec.encode_evidence(plan.mark, stated.memory, stated.vector),
                owner=self._owner(key),
            )
        self._records.update(_with_evidence(row, stated.memory, self._now))
        self._carry_out(key, plan, stated)
        valid_to = self._records.memory(row.id).valid_to
        return MutationResult(row.id, plan.outcome, fact_version=-1, valid_to=valid_to)

    # --- taking back, and putting back -------------------------------------------------------

    def retract(self, row: Memory, instant: int) -> MutationResult:
        """Retract a row from an instant on.

        Raises:
            PillionError: ALREADY_ENDED when it had ended by then or left the recorded present;
                LIMIT_EXCEEDED when too much of the timeline lies within its interval.
        """
        key = row.fact_key
        if not row.on_timeline:
            raise PillionError(Reason.ALREADY_ENDED, "the memory was already taken back")
        entry = self._surveyor.entry(key, row.valid_from)
        if entry is None:
            raise AssertionError("a row on the timeline has an entry")
        begin = check_retract(entry, instant)
        to = self._surveyor.reach(key, entry)
        around = self._surveyor.around(key, begin, to, without=entry)
        if leaves_the_set(entry, instant):
            around = replace(around, earlier=self._surveyor.earlier(key, begin))
            plan = plan_withdraw(around, entry)
        else:
            plan = plan_retract(around, entry, begin, to)
        sleep = Sleep(entry.fingerprint, begin, entry.valid_to, entry.epoch, around.epoch)
        taken = codec.TakenRecord(entry, begin, to, around.epoch, self._now)
        self._draft.put(taken_key(row.id), codec.encode_taken(taken), owner=self._owner(key))
        self._draft.put(
            self._keys.sleep(key, around.epoch),
            codec.encode_sleep(sleep),
            owner=self._owner(key),
        )
        self._touch_head(key, around.epoch + 1)
        self._carry_out(key, plan)
        return MutationResult(row.id, Outcome.UPDATED, fact_version=-1, valid_to=begin)

    def restore(self, row: Memory) -> MutationResult:
        """Take a row's retraction back: it holds again where nothing later says otherwise.

        Raises:
            PillionError: ALREADY_ENDED when it was not retracted, or its place was taken since;
                FACT_CONFLICT when a statement has begun at the instant of a withdrawn one.
        """
        key = row.fact_key
        data = self._draft.get(taken_key(row.id))
        if data is None:
            raise not_retracted()
        taken = codec.decode_taken(data)
        entry, instant = taken.row, taken.instant
        anew = instant <= entry.valid_from  # the row left the recorded present, and comes back
        if anew == row.on_timeline:
            raise not_retracted()
        sleep = self._keys.sleep(key, taken.epoch)
        asleep = self._draft.get(sleep)
        if asleep is None:
            raise AssertionError("a retraction says which evidence it took")
        evidence = self._surveyor.taken_evidence(
            key, entry, codec.decode_sleep(taken.epoch, asleep)
        )
        self._draft.delete(sleep)
        out_of_place = displaced(self._draft, self._keys, key, taken.epoch)
        evidence = (*out_of_place, *evidence)
        beyond = max((instant, *(one.valid_from for one in evidence)))
        to = max((taken.to, *(end_of(one, entry) for one in evidence)))
        around = self._surveyor.around(key, instant, to, beyond=beyond)
        around = replace(around, earlier=self._surveyor.earlier(key, instant))
        plan = plan_restore(around, Taken(entry, instant, evidence))
        self._draft.delete(taken_key(row.id))
        self._touch_head(key, around.epoch)
        stated = _Stated(replace(row, retracted_at=FOREVER)) if anew else None
        self._carry_out(key, plan, stated, out_of_place)
        put_back(self._draft, self._keys, key, taken.epoch, out_of_place)
        valid_to = self._records.memory(row.id).valid_to
        return MutationResult(row.id, Outcome.UPDATED, fact_version=-1, valid_to=valid_to)

    # --- carrying out --------------------------------------------------------------------------

    def _carry_out(
        self,
        key: FactKey,
        plan: Plan,
        stated: _Stated | None = None,
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
                self._displace(key, entry.valid_from)
            if entry != one.was:
                self._draft.put(
                    self._keys.entry(key, entry.valid_from),
                    codec.encode_segment(entry),
                    owner=self._owner(key),
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

    def _displace(self, key: FactKey, instant: int) -> None:
        """Keep what sleeps at an instant, before something takes its place."""
        displace(self._draft, self._keys, key, instant, self._surveyor.epoch(key))

    def _words(
        self,
        key: FactKey,
        segment: Segment,
        stated: _Stated | None,
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

    def _head_version(self, key: FactKey) -> int:
        """Return a head's version, on which the commit then depends; -1: this write makes it."""
        head = self._keys.head(key)
        version = self._draft.version(head)
        return -1 if self._draft.changed(head) else version

    def touch_head(self, key: FactKey) -> None:
        """Write the head of a timeline whose entries somebody else has changed."""
        self._touch_head(key, self._surveyor.epoch(key))

    def _owner(self, key: FactKey) -> bytes:
        """Return the tag of the subject whose content a timeline is."""
        return self._keys.subject(key.subject)

    def _touch_head(self, key: FactKey, epoch: int) -> None:
        """Write the head, so that the key's version becomes this commit's revision."""
        self._draft.put(self._keys.head(key), codec.encode_head(epoch), owner=self._owner(key))


def _over(entry: Entry, segments: Sequence[Entry]) -> Entry | None:
    """Return the row, if any, that holds at the instant at which another one began."""
    place = bisect_right(segments, entry.valid_from, key=lambda one: one.valid_from) - 1
    over = segments[place] if place >= 0 else None
    if over is None or not over.is_row or over.valid_to <= entry.valid_from:
        return None
    return over


def not_retracted() -> PillionError:
    """Return the error for a restore of what no retraction holds down."""
    return PillionError(
        Reason.ALREADY_ENDED,
        "nothing that was retracted can be put back here: the memory is not retracted, or a "
        "statement took its place since",
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
        confirmation=statement.confirmation or row.confirmation,
        # A statement that names no expiry says nothing about when the memory is to go.
        expires_at=row.expires_at
        if statement.expires_at == FOREVER
        else max(row.expires_at, statement.expires_at),
        updated_at=now,
    )
