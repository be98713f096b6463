"""Recall: what a model should see in one turn, gathered at one revision and fitted to a budget.

Searches under the subjects and contexts that were asked about find what is so; `domain.recall`
decides what of it goes in. All of it is of one revision: see `one_revision`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter, RankingProfile, SearchPath, SearchQuery
from pillion.domain.recall import (
    Candidate,
    Purpose,
    RecallAnswer,
    Section,
    assemble,
)
from pillion.domain.recall_checks import check_recall
from pillion.domain.rendering import render_line
from pillion.service.one_revision import at_one_revision
from pillion.service.standing import standing_memories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.queries import ReadAt, SearchAnswer
    from pillion.domain.recall import RecallQuery
    from pillion.domain.scope import Partition, Subject
    from pillion.ports import Clock, Deadline, TokenCounter
    from pillion.service.partitions import KeySpaces
    from pillion.service.past_search import PastSearcher
    from pillion.service.recorded import Moment
    from pillion.service.searcher import Searcher

    _Candidates = dict[Section, list[Candidate]]

# What one search returns at most; of what there may be more of, the rest is read from the store.
BEST_MAX: Final = limits.RESULTS_MAX
# Summaries among which the last few are chosen by their exact instants.
_SESSIONS_WANTED: Final = 64
_DAY_US: Final = 86_400 * 1_000_000
_BY_RECENCY: Final = RankingProfile(
    relevance_weight=0.0,
    recency_weight=1.0,
    importance_weight=0.0,
    half_lives={MemoryKind.SESSION: 365 * _DAY_US},
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A Recall on its way: where, what, how it is read, and what it sees."""

    partition: Partition
    query: RecallQuery
    read: ReadAt
    moment: Moment
    deadline: Deadline


