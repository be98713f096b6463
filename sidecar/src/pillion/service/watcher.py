"""Watch: a partition's commits as a stream, from a revision on.

Nothing is buffered: the feed is in the store, one page of its keys is in memory, and the records
of one commit at a time. Each event is made when the consumer took the one before, so a slow
consumer holds a thread and no memory; one that is too slow is told to resume, and one that takes
nothing at all is cut off (`stalls`).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import ChangeKind as Did
from pillion_storage.api import HistoryGone
from pillion_storage.keys import episode_key, id_of

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition
from pillion.domain.limits import (
    HEARTBEAT_SECONDS_MAX,
    HEARTBEAT_SECONDS_MIN,
    WATCH_SLOW_SECONDS,
    WATCH_STALL_SECONDS,
)
from pillion.domain.queries import Found
from pillion.domain.validation import check_filter
from pillion.domain.watching import Scope, WatchEvent, change_of
from pillion.service.reading import RecordReader
from pillion.service.stalls import Stalls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pillion_storage.api import Change, Store

    from pillion.domain.scope import Partition
    from pillion.domain.watching import RecordChange, WatchQuery
    from pillion.ports import Deadline
    from pillion.service.partitions import KeySpaces

# Commits of one page of the feed.
FEED_STEP: Final = 256
# How often a waiting stream looks whether its consumer is still there and the server goes on.
LOOK_SECONDS: Final = 0.25
# What is left of the consumer's own deadline when the stream ends.
ENDING_SECONDS: Final = 0.2


class Watcher:
    """Follows partitions for consumers. Safe to use from several threads."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        monotonic: Callable[[], float] = time.monotonic,
        slow_seconds: float = WATCH_SLOW_SECONDS,
        stall_seconds: float = WATCH_STALL_SECONDS,
    ) -> None:
        self._store = store
        self._keys = keys
        self._monotonic = monotonic
        self._slow_seconds = slow_seconds
        self._ending = threading.Event()
        self._stalls = Stalls(monotonic, stall_seconds=stall_seconds)

    def watch(
        self,
        partition: Partition,
        query: WatchQuery,
        deadline: Deadline,
        cut_off: Callable[[], None],
    ) -> Iterator[WatchEvent]:
        """Yield every commit after a revision that concerns the consumer, and heartbeats.

        One heartbeat comes when the stream has told what was there at its start, others when
        nothing was told for so long. The last event has ``resume`` set: the consumer was too
        slow, its own deadline is near, or the server goes down. ``cut_off`` is called, by another
        thread, when the consumer takes nothing for much longer than that.

        Raises:
            PillionError: HISTORY_GONE when the changes, or the records as they were, are no
                longer kept; FUTURE_REVISION; CANCELLED once the consumer is gone.
        """
        check_partition(partition)
        if query.filter is not None:
            check_filter(query.filter)
        if query.after_revision < 0:
            raise PillionError.of_field("after_revision", "must not be negative")
        beat = query.heartbeat_seconds
        if not HEARTBEAT_SECONDS_MIN <= beat <= HEARTBEAT_SECONDS_MAX:
            raise PillionError.of_field(
                "heartbeat",
                f"must be {HEARTBEAT_SECONDS_MIN:g} to {HEARTBEAT_SECONDS_MAX:g} seconds",
            )
        for event in self._events(partition, query, deadline):
            handed = self._monotonic()
            with self._stalls.watching(cut_off):
                yield event
            if event.resume:
                return
            if self._monotonic() - handed > self._slow_seconds:
                yield WatchEvent(event.revision, resume=True)
                return

    def end_all(self) -> None:
        """End every stream, and those that begin later: the server is going down."""
        self._ending.set()

    def close(self) -> None:
        """Let go of the thread that looks for stalled consumers."""
        self.end_all()
        self._stalls.close()

    def _events(
        self, partition: Partition, query: WatchQuery, deadline: Deadline
    ) -> Iterator[WatchEvent]:
        told = self._first(partition, query.after_revision)
        scope = Scope(query.filter)
        caught_up = False
        said_at = self._monotonic()
        while not self._is_over(deadline):
            changes = self._changes(partition, told)
            for change in changes:
                told_of = self._told_of(partition, change, scope)
                told = change.revision
                if told_of:
                    yield WatchEvent(told, change.recorded_at, told_of)
                    said_at = self._monotonic()
                elif self._monotonic() - said_at >= query.heartbeat_seconds:
                    yield WatchEvent(told)
                    said_at = self._monotonic()
                if self._is_over(deadline):
                    break
            if changes:
                continue
            silent = self._monotonic() - said_at
            if not caught_up or silent >= query.heartbeat_seconds:
                caught_up = True
                yield WatchEvent(told)
                said_at, silent = self._monotonic(), 0.0
            left = query.heartbeat_seconds - silent
            self._store.wait(partition, told, min(LOOK_SECONDS, left))
        yield WatchEvent(told, resume=True)

    def _is_over(self, deadline: Deadline) -> bool:
        if self._ending.is_set() or deadline.remaining_seconds() <= ENDING_SECONDS:
            return True
        deadline.check()
        return False

    def _first(self, partition: Partition, after_revision: int) -> int:
        """Return the revision that a stream starts after."""
        head = self._store.head(partition).revision
        if after_revision > head:
            raise PillionError(
                Reason.FUTURE_REVISION,
                f"revision {after_revision} is not reached yet; the newest is {head}",
                metadata={"newest_revision": str(head)},
            )
        if after_revision > 0:
            return after_revision
        return self._store.partition_stats(partition).oldest_change - 1

    def _changes(self, partition: Partition, told: int) -> Sequence[Change]:
        try:
            return self._store.changes(partition, told, limit=FEED_STEP).changes
        except HistoryGone as error:
            raise _gone(told, error.oldest - 1) from error

    def _told_of(
        self, partition: Partition, change: Change, scope: Scope
    ) -> tuple[RecordChange, ...]:
        """Return what a commit did, as far as it concerns the watch, in the order of keys."""
        records = [(key, did is Did.DELETE) for key, did in change.keys if key[:1] in (b"m", b"e")]
        if not records:
            return ()
        keys = [key for key, _ in records]
        try:
            before = self._found(partition, keys, change.revision - 1)
            after = self._found(partition, keys, change.revision)
        except HistoryGone as error:
            raise _gone(change.revision - 1, error.oldest) from error
        told = (
            change_of(id_of(key), before.get(key), after.get(key), deleted=deleted, scope=scope)
            for key, deleted in records
        )
        return tuple(one for one in told if one is not None)

    def _found(self, partition: Partition, keys: Sequence[bytes], at: int) -> dict[bytes, Found]:
        """Return the records that there were at a revision, by key."""
        found: dict[bytes, Found] = {}
        memory_ids = [id_of(key) for key in keys if key[:1] == b"m"]
        if memory_ids:
            reader = RecordReader(self._store, partition, self._keys.at(partition, at))
            memories, _ = reader.memories(memory_ids, at)
            found |= {b"m" + one.bytes: Found(memory=memory) for one, memory in memories.items()}
        episode_ids = [id_of(key) for key in keys if key[:1] == b"e"]
        if episode_ids:
            wanted = [episode_key(one) for one in episode_ids]
            entries = self._store.read(partition, wanted, at=at).entries
            for one in episode_ids:
                entry = entries.get(episode_key(one))
                if entry is not None:
                    episode = codec.decode_episode(one, entry.value, entry.version)
                    found[episode_key(one)] = Found(episode=episode)
        return found


def _gone(asked: int, oldest: int) -> PillionError:
    return PillionError(
        Reason.HISTORY_GONE,
        f"changes after revision {asked} are no longer kept, those after {oldest} are: list what "
        "there is now and watch from the revision of that list",
        metadata={"oldest_revision": str(oldest)},
    )
