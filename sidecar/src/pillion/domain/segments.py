"""What statements come to: who holds when, and which rows show it. Pure: values in, values out.

A timeline keeps *entries*. A segment, ROW or NOTHING, covers an interval: a row with a value, or
the time for which a retraction stands. EVIDENCE says that the value of the row around it was
stated again at its instant. Every statement has an entry of its own at its own instant; where a
statement goes on behind a later one that ended, a further segment *continues* it.

At any instant the latest-begun of the statements that cover it holds; of two that begin together,
one with a value before a retraction. Instants are microseconds since the epoch; intervals are
half-open.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from pillion.domain.memory import FOREVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from pillion.domain.memory import SourceKind

NO_VALUE = b""


class Shape(IntEnum):
    """What an entry is. Numbers are part of the stored format."""

    ROW = 1
    EVIDENCE = 2
    NOTHING = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a timeline.

    Attributes:
        valid_from: Its instant, unique within the timeline.
        memory_id: The row's memory; for evidence, that of the row that it first supported; for
            NOTHING, that of the row that was retracted.
        fingerprint: The fingerprint of the value; empty for NOTHING.
        source_kind: The strongest source that states it at this instant.
        shape: ROW, EVIDENCE or NOTHING.
        valid_to: Where the segment ends; FOREVER for evidence.
        stated_to: Where the statement itself ends; FOREVER when it names no end; None for
            evidence that was stored before this was kept: where its row's statement ends.
        continues: The instant at which the statement began that this segment continues; None:
            it begins here.
        epoch: How many retractions the timeline had seen. Evidence that is older than a row was
            not said of it.
        nothing_to: A retraction begins at the same instant and stands until here, behind the row.
    """

    valid_from: int
    memory_id: UUID
    fingerprint: bytes
    source_kind: SourceKind
    shape: Shape = Shape.ROW
    valid_to: int = FOREVER
    stated_to: int | None = FOREVER
    continues: int | None = None
    epoch: int = 0
    nothing_to: int | None = None

    @property
    def is_row(self) -> bool:
        """Whether it is a segment with a value."""
        return self.shape is Shape.ROW

    @property
    def is_evidence(self) -> bool:
        """Whether it is a repetition inside a row."""
        return self.shape is Shape.EVIDENCE

    @property
    def begun(self) -> int:
        """When its statement began."""
        return self.valid_from if self.continues is None else self.continues

    @property
    def rank(self) -> tuple[int, bool]:
        """What decides between statements that cover one instant: the greater one holds."""
        return self.begun, self.shape is not Shape.NOTHING

    @property
    def is_open_statement(self) -> bool:
        """Whether a statement without an end begins here: nothing earlier shows behind it."""
        return self.continues is None and self.stated_to == FOREVER

    def supports(self, row: Entry) -> bool:
        """Return whether this evidence counts inside a row, if no retraction has taken it."""
        return (
            row.is_row
            and self.fingerprint == row.fingerprint
            and self.epoch >= row.epoch
            and row.valid_from < self.valid_from < row.valid_to
        )


@dataclass(frozen=True, slots=True)
class Sleep:
    """The evidence that a retraction took with a row: it is asleep until that is taken back.

    Attributes:
        fingerprint: The row's value.
        start: From where the row was taken.
        end: Where the row ended.
        since: The row's epoch.
        until: The timeline's epoch before the retraction.
    """

    fingerprint: bytes
    start: int
    end: int
    since: int
    until: int

    def holds(self, evidence: Entry) -> bool:
        """Return whether it keeps some evidence asleep."""
        return (
            evidence.fingerprint == self.fingerprint
            and self.start <= evidence.valid_from < self.end
            and self.since <= evidence.epoch <= self.until
        )


@dataclass(frozen=True, slots=True)
class Said:
    """One statement of the set that a timeline follows from.

    Attributes:
        rank: When it began, and whether it has a value.
        to: Where it ends by its own words; FOREVER: nowhere.
        fingerprint: Of its value; empty: a retraction.
        source_kind: The strongest source that makes it.
        entry: The entry that has its words; None: it is made by the plan at hand.
        row: The segment in which that entry stands.
        nothing_to: A retraction begins at the same instant and stands until here: the statement
            needs a row of its own, which has it behind itself.
    """

    rank: tuple[int, bool]
    to: int
    fingerprint: bytes
    source_kind: SourceKind
    entry: Entry | None = None
    row: Entry | None = None
    nothing_to: int | None = None


