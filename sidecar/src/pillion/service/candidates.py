"""Candidates: kept beside the timelines, grown by repeats, promoted by episodes or by a user.

An index by claim (family ``n``) leads from what a candidate says to the open candidate that says
it, so that a repeat finds it without a scan. A claim is the fact key, or for untyped memories
subject, context and kind; then the value or the text; and the end of validity that it names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import FOREVER, EndReason, MemoryStatus, Recurrence
from pillion.domain.mutations import ConflictPolicy, MutationResult, Outcome
from pillion.domain.promotion import is_due, is_open, repeated

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Memory, SourceKind
    from pillion.service.draft import Draft
    from pillion.service.records import Records
    from pillion.service.timelines import Timelines


# Why a candidate that is due stays one.
_HELD_UP: Final = frozenset(
    {Reason.FACT_CONFLICT, Reason.SCHEMA_VIOLATION, Reason.ATTRIBUTE_UNREGISTERED}
)


class Candidates:
    """The candidates of one partition as one draft sees and changes them."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        records: Records,
        timelines: Timelines,
        *,
        now: int,
        new_id: Callable[[], UUID],
        promote_after: int,
        typed: Callable[[Memory], Memory],
    ) -> None:
        self._draft = draft
        self._keys = keys
        self._records = records
        self._timelines = timelines
        self._now = now
        self._new_id = new_id
        self._promote_after = promote_after
        self._typed = typed

    def state(self, memory: Memory, vector: bytes, *, named: bool) -> MutationResult:
        """State a candidate: a new one, or one more voice for the open one of the same claim.

        The outcome is CREATED for a new one, EVIDENCE where another episode (or a source without
        one) repeats it, UNCHANGED where an episode repeats itself. Where the repeat promotes it,
        the outcome is that of `promote`.

        Args:
            memory: The candidate that it becomes, if it becomes one.
            vector: The caller's own vector, if any.
            named: The caller chose its id, which is remembered as heard.

        Raises:
            PillionError: ALREADY_EXISTS when the statement of that id was heard before.
        """
        claim = self._claim(memory)
        heard = self._heard(memory)
        if named and self._draft.get(heard) is not None:
            raise PillionError(
                Reason.ALREADY_EXISTS,
                f"the statement {memory.id} was taken as evidence before",
                metadata={"id": str(memory.id)},
            )
        known = self._open(claim)
        if known is None:
            self._records.create(memory, vector)
            self._point(claim, memory)
            if memory.is_fact:  # so that forgetting the fact finds its guesses too
                self._draft.put(heard)
            result = MutationResult(memory.id, Outcome.CREATED, valid_to=memory.valid_to)
            return self.promote(memory) or result
        self._records.check_vector(vector)
        if named:
            self._draft.put(heard)
        candidate = repeated(known, memory, self._now)
        if candidate is known:
            version = self._records.written_version(known.id)
            return MutationResult(known.id, Outcome.UNCHANGED, version, valid_to=known.valid_to)
        self._records.update(candidate)
        self._records.support(candidate.id, memory.source.episode_id)
        result = MutationResult(candidate.id, Outcome.EVIDENCE, valid_to=candidate.valid_to)
        return self.promote(candidate) or result

    def promote(self, candidate: Memory) -> MutationResult | None:
        """Promote a candidate that enough distinct episodes state; None: it is not due.

        A fact joins its timeline; the outcome is what a put_fact there would have, and
        KEPT_EXISTING where a statement of the same instant stands against it, or its attribute
        takes no such value by now: then it stays a candidate. An untyped memory becomes
        CONFIRMED, with the outcome UPDATED.
        """
        if not is_due(candidate, self._promote_after):
            return None
        confirmed = replace(candidate, status=MemoryStatus.CONFIRMED, updated_at=self._now)
        if not candidate.is_fact:
            self._records.update(confirmed)
            self.follow(candidate, confirmed)
            return MutationResult(candidate.id, Outcome.UPDATED, valid_to=candidate.valid_to)
        mark = self._draft.savepoint()
        try:
            result = self.join(candidate, self._typed(confirmed), candidate.source.kind)
        except PillionError as error:
            if error.reason not in _HELD_UP:
                raise
            self._draft.roll_back(mark)
        else:
            if result.outcome is not Outcome.KEPT_EXISTING:
                return result
        version = self._records.written_version(candidate.id)
        return MutationResult(
            candidate.id, Outcome.KEPT_EXISTING, version, valid_to=candidate.valid_to
        )

    def join(self, candidate: Memory, confirmed: Memory, said_by: SourceKind) -> MutationResult:
        """Put a candidate fact on its timeline, where source kinds settle equal instants.

        Where the timeline says so already, the candidate has served: it is withdrawn, points at
        the row, and the row gains its episodes.

        Args:
            candidate: The fact as it is.
            confirmed: The row that it becomes.
            said_by: Who vouches for it.

        Raises:
            PillionError: FACT_CONFLICT when equal sources state two values for one instant.
        """
        result = self._timelines.put(
            confirmed,
            ConflictPolicy.PREFER_SOURCE,
            None if confirmed.valid_to == FOREVER else confirmed.valid_to,
            said_by=said_by,
        )
        if result.outcome is Outcome.KEPT_EXISTING:
            return result
        self._close(candidate)
        if result.id != candidate.id:
            served = replace(
                candidate,
                end_reason=EndReason.WITHDRAWN,
                superseded_by=result.id,
                retracted_at=self._now,
                updated_at=self._now,
            )
            self._records.update(served)
            self._carry(result.id, confirmed)
        return result

    def follow(self, old: Memory, new: Memory) -> None:
        """Keep the index true after a memory was changed."""
        before = self._claim(old) if is_open(old) else None
        after = self._claim(new) if is_open(new) else None
        if before == after:
            return
        if before is not None:
            self._close(old)
        if after is not None and self._open(after) is None:
            self._point(after, new)

    def _point(self, claim: bytes, candidate: Memory) -> None:
        """Let the index of open candidates find one by its claim."""
        owner = self._keys.subject(candidate.subject)
        self._draft.put(claim, codec.pack(candidate.id.bytes), owner=owner)

    def _close(self, candidate: Memory) -> None:
        """Take a candidate out of the index, unless another one stands there for its claim."""
        claim = self._claim(candidate)
        if self._id_at(claim) == candidate.id:
            self._draft.delete(claim)

    def _carry(self, row_id: UUID, confirmed: Memory) -> None:
        """Give a row the episodes that stated a candidate of its value."""
        row = self._records.memory(row_id)
        known = {row.source.episode_id, *row.recurrence.episode_ids}
        told = [one for one in confirmed.recurrence.episode_ids if one not in known]
        first = confirmed.source.episode_id
        for episode_id in (*([first] if first is not None else ()), *told):
            self._records.support(row_id, episode_id)
        if told:
            episodes = (*row.recurrence.episode_ids, *told)[:RECURRENCE_EPISODES_MAX]
            count = row.recurrence.count + len(told)
            self._records.update(replace(row, recurrence=Recurrence(count, episodes)))

    def _claim(self, memory: Memory) -> bytes:
        said = memory.value.fingerprint.hex() if memory.value is not None else memory.text
        return self._keys.claim(_about(memory), said, str(memory.valid_to))

    def _heard(self, memory: Memory) -> bytes:
        if memory.is_fact:
            return self._keys.row(memory.fact_key, memory.id)
        return self._keys.heard(_about(memory), memory.id)

    def _id_at(self, claim: bytes) -> UUID | None:
        data = self._draft.get(claim)
        return UUID(bytes=codec.unpack(data)) if data is not None else None

    def _open(self, claim: bytes) -> Memory | None:
        """Return the open candidate of a claim, if it can still be recalled."""
        memory_id = self._id_at(claim)
        memory = self._records.find_memory(memory_id) if memory_id is not None else None
        if memory is None or not is_open(memory) or not memory.recallable_at(self._now):
            return None
        return memory if self._claim(memory) == claim else None


def _about(memory: Memory) -> tuple[str, ...]:
    """Return what a claim is about: the names of a fact key, or of an untyped memory's place."""
    subject = memory.subject
    if memory.is_fact:
        return ("fact", subject.type, subject.id, memory.context, memory.attribute)
    return ("untyped", subject.type, subject.id, memory.context, memory.kind.name)
