"""From a selector to what it names: ids, in steps that one commit each can be about.

A selection is made at one revision, which each step names. It only reads, so it can be made again
at any time: what was forgotten meanwhile is passed over by whoever acts on it. Who acts later
than the selection was made asks `Selecting.still` whether a record is still meant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion_storage import codec
from pillion_storage.keys import (
    SubjectRecord,
    captured_key,
    created_key,
    derived_prefix,
    episode_key,
    id_of,
    memory_key,
    prefix_end,
)

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.forgetting import (
    ByEpisode,
    ByFact,
    ByFilter,
    ByIds,
    ByRecorded,
    ByRetentionClass,
    BySubject,
    ByTopic,
    Decayed,
    Expired,
    stated_only_by,
)
from pillion.domain.memory import Memory
from pillion.domain.queries import (
    Exactness,
    Filter,
    RankingProfile,
    SearchQuery,
    Window,
)
from pillion.domain.retention import recorded_at
from pillion.service.derived import sources_named
from pillion.service.draft import Draft
from pillion.service.members import check_member
from pillion.service.records import not_found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.forgetting import Selector
    from pillion.domain.memory import Episode
    from pillion.domain.retention import RetentionClasses
    from pillion.domain.scope import FactKey, Partition
    from pillion.ports import Deadline
    from pillion.service.faded import Fading
    from pillion.service.partitions import KeySpaces
    from pillion.service.searcher import Searcher

# One commit of a large forget: small, so that writers in between wait milliseconds.
STEP_RECORDS: Final = 100
# Rows of an index, and their records, that one read takes.
SCAN_RECORDS: Final = 500
_UNBOUNDED: Final = Window()
_NIL: Final = UUID(int=0)
# Everything that recall could come upon, as of whatever instant.
_RECALLABLE: Final = Filter(contexts=None, statuses=frozenset(), valid_only=False)
# How near a memory is to a topic: nothing that time or importance could change.
_BY_RELEVANCE: Final = RankingProfile(
    relevance_weight=1.0, recency_weight=0.0, importance_weight=0.0, consolidated_factor=1.0
)


@dataclass(frozen=True, slots=True)
class Step:
    """Records that one commit is about.

    Attributes:
        kind: What they are; None: either, each named by its id, and what recalls an episode too.
        ids: Which.
        revision: The one at which they were selected.
    """

    kind: SubjectRecord | None
    ids: tuple[UUID, ...]
    revision: int


class Selecting:
    """Makes selections."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        searcher: Searcher,
        fading: Fading,
        classes: RetentionClasses,
    ) -> None:
        self._store = store
        self._keys = keys
        self._searcher = searcher
        self._fading = fading
        self._classes = classes

    def steps(  # noqa: C901, PLR0912  (one a kind)
        self, partition: Partition, selector: Selector, now: int, deadline: Deadline
    ) -> Iterator[Step]:
        """Yield what a selector, which is checked, names at this moment.

        Whether it was forgotten before is not looked at. Nothing is yielded twice.

        Raises:
            PillionError: NOT_FOUND for an episode that there is not; LIMIT_EXCEEDED for a topic
                that too much is about; INVALID_FIELD for a retention class that there is not, or
                a fact's member that does not fit its attribute; and what a search raises.
        """
        revision = self._store.head(partition).revision
        if isinstance(selector, ByIds):
            yield Step(None, tuple(dict.fromkeys(selector.ids)), revision)
            return
        view = _View(self._store, partition, self._keys.at(partition, revision), revision, deadline)
        match selector:
            case BySubject(subject):
                for kind in SubjectRecord:
                    yield from view.listed(kind, view.keys.subject_range(subject, kind))
            case ByFact(fact):
                yield from self._rows_of(view, fact)
            case ByFilter(wanted):
                yield from view.scanned(wanted.created, _filter_test(wanted, now), wanted)
            case ByEpisode(episode_id):
                yield from view.of_episode(episode_id)
            case ByRecorded(window):
                yield from view.scanned(window, lambda record: window.holds(recorded_at(record)))
            case ByTopic():
                yield from self._about(view, selector)
            case ByRetentionClass(name):
                end = self._classes.ended_before(name, now)
                if end is not None:
                    yield from view.scanned(Window(None, end), _of_class(name))
            case Expired():
                yield from view.scanned(_UNBOUNDED, lambda record: record.expires_at <= now)
            case Decayed(below):
                for ids in self._fading.faded(partition, below, now, deadline, STEP_RECORDS):
                    yield Step(SubjectRecord.MEMORY, ids, revision)

    def still(  # noqa: PLR0911  (one a kind)
        self, selector: Selector, record: Memory | Episode, now: int, revision: int
    ) -> bool:
        """Return whether a record that was selected at a revision is meant as it is by now.

        Where the record itself does not say so, only one that has not changed since is.
        """
        match selector:
            case ByIds():
                return True
            case BySubject(_, contexts):
                return contexts is None or record.context in contexts
            case ByFact(fact):
                if not fact.member:
                    return True
                # Guesses of the member too, which may be older than the registration as a set.
                value = record.value if isinstance(record, Memory) else None
                return value is not None and value.fingerprint == fact.member
            case ByFilter(wanted):
                return _filter_test(wanted, now)(record)
            case ByRecorded(window):
                return window.holds(recorded_at(record))
            case ByRetentionClass(name):
                end = self._classes.ended_before(name, now)
                return end is not None and recorded_at(record) < end and _of_class(name)(record)
            case Expired():
                return record.expires_at <= now
            case ByEpisode() | ByTopic() | Decayed():
                return record.version <= revision

    def _rows_of(self, view: _View, fact: FactKey) -> Iterator[Step]:
        newest = Draft(self._store, view.partition)
        check_member(newest, view.keys, "selector.fact", fact, whole=True)
        yield from view.listed(SubjectRecord.MEMORY, view.keys.rows(fact))

    def _about(self, view: _View, selector: ByTopic) -> Iterator[Step]:
        """Yield the memories about a topic, and the episodes that some of them recall."""
        answer = self._searcher.search(
            view.partition,
            SearchQuery(
                top_k=limits.RESULTS_MAX,
                text=selector.text,
                filter=replace(_RECALLABLE, subjects=selector.subjects),
                ranking=_BY_RELEVANCE,
                score_min=selector.score_min,
                recall_target=1.0,  # a scan: nothing about the topic may be missed
                counts_as_use=False,
            ),
            view.deadline,
        )
        if answer.exactness is not Exactness.EXACT:
            raise AssertionError("a topic is searched exactly")
        if len(answer.hits) >= limits.RESULTS_MAX:
            raise PillionError.of_field(
                "selector.topic.score_min",
                f"{limits.RESULTS_MAX} memories or more score as much: raise it, or name subjects",
                Reason.LIMIT_EXCEEDED,
            )
        hits = [hit.memory for hit in answer.hits]
        yield from _steps(SubjectRecord.MEMORY, (one.id for one in hits), answer.revision)
        sources = {one.id: one.source.episode_id for one in hits if one.source.episode_id}
        episodes = view.episodes(list(dict.fromkeys(sources.values())))
        recalled = [one.id for one in episodes if one.memory_id in sources]
        yield from _steps(SubjectRecord.EPISODE, recalled, answer.revision)


