"""Changing one fact's timeline in a draft: what lies around is read, and the domain plans."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pillion_storage import codec
from pillion_storage.keys import taken_key

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import FOREVER, Memory, Recurrence
from pillion.domain.mutations import MutationResult, Outcome
from pillion.domain.retractions import (
    Taken,
    check_retract,
    leaves_the_set,
    plan_restore,
    plan_retract,
    plan_withdraw,
)
from pillion.domain.segments import Entry, Made, Shape, Sleep
from pillion.domain.timeline import Plan, Statement, end_of, plan_put
from pillion.service.asleep import displaced, put_back
from pillion.service.carrying import Carrier, Stated
from pillion.service.surroundings import Surveyor, find_holding

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import SourceKind
    from pillion.domain.mutations import ConflictPolicy
    from pillion.domain.scope import FactKey
    from pillion.domain.timeline import Around
    from pillion.service.draft import Draft
    from pillion.service.records import Records


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
        self._draft = draft
        self._keys = keys
        self._records = records
        self._now = now
        self._surveyor = Surveyor(draft, keys)
        self._carrier = Carrier(
            draft,
            keys,
            records,
            self._surveyor,
            now=now,
            new_id=new_id,
            check_return=check_return,
        )

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
            return self._keep(key, plan, around, Stated(memory, vector))
        self._touch_head(key, around.epoch)
        replaced = plan.replaced.memory_id if plan.replaced is not None else None
        memory = replace(memory, supersedes=replaced)
        self._carrier.carry_out(key, plan, Stated(memory, vector))
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

    def _keep(self, key: FactKey, plan: Plan, around: Around, stated: Stated) -> MutationResult:
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
            self._carrier.displace(key, plan.mark.valid_from)
            # A stronger statement is the one that may become a row one day.
            self._draft.put(
                self._keys.entry(key, plan.mark.valid_from),
                codec.encode_evidence(plan.mark, stated.memory, stated.vector),
                owner=self._owner(key),
            )
        self._records.update(_with_evidence(row, stated.memory, self._now))
        self._carrier.carry_out(key, plan, stated)
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
        self._carrier.carry_out(key, plan)
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
        stated = Stated(replace(row, retracted_at=FOREVER)) if anew else None
        self._carrier.carry_out(key, plan, stated, out_of_place)
        put_back(self._draft, self._keys, key, taken.epoch, out_of_place)
        valid_to = self._records.memory(row.id).valid_to
        return MutationResult(row.id, Outcome.UPDATED, fact_version=-1, valid_to=valid_to)

    # --- heads -------------------------------------------------------------------------------

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


def not_retracted() -> PillionError:
    """Return the error for a restore of what no retraction holds down."""
    return PillionError(
        Reason.ALREADY_ENDED,
        "nothing that was retracted can be put back here: the memory is not retracted, its last "
        "retraction was taken back already (an earlier one cannot be), or a statement took its "
        "place since",
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
