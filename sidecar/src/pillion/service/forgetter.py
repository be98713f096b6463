"""Forget by ids, by subject or by fact: out of recall, or retracted from now on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec
from pillion_storage.api import Batch, Committed, Token
from pillion_storage.keys import SubjectRecord, id_of, memory_key, prefix_end

from pillion.domain.commands import ForgetMode, ForgetReport
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import (
    check_count,
    check_fact_key,
    check_partition,
    check_request_id,
    check_subject,
)
from pillion.domain.limits import COMMIT_TRIES_MAX, FORGET_IDS_MAX, FORGET_SAMPLE_MAX
from pillion.domain.memory import FOREVER, Episode, Memory
from pillion.service import answers
from pillion.service.draft import Draft
from pillion.service.members import check_member
from pillion.service.records import not_found
from pillion.service.vectors import MadeVectors
from pillion.service.writer import changed_too_often, token_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pillion_storage.api import Store

    from pillion.domain.commands import ForgetCommand
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.applier import Applier
    from pillion.service.partitions import KeySpaces
    from pillion.service.records import Records
    from pillion.service.writer import Writer

# One commit of a large forget: small, so that writers in between wait milliseconds.
STEP_RECORDS: Final = 100
_MEMORIES: Final = b"m"


@dataclass(slots=True)
class _Tally:
    """What was, or would be, forgotten so far; and whether there may be more to look at."""

    memories: int = 0
    episodes: int = 0
    sample: tuple[UUID, ...] = ()
    unseen: bool = True

    def add(self, changed: Sequence[Memory | Episode]) -> None:
        self.memories += sum(isinstance(one, Memory) for one in changed)
        self.episodes += sum(isinstance(one, Episode) for one in changed)
        room = FORGET_SAMPLE_MAX - len(self.sample)
        self.sample += tuple(one.id for one in changed[:room])


class Forgetter:
    """Takes memories and episodes out of recall, or retracts them."""

    def __init__(self, *, store: Store, keys: KeySpaces, clock: Clock, writer: Writer) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._writer = writer

    def forget(
        self, partition: Partition, command: ForgetCommand, deadline: Deadline
    ) -> ForgetReport:
        """Forget, or in a dry run say what would be forgotten.

        Up to 100 ids are one atomic commit. A whole subject or fact goes in steps of 100
        records; a call that was cut short has forgotten the steps that it committed, and calling
        it again goes on. What is forgotten already is passed over.

        Raises:
            PillionError: NOT_FOUND when one of the ids is neither memory nor episode; nothing
                was changed then.
        """
        check_partition(partition)
        _check(command)
        token = token_id("forget", command.request_id) if command.request_id else b""
        if token and not command.dry_run:
            earlier = self._store.find_token(partition, token)
            if earlier is not None:
                return _replayed(earlier, command.body_digest)
        tally = _Tally()
        revision = self._store.head(partition).revision
        while tally.unseen:
            tally.unseen = False
            for kind, ids in self._steps(partition, command):
                deadline.check()
                revision = self._step(partition, command, kind, ids, tally)
        if token and not command.dry_run:
            memo = codec.pack(
                [
                    command.body_digest,
                    tally.memories,
                    tally.episodes,
                    [one.bytes for one in tally.sample],
                ]
            )
            outcome = self._store.commit(partition, Batch(token=Token(token, memo)))
            if isinstance(outcome, Committed):
                if outcome.replayed:
                    return _replayed(outcome, command.body_digest)
                revision = outcome.revision
        return ForgetReport(
            memories=tally.memories,
            episodes=tally.episodes,
            derived=0,
            sample_ids=tally.sample,
            dry_run=command.dry_run,
            revision=revision,
        )

    def _steps(
        self, partition: Partition, command: ForgetCommand
    ) -> Iterator[tuple[SubjectRecord | None, Sequence[UUID]]]:
        """Yield the ids that one commit each is about, and of what they are; None: of either."""
        if command.ids:
            yield None, tuple(dict.fromkeys(command.ids))
            return
        keys = self._keys.at(partition, self._store.head(partition).revision)
        if command.fact is not None:
            newest = Draft(self._store, partition)
            check_member(newest, keys, "selector.fact", command.fact, whole=True)
            prefixes = [(SubjectRecord.MEMORY, keys.rows(command.fact))]
        elif command.subject is not None:
            subject = command.subject
            prefixes = [(kind, keys.subject_range(subject, kind)) for kind in SubjectRecord]
        else:
            raise PillionError.of_field("selector", "name ids, a subject or a fact")
        at = self._store.head(partition).revision
        for kind, prefix in prefixes:
            start: bytes | None = prefix
            while start is not None:
                page = self._store.scan(
                    partition, start, prefix_end(prefix), limit=STEP_RECORDS, at=at, keys_only=True
                )
                if page.rows:
                    yield kind, tuple(id_of(row.key) for row in page.rows)
                start = page.next_start

    def _step(
        self,
        partition: Partition,
        command: ForgetCommand,
        kind: SubjectRecord | None,
        ids: Sequence[UUID],
        tally: _Tally,
    ) -> int:
        """Forget some records in one commit; return the revision after it."""
        for _ in range(COMMIT_TRIES_MAX):
            draft, applier = self._writer.open_draft(
                partition, MadeVectors(), commits=not command.dry_run
            )
            now = self._clock.now_us()
            changed = [
                record
                for one in ids
                for record in _records_of(applier.records, kind, one)
                if _in_scope(record, command) and _forget(applier, record, command.mode, now)
            ]
            if command.dry_run or draft.is_empty:
                tally.add(changed)
                if kind is not None and command.mode is ForgetMode.RETRACT:
                    tally.add(_following(draft, applier, command, changed, now))
                return draft.revision
            outcome = self._store.commit(partition, draft.batch(None))
            if isinstance(outcome, Committed):
                tally.add(changed)
                # Where a row that begins now or later was never so, an older statement goes on: a
                # new row, or one that was looked at before. Those named by ids are all there are.
                tally.unseen |= kind is not None and _changes_others(draft, changed)
                return outcome.revision
        raise changed_too_often()


def _changes_others(draft: Draft, changed: Sequence[Memory | Episode]) -> bool:
    """Return whether a draft changes memories beside those that it forgets."""
    meant = {memory_key(one.id) for one in changed}
    return any(key not in meant for key, _ in draft.changes(_MEMORIES))


def _following(
    draft: Draft,
    applier: Applier,
    command: ForgetCommand,
    changed: Sequence[Memory | Episode],
    now: int,
) -> list[Memory]:
    """Return what a dry run would come upon once it had taken these out: what goes on then.

    Rows that hold anyhow are met by themselves.
    """
    found: list[Memory] = []
    seen = {memory_key(one.id) for one in changed}
    while others := [key for key, _ in draft.changes(_MEMORIES) if key not in seen]:
        for key in others:
            seen.add(key)
            before = draft.before(key)
            if before is not None:
                held = codec.decode_memory(id_of(key), before, 0)
                if held.on_timeline and held.valid_to > now:
                    continue
            record = applier.records.memory(id_of(key))
            if _in_scope(record, command) and _forget(applier, record, command.mode, now):
                found.append(record)
    return found


def _check(command: ForgetCommand) -> None:
    check_request_id(command.request_id)
    check_count("selector.ids", len(command.ids), FORGET_IDS_MAX)
    if command.subject is not None:
        check_subject("selector.subject", command.subject)
    if command.fact is not None:
        check_fact_key("selector.fact", command.fact)


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


def _in_scope(record: Memory | Episode, command: ForgetCommand) -> bool:
    if command.fact is not None and command.fact.member:
        # Guesses of the member too, which may be older than the registration as a set.
        value = record.value if isinstance(record, Memory) else None
        return value is not None and value.fingerprint == command.fact.member
    return command.contexts is None or record.context in command.contexts


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


def _replayed(earlier: Committed, body_digest: bytes) -> ForgetReport:
    answers.check_same_body(earlier.memo, body_digest)
    _, memories, episodes, sample = codec.unpack(earlier.memo or b"")
    return ForgetReport(
        memories=memories,
        episodes=episodes,
        derived=0,
        sample_ids=tuple(UUID(bytes=one) for one in sample),
        dry_run=False,
        revision=earlier.revision,
    )