def statements_of(entries: Iterable[Entry]) -> dict[tuple[int, bool], Said]:
    """Return the statements behind entries in order of time. Evidence must follow its row."""
    known: dict[tuple[int, bool], Said] = {}
    row: Entry | None = None
    for entry in entries:
        if not entry.is_evidence:
            row = entry
        if row is None:
            raise AssertionError("evidence without a row")
        stated_to = entry.stated_to if entry.stated_to is not None else row.stated_to
        to = FOREVER if stated_to is None else stated_to
        said = Said(entry.rank, to, entry.fingerprint, entry.source_kind, entry, row)
        if entry.continues is None or entry.rank not in known:
            known[entry.rank] = said
        if entry.nothing_to is not None:
            rank = (entry.begun, False)
            known[rank] = Said(rank, entry.nothing_to, NO_VALUE, entry.source_kind, entry, row)
    return known


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval and the statement that holds in it; None: no statement covers it."""

    start: int
    end: int
    said: Said | None


def fold(statements: Iterable[Said], start: int, end: int) -> list[Piece]:
    """Return who holds when in [start, end), as adjoining pieces without repetition."""
    if start >= end:
        return []
    waiting = sorted((one for one in statements if one.to > start), key=lambda one: one.rank)
    bounds = {start, end}
    for one in waiting:
        bounds.update(at for at in (one.rank[0], one.to) if start < at < end)
    instants = sorted(bounds)
    covering: list[tuple[tuple[int, int], int]] = []
    place = 0
    pieces: list[Piece] = []
    for here, there in itertools.pairwise(instants):
        while place < len(waiting) and waiting[place].rank[0] <= here:
            begun, valued = waiting[place].rank
            heapq.heappush(covering, ((-begun, -valued), place))
            place += 1
        while covering and waiting[covering[0][1]].to <= here:
            heapq.heappop(covering)
        said = waiting[covering[0][1]] if covering else None
        if pieces and pieces[-1].said is said:
            pieces[-1] = replace(pieces[-1], end=there)
        else:
            pieces.append(Piece(here, there, said))
    return pieces


class Made(Enum):
    """Where a segment of a plan comes from."""

    KEPT = "it was there"
    STATED = "the statement at hand makes it"
    PROMOTED = "evidence becomes a row"
    RESUMED = "a statement shows again behind another one"


@dataclass(slots=True)
class Segment:
    """One segment as a plan wants it.

    Attributes:
        entry: As it shall be. The memory of a row that is made is the caller's to name.
        made: Where it comes from.
        was: As it is now, for one that is kept.
        said: The statement that it begins with; of one that is kept, None.
    """

    entry: Entry
    made: Made
    was: Entry | None = None
    said: Said | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.entry.valid_to

    def goes_on_with(self, piece: Piece) -> bool:
        """Return whether a piece is more of this segment and needs none of its own."""
        said = piece.said
        if said is None or self.end != piece.start:
            return False
        if said.nothing_to is not None and said.rank[0] == piece.start:
            return False
        if said.fingerprint != self.entry.fingerprint:
            return False
        if said.rank == self.entry.rank:
            return True
        inside = said.entry is None or said.entry.epoch >= self.entry.epoch
        return bool(said.fingerprint) and said.rank[0] >= self.entry.valid_from and inside


def lay_out(
    pieces: Sequence[Piece],
    before: Entry | None,
    there: Mapping[int, Entry],
    *,
    stated: Entry | None = None,
) -> list[Segment]:
    """Return the segments that show the pieces, as far as can be those that are there.

    Args:
        pieces: Who holds when.
        before: The segment that reaches up to, or over, where the pieces begin.
        there: The segments that begin within the pieces, by their instants.
        stated: The row that the statement at hand makes at its instant; its end is found here.
    """
    laid: list[Segment] = []
    current: Segment | None = None
    if before is not None and pieces and before.valid_to >= pieces[0].start:
        current = Segment(replace(before, valid_to=pieces[0].start), Made.KEPT, before)
        laid.append(current)
    for piece in pieces:
        if piece.said is None:
            current = None
            continue
        own = piece.said.rank[0] == piece.start
        old = there.get(piece.start)
        kept = old if old is not None and old.rank == piece.said.rank else None
        is_stated = (
            stated is not None
            and piece.start == stated.valid_from
            and piece.said.rank == stated.rank
        )
        begins = is_stated or (own and kept is not None)
        if current is not None and not begins and current.goes_on_with(piece):
            current.entry = replace(current.entry, valid_to=piece.end)
            continue
        if is_stated and stated is not None:
            current = Segment(replace(stated, valid_to=piece.end), Made.STATED, said=piece.said)
        elif kept is not None:
            stated_to = kept.stated_to if own else piece.said.to  # it may have another end by now
            entry = replace(kept, valid_to=piece.end, stated_to=stated_to)
            current = Segment(entry, Made.KEPT, kept)
        else:
            current = _made(piece, piece.said, stated)
        laid.append(current)
    return laid


def _made(piece: Piece, said: Said, stated: Entry | None) -> Segment:
    """Return a segment that is not there yet."""
    words = said.entry if said.entry is not None else stated
    if words is None:
        raise AssertionError("a statement has words")
    own = said.rank[0] == piece.start
    row = said.row if said.row is not None else words
    entry = Entry(
        piece.start,
        words.memory_id,
        said.fingerprint,
        said.source_kind,
        Shape.ROW if said.fingerprint else Shape.NOTHING,
        piece.end,
        said.to,
        None if own else said.rank[0],
        row.epoch,
        said.nothing_to if own else None,
    )
    promoted = own and said.entry is not None and said.entry.is_evidence
    return Segment(entry, Made.PROMOTED if promoted else Made.RESUMED, said=said)
