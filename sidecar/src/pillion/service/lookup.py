"""One memory, by its id or by its fact key, in one look at the store: the hot half of Get.

What was decoded is kept, and of use for as long as the partition's revision is the same or, after
a write to something else, the stored versions are. Those are read anew each time, in the look
itself: so nothing here is ever stale, and nothing needs to be told of a write.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pillion_storage import codec
from pillion_storage.access_codec import with_access
from pillion_storage.keys import (
    INSTANT_BYTES,
    access_key,
    after,
    instant_bytes,
    instant_of,
    memory_key,
    pending_key,
    prefix_end,
)

from pillion.domain.field_checks import check_fact_key
from pillion.domain.memory import FOREVER
from pillion.domain.queries import Found
from pillion.service.kept import make_room

if TYPE_CHECKING:
    from uuid import UUID

    from pillion_storage.api import Entry, HeadView, Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey, Partition
    from pillion.ports import Clock

# About 16 MB of Python objects at a few hundred bytes of text each.
KEPT_MAX: Final = 8192


class Seen(NamedTuple):
    """What a look saw.

    ``settled`` False: it takes a longer way. The key's timeline has evidence at the place, or has
    nothing there and the registry must be asked what the attribute is.
    """

    revision: int
    found: Found | None
    settled: bool = True


class _Kept(NamedTuple):
    """A decoded memory, and the versions of what it was decoded from; 0: absent."""

    seen_at: int  # a revision at which this is what was stored
    version: int
    pending: int
    access: int
    fact_version: int
    head: bytes  # the key of its timeline's head; empty: it is no fact
    found: Found


class _Current(NamedTuple):
    """The last row of a timeline, as of a revision: every instant from its beginning is its."""

    revision: int
    valid_from: int
    valid_to: int
    seen: Seen


_UNKNOWN: Final = _Current(-1, 0, 0, Seen(-1, None))


class _Timeline:
    """Where a fact's timeline is, and its last row.

    Attributes:
        start: The prefix of its entries.
        head: The key of its head.
        registration: The key of its attribute's registration.
        of_member: Whether it is that of one member of a set.
        current: Its last row.
    """

    __slots__ = ("_versioned", "current", "head", "of_member", "registration", "start")

    def __init__(self, keys: KeySpace, fact: FactKey) -> None:
        self.start = keys.entries(fact)
        self.head = keys.head(fact)
        self.registration = keys.registration(fact.attribute)
        self.of_member = bool(fact.member)
        self.current = _UNKNOWN  # replaced whole, so that no thread sees half of it
        self._versioned = (-1, 0)  # a revision, and the head's version at it

    def version(self, view: HeadView) -> int:
        """Return the version of the timeline as a view has it."""
        revision, version = self._versioned
        if revision != view.revision:
            version = _version(view, self.head)
            self._versioned = (view.revision, version)
        return version


class Lookup:
    """Looks memories up. Safe to share between threads."""

    def __init__(self, store: Store, clock: Clock, kept_max: int = KEPT_MAX) -> None:
        self._store = store
        self._clock = clock
        self._kept_max = kept_max
        self._kept: dict[tuple[Partition, UUID], _Kept] = {}
        self._timelines: dict[tuple[Partition, FactKey], _Timeline] = {}

    def let_go(self, partition: Partition) -> None:
        """Keep nothing of a partition."""
        for memory in [one for one in list(self._kept) if one[0] == partition]:
            self._kept.pop(memory, None)
        for fact in [one for one in list(self._timelines) if one[0] == partition]:
            self._timelines.pop(fact, None)

    def by_id(self, partition: Partition, keys: KeySpace, memory_id: UUID) -> Seen:
        """Return a memory at the head, whatever its standing."""

        def ask(view: HeadView) -> Seen:
            return Seen(view.revision, self._read(view, partition, keys, memory_id))

        return self._store.look(partition, ask)

    def by_fact(
        self, partition: Partition, keys: KeySpace, fact: FactKey, as_of: int | None
    ) -> Seen:
        """Return the row of a fact that holds at an instant, at the head, if it can be recalled.

        Args:
            partition: Where.
            keys: Its key space.
            fact: Which fact.
            as_of: The instant; None: now, which is looked up once the head is fixed, so that no
                row that the head holds begins after it.

        Raises:
            PillionError: the key is malformed.
        """
        place = (partition, fact)
        timeline = self._timelines.get(place)
        if timeline is None:
            check_fact_key("target.fact", fact)
            timeline = _Timeline(keys, fact)
            make_room(self._timelines, self._kept_max)
            self._timelines[place] = timeline

        def ask(view: HeadView) -> Seen:
            now = self._clock.now_us()
            instant = as_of if as_of is not None else now
            current = timeline.current
            if (
                current.revision == view.revision
                and current.valid_from <= instant < current.valid_to
            ):
                seen = current.seen
            else:
                seen = self._row(view, partition, keys, timeline, instant)
            memory = seen.found.memory if seen.found is not None else None
            if memory is None or memory.recallable_at(now):
                return seen
            return Seen(seen.revision, None)

        return self._store.look(partition, ask)

    def _row(
        self, view: HeadView, partition: Partition, keys: KeySpace, timeline: _Timeline, as_of: int
    ) -> Seen:
        start = timeline.start
        last = view.last(start, after(start + instant_bytes(as_of)))
        if last is None:
            # Where the attribute is (or should be) a set, the answer may be that a member is
            # named or left out wrongly. No row holds then, so the hot half need not know.
            plain = not timeline.of_member and view.get(timeline.registration) is None
            return Seen(view.revision, None, settled=plain)
        entry = codec.glimpse_entry(last.value)
        if not entry.is_row:
            return Seen(view.revision, None, settled=False)
        if as_of >= entry.valid_to:
            return Seen(view.revision, None)
        found = self._read(view, partition, keys, entry.memory_id, timeline)
        seen = Seen(view.revision, found)
        if entry.valid_to == FOREVER:  # worth a second look: is it the one that is asked for most?
            end = view.last(start, prefix_end(start))
            if end is not None and end.key == last.key:
                valid_from = instant_of(last.key[-INSTANT_BYTES:])
                timeline.current = _Current(seen.revision, valid_from, FOREVER, seen)
        return seen

    def _read(
        self,
        view: HeadView,
        partition: Partition,
        keys: KeySpace,
        memory_id: UUID,
        timeline: _Timeline | None = None,
    ) -> Found | None:
        """Return a memory; ``timeline``: its own, where that is known."""
        place = (partition, memory_id)
        kept = self._kept.get(place)
        if kept is not None and kept.seen_at == view.revision:
            return kept.found
        row = view.get(memory_key(memory_id))
        if row is None:
            self._kept.pop(place, None)
            return None
        pending = _version(view, pending_key(memory_id))
        access = view.get(access_key(memory_id))
        if (
            kept is not None
            and kept.version == row.version
            and kept.pending == pending
            and kept.access == (access.version if access is not None else 0)
            and (not kept.head or _version(view, kept.head) == kept.fact_version)
        ):
            kept = kept._replace(seen_at=view.revision)
        else:
            kept = _decoded(view, keys, memory_id, row, access, pending=pending, timeline=timeline)
        make_room(self._kept, self._kept_max)
        self._kept[place] = kept
        return kept.found


def _version(view: HeadView, key: bytes) -> int:
    entry = view.get(key)
    return entry.version if entry is not None else 0


def _decoded(
    view: HeadView,
    keys: KeySpace,
    memory_id: UUID,
    row: Entry,
    access: Entry | None,
    *,
    pending: int,
    timeline: _Timeline | None,
) -> _Kept:
    """Decode a memory, and fill in what only a read can."""
    head, fact_version = b"", 0
    if timeline is not None:
        head, fact_version = timeline.head, timeline.version(view)
    memory = codec.decode_memory(
        memory_id, row.value, row.version, fact_version=fact_version, pending=pending > 0
    )
    if memory.attribute and not head:
        head = keys.head(memory.fact_key)
        fact_version = _version(view, head)
        memory = replace(memory, fact_version=fact_version)
    if access is not None:
        memory = with_access(memory, access.value)
    versions = (row.version, pending, access.version if access is not None else 0, fact_version)
    return _Kept(view.revision, *versions, head, Found(memory=memory))
