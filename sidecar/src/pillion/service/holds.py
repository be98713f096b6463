"""Legal holds: records that say that a record, or everything about a subject, is to be kept.

What is held is neither forgotten nor erased nor swept, by whatever selector. A draft that looked
for a hold and found none cannot be committed once there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import Committed
from pillion_storage.keys import SubjectRecord, episode_key, hold_key, memory_key, prefix_end

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_id, check_partition, check_reason_code, check_subject
from pillion.domain.limits import COMMIT_TRIES_MAX
from pillion.service.draft import Draft
from pillion.service.records import not_found
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Episode, Memory
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces

_COUNT_STEP: Final = 1000


def is_held(draft: Draft, keys: KeySpace, record: Memory | Episode) -> bool:
    """Return whether a record, or its subject, is under a legal hold as a draft sees it."""
    return (
        draft.get(hold_key(record.id)) is not None
        or draft.get(keys.hold(record.subject)) is not None
    )


def held_error(what: str) -> PillionError:
    """Return the refusal to forget what is held."""
    return PillionError(
        Reason.SEALED,
        f"{what} is under a legal hold: lift it first",
        metadata={"hold": "legal"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldCommand:
    """Sets a hold on a record or on a subject (exactly one of both), or lifts it."""

    record_id: UUID | None = None
    subject: Subject | None = None
    held: bool
    reason_code: str


class Holds:
    """Sets and lifts legal holds."""

    def __init__(self, *, store: Store, keys: KeySpaces, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock

    def set(self, partition: Partition, command: HoldCommand, deadline: Deadline) -> int:
        """Set or lift a hold; return how many records are under it now.

        Setting one that is there, and lifting one that is not, changes nothing. A hold on a
        subject holds for what is recorded later, too.

        Raises:
            PillionError: NOT_FOUND for a record that there is not.
        """
        check_partition(partition)
        check_reason_code("reason_code", command.reason_code, required=True)
        if command.subject is not None:
            check_subject("subject", command.subject)
        check_id("id", command.record_id)
        keys = self._keys.of(partition)
        for _ in range(COMMIT_TRIES_MAX):
            deadline.check()
            draft = Draft(self._store, partition)
            self._change(draft, keys, command)
            if draft.is_empty or isinstance(
                self._store.commit(partition, draft.batch(None)), Committed
            ):
                return self._count(partition, keys, command) if command.held else 0
        raise changed_too_often()

    def _change(self, draft: Draft, keys: KeySpace, command: HoldCommand) -> None:
        subject, record_id = command.subject, command.record_id
        if subject is not None:
            key = keys.hold(subject)
        elif record_id is not None:
            key = hold_key(record_id)
            there = draft.get(memory_key(record_id)) or draft.get(episode_key(record_id))
            if there is None and command.held:
                raise not_found("memory or episode", record_id)
        else:
            raise PillionError.of_field("target", "name an id or a subject")
        if command.held and draft.get(key) is None:
            # Nothing of anybody: the key says whom it is about, as a hash.
            draft.put(key, codec.pack({1: self._clock.now_us(), 2: command.reason_code}))
        elif not command.held and draft.get(key) is not None:
            draft.delete(key)

    def _count(self, partition: Partition, keys: KeySpace, command: HoldCommand) -> int:
        if command.subject is None:
            return 1
        count = 0
        for kind in SubjectRecord:
            prefix = keys.subject_range(command.subject, kind)
            start: bytes | None = prefix
            while start is not None:
                page = self._store.scan(
                    partition, start, prefix_end(prefix), limit=_COUNT_STEP, keys_only=True
                )
                count += len(page.rows)
                start = page.next_start
        return count
