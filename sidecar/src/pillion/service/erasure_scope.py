"""What an erasure takes: the records that were selected, and everything that follows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pillion_storage import codec
from pillion_storage.keys import (
    SubjectRecord,
    derived_prefix,
    episode_key,
    hold_key,
    id_of,
    memory_key,
    prefix_end,
)

from pillion.domain.erasure import Fate, fate_of, is_copy
from pillion.domain.errors import PillionError
from pillion.domain.memory import Episode, Memory, MemoryStatus
from pillion.domain.values import ValueKind
from pillion.service.holds import held_error
from pillion.service.records import not_found

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey, Partition, Subject
    from pillion.ports import Deadline

STEP: Final = 500
SCAN_ROWS: Final = 2000
_VALUE: Final = 10  # the number of a memory's field


class Selection(NamedTuple):
    """What to erase: by ids, or one subject (``contexts`` None: every context), or one fact.

    ``named`` False: the ids were found by something else, so what isn't there any more is passed
    over, and what is held stays.
    """

    ids: tuple[UUID, ...] = ()
    subject: Subject | None = None
    contexts: frozenset[str] | None = None
    fact: FactKey | None = None
    named: bool = True

    @property
    def whole_subject(self) -> Subject | None:
        """The subject of whom nothing shall be left, if that was selected."""
        return self.subject if self.contexts is None else None


# Holds that a commit can make sure of that they are not set meanwhile.
HOLDS_EXPECTED_MAX: Final = 1500


@dataclass(slots=True)
class Scope:
    """What an erasure takes.

    Attributes:
        gone: The records that go, in the order in which they were found.
        twins: Further records that go, of the same ids: a memory and an episode may share one.
        said: Of these, memories of which stays what records that stay said.
        chosen: How many of these were selected; the others follow.
        memories: How many of the selected are memories.
        exempt: What was selected and stays, for it is held.
        holds: The keys of the holds that there were not.
        revision: As of which.
        changed: Memories that stay and lose something.
        owners: The keyed hashes of the subjects that all of these are of.
        timelines: The keyed hashes of the timelines that change.
        fingerprints: Of the values that go.
    """

    gone: dict[UUID, Memory | Episode] = field(default_factory=dict)
    twins: list[Memory | Episode] = field(default_factory=list)
    said: set[UUID] = field(default_factory=set)
    chosen: int = 0
    memories: int = 0
    exempt: list[UUID] = field(default_factory=list)
    holds: list[bytes] = field(default_factory=list)
    revision: int = 0
    changed: dict[UUID, Memory] = field(default_factory=dict)
    owners: set[bytes] = field(default_factory=set)
    timelines: set[bytes] = field(default_factory=set)
    fingerprints: set[bytes] = field(default_factory=set)

    @property
    def episodes(self) -> int:
        """How many of the selected are episodes."""
        return self.chosen - self.memories

    @property
    def derived(self) -> int:
        """How many follow those that were selected."""
        return len(self.records) - self.chosen

    def newer_than(self, revision: int) -> int:
        """Return how many changed after a revision; 0: of none is asked."""
        return sum(one.version > revision for one in self.records) if revision else 0

    @property
    def records(self) -> list[Memory | Episode]:
        """Everything that goes."""
        return [*self.gone.values(), *self.twins]


class Gatherer:
    """Finds what one erasure takes, as a partition is at one revision."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        keys: KeySpace,
        *,
        revision: int,
        promote_after: int,
        deadline: Deadline,
    ) -> None:
        self._store = store
        self._partition = partition
        self._keys = keys
        self._revision = revision
        self._promote_after = promote_after
        self._deadline = deadline
        self._subject: Subject | None = None
        self._rows: dict[bytes, list[Memory]] = {}
        self._scope = Scope()
        self._queue: list[Memory | Episode] = []

    def gather(self, selection: Selection) -> Scope:
        """Return all that goes and changes.

        Raises:
            PillionError: NOT_FOUND when one of the ids is neither memory nor episode; SEALED when
                something that was named, or follows, is under a legal hold.
        """
        self._subject = selection.whole_subject
        self._choose(self._selected(selection), named=selection.named)
        if self._subject is not None:
            for memory in self._referring(self._subject):
                self._take(memory)
        while self._queue:
            self._deadline.check()
            step, self._queue = self._queue[:STEP], self._queue[STEP:]
            self._follow(step)
        self._note()
        if self._held(self._scope.records):
            raise held_error("something that is to be erased")
        return self._scope

    def _choose(self, records: Sequence[Memory | Episode], *, named: bool) -> None:
        scope = self._scope
        held = set() if named else self._held(records)
        for one in records:
            if one.id in held:
                scope.exempt.append(one.id)
            else:
                self._take(one)
        scope.chosen = len(scope.records)
        scope.memories = sum(isinstance(one, Memory) for one in scope.records)
        scope.revision = self._revision

    def _held(self, records: Sequence[Memory | Episode]) -> set[UUID]:
        """Return which of some records are under a legal hold."""
        holds: dict[bytes, list[UUID]] = {}
        for one in records:
            holds.setdefault(self._keys.hold(one.subject), []).append(one.id)
        for one in records:
            holds.setdefault(hold_key(one.id), []).append(one.id)
        wanted = list(holds)
        found: set[UUID] = set()
        for begin in range(0, len(wanted), STEP):
            part = wanted[begin : begin + STEP]
            for key in self._store.read(self._partition, part, at=self._revision).entries:
                found.update(holds[key])
        self._scope.holds = wanted[:HOLDS_EXPECTED_MAX]
        return found

    def gather_hashed(self, hashes: AbstractSet[bytes], subject: bytes) -> Scope:
        """Return all that goes and changes with records that are known by hashes alone.

        Args:
            hashes: Of ids (``KeySpace.erased_id``).
            subject: The keyed hash of a subject of whom all goes; empty: of none.
        """
        ids = (
            [one for one in self._all_ids() if self._keys.erased_id(one) in hashes]
            if hashes
            else []
        )
        if subject:
            for kind in SubjectRecord:
                ids += self._ids(b"s" + subject + bytes([kind]))
        self._choose(self._records(dict.fromkeys(ids)), named=True)
        while self._queue:
            self._deadline.check()
            step, self._queue = self._queue[:STEP], self._queue[STEP:]
            self._follow(step)
        self._note()
        if subject:
            self._scope.owners.add(subject)
        return self._scope

    def _all_ids(self) -> list[UUID]:
        """Return the ids of all records, also of those that can't be read any more."""
        return [one for prefix in (b"m", b"e", b"c", b"k") for one in self._ids(prefix)]

    # --- what was selected -------------------------------------------------------------------

    def _selected(self, selection: Selection) -> list[Memory | Episode]:
        if selection.ids:
            found = self._read(selection.ids)
            for one in selection.ids:
                if selection.named and not found.get(one):
                    raise not_found("memory or episode", one)
            return [record for one in dict.fromkeys(selection.ids) for record in found.get(one, ())]
        if not selection.named:
            return []
        if selection.fact is not None:
            return self._of_fact(selection.fact)
        if selection.subject is None:
            raise PillionError.of_field("selector", "name ids, a subject or a fact")
        records: list[Memory | Episode] = []
        for kind in SubjectRecord:
            prefix = self._keys.subject_range(selection.subject, kind)
            records += [
                one
                for one in self._records(self._ids(prefix))
                if selection.contexts is None or one.context in selection.contexts
            ]
        return records

    def _of_fact(self, fact: FactKey) -> list[Memory | Episode]:
        return [
            one
            for one in self._rows_of(fact)
            if not fact.member or (one.value is not None and one.value.fingerprint == fact.member)
        ]

    def _referring(self, subject: Subject) -> Iterator[Memory]:
        """Yield the facts of others whose value is a subject."""
        wanted = [int(ValueKind.SUBJECT), [subject.type, subject.id]]
        named = subject.id.encode()
        start: bytes | None = b"m"
        while start is not None:
            self._deadline.check()
            page = self._store.scan(
                self._partition, start, prefix_end(b"m"), limit=SCAN_ROWS, at=self._revision
            )
            for row in page.rows:
                if named in row.value and codec.unpack(row.value).get(_VALUE) == wanted:
                    yield codec.decode_memory(id_of(row.key), row.value, row.version)
            start = page.next_start

    # --- what follows ------------------------------------------------------------------------

    def _take(self, record: Memory | Episode) -> None:
        known = self._scope.gone.get(record.id)
        if known is None:
            self._scope.gone[record.id] = record
            self._scope.changed.pop(record.id, None)
            self._queue.append(record)
        elif type(known) is not type(record) and record not in self._scope.twins:
            self._scope.twins.append(record)
            self._queue.append(record)

    def _follow(self, records: Sequence[Memory | Episode]) -> None:
        """Look at everything that some records which go have to do with."""
        near: dict[UUID, None] = {}
        for one in records:
            near.update(dict.fromkeys(self._ids(derived_prefix(one.id))))
            if isinstance(one, Episode):
                if one.memory_id is not None:
                    self._recall(one.memory_id)
                continue
            near.update(dict.fromkeys(one.derived_from))
            if one.source.episode_id is not None:
                self._capture(one.source.episode_id, one.id)
            if one.is_fact:
                self._same_key(one)
        for memory in self._records(near):
            self._consider(memory)

    def _recall(self, memory_id: UUID) -> None:
        """Take the memory that recalls an episode."""
        for one in self._records((memory_id,)):
            self._take(one)

    def _capture(self, episode_id: UUID, memory_id: UUID) -> None:
        """Take the episode whose very content a memory is."""
        for one in self._records((episode_id,)):
            if isinstance(one, Episode) and one.memory_id == memory_id:
                self._take(one)

    def _same_key(self, row: Memory) -> None:
        """Look at the other rows of a fact: those that repeat the row, and that point at it."""
        begun = self._begun(row)
        for other in self._rows_of(row.fact_key):
            if other.id in self._scope.gone:
                continue
            if is_copy(row, other) and self._begun(other) in (None, begun):
                self._take(other)
            elif other.status is MemoryStatus.CANDIDATE and other.superseded_by == row.id:
                self._take(other)  # a guess that the row has taken up
            else:
                self._consider(other)

    def _begun(self, row: Memory) -> int | None:
        """Return when the statement of a row began; None: it is not on its timeline."""
        if not row.on_timeline or row.status is MemoryStatus.CANDIDATE:
            return None
        key = self._keys.entry(row.fact_key, row.valid_from)
        found = self._store.read(self._partition, [key], at=self._revision).entries.get(key)
        if found is None:
            return None
        entry = codec.decode_entry(row.valid_from, found.value)
        return entry.begun if entry.memory_id == row.id else None

    def _consider(self, record: Memory | Episode) -> None:
        if isinstance(record, Episode) or record.id in self._scope.gone:
            return
        fate = fate_of(
            record,
            self._scope.gone.keys(),
            subject=self._subject,
            promote_after=self._promote_after,
        )
        if fate is Fate.GOES:
            if record.source.episode_id in self._scope.gone:
                self._scope.said.add(record.id)
            self._take(record)
        elif fate is Fate.CHANGES:
            self._scope.changed[record.id] = record

    def _note(self) -> None:
        """Note whose, and on which timelines, all of it is."""
        scope = self._scope
        for one in (*scope.records, *scope.changed.values()):
            scope.owners.add(self._keys.subject(one.subject))
            if isinstance(one, Memory) and one.is_fact:
                scope.timelines.add(self._keys.timeline(one.fact_key))
                if one.id in scope.gone and one.value is not None:
                    scope.fingerprints.add(one.value.fingerprint)

    # --- reading -----------------------------------------------------------------------------

    def _ids(self, prefix: bytes) -> list[UUID]:
        found: list[UUID] = []
        start: bytes | None = prefix
        while start is not None:
            page = self._store.scan(
                self._partition,
                start,
                prefix_end(prefix),
                limit=SCAN_ROWS,
                at=self._revision,
                keys_only=True,
            )
            found += [id_of(row.key) for row in page.rows]
            start = page.next_start
        return found

    def _rows_of(self, fact: FactKey) -> list[Memory]:
        prefix = self._keys.rows(fact)
        found = self._rows.get(prefix)
        if found is None:
            found = [one for one in self._records(self._ids(prefix)) if isinstance(one, Memory)]
            self._rows[prefix] = found
        return found

    def _records(self, ids: Iterable[UUID]) -> list[Memory | Episode]:
        wanted = list(ids)
        found = self._read(wanted)
        return [record for one in wanted for record in found.get(one, ())]

    def _read(self, ids: Sequence[UUID]) -> dict[UUID, list[Memory | Episode]]:
        """Return the records of some ids: a memory and an episode may share one."""
        found: dict[UUID, list[Memory | Episode]] = {}
        for begin in range(0, len(ids), STEP):
            self._deadline.check()
            part = ids[begin : begin + STEP]
            wanted = [memory_key(one) for one in part] + [episode_key(one) for one in part]
            entries = self._store.read(self._partition, wanted, at=self._revision).entries
            for one in part:
                memory, episode = entries.get(memory_key(one)), entries.get(episode_key(one))
                records: list[Memory | Episode] = []
                if memory is not None:
                    records.append(codec.decode_memory(one, memory.value, memory.version))
                if episode is not None:
                    records.append(codec.decode_episode(one, episode.value, episode.version))
                if records:
                    found[one] = records
        return found