@dataclass(frozen=True, slots=True)
class _View:
    """A partition at the revision of a selection."""

    store: Store
    partition: Partition
    keys: KeySpace
    revision: int
    deadline: Deadline

    def listed(self, kind: SubjectRecord, prefix: bytes) -> Iterator[Step]:
        """Yield every record of an index."""
        for ids in self._pages(prefix, prefix_end(prefix), STEP_RECORDS):
            yield Step(kind, ids, self.revision)

    def scanned(
        self,
        window: Window,
        admits: Callable[[Memory | Episode], bool],
        wanted: Filter | None = None,
    ) -> Iterator[Step]:
        """Yield the memories and the episodes that a test admits.

        Those outside the window of recorded time are not looked at; nor are others than those that
        came from the records that a filter names, or else of the one subject that it names.
        """
        sources = sources_named(wanted) if wanted is not None else ()
        if sources:
            yield from _steps(SubjectRecord.MEMORY, self._derived(sources, admits), self.revision)
            return
        subject = next(iter(wanted.subjects)) if wanted and len(wanted.subjects) == 1 else None
        for kind in SubjectRecord:
            if kind is SubjectRecord.EPISODE and wanted is not None and wanted.is_about_memories:
                return
            if subject is not None:
                prefix = self.keys.subject_range(subject, kind)
                start, end = prefix, prefix_end(prefix)
            else:
                start, end = _recorded_range(kind, window)
            yield from _steps(kind, self._admitted(kind, start, end, admits), self.revision)

    def of_episode(self, episode_id: UUID) -> Iterator[Step]:
        """Yield an episode and the memories that nothing else states.

        Raises:
            PillionError: NOT_FOUND.
        """
        if not self.episodes([episode_id]):
            raise not_found("episode", episode_id)
        prefix = derived_prefix(episode_id)
        said = self._admitted(
            SubjectRecord.MEMORY,
            prefix,
            prefix_end(prefix),
            lambda record: isinstance(record, Memory) and stated_only_by(record, episode_id),
        )
        yield from _steps(SubjectRecord.MEMORY, said, self.revision)
        yield Step(SubjectRecord.EPISODE, (episode_id,), self.revision)

    def _derived(
        self, sources: Iterable[UUID], admits: Callable[[Memory | Episode], bool]
    ) -> Iterator[UUID]:
        """Yield those of the memories that came from some records that a test admits, once each."""
        seen: set[UUID] = set()
        for source in sources:
            prefix = derived_prefix(source)
            found = self._admitted(SubjectRecord.MEMORY, prefix, prefix_end(prefix), admits)
            for one in found:
                if one not in seen:
                    seen.add(one)
                    yield one

    def episodes(self, ids: Sequence[UUID]) -> list[Episode]:
        """Return those of some episodes that there are."""
        found: list[Episode] = []
        for at in range(0, len(ids), SCAN_RECORDS):
            found += self._read_episodes(ids[at : at + SCAN_RECORDS])
        return found

    def _admitted(
        self,
        kind: SubjectRecord,
        start: bytes,
        end: bytes,
        admits: Callable[[Memory | Episode], bool],
    ) -> Iterator[UUID]:
        read = self._read_memories if kind is SubjectRecord.MEMORY else self._read_episodes
        for ids in self._pages(start, end, SCAN_RECORDS):
            yield from (record.id for record in read(ids) if admits(record))

    def _pages(self, start: bytes, end: bytes, limit: int) -> Iterator[tuple[UUID, ...]]:
        """Yield the ids that the keys of a range end with."""
        at: bytes | None = start
        while at is not None:
            self.deadline.check()
            page = self.store.scan(
                self.partition, at, end, limit=limit, at=self.revision, keys_only=True
            )
            if page.rows:
                yield tuple(id_of(row.key) for row in page.rows)
            at = page.next_start

    def _read_memories(self, ids: Sequence[UUID]) -> list[Memory]:
        wanted = [memory_key(one) for one in ids]
        found = self.store.read(self.partition, wanted, at=self.revision).entries
        return [
            codec.decode_memory(one, found[key].value, found[key].version)
            for one, key in zip(ids, wanted, strict=True)
            if key in found
        ]

    def _read_episodes(self, ids: Sequence[UUID]) -> list[Episode]:
        wanted = [episode_key(one) for one in ids]
        found = self.store.read(self.partition, wanted, at=self.revision).entries
        return [
            codec.decode_episode(one, found[key].value, found[key].version)
            for one, key in zip(ids, wanted, strict=True)
            if key in found
        ]


