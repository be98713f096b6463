"""A Forget in the background: selected when it is asked for, carried out a commit at a time.

What it selected is kept as notes beside its operation: ids, a few thousand a record, and nothing of
the selector itself, which may be somebody's words. They go with the commit that ends it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec
from pillion_storage.keys import ID_BYTES, SubjectRecord, undo_key

from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.forgetting import ByEpisode, ByFact, ByIds, ByRecorded, BySubject
from pillion.domain.limits import FORGET_BACKGROUND_MAX
from pillion.domain.operations import FORGET, BackgroundForget, OperationState
from pillion.service.beginning import free_slot
from pillion.service.forgetter import check_command
from pillion.service.forgetting import Manner, StepWork, Tally, manner_of
from pillion.service.selecting import Step

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.commands import ForgetCommand
    from pillion.domain.memory import Episode, Memory
    from pillion.domain.operations import Operation, Work
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline, IdSource
    from pillion.service.beginning import Beginner
    from pillion.service.draft import Draft
    from pillion.service.operating import Part
    from pillion.service.partitions import KeySpaces
    from pillion.service.selecting import Selecting

# Ids of one note: 48 KB, which a record takes.
CHUNK_IDS: Final = 3000
# Whose older statements that go on are known without the selector: they are of the same fact.
_ALL_OF_A_FACT: Final = (BySubject, ByFact)
_MODES: Final = frozenset({ForgetMode.EXPIRE, ForgetMode.RETRACT})
_MAY_RETRACT: Final = (ByIds, ByEpisode, ByRecorded, *_ALL_OF_A_FACT)


class BackgroundForgetter:
    """Begins forgets that go on after their call."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        ids: IdSource,
        selecting: Selecting,
        beginner: Beginner,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._selecting = selecting
        self._beginner = beginner

    def begin(self, partition: Partition, command: ForgetCommand, deadline: Deadline) -> Operation:
        """Select what is to be forgotten, and begin to forget it.

        Raises:
            PillionError: LIMIT_EXCEEDED beyond 200,000 records; INVALID_FIELD for a retraction of
                what can only be told by the selector; ALREADY_RUNNING; and as `Forgetter.forget`.
        """
        check_command(command)
        if command.mode not in _MODES:
            raise PillionError.of_field("background", "only EXPIRE and RETRACT go there")
        if command.mode is ForgetMode.RETRACT and not isinstance(command.selector, _MAY_RETRACT):
            raise PillionError.of_field(
                "background",
                "a retraction in the background is of ids, a subject, a fact, an episode or a "
                "window; this one goes in the foreground",
            )
        notes: list[tuple[int, list[bytes]]] = []
        revision = self._store.head(partition).revision
        count = 0
        now = self._clock.now_us()
        for step in self._selecting.steps(partition, command.selector, now, deadline):
            revision = step.revision
            count += len(step.ids)
            if count > FORGET_BACKGROUND_MAX:
                raise PillionError(
                    Reason.LIMIT_EXCEEDED,
                    f"more than {FORGET_BACKGROUND_MAX} records: forget them in several calls",
                )
            _note(notes, step)
        manner = manner_of(command)
        work = BackgroundForget(
            selector=type(command.selector).__name__,
            mode=command.mode,
            reason_code=command.reason_code,
            notes=self._ids.new_id(),
            chunks=len(notes),
            revision=revision,
            named=manner.named,
            with_derived=manner.with_derived,
            # A retraction changes other rows of the same facts itself.
            unchanged_only=command.mode is ForgetMode.EXPIRE and not manner.named,
            with_following=isinstance(command.selector, _ALL_OF_A_FACT),
            preview_revision=command.preview_revision,
        )

        def planned(draft: Draft) -> tuple[Work, int]:
            for number, (kind, ids) in enumerate(notes):
                draft.put(_note_key(work, number), codec.pack([kind, b"".join(ids)]))
            return work, count

        return self._beginner.begin(
            partition,
            FORGET,
            planned,
            deadline,
            alone=True,
            request_id=command.request_id,
            body_digest=command.body_digest,
        )


class BackgroundForgetting:
    """Does the work of a Forget in the background."""

    def __init__(self, keys: KeySpaces) -> None:
        self._keys = keys

    def step(self, part: Part) -> Operation:
        """Forget some records in a draft."""
        work = _work_of(part.operation)
        if work.chunk >= work.chunks:
            return part.operation.ended(OperationState.SUCCEEDED, part.now)
        kind, data = codec.unpack(part.draft.get(_note_key(work, work.chunk)) or b"")
        ids = tuple(
            UUID(bytes=data[at : at + ID_BYTES])
            for at in range(work.place * ID_BYTES, len(data), ID_BYTES)
        )[: part.room]
        tally = Tally(
            memories=work.memories,
            episodes=work.episodes,
            derived=work.derived,
            unpreviewed=work.unpreviewed,
            sample=work.sample_ids,
            exempt=work.exempt_ids,
        )
        step = StepWork(
            draft=part.draft,
            applier=part.applier,
            manner=_manner_of(work),
            step=Step(SubjectRecord(kind) if kind else None, ids, work.revision),
            tally=tally,
            means=lambda record: _is_meant(work, record),
            keys=self._keys.of(part.draft.partition),
            now=part.now,
        )
        step.take()
        step.count(tally)
        if work.with_following and work.mode == ForgetMode.RETRACT:
            tally.add(step.take_following(), work.preview_revision)
        ended = (work.place + len(ids)) * ID_BYTES >= len(data)
        made = replace(
            work,
            chunk=work.chunk + ended,
            place=0 if ended else work.place + len(ids),
            looked=work.looked + len(ids),
            memories=tally.memories,
            episodes=tally.episodes,
            derived=tally.derived,
            unpreviewed=tally.unpreviewed,
            sample_ids=tally.sample,
            exempt_ids=tally.exempt,
        )
        return replace(part.operation, work=made)

    def may_stop(self, operation: Operation) -> bool:
        """Return True: what it has forgotten stays forgotten, and the rest stands."""
        del operation
        return True

    def ended(self, draft: Draft, operation: Operation) -> None:
        """Drop the notes, and let another begin."""
        work = _work_of(operation)
        for number in range(work.chunks):
            draft.delete(_note_key(work, number))
        free_slot(draft, operation)


def _note(notes: list[tuple[int, list[bytes]]], step: Step) -> None:
    kind = int(step.kind) if step.kind is not None else 0
    for one in step.ids:
        if not notes or notes[-1][0] != kind or len(notes[-1][1]) == CHUNK_IDS:
            notes.append((kind, []))
        notes[-1][1].append(one.bytes)


def _note_key(work: BackgroundForget, number: int) -> bytes:
    return undo_key(work.notes, UUID(int=number))


def _manner_of(work: BackgroundForget) -> Manner:
    return Manner(
        mode=ForgetMode(work.mode),
        named=work.named,
        at_once=False,
        with_derived=work.with_derived,
        preview_revision=work.preview_revision,
    )


def _is_meant(work: BackgroundForget, record: Memory | Episode) -> bool:
    return not work.unchanged_only or record.version <= work.revision


def _work_of(operation: Operation) -> BackgroundForget:
    if not isinstance(operation.work, BackgroundForget):
        raise TypeError(f"{operation.verb} is no Forget")
    return operation.work
