"""Reading one fact's timeline: who holds at an instant, and what lies around it.

A fact that is stated again and again has much evidence, and a timeline may have very many rows, so
nothing here goes through either: a statement without an end hides whatever began before it, and
where one begins, reading stops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import INSTANT_BYTES, after, instant_of, memory_key, prefix_end

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import TIMELINE_READ_MAX, TIMELINE_WALK_MAX
from pillion.domain.memory import FOREVER, EndReason
from pillion.domain.segments import NO_VALUE, Entry, Shape
from pillion.domain.timeline import Around
from pillion.service.asleep import first_that_holds, sleeps_between
from pillion.service.draft import SCAN_STEP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Sleep
    from pillion.service.draft import Draft

# Entries read at a time where nothing but evidence lies between here and a row.
ASLEEP_STEP: Final = 256
# Entries read at a time where the next one is likely to be the last that matters.
NEAR_STEP: Final = 16
# Segments that are followed from a row to where its evidence is.
SEGMENTS_FOLLOWED_MAX: Final = 8


def find_holding(draft: Draft, keys: KeySpace, key: FactKey, instant: int) -> Entry | None:
    """Return the row of a fact that holds at an instant, if any."""
    segment = _segment_before(draft, keys, key, after(keys.entry(key, instant)))
    if segment is None or not segment.is_row or instant >= segment.valid_to:
        return None
    return segment


def _entry(stored_key: bytes, data: bytes) -> Entry:
    return codec.decode_entry(instant_of(stored_key[-INSTANT_BYTES:]), data)


def _entries(
    draft: Draft, start: bytes, end: bytes, *, reverse: bool = False, step: int = SCAN_STEP
) -> Iterator[Entry]:
    """Yield the entries of a stretch of a timeline, as long as it is one that can be gone through.

    Raises:
        PillionError: LIMIT_EXCEEDED when it is not.
    """
    scan = draft.scan(start, end, reverse=reverse, step=step)
    for count, stored in enumerate(scan):
        if count >= TIMELINE_READ_MAX:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                f"more than {TIMELINE_READ_MAX} statements of this key, taken back since, lie "
                "where this would look: name another instant",
            )
        yield _entry(*stored)


def _last_before(draft: Draft, keys: KeySpace, key: FactKey, end: bytes) -> Entry | None:
    """Return the last entry before a key, of whatever shape."""
    return next(_entries(draft, keys.entries(key), end, reverse=True, step=1), None)


def _segment_before(draft: Draft, keys: KeySpace, key: FactKey, end: bytes) -> Entry | None:
    """Return the last segment that begins before a key.

    Evidence is not gone through where the row that it first supported leads there.
    """
    return _segment_of(draft, keys, key, _last_before(draft, keys, key, end))


def _segment_of(draft: Draft, keys: KeySpace, key: FactKey, entry: Entry | None) -> Entry | None:
    """Return an entry that is a segment, or the last segment before evidence."""
    if entry is None or not entry.is_evidence:
        return entry
    row = _supported(draft, keys, key, entry)
    if row is not None:
        return row
    # It is not to be found from the row that this evidence first supported: look for it.
    place = keys.entry(key, entry.valid_from)
    for earlier in _entries(draft, keys.entries(key), place, reverse=True, step=ASLEEP_STEP):
        if not earlier.is_evidence:
            return earlier
    return None


def _supported(draft: Draft, keys: KeySpace, key: FactKey, evidence: Entry) -> Entry | None:
    """Return the segment around evidence, if few steps lead there from the row it first supported.

    Segments that adjoin name each other by their ends. So whoever asks behind a retraction goes
    through none of the evidence that it took.
    """
    data = draft.get(memory_key(evidence.memory_id))
    if data is None:
        return None
    row = codec.decode_memory(evidence.memory_id, data, 0)
    begin = keys.entry(key, row.valid_from)
    segment = None
    if row.on_timeline:
        begun = draft.get(begin)
        segment = codec.decode_entry(row.valid_from, begun) if begun is not None else None
    elif row.valid_from < evidence.valid_from:
        segment = _last_before(draft, keys, key, after(begin))
    for _ in range(SEGMENTS_FOLLOWED_MAX):
        if segment is None or segment.is_evidence or segment.valid_from >= evidence.valid_from:
            return None
        if evidence.valid_from < segment.valid_to:
            return segment
        instant = segment.valid_to
        following = draft.get(keys.entry(key, instant))
        segment = codec.decode_entry(instant, following) if following is not None else None
    return None


class Surveyor:
    """Reads the timelines of one partition for plans, as one draft sees them."""

    def __init__(self, draft: Draft, keys: KeySpace) -> None:
        self._draft = draft
        self._keys = keys

    def _awake(self, key: FactKey, evidence: Entry, row: Entry) -> bool:
        """Return whether evidence counts inside a row: no retraction took it."""
        if not evidence.supports(row):
            return False
        newest = self.epoch(key)
        if row.epoch == newest:
            return True
        sleeps = sleeps_between(self._draft, self._keys, key, row.epoch, newest)
        return first_that_holds(sleeps, evidence) is None

    def epoch(self, key: FactKey) -> int:
        """Return how many retractions a timeline has seen; the commit will depend on its head."""
        return codec.decode_head(self._draft.get(self._keys.head(key)))

    def entry(self, key: FactKey, instant: int) -> Entry | None:
        """Return the entry at an instant."""
        data = self._draft.get(self._keys.entry(key, instant))
        return codec.decode_entry(instant, data) if data is not None else None

    def around(
        self,
        key: FactKey,
        instant: int,
        to: int,
        *,
        without: Entry | None = None,
        beyond: int | None = None,
    ) -> Around:
        """Return what lies around an instant, for a plan about [instant, to).

        Args:
            key: The timeline.
            instant: Where the statement at hand begins.
            to: Where what changes ends; FOREVER when nothing but later statements ends it.
            without: A row whose evidence from the instant on is left out.
            beyond: The last instant at which a statement comes or goes; None: ``instant``.

        Raises:
            PillionError: LIMIT_EXCEEDED when more of the timeline lies there than is read.
        """
        place = self._keys.entry(key, instant)
        last = _last_before(self._draft, self._keys, key, after(place))
        at = last if last is not None and last.valid_from == instant else None
        if at is None:
            before = _segment_of(self._draft, self._keys, key, last)
        else:
            before = self._segment_before(key, place)
        if before is not None and before.valid_to <= instant:
            nothing = self._former_nothing(key, before)
            if nothing is not None and nothing.valid_from == instant:
                at = nothing
            elif nothing is not None:
                before = nothing
        if at is not None and at.is_evidence:
            awake = before is not None and self._awake(key, at, before)
            if not awake or (without is not None and at.supports(without)):
                at = None
        current = before
        if at is not None and not at.is_evidence:
            current = at
        if current is not None and current.valid_to <= instant:
            current = None
        behind: tuple[Entry, ...] = ()
        if before is not None and current is before and before is not last:
            behind = self._evidence_behind(key, before, instant)
        made = Around(before, behind, at, epoch=self.epoch(key))
        return self._ahead(
            key,
            made,
            current,
            instant,
            to=to,
            without=without,
            beyond=instant if beyond is None else beyond,
        )

    def _segment_before(self, key: FactKey, end: bytes) -> Entry | None:
        return _segment_before(self._draft, self._keys, key, end)

    def _evidence_behind(self, key: FactKey, row: Entry, instant: int) -> tuple[Entry, ...]:
        """Return a row's evidence before an instant, back to one that names no end."""
        if not row.is_row:
            return ()
        found: list[Entry] = []
        start = after(self._keys.entry(key, row.valid_from))
        for entry in _entries(self._draft, start, self._keys.entry(key, instant), reverse=True):
            if self._awake(key, entry, row):
                _add(found, entry)
                if _is_open(entry, row):
                    break
        return tuple(reversed(found))

    def _ahead(
        self,
        key: FactKey,
        made: Around,
        current: Entry | None,
        instant: int,
        *,
        to: int,
        without: Entry | None,
        beyond: int,
    ) -> Around:
        """Return the surroundings with what lies ahead of the instant."""
        found: list[Entry] = []
        holds = current is not None and current.is_row
        for entry in self._onward(key, current, instant, without):
            if entry.is_evidence:
                if current is None or not self._awake(key, entry, current):
                    continue
                _add(found, entry)
                if _is_open(entry, current) and entry.valid_from > beyond:
                    following = None
                    if current.valid_to != FOREVER:
                        following = self.entry(key, current.valid_to)
                    return replace(
                        made, ahead=tuple(found), end=current.valid_to, following=following
                    )
                continue
            # What goes on exactly where the change ends may become part of a row before it.
            outside = entry.valid_from > to or (entry.valid_from == to and entry.continues is None)
            if outside or (entry.is_open_statement and entry.valid_from > beyond):
                follows = entry.is_row or any(one.is_row for one in found)
                return replace(
                    made,
                    ahead=tuple(found),
                    end=entry.valid_from,
                    following=entry,
                    row_follows=not holds and (follows or self._row_after(key, entry.valid_from)),
                )
            _add(found, entry)
            current = entry
        follows = any(one.is_row for one in found)
        return replace(made, ahead=tuple(found), row_follows=not holds and follows)

    def _onward(
        self, key: FactKey, current: Entry | None, instant: int, without: Entry | None
    ) -> Iterator[Entry]:
        """Yield the entries after an instant, past what cannot be awake."""
        start = after(self._keys.entry(key, instant))
        skips = current is not None and (
            not current.is_row or (without is not None and current.rank == without.rank)
        )
        if current is not None and skips:
            if current.valid_to == FOREVER:
                return
            start = self._keys.entry(key, current.valid_to)
        end = prefix_end(self._keys.entries(key))
        last = current
        step = ASLEEP_STEP if current is None else NEAR_STEP
        for entry in _entries(self._draft, start, end, step=step):
            if not entry.is_evidence:
                if last is not None and last.valid_to < entry.valid_from:
                    nothing = self._former_nothing(key, last)
                    if nothing is not None:
                        yield nothing
                last = entry
            yield entry
        if last is not None and last.valid_to != FOREVER:
            nothing = self._former_nothing(key, last)
            if nothing is not None:
                yield nothing

    def _row_after(self, key: FactKey, instant: int) -> bool:
        """Return whether a row begins after an instant."""
        start, end = after(self._keys.entry(key, instant)), prefix_end(self._keys.entries(key))
        return any(one.is_row for one in _entries(self._draft, start, end, step=ASLEEP_STEP))

    def _former_nothing(self, key: FactKey, row: Entry) -> Entry | None:
        """Return the retraction that ended a row of format 1, which kept none: it is put now."""
        if not row.is_row or row.epoch or row.valid_to == FOREVER:
            return None
        data = self._draft.get(memory_key(row.memory_id))
        if data is None:
            return None
        memory = codec.decode_memory(row.memory_id, data, 0)
        if memory.end_reason is not EndReason.RETRACTED or memory.valid_to != row.valid_to:
            return None
        end = FOREVER
        start = after(self._keys.entry(key, row.valid_to))
        last = prefix_end(self._keys.entries(key))
        for entry in _entries(self._draft, start, last, step=ASLEEP_STEP):
            if not entry.is_evidence:
                end = entry.valid_from
                break
        nothing = Entry(
            row.valid_to,
            row.memory_id,
            NO_VALUE,
            row.source_kind,
            Shape.NOTHING,
            end,
            epoch=codec.FIRST_EPOCH,
        )
        place = self._keys.entry(key, row.valid_to)
        there = self._draft.get(place)
        if there is not None and not codec.decode_entry(row.valid_to, there).is_evidence:
            return None
        self._draft.put(place, codec.encode_segment(nothing))
        return nothing

    def earlier(self, key: FactKey, instant: int) -> tuple[Entry, ...]:
        """Return the statements before an instant that may hold once a later one has left.

        In order of time, with the row before its evidence, back to one that names no end.
        """
        found: list[Entry] = []
        end = self._keys.entry(key, instant)
        while True:
            row = self._segment_before(key, end)
            if row is None:
                break
            until = instant_of(end[-INSTANT_BYTES:])
            behind = self._evidence_behind(key, row, until)
            for one in (*reversed(behind), row):
                _add(found, one)
            if row.is_open_statement or (behind and _is_open(behind[0], row)):
                break
            end = self._keys.entry(key, row.valid_from)
        return tuple(reversed(found))

    def reach(self, key: FactKey, row: Entry) -> int:
        """Return where the last statement of a row ends, the row's evidence included."""
        to = FOREVER if row.stated_to is None else row.stated_to
        if FOREVER in (to, row.valid_to):
            return FOREVER
        to = max(to, row.valid_to)
        start, end = (self._keys.entry(key, one) for one in (row.valid_from, row.valid_to))
        for entry in _entries(self._draft, after(start), end):
            if entry.stated_to is not None and self._awake(key, entry, row):
                to = max(to, entry.stated_to)
                if to == FOREVER:
                    break
        return to

    def taken_evidence(self, key: FactKey, row: Entry, sleep: Sleep) -> tuple[Entry, ...]:
        """Return a retracted row's evidence that is asleep now and would matter awake.

        Of each stretch under one segment, only up to evidence that names no end: the row that
        this makes has the rest.
        """
        found: list[Entry] = []
        place = self._keys.entry(key, sleep.start)
        segment = self._segment_before(key, after(place))
        earlier = sleeps_between(self._draft, self._keys, key, sleep.since, sleep.until)
        last = prefix_end(self._keys.entries(key))
        if sleep.end != FOREVER:
            last = self._keys.entry(key, sleep.end)
        begin: bytes | None = after(place)
        while begin is not None:
            start, begin = begin, None
            for entry in _entries(self._draft, start, last):
                if not entry.is_evidence:
                    segment = entry
                elif sleep.holds(entry) and first_that_holds(earlier, entry) is None:
                    _add(found, entry)
                    if _is_open(entry, row) and segment is not None:
                        if entry.valid_from >= segment.valid_to:
                            continue  # in a gap, whose end is not known here
                        if segment.valid_to < sleep.end:
                            begin = self._keys.entry(key, segment.valid_to)
                        break
        return tuple(found)


def _is_open(entry: Entry, row: Entry) -> bool:
    """Return whether an entry's statement names no end."""
    stated_to = entry.stated_to if entry.stated_to is not None else row.stated_to
    return stated_to == FOREVER


def _add(found: list[Entry], entry: Entry) -> None:
    if len(found) >= TIMELINE_WALK_MAX:
        raise PillionError(
            Reason.LIMIT_EXCEEDED,
            f"more than {TIMELINE_WALK_MAX} statements of this key lie within the interval: "
            "name an earlier valid_to",
        )
    found.append(entry)