def _steps(kind: SubjectRecord, ids: Iterable[UUID], revision: int) -> Iterator[Step]:
    waiting: list[UUID] = []
    for one in ids:
        waiting.append(one)
        if len(waiting) == STEP_RECORDS:
            yield Step(kind, tuple(waiting), revision)
            waiting = []
    if waiting:
        yield Step(kind, tuple(waiting), revision)


def _recorded_range(kind: SubjectRecord, window: Window) -> tuple[bytes, bytes]:
    """Return the part of the index by creation, or by capture, that a window comes to."""
    key = created_key if kind is SubjectRecord.MEMORY else captured_key
    family = key(0, _NIL)[:1]
    start = key(window.start, _NIL) if window.start is not None else family
    end = key(window.end, _NIL) if window.end is not None else prefix_end(family)
    return start, max(start, end)


def _filter_test(wanted: Filter, now: int) -> Callable[[Memory | Episode], bool]:
    def admits(record: Memory | Episode) -> bool:
        if isinstance(record, Memory):
            return wanted.admits(record, now, now)
        return (
            not wanted.is_about_memories
            and wanted.admits_episode(record)
            and (wanted.include_expired or now < min(record.expires_at, record.expired_at))
        )

    return admits


def _of_class(name: str) -> Callable[[Memory | Episode], bool]:
    return lambda record: record.retention_class == name
