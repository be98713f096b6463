"""What a caller may ask of the memories, and what comes back. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from pillion.domain.limits import RECALL_TARGET_DEFAULT
from pillion.domain.memory import FOREVER, EndReason, MemoryKind, MemoryStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from pillion.domain.graph import Edge, Expansion
    from pillion.domain.memory import Episode, Memory, SourceKind
    from pillion.domain.scope import FactKey, Subject
    from pillion.domain.search_plan import Plan

RECALLED_STATUSES = frozenset({MemoryStatus.STATED, MemoryStatus.CONFIRMED})


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open window of time; None is unbounded."""

    start: int | None = None
    end: int | None = None

    def holds(self, instant: int) -> bool:
        """Return whether the instant lies within."""
        return (self.start is None or self.start <= instant) and (
            self.end is None or instant < self.end
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories take part; see the contract's Filter. Empty collections admit everything.

    ``contexts`` None looks in every context. Beyond the contract's conditions: ``facts`` admits
    only facts (True) or only untyped memories (False), ``edges`` only facts whose value is a
    subject, and ``value_subjects`` only those whose value is one of these. Of ``any_of`` one must
    admit the memory, and of ``none_of`` none may; `NESTED` is what such a filter is made from.
    """

    subjects: frozenset[Subject] = frozenset()
    contexts: frozenset[str] | None = frozenset({""})
    kinds: frozenset[MemoryKind] = frozenset()
    statuses: frozenset[MemoryStatus] = RECALLED_STATUSES
    attributes: frozenset[str] = frozenset()
    labels_all: frozenset[str] = frozenset()
    labels_any: frozenset[str] = frozenset()
    labels_none: frozenset[str] = frozenset()
    created: Window = Window()
    valid_from: Window = Window()
    importance_min: float = 0.0
    confidence_min: float = 0.0
    source_kinds: frozenset[SourceKind] = frozenset()
    episode_ids: frozenset[UUID] = frozenset()
    session_ids: frozenset[str] = frozenset()
    derived_from: frozenset[UUID] = frozenset()
    facts: bool | None = None
    edges: bool = False
    value_subjects: frozenset[Subject] = frozenset()
    include_retracted: bool = False
    include_expired: bool = False
    valid_only: bool = True
    any_of: tuple[Filter, ...] = ()
    none_of: tuple[Filter, ...] = ()

    @property
    def nested(self) -> tuple[Filter, ...]:
        """The filters right within this one."""
        return self.any_of + self.none_of

    @property
    def is_about_memories(self) -> bool:
        """Whether it has a condition of its own that no episode can meet."""
        return (
            bool(self.kinds or self.attributes or self.episode_ids or self.derived_from)
            or self.importance_min > 0
            or self.confidence_min > 0
            or self.valid_from != Window()
        )

    def admits(self, memory: Memory, as_of: int, now: int) -> bool:
        """Return whether the memory takes part, read as of an instant of valid time.

        The reference of the same test in the ranker; both are held equal by a test.
        """
        return (
            (self.include_retracted or memory.on_timeline)
            and (not self.valid_only or memory.valid_from <= as_of < memory.valid_to)
            and (self.include_expired or memory.recallable_at(now))
            and (not self.subjects or memory.subject in self.subjects)
            and (not self.contexts or memory.context in self.contexts)
            and (not self.kinds or memory.kind in self.kinds)
            and (not self.statuses or memory.status in self.statuses)
            and (not self.attributes or memory.attribute in self.attributes)
            and self._admits_labels(memory)
            and self.created.holds(memory.created_at)
            and self.valid_from.holds(memory.valid_from)
            and memory.importance >= self.importance_min
            and memory.confidence >= self.confidence_min
            and (not self.source_kinds or memory.source.kind in self.source_kinds)
            and (not self.episode_ids or self._admits_episodes(memory))
            and (not self.derived_from or not self.derived_from.isdisjoint(memory.derived_from))
            and (not self.session_ids or memory.session_id in self.session_ids)
            and (self.facts is None or self.facts is memory.is_fact)
            and (not self.edges or (memory.is_fact and memory.value_subject is not None))
            and (not self.value_subjects or memory.value_subject in self.value_subjects)
            and (not self.any_of or any(one.admits(memory, as_of, now) for one in self.any_of))
            and not any(one.admits(memory, as_of, now) for one in self.none_of)
        )

    def first_refusal(self, memory: Memory, as_of: int, now: int) -> str | None:
        """Return the condition that keeps a memory out, by the contract's name; None: none does.

        Of several it is the one that `admits` looks at first.
        """
        conditions = (
            ("include_retracted", self.include_retracted or memory.on_timeline),
            ("validity", not self.valid_only or memory.valid_from <= as_of < memory.valid_to),
            ("include_expired", self.include_expired or memory.recallable_at(now)),
            ("subjects", not self.subjects or memory.subject in self.subjects),
            ("contexts", not self.contexts or memory.context in self.contexts),
            ("kinds", not self.kinds or memory.kind in self.kinds),
            ("statuses", not self.statuses or memory.status in self.statuses),
            ("attributes", not self.attributes or memory.attribute in self.attributes),
            ("labels_all", self.labels_all.issubset(memory.labels)),
            ("labels_any", not self.labels_any or not self.labels_any.isdisjoint(memory.labels)),
            ("labels_none", self.labels_none.isdisjoint(memory.labels)),
            ("created", self.created.holds(memory.created_at)),
            ("valid_from", self.valid_from.holds(memory.valid_from)),
            ("importance_min", memory.importance >= self.importance_min),
            ("confidence_min", memory.confidence >= self.confidence_min),
            ("source_kinds", not self.source_kinds or memory.source.kind in self.source_kinds),
            ("episode_ids", not self.episode_ids or self._admits_episodes(memory)),
            (
                "derived_from",
                not self.derived_from or not self.derived_from.isdisjoint(memory.derived_from),
            ),
            ("session_ids", not self.session_ids or memory.session_id in self.session_ids),
            ("facts", self.facts is None or self.facts is memory.is_fact),
            ("edges", not self.edges or memory.value_subject is not None),
            (
                "value_subjects",
                not self.value_subjects or memory.value_subject in self.value_subjects,
            ),
            (
                "any_of",
                not self.any_of or any(one.admits(memory, as_of, now) for one in self.any_of),
            ),
            ("none_of", not any(one.admits(memory, as_of, now) for one in self.none_of)),
        )
        for name, holds in conditions:
            if not holds:
                return name
        return None if self.admits(memory, as_of, now) else "nested"

    def admits_all(self, memories: Sequence[Memory], as_of: int, now: int) -> bool:
        """Return whether every memory takes part."""
        if self is not PLAIN_FILTER:
            return all(self.admits(one, as_of, now) for one in memories)
        # What `admits` comes to for the filter that most searches have, spelled out: ten calls of
        # it cost as much as all the rest of what is done about ten memories. A test holds it so.
        for one in memories:
            if not (
                one.valid_from <= as_of < one.valid_to
                and now < one.expires_at
                and one.expired_at == FOREVER
                and not one.context
                and one.status is not MemoryStatus.CANDIDATE
                and one.end_reason is not EndReason.CORRECTED
                and one.end_reason is not EndReason.WITHDRAWN
                and one.importance >= 0.0
                and one.confidence >= 0.0
            ):
                return False
        return True

    def _admits_episodes(self, memory: Memory) -> bool:
        return not self.episode_ids.isdisjoint(memory.episode_ids)

    def admits_episode(self, episode: Episode) -> bool:
        """Return whether an episode takes part, by the conditions that episodes can meet.

        Its expiry is not looked at. A filter within this one that has a condition which only
        memories can meet is not met.
        """
        return (
            (not self.subjects or episode.subject in self.subjects)
            and (not self.contexts or episode.context in self.contexts)
            and self._admits_labels(episode)
            and (not self.session_ids or episode.session_id in self.session_ids)
            and (not self.source_kinds or episode.source_kind in self.source_kinds)
            and self.created.holds(episode.recorded_at)
            and (not self.any_of or any(_met_by(one, episode) for one in self.any_of))
            and not any(_met_by(one, episode) for one in self.none_of)
        )

    def _admits_labels(self, record: Memory | Episode) -> bool:
        labels = frozenset(record.labels)
        return (
            self.labels_all <= labels
            and (not self.labels_any or not self.labels_any.isdisjoint(labels))
            and self.labels_none.isdisjoint(labels)
        )


def _met_by(within: Filter, episode: Episode) -> bool:
    """Return whether an episode meets a filter that is within another."""
    of_memories = within.is_about_memories or bool(within.statuses) or within.valid_only
    return not of_memories and within.admits_episode(episode)


# What a request without a filter means. One object, so that the hot path knows it at a glance.
PLAIN_FILTER = Filter()
# What a filter within another means with every field absent: it has no condition.
NESTED = Filter(
    contexts=None,
    statuses=frozenset(),
    include_retracted=True,
    include_expired=True,
    valid_only=False,
)


class RecencyAnchor(IntEnum):
    """From when recency counts. Numbers as in the contract."""

    VALID_FROM = 1
    LAST_USED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingProfile:
    """How the parts of a score are weighed.

    Attributes:
        half_lives: What a request asked for, in microseconds; None: no decay.
        usual_half_lives: Those of kinds that were not asked for, but for facts whose attribute is
            registered with one of its own. A kind that is not named has the built-in one.
        consolidated_factor: On the score of memories that were consolidated into another.
        source_confidence: On the score of memories by the kind of their source, 0 to 1; a kind
            that is not named has 1.
        diversity: 0 is pure score, 1 pure diversity; see `domain.diversity`.
    """

    relevance_weight: float = 0.60
    recency_weight: float = 0.25
    importance_weight: float = 0.15
    half_lives: Mapping[MemoryKind, int | None] = field(default_factory=dict)
    usual_half_lives: Mapping[MemoryKind, int | None] = field(default_factory=dict)
    recency_anchor: RecencyAnchor = RecencyAnchor.VALID_FROM
    consolidated_factor: float = 0.5
    source_confidence: Mapping[SourceKind, float] = field(default_factory=dict)
    diversity: float = 0.0


# What a request without a ranking means; one object, as with PLAIN_FILTER.
PLAIN_RANKING = RankingProfile()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAt:
    """How fresh a read must be, and which instants of the two clocks it asks about.

    ``exact_revision`` or ``known_at`` (an instant of recorded time; never both) asks for the past.
    ``as_of`` is an instant of valid time; None: the recorded instant that is asked about, or now.
    """

    at_least_revision: int = 0
    as_of: int | None = None
    exact_revision: int | None = None
    known_at: int | None = None

    @property
    def asks_for_the_past(self) -> bool:
        """Whether it names a recorded state."""
        return self.exact_revision is not None or self.known_at is not None


# What a request without read options means; one object, as with PLAIN_FILTER.
PLAIN_READ = ReadAt()


class OlderStatements(IntEnum):
    """What becomes of older statements of the same thing. Numbers as in the contract."""

    FOLLOW = 1
    FOLD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A search. ``vector`` is little-endian float32.

    ``counts_as_use``: what it returns was used; a search of the past never counts.
    """

    top_k: int
    text: str = ""
    vector: bytes = b""
    filter: Filter = PLAIN_FILTER
    read: ReadAt = PLAIN_READ
    ranking: RankingProfile = PLAIN_RANKING
    score_min: float = 0.0
    include_vectors: bool = False
    recall_target: float = RECALL_TARGET_DEFAULT
    expansion: Expansion | None = None
    older_statements: OlderStatements = OlderStatements.FOLLOW
    include_trace: bool = False
    counts_as_use: bool = True


class Exactness(IntEnum):
    """Whether an answer is the true top-k. Numbers as in the contract."""

    EXACT = 1
    CERTIFIED = 2
    APPROXIMATE = 3


class SearchPath(IntEnum):
    """Which way the search took. Numbers as in the contract."""

    SCAN = 1
    INDEX = 2
    NO_VECTOR = 3


class Hit(NamedTuple):
    """One memory that a search returned.

    ``cosine`` None: a vector is missing. ``lexical``: BM25; None: no word of the query matched.
    ``path`` leads to what graph expansion added; empty: the query found it.
    ``older``: a later statement of the same thing leads its group. ``folded``: the older
    statements that it stands for.
    """

    memory: Memory
    score: float
    relevance: float
    recency: float
    importance: float
    cosine: float | None
    vector: bytes = b""
    path: tuple[Edge, ...] = ()
    older: bool = False
    folded: tuple[UUID, ...] = ()
    lexical: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceCandidate:
    """One memory that a search looked at, without content.

    Attributes:
        parts: Relevance, recency, importance.
        cosine: None: it was not compared.
        lexical: BM25; None: no word of the query matched.
        proposed_by: Which ways to candidates led to it; empty: only the trace did.
        dropped_by: Why it is not in the answer; "": it is.
    """

    memory_id: UUID
    score: float
    parts: tuple[float, float, float]
    cosine: float | None
    proposed_by: tuple[str, ...]
    dropped_by: str = ""
    lexical: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTrace:
    """How a search came to its answer: numbers and ids. Timings in microseconds by step."""

    path: SearchPath
    memories: int
    admitted: int
    scored: int
    candidates: tuple[TraceCandidate, ...]
    timings: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The best memories, best first.

    ``vectors_pending`` is of the whole partition, whatever the filter. ``bound``: for APPROXIMATE,
    what no missed memory scores above. ``plan``: why the path was taken; None: there was no choice.
    """

    hits: tuple[Hit, ...]
    revision: int
    exactness: Exactness
    path: SearchPath
    admitted: int
    vectors_pending: int
    bound: float | None = None
    plan: Plan | None = None
    trace: SearchTrace | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """One record that can be got: exactly one field is set."""

    memory_id: UUID | None = None
    fact: FactKey | None = None
    episode_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A record that was got: a memory (perhaps with its vector) or an episode."""

    memory: Memory | None = None
    episode: Episode | None = None
    vector: bytes = b""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a listing; ``next_token`` is empty on the last."""

    records: tuple[Found, ...]
    next_token: str
    revision: int


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of one row: a rectangle of valid and recorded time.

    ``to_revision`` 0 and ``recorded_to`` None: it is still held.
    """

    memory: Memory
    from_revision: int
    to_revision: int
    recorded_from: int
    recorded_to: int | None
