"""What each mutation does to a draft: read through it, decide with the domain, write back.

Everything here is deterministic given the draft, the time, the ids and the vectors it is given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import taken_key

from pillion.domain.erasure import referred_to, said_at
from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.domain.memory import (
    CONFIDENCE_DEFAULT,
    FOREVER,
    IMPORTANCE_DEFAULT,
    EndReason,
    Episode,
    Memory,
    MemoryKind,
    MemoryStatus,
    Source,
)
from pillion.domain.mutations import (
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    ConfirmMemory,
    ConflictPolicy,
    MutationResult,
    Outcome,
    PatchMemory,
    PreconditionKind,
    PutFact,
    RestoreMemory,
    RetractMemory,
)
from pillion.domain.provenance import check_origin
from pillion.service.candidates import Candidates
from pillion.service.members import check_member
from pillion.service.preconditions import require, require_fact
from pillion.service.records import Records, not_found
from pillion.service.stated import given_or, memory_of, recalling
from pillion.service.timelines import Timelines, grown, not_retracted
from pillion.service.vectors import VectorWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.mutations import Guard, MemoryDraft, Mutation
    from pillion.service.draft import Draft
    from pillion.service.registry import Registry
    from pillion.service.vectors import MadeVectors


class Applier:
    """Applies mutations to one draft at one instant."""

    def __init__(
        self,
        draft: Draft,
        keys: KeySpace,
        *,
        now: int,
        new_id: Callable[[], UUID],
        server_space: EmbedderIdentity | None,
        made: MadeVectors,
        registry: Registry,
        promote_after: int,
    ) -> None:
        self._draft = draft
        self._keys = keys
        self._now = now
        self.new_id = new_id
        self._registry = registry
        self.records = Records(draft, keys, VectorWriter(draft, server_space, made))
        self.timelines = Timelines(
            draft,
            keys,
            self.records,
            now=now,
            new_id=new_id,
            check_return=lambda memory: registry.check_return(draft, memory, now),
        )
        self.candidates = Candidates(
            draft,
            keys,
            self.records,
            self.timelines,
            now=now,
            new_id=new_id,
            promote_after=promote_after,
            typed=lambda memory: registry.checked(draft, memory, now)[0],
        )

    def apply(self, mutation: Mutation) -> MutationResult:
        """Carry out one mutation, or raise PillionError leaving the draft to be rolled back."""
        try:
            return self._apply(mutation)
        except PillionError as error:
            # What is common to several kinds names a field of a memory: say where that stands.
            below = _MEMORY_FIELDS.get(type(mutation))
            if below is not None and error.violations:
                raise error.within(below) from None
            raise

    def _apply(self, mutation: Mutation) -> MutationResult:  # noqa: PLR0911  (one a kind)
        match mutation:
            case PutFact():
                return self._put_fact(mutation)
            case AddMemory():
                return self._add_memory(mutation)
            case CaptureEpisode():
                return self._capture_episode(mutation)
            case PatchMemory():
                return self._patch_memory(mutation)
            case ConfirmMemory():
                return self._confirm_memory(mutation)
            case RetractMemory():
                return self._retract_memory(mutation)
            case RestoreMemory():
                return self._restore_memory(mutation)
            case CloseOpenItem():
                return self._close_open_item(mutation)

    def check_guard(self, guard: Guard) -> None:
        """Refuse the write when a guard does not hold."""
        if guard.fact is not None:
            require_fact(guard.precondition, self._draft, self._keys, guard.fact)
        elif guard.memory_id is not None:
            memory = self.records.find_memory(guard.memory_id)
            require(guard.precondition, memory.version if memory else 0, str(guard.memory_id))

    # --- making ----------------------------------------------------------------------------

    def _memory_from(self, stated: MemoryDraft) -> Memory:
        """Return the memory that a caller's words become, having looked at what they lead to."""
        memory = memory_of(stated, now=self._now, new_id=self.new_id)
        self._check_origin(stated.source)
        for source_id in stated.derived_from:
            self.records.memory(source_id)
        return memory

    def _put_fact(self, mutation: PutFact) -> MutationResult:
        memory = self._memory_from(mutation.fact)
        key = memory.fact_key
        self._draft.preload(
            (
                *self.records.keys_read(memory.id),
                self._keys.registration(key.attribute),
                self._keys.head(key),
            )
        )
        self._refuse_taken(memory.id)
        if mutation.fact.id is not None:
            self._refuse_heard(memory)
        memory, schema = self._registry.checked(self._draft, memory, self._now)
        require_fact(mutation.precondition, self._draft, self._keys, memory.fact_key)
        if memory.status is MemoryStatus.CANDIDATE:
            # A guess is kept beside the timeline; it joins it when somebody confirms it, or when
            # enough episodes say the same.
            named = mutation.fact.id is not None
            return self.candidates.state(memory, mutation.fact.vector, named=named)
        policy = mutation.conflict_policy or (schema.conflict_policy if schema else None)
        result = self.timelines.put(
            memory,
            policy or ConflictPolicy.REJECT,
            mutation.fact.valid_to,
            vector=mutation.fact.vector,
        )
        if result.outcome is Outcome.EVIDENCE:
            self.records.support(result.id, memory.source.episode_id)
        if mutation.fact.id is not None and result.id != memory.id:
            # No memory has this id, yet the statement was heard: a repeat must not count again.
            self._draft.put(self._keys.row(memory.fact_key, memory.id))
        return result

    def _add_memory(self, mutation: AddMemory) -> MutationResult:
        memory = self._memory_from(mutation.memory)
        self._draft.preload(self.records.keys_read(memory.id))
        self._refuse_taken(memory.id)
        if memory.status is MemoryStatus.CANDIDATE:
            named = mutation.memory.id is not None
            return self.candidates.state(memory, mutation.memory.vector, named=named)
        self.records.create(memory, mutation.memory.vector)
        return MutationResult(memory.id, Outcome.CREATED, valid_to=memory.valid_to)

    def _capture_episode(self, mutation: CaptureEpisode) -> MutationResult:
        episode_id = mutation.id if mutation.id is not None else self.new_id()
        if self.records.has_episode(episode_id):
            raise PillionError(
                Reason.ALREADY_EXISTS,
                f"episode {episode_id} exists; episodes are never edited",
                metadata={"id": str(episode_id)},
            )
        if mutation.precondition.kind is not PreconditionKind.UNCONDITIONAL:
            self._refuse_erased(mutation, episode_id)
        occurred_at = given_or(mutation.occurred_at, self._now)
        memory_id = self.new_id() if mutation.indexed else None
        episode = Episode(
            id=episode_id,
            subject=mutation.subject,
            context=mutation.context,
            content=mutation.content,
            media_type=mutation.media_type,
            source_kind=mutation.source_kind,
            author=mutation.author,
            occurred_at=occurred_at,
            recorded_at=self._now,
            session_id=mutation.session_id,
            external_ref=mutation.external_ref,
            labels=tuple(sorted(set(mutation.labels))),
            retention_class=mutation.retention_class,
            expires_at=given_or(mutation.expires_at, FOREVER),
            memory_id=memory_id,
        )
        self.records.create_episode(episode)
        if memory_id is not None:
            self.records.create(
                recalling(episode, memory_id, mutation.importance, self._now), mutation.vector
            )
        return MutationResult(episode_id, Outcome.CREATED, memory_id=memory_id)

    def _refuse_erased(self, mutation: CaptureEpisode, episode_id: UUID) -> None:
        """Refuse a source that was erased: it comes from somebody who was not told."""
        subject = mutation.subject
        names: list[tuple[str, ...]] = []
        if mutation.id is not None:
            names.append(("episode", str(episode_id)))
        if mutation.occurred_at is not None:
            names.append(said_at(subject, mutation.content, mutation.occurred_at))
        if mutation.external_ref:
            names.append(referred_to(subject, mutation.external_ref))
        for name in names:
            if self._draft.get(self._keys.tombstone(*name)) is not None:
                raise PillionError(
                    Reason.ALREADY_EXISTS,
                    "this source was erased: only with the precondition 'unconditional' is it "
                    "captured again",
                    metadata={"id": str(episode_id), "erased": "true"},
                )

    def _check_origin(self, source: Source) -> None:
        """Refuse a source whose episode is not there, or contradicts what the source says."""
        if source.episode_id is not None:
            check_origin(source, self.records.episode(source.episode_id))

    def _refuse_taken(self, memory_id: UUID) -> None:
        if self.records.find_memory(memory_id) is not None:
            raise PillionError(
                Reason.ALREADY_EXISTS,
                f"memory {memory_id} exists: patch it, or leave the id out",
                metadata={"id": str(memory_id)},
            )

    def _refuse_heard(self, memory: Memory) -> None:
        if self._draft.get(self._keys.row(memory.fact_key, memory.id)) is not None:
            raise PillionError(
                Reason.ALREADY_EXISTS,
                f"the statement {memory.id} was taken as evidence before",
                metadata={"id": str(memory.id)},
            )

    # --- changing --------------------------------------------------------------------------

    def _patch_memory(self, mutation: PatchMemory) -> MutationResult:
        old = self.records.memory(mutation.memory_id)
        require(mutation.precondition, _current(old), str(old.id))
        patch = mutation.patch
        changes: dict[str, object] = {}
        for field in patch.fields - {"vector"}:
            value = getattr(patch, field)
            changes[field] = _PATCH_DEFAULTS[field] if value is None else value
        for field in ("labels", "pii_labels"):
            if field in changes:
                changes[field] = tuple(sorted(set(getattr(patch, field))))
        new = replace(old, **changes)  # type: ignore[arg-type]
        vector = patch.vector if "vector" in patch.fields else b""
        if vector or new.text != old.text:
            self.records.set_vector(new, vector)
        elif new == old:
            version = self.records.written_version(old.id)
            return MutationResult(old.id, Outcome.UNCHANGED, version, valid_to=old.valid_to)
        if new.is_fact and not old.recallable_at(self._now) and self._holds(new):
            self._registry.check_return(self._draft, new, self._now)
        self.records.update(replace(new, updated_at=self._now))
        self.candidates.follow(old, new)
        return MutationResult(old.id, Outcome.UPDATED, valid_to=new.valid_to)

    def _holds(self, memory: Memory) -> bool:
        """Return whether a memory is one that a registration with MUST_FIT vouches for."""
        told = memory.on_timeline and memory.status is not MemoryStatus.CANDIDATE
        return told and memory.valid_to > self._now and memory.recallable_at(self._now)

    def _confirm_memory(self, mutation: ConfirmMemory) -> MutationResult:
        old = self.records.memory(mutation.memory_id)
        require(mutation.precondition, _current(old), str(old.id))
        self._check_origin(mutation.source)
        episode = mutation.source.episode_id
        if not old.on_timeline:
            raise PillionError(Reason.ALREADY_ENDED, "the memory was already taken back")
        confirmed = replace(
            old,
            status=MemoryStatus.CONFIRMED,
            confidence=1.0,
            recurrence=grown(old, episode),
            confirmation=mutation.source,
            updated_at=self._now,
        )
        self.records.support(old.id, episode)
        if not old.is_fact or old.status is not MemoryStatus.CANDIDATE:
            self.records.update(confirmed)
            self.candidates.follow(old, confirmed)
            return MutationResult(old.id, Outcome.UPDATED, valid_to=old.valid_to)
        try:
            confirmed, _ = self._registry.checked(self._draft, confirmed, self._now)
        except PillionError as error:
            raise _of_candidate(error) from None
        return self.candidates.join(old, confirmed, mutation.source.kind)

    def _retract_memory(self, mutation: RetractMemory) -> MutationResult:
        instant = given_or(mutation.valid_to, self._now)
        if mutation.fact is not None:
            check_member(self._draft, self._keys, "retract_memory.fact", mutation.fact)
            require_fact(mutation.precondition, self._draft, self._keys, mutation.fact)
            entry = self.timelines.holding(mutation.fact, instant)
            if entry is None:
                raise not_found("row of this fact at that instant", mutation.fact.attribute)
            return self.timelines.retract(self.records.memory(entry.memory_id), instant)
        if mutation.memory_id is None:
            raise PillionError.of_field("target", "name a memory or a fact")
        memory = self.records.memory(mutation.memory_id)
        require(mutation.precondition, _current(memory), str(memory.id))
        return self.retract(memory, instant)

    def retract(self, memory: Memory, instant: int) -> MutationResult:
        """Retract any memory from an instant on."""
        if memory.is_fact and memory.status is not MemoryStatus.CANDIDATE:
            return self.timelines.retract(memory, instant)
        if not memory.on_timeline or instant >= memory.valid_to:
            raise PillionError(Reason.ALREADY_ENDED, "the memory had ended by that instant")
        never = instant <= memory.valid_from
        owner = self._keys.subject(memory.subject)
        self._draft.put(taken_key(memory.id), codec.encode_ending(memory), owner=owner)
        retracted = replace(
            memory,
            valid_to=memory.valid_to if never else instant,
            end_reason=EndReason.WITHDRAWN if never else EndReason.RETRACTED,
            retracted_at=self._now,
            updated_at=self._now,
        )
        self.records.update(retracted)
        self.candidates.follow(memory, retracted)
        return MutationResult(memory.id, Outcome.UPDATED, valid_to=retracted.valid_to)

    def _restore_memory(self, mutation: RestoreMemory) -> MutationResult:
        memory = self.records.memory(mutation.memory_id)
        require(mutation.precondition, _current(memory), str(memory.id))
        if memory.is_fact and memory.status is not MemoryStatus.CANDIDATE:
            return self.timelines.restore(memory)
        data = self._draft.get(taken_key(memory.id))
        ended = memory.end_reason in (EndReason.RETRACTED, EndReason.WITHDRAWN)
        if data is None or not ended or memory.superseded_by is not None:
            raise not_retracted()
        valid_to, end_reason = codec.decode_ending(data)
        self._draft.delete(taken_key(memory.id))
        restored = replace(
            memory,
            valid_to=valid_to,
            end_reason=end_reason,
            # An earlier retraction of it stands: it ends there, and was retracted.
            retracted_at=memory.retracted_at if end_reason is EndReason.RETRACTED else FOREVER,
            updated_at=self._now,
        )
        self.records.update(restored)
        self.candidates.follow(memory, restored)
        return MutationResult(memory.id, Outcome.UPDATED, valid_to=valid_to)

    def _close_open_item(self, mutation: CloseOpenItem) -> MutationResult:
        item = self.records.memory(mutation.memory_id)
        require(mutation.precondition, _current(item), str(item.id))
        if item.kind is not MemoryKind.OPEN_ITEM:
            raise PillionError.of_field(
                "close_open_item.memory_id", f"is {item.kind.name}, not an OPEN_ITEM"
            )
        if item.closed_at != FOREVER or not item.on_timeline:
            raise PillionError(Reason.ALREADY_ENDED, "the item is closed or taken back already")
        closed_at = given_or(mutation.closed_at, self._now)
        if closed_at <= item.valid_from:
            raise PillionError.of_field(
                "close_open_item.closed_at", "must come after valid_from", Reason.INTERVAL_EMPTY
            )
        closed = replace(
            item,
            closed_at=closed_at,
            valid_to=min(item.valid_to, closed_at),
            end_reason=EndReason.STATED if closed_at < item.valid_to else item.end_reason,
            updated_at=self._now,
        )
        self.records.update(closed)
        self.candidates.follow(item, closed)
        return MutationResult(item.id, Outcome.UPDATED, valid_to=closed.valid_to)


_MEMORY_FIELDS: Final[dict[type, str]] = {
    PutFact: "put_fact.fact",
    AddMemory: "add_memory.memory",
    CaptureEpisode: "capture_episode",
    PatchMemory: "patch_memory.patch",
    ConfirmMemory: "confirm_memory",
}

_PATCH_DEFAULTS = {
    "importance": IMPORTANCE_DEFAULT,
    "confidence": CONFIDENCE_DEFAULT,
    "expires_at": FOREVER,
}


def _of_candidate(error: PillionError) -> PillionError:
    """Return why a candidate does not fit: its value is no field of the request."""
    field = "memory_id"
    return PillionError(
        error.reason,
        f"{field}: the candidate's {error.message}",
        violations=[
            FieldViolation(field, f"the candidate's {one.field} {one.description}")
            for one in error.violations
        ],
        metadata=error.metadata,
        retry_after_ms=error.retry_after_ms,
    )


def _current(memory: Memory) -> int:
    """Return a memory's version for preconditions; -1: this very write made it."""
    return memory.version or -1
