"""One step of a Forget: some records leave recall, or are retracted, in one commit.

What was made from nothing but forgotten memories follows in the same commit, so that no summary
goes on telling what was to be forgotten. That does not hold for what merely grew old: a summary
outlives the episodes that it was made to replace.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import Committed
from pillion_storage.keys import SubjectRecord, derived_prefix, id_of, memory_key, prefix_end

from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.forgetting import AGEING, ByFact, ByIds, BySubject, out_of_recall
from pillion.domain.limits import COMMIT_TRIES_MAX, FORGET_SAMPLE_MAX
from pillion.domain.memory import FOREVER, Episode, Memory
from pillion.service.holds import held_error, is_held
from pillion.service.records import not_found
from pillion.service.vectors import MadeVectors
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.commands import ForgetCommand
    from pillion.domain.scope import Partition
    from pillion.ports import Clock
    from pillion.service.applier import Applier
    from pillion.service.draft import Draft
    from pillion.service.partitions import KeySpaces
    from pillion.service.records import Records
    from pillion.service.selecting import Selecting, Step
    from pillion.service.writer import Writer

_MEMORIES: Final = b"m"


@dataclass(slots=True)
class Tally:
    """What was, or would be, forgotten so far; and whether there may be more to look at."""

    memories: int = 0
    episodes: int = 0
    derived: int = 0
    unpreviewed: int = 0
    sample: tuple[UUID, ...] = ()
    exempt: tuple[UUID, ...] = ()
    unseen: bool = True
    # Revisions that this Forget made itself.
    own: set[int] = field(default_factory=set)
    # Of a dry run, whose steps are not committed: sources that it took, and what followed them.
    taken: set[UUID] = field(default_factory=set)

    @property
    def done(self) -> int:
        """Records so far."""
        return self.memories + self.episodes + self.derived

    def add(self, changed: Sequence[Memory | Episode], preview_revision: int) -> None:
        """Count what the selector named."""
        self.memories += sum(isinstance(one, Memory) for one in changed)
        self.episodes += sum(isinstance(one, Episode) for one in changed)
        self._note(changed, preview_revision)

    def add_derived(self, changed: Sequence[Memory], preview_revision: int) -> None:
        """Count what followed."""
        self.derived += len(changed)
        self._note(changed, preview_revision)

    def _note(self, changed: Sequence[Memory | Episode], preview_revision: int) -> None:
        self.sample += tuple(one.id for one in changed[: FORGET_SAMPLE_MAX - len(self.sample)])
        if preview_revision:
            new = (one.version for one in changed if one.version > preview_revision)
            self.unpreviewed += sum(version not in self.own for version in new)

    def spare(self, held: Sequence[UUID]) -> None:
        """Note what stays."""
        new = [one for one in held if one not in self.exempt]
        self.exempt += tuple(new[: FORGET_SAMPLE_MAX - len(self.exempt)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How records are forgotten, whatever selected them.

    Attributes:
        mode: In which mode.
        named: What is held was named, so that it is refused and not passed over.
        at_once: All in one commit, or nothing.
        with_derived: What was made from nothing else follows.
        dry_run: Nothing is committed.
        preview_revision: What a preview showed; 0: there was none.
    """

    mode: ForgetMode
    named: bool
    at_once: bool
    with_derived: bool
    dry_run: bool = False
    preview_revision: int = 0


def manner_of(command: ForgetCommand) -> Manner:
    """Return how a command means its records to be forgotten."""
    return Manner(
        mode=command.mode,
        named=isinstance(command.selector, ByIds | BySubject | ByFact),
        at_once=isinstance(command.selector, ByIds),
        with_derived=not isinstance(command.selector, AGEING),
        dry_run=command.dry_run,
        preview_revision=command.preview_revision,
    )


@dataclass(slots=True)
class StepWork:
    """One step on one draft: what it takes there, as it was before."""

    draft: Draft
    applier: Applier
    manner: Manner
    step: Step
    tally: Tally
    means: Callable[[Memory | Episode], bool]
    keys: KeySpace
    now: int
    named: list[Memory | Episode] = field(default_factory=list)
    derived: list[Memory] = field(default_factory=list)
    held: list[UUID] = field(default_factory=list)

    def take(self) -> None:
        """Forget, in the draft, what is still meant; and what was made from nothing else."""
        for one in self.step.ids:
            for record in _records_of(self.applier.records, self.step.kind, one):
                if one in self.tally.taken or not self.means(record):
                    continue
                if is_held(self.draft, self.keys, record):
                    if self.manner.named:
                        raise held_error("what was named")
                    self.held.append(record.id)
                elif _forget(self.applier, record, self.manner.mode, self.now):
                    self.named.append(record)
        if self.manner.with_derived:
            self._take_derived()

    def _take_derived(self) -> None:
        records, tally = self.applier.records, self.tally
        sources = [one.id for one in self.named]
        while sources:
            source = sources.pop()
            prefix = derived_prefix(source)
            for key, _ in self.draft.scan(prefix, prefix_end(prefix)):
                if self.manner.dry_run:
                    tally.taken.add(source)
                found = records.find_memory(id_of(key))
                if found is None or source not in found.derived_from or out_of_recall(found):
                    continue
                if found.id in tally.taken or not all(map(self._is_gone, found.derived_from)):
                    continue
                if is_held(self.draft, self.keys, found):
                    self.held.append(found.id)
                elif _forget(self.applier, found, self.manner.mode, self.now):
                    self.derived.append(found)
                    sources.append(found.id)
                    if self.manner.dry_run:
                        tally.taken.add(found.id)

    def _is_gone(self, source: UUID) -> bool:
        """Return whether a source is out of recall, or not there any more."""
        if source in self.tally.taken:
            return True
        records = self.applier.records
        memory = records.find_memory(source)
        if memory is not None:
            return out_of_recall(memory)
        return not records.has_episode(source) or out_of_recall(records.episode(source))

    def changes_others(self) -> bool:
        """Return whether the draft changes memories beside those that it forgets."""
        meant = {memory_key(one.id) for one in (*self.named, *self.derived)}
        return any(key not in meant for key, _ in self.draft.changes(_MEMORIES))

    def take_following(self) -> list[Memory]:
        """Return what a dry run would come upon once it had taken these out: what goes on then.

        Rows that hold anyhow are met by themselves.
        """
        found: list[Memory] = []
        draft, records = self.draft, self.applier.records
        seen = {memory_key(one.id) for one in (*self.named, *self.derived)}
        while others := [key for key, _ in draft.changes(_MEMORIES) if key not in seen]:
            for key in others:
                seen.add(key)
                before = draft.before(key)
                if before is not None:
                    held = codec.decode_memory(id_of(key), before, 0)
                    if held.on_timeline and held.valid_to > self.now:
                        continue
                record = records.memory(id_of(key))
                if self.means(record) and _forget(self.applier, record, self.manner.mode, self.now):
                    found.append(record)
        return found

    def count(self, tally: Tally) -> None:
        """Add what was taken to a tally."""
        tally.add(self.named, self.manner.preview_revision)
        tally.add_derived(self.derived, self.manner.preview_revision)
        tally.spare(self.held)

    def is_too_much(self) -> bool:
        """Return whether the step must be taken in halves. Ids are forgotten together, or not."""
        may = not self.manner.dry_run and not self.manner.at_once
        return may and len(self.step.ids) > 1 and self.draft.outgrown