class Recaller:
    """Builds contexts. Safe to share between threads.

    ``used`` hears of the memories that a context has, after it was built.
    """

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        searcher: Searcher,
        past: PastSearcher,
        token_counters: Mapping[str, TokenCounter],
        used: Callable[[Partition, Sequence[UUID]], None] | None = None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._searcher = searcher
        self._past = past
        self._counters = token_counters
        self._used = used

    def recall(self, partition: Partition, query: RecallQuery, deadline: Deadline) -> RecallAnswer:
        """Return the context of a turn.

        Raises:
            PillionError: INVALID_FIELD and its like for a malformed request; what `Searcher.search`
                raises for a query that cannot be compared; LIMIT_EXCEEDED when the subjects have
                more current facts or open items than a Recall takes; HISTORY_GONE or
                FUTURE_REVISION as in `moment_of`; OVERLOADED when too many read past states by
                words.
        """
        check_recall(query, self._counters)
        counter = self._counters[query.token_counter]
        moment, candidates = self._gathered(partition, query, deadline)
        context = assemble(
            candidates,
            token_budget=query.token_budget,
            section_budgets=query.section_budgets,
            count=counter.count,
        )
        if self._used is not None and not query.read.asks_for_the_past:
            self._used(partition, [line.memory.id for line in context.lines])
        return RecallAnswer(context, counter.estimates, moment.revision)

    def _gathered(
        self, partition: Partition, query: RecallQuery, deadline: Deadline
    ) -> tuple[Moment, _Candidates]:
        subjects = frozenset(query.subjects)

        def read(moment: Moment, read_at: ReadAt) -> tuple[_Candidates, Callable[[Memory], bool]]:
            asked = _Asked(partition, query, read_at, moment, deadline)
            with contextlib.ExitStack() as stack:
                if read_at.asks_for_the_past and query.text:
                    holding = self._past.holding(partition, moment.revision, deadline)
                    stack.enter_context(holding)
                found = self._candidates(asked)
            return found, lambda memory: memory.subject in subjects

        return at_one_revision(self._store, partition, query.read, self._clock, deadline, read=read)

    # --- gathering -------------------------------------------------------------------------

    def _candidates(self, asked: _Asked) -> _Candidates:
        """Return what may go in, by section, each in the order in which it is to be served."""
        query = asked.query
        turns = {one: at for at, one in enumerate(query.subjects)}
        facts = self._facts(asked)
        found = {
            Section.FACTS: [_fact(one, turns) for one in facts],
            Section.OPEN_ITEMS: _plain(self._open_items(asked)),
            Section.SESSIONS: _plain(self._sessions(asked)),
        }
        if query.text or query.vector:
            found[Section.PROCEDURES] = _plain(self._procedures(asked))
            found[Section.RELATED] = self._related(asked)
        return found

    def _facts(self, asked: _Asked) -> list[Memory]:
        """Return every current fact, best first; at the start of a session, some statements too."""
        facts = self._standing(
            asked, frozenset({MemoryKind.SEMANTIC}), facts=True, by_query=True, what="current facts"
        )
        if asked.query.purpose is Purpose.SESSION_START:
            wanted = _filter(asked, frozenset({MemoryKind.SEMANTIC}), facts=False)
            count = limits.RECALL_PROFILE_STATEMENTS_MAX
            facts += self._memories(self._search(asked, wanted, count), asked, wanted)
        return facts

    def _open_items(self, asked: _Asked) -> list[Memory]:
        """Return every item that is open, the most important first, then the oldest."""
        items = self._standing(
            asked, frozenset({MemoryKind.OPEN_ITEM}), facts=None, by_query=False, what="open items"
        )
        still_open = [one for one in items if asked.moment.as_of < one.closed_at]
        return sorted(still_open, key=lambda one: (-one.importance, one.valid_from, one.id))

    def _sessions(self, asked: _Asked) -> list[Memory]:
        """Return the last summaries, the latest first."""
        wanted = _filter(asked, frozenset({MemoryKind.SESSION}))
        answer = self._search(asked, wanted, _SESSIONS_WANTED, ranking=_BY_RECENCY)
        latest = sorted(
            self._memories(answer, asked, wanted), key=lambda one: (-one.valid_from, one.id)
        )
        at_start = asked.query.purpose is Purpose.SESSION_START
        return latest[: limits.RECALL_SESSIONS_START if at_start else limits.RECALL_SESSIONS_TURN]

    def _procedures(self, asked: _Asked) -> list[Memory]:
        wanted = _filter(asked, frozenset({MemoryKind.PROCEDURAL}))
        answer = self._search(asked, wanted, limits.RECALL_PROCEDURES_MAX, by_query=True)
        return self._memories(answer, asked, wanted)

    def _related(self, asked: _Asked) -> list[Candidate]:
        """Return episodes and untyped statements that have to do with the query, best first."""
        kinds = frozenset({MemoryKind.EPISODIC, MemoryKind.SEMANTIC})
        wanted = _filter(asked, kinds, facts=False)
        answer = self._search(asked, wanted, limits.RECALL_RELATED_MAX, by_query=True)
        by_words = any(hit.relevance > 0.0 for hit in answer.hits)
        if by_words or answer.path is not SearchPath.NO_VECTOR:
            related = [hit for hit in answer.hits if hit.relevance > 0.0]
            answer = replace(answer, hits=tuple(related))
        older = {hit.memory.id for hit in answer.hits if hit.older}
        return [
            Candidate(one, render_line(one), older_statement=one.id in older)
            for one in self._memories(answer, asked, wanted)
        ]

    def _standing(
        self,
        asked: _Asked,
        kinds: frozenset[MemoryKind],
        *,
        facts: bool | None,
        by_query: bool,
        what: str,
    ) -> list[Memory]:
        """Return all of some kinds, the best of them first, however many there are."""
        wanted = _filter(asked, kinds, facts=facts)
        # All of them are wanted, so to make their beginning diverse would only cost time.
        ranking = asked.query.ranking
        if ranking.diversity:
            ranking = replace(ranking, diversity=0.0)
        answer = self._search(asked, wanted, BEST_MAX, by_query=by_query, ranking=ranking)
        best = self._memories(answer, asked, wanted)
        if len(answer.hits) < BEST_MAX and answer.path is not SearchPath.INDEX:
            return best
        known = {one.id for one in best}
        revision, deadline = asked.moment.revision, asked.deadline
        keys = self._keys.at(asked.partition, revision)
        for one in standing_memories(
            self._store, asked.partition, keys, asked.query.subjects, at=revision, deadline=deadline
        ):
            if one.id in known or not wanted.admits(one, asked.moment.as_of, asked.moment.now):
                continue
            best.append(one)
            if len(best) > limits.RECALL_STANDING_MAX:
                raise PillionError.of_field(
                    "subjects",
                    f"have more than {limits.RECALL_STANDING_MAX} {what} in these contexts; name "
                    "fewer subjects or contexts",
                    Reason.LIMIT_EXCEEDED,
                )
        return best

    def _search(
        self,
        asked: _Asked,
        wanted: Filter,
        count: int,
        *,
        by_query: bool = False,
        ranking: RankingProfile | None = None,
    ) -> SearchAnswer:
        query = asked.query
        return self._searcher.search(
            asked.partition,
            SearchQuery(
                top_k=count,
                text=query.text if by_query else "",
                vector=query.vector if by_query else b"",
                filter=wanted,
                read=asked.read,
                ranking=ranking or query.ranking,
                counts_as_use=False,  # only what the context has is used
            ),
            asked.deadline,
        )

    @staticmethod
    def _memories(answer: SearchAnswer, asked: _Asked, wanted: Filter) -> list[Memory]:
        """Return what a search found, in its order, as far as it still counts at the instant."""
        as_of, now = asked.moment.as_of, asked.moment.now
        return [hit.memory for hit in answer.hits if wanted.admits(hit.memory, as_of, now)]


def _filter(asked: _Asked, kinds: frozenset[MemoryKind], *, facts: bool | None = None) -> Filter:
    query = asked.query
    return Filter(
        subjects=frozenset(query.subjects), contexts=query.contexts, kinds=kinds, facts=facts
    )


def _fact(memory: Memory, turns: Mapping[Subject, int]) -> Candidate:
    """Return a fact as a candidate: facts are shown by subject and attribute, whatever their rank.

    So what a model sees changes no more from one turn to the next than what is so.
    """
    untyped = 0 if memory.is_fact else 1
    place = (
        turns[memory.subject],
        untyped,
        memory.attribute,
        memory.context,
        memory.valid_from,
        memory.id.int,
    )
    return Candidate(memory, render_line(memory), place)


def _plain(memories: Iterable[Memory]) -> list[Candidate]:
    return [Candidate(one, render_line(one)) for one in memories]
