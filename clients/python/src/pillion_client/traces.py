"""A trace: what a record came from, and all that came from it. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pillion_client.enums import MemoryStatus, ValidityFilter
from pillion_client.models import Memory
from pillion_client.selection import Filter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pillion_client.models import Record

How: TypeAlias = Literal["stated", "supported", "confirmed", "derived"]
TRACE_RECORDS_MAX: Final = 1000
"""Records that ``trace`` reads beside its root, unless told otherwise."""

SOURCES_AT_ONCE: Final = 64  # the contract's bound on a filter's lists
TARGETS_AT_ONCE: Final = 100  # the contract's bound on BatchGet


@dataclass(frozen=True, slots=True)
class TraceLink:
    """One step from a source to what came from it.

    ``how`` is ``stated`` (the episode says it), ``supported`` (the episode says it again, or in it
    a user confirmed it before), ``confirmed`` (in it a user confirmed it last) or ``derived`` (made
    of the source memory).
    """

    source_id: str
    derived_id: str
    how: How


@dataclass(frozen=True, slots=True)
class Trace:
    """What a record came from, up to its episodes, and all that came from it.

    Attributes:
        root: The record that was asked for.
        records: Every record that was reached, by id, the root too. A source that is gone has a
            link and no record.
        links: The steps between them, in the order in which they were found.
        complete: False when there was more than the caller wanted to read.
    """

    root: Record
    records: Mapping[str, Record]
    links: tuple[TraceLink, ...]
    complete: bool

    def sources_of(self, record_id: str) -> tuple[TraceLink, ...]:
        """Return the steps that lead to a record."""
        return tuple(one for one in self.links if one.derived_id == record_id)

    def derived_of(self, record_id: str) -> tuple[TraceLink, ...]:
        """Return the steps that lead on from a record."""
        return tuple(one for one in self.links if one.source_id == record_id)


def links_to(record: Record) -> list[TraceLink]:
    """Return the steps that lead to a record, as it names them."""
    if not isinstance(record, Memory):
        return []
    links: list[TraceLink] = []
    if record.source.episode_id is not None:
        links.append(TraceLink(record.source.episode_id, record.id, "stated"))
    confirmed_in = record.confirmation.episode_id if record.confirmation is not None else None
    if confirmed_in is not None:
        links.append(TraceLink(confirmed_in, record.id, "confirmed"))
    links += [
        TraceLink(one, record.id, "supported")
        for one in record.recurrence.episode_ids
        if one != confirmed_in
    ]
    links += [TraceLink(one, record.id, "derived") for one in record.derived_from]
    return links


def derived_filter(sources: Sequence[Record]) -> Filter:
    """Return the filter of everything that came from records of one kind, whatever its state."""
    ids = tuple(one.id for one in sources)
    of_memories = isinstance(sources[0], Memory)
    return Filter(
        all_contexts=True,
        statuses=(MemoryStatus.CANDIDATE, MemoryStatus.STATED, MemoryStatus.CONFIRMED),
        include_retracted=True,
        include_expired=True,
        validity=ValidityFilter.ANY,
        derived_from=ids if of_memories else (),
        episode_ids=() if of_memories else ids,
    )


class Walk:
    """What a trace has found so far."""

    def __init__(self, root: Record, records_max: int) -> None:
        self.root = root
        self.records: dict[str, Record] = {root.id: root}
        self.complete = True
        self._links: dict[TraceLink, None] = {}
        self._asked = {root.id}
        self._room = records_max

    def wanted(self, links: Sequence[TraceLink]) -> list[TraceLink]:
        """Note steps up; return those whose source is new and still has room."""
        new = []
        for link in links:
            self._links[link] = None
            if link.source_id in self._asked:
                continue
            if not self._room:
                self.complete = False
                continue
            self._asked.add(link.source_id)
            self._room -= 1
            new.append(link)
        return new

    def add(self, record: Record) -> bool:
        """Keep a record; return whether it is new and had room."""
        if record.id in self.records:
            return False
        if record.id not in self._asked:
            if not self._room:
                self.complete = False
                return False
            self._asked.add(record.id)
            self._room -= 1
        self.records[record.id] = record
        return True

    def lead_on(self, sources: Sequence[Record], derived: Record) -> None:
        """Note the steps from some of the sources to what came from them."""
        ids = {one.id for one in sources}
        self._links.update((link, None) for link in links_to(derived) if link.source_id in ids)

    def result(self) -> Trace:
        """Return the trace."""
        return Trace(self.root, self.records, tuple(self._links), self.complete)