class Forgetting:
    """Carries out steps."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        writer: Writer,
        selecting: Selecting,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._writer = writer
        self._selecting = selecting

    def step(
        self,
        partition: Partition,
        command: ForgetCommand,
        step: Step,
        tally: Tally,
        also: Callable[[Draft, Tally], None] | None = None,
    ) -> int:
        """Forget some records in one commit, or more where one does not take them.

        Args:
            partition: Where.
            command: What is forgotten, and how.
            step: Which of it.
            tally: Is added to.
            also: Puts into the draft of each commit what is to be durable with it, given what the
                tally will be.

        Returns:
            The revision afterwards.

        Raises:
            PillionError: NOT_FOUND for an id of neither memory nor episode; SEALED for a held
                one that was named; nothing was changed then.
        """
        for _ in range(COMMIT_TRIES_MAX):
            work = self._work(partition, command, step, tally)
            work.take()
            draft = work.draft
            if work.is_too_much():
                half = len(step.ids) // 2
                self.step(partition, command, replace(step, ids=step.ids[:half]), tally, also)
                rest = replace(step, ids=step.ids[half:])
                return self.step(partition, command, rest, tally, also)
            if command.dry_run or draft.is_empty:
                work.count(tally)
                if step.kind is not None and command.mode is ForgetMode.RETRACT:
                    tally.add(work.take_following(), command.preview_revision)
                return draft.revision
            if also is not None:
                after = replace(tally)
                work.count(after)
                also(draft, after)
            outcome = self._store.commit(partition, draft.batch(None))
            if isinstance(outcome, Committed):
                work.count(tally)
                tally.own.add(outcome.revision)
                # Where a row that begins now or later was never so, an older statement goes on: a
                # new row, or one that was looked at before. Those named by ids are all there are.
                tally.unseen |= step.kind is not None and work.changes_others()
                return outcome.revision
        raise changed_too_often()

    def _work(
        self, partition: Partition, command: ForgetCommand, step: Step, tally: Tally
    ) -> StepWork:
        draft, applier = self._writer.open_draft(
            partition, MadeVectors(), commits=not command.dry_run
        )
        now = self._clock.now_us()
        return StepWork(
            draft=draft,
            applier=applier,
            manner=manner_of(command),
            step=step,
            tally=tally,
            means=lambda record: self._selecting.still(
                command.selector, record, now, step.revision
            ),
            keys=self._keys.at(partition, draft.revision),
            now=now,
        )


def _records_of(
    records: Records, kind: SubjectRecord | None, record_id: UUID
) -> Iterator[Memory | Episode]:
    """Yield the records of an id; of one named by its id (kind None), also what recalls it."""
    memory = records.find_memory(record_id) if kind is not SubjectRecord.EPISODE else None
    episode = None
    if kind is not SubjectRecord.MEMORY and records.has_episode(record_id):
        episode = records.episode(record_id)
    if kind is None and memory is None and episode is None:
        raise not_found("memory or episode", record_id)
    if memory is not None:
        yield memory
    if episode is not None:
        yield episode
        # A selection by subject comes upon the recalling memory by itself.
        if kind is None and episode.memory_id is not None:
            recalling = records.find_memory(episode.memory_id)
            if recalling is not None:
                yield recalling


def _forget(applier: Applier, record: Memory | Episode, mode: ForgetMode, now: int) -> bool:
    """Forget one record; return False when there was nothing left to do."""
    if isinstance(record, Episode):
        if record.expired_at != FOREVER:
            return False
        applier.records.update_episode(replace(record, expired_at=now))
        return True
    if mode is ForgetMode.EXPIRE:
        if record.expired_at != FOREVER:
            return False
        expired = replace(record, expired_at=now, updated_at=now)
        applier.records.update(expired)
        applier.candidates.follow(record, expired)
        return True
    try:
        applier.retract(record, now)
    except PillionError as error:
        if error.reason is Reason.ALREADY_ENDED:
            return False
        raise
    return True
