"""The context of a turn: which lines go in under a budget of tokens, and what is left out and why.

Pure: what may go in comes as candidates, tokens are counted by a function, and the same inputs
give the same bytes. Sections are shown in the contract's order and served in another: exact state
comes first, so that nothing displaces it, whatever the budget. It is taken strictly in order up
to the first line that does not fit, so a larger budget never costs a line of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from pillion.domain.queries import PLAIN_RANKING, PLAIN_READ
from pillion.domain.scope import MAIN_CONTEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from uuid import UUID

    from pillion.domain.memory import Memory
    from pillion.domain.queries import RankingProfile, ReadAt
    from pillion.domain.scope import Subject


class Section(IntEnum):
    """A section of a context, in the order in which they are shown. Numbers as in the contract."""

    PROCEDURES = 1
    FACTS = 2
    OPEN_ITEMS = 3
    SESSIONS = 4
    RELATED = 5


class Purpose(IntEnum):
    """What a context is for. Numbers as in the contract."""

    TURN = 1
    SESSION_START = 2


# The order in which sections are served.
SERVED: Final = (
    Section.FACTS,
    Section.OPEN_ITEMS,
    Section.PROCEDURES,
    Section.SESSIONS,
    Section.RELATED,
)
HEADINGS: Final = {
    Section.PROCEDURES: "# How to do it",
    Section.FACTS: "# What is so",
    Section.OPEN_ITEMS: "# Open items",
    Section.SESSIONS: "# Recent sessions",
    Section.RELATED: "# Related",
}
BUDGET: Final = "budget"
DUPLICATE: Final = "duplicate"
OLDER_STATEMENT: Final = "older_statement"
# A longer line of exact state comes after the shorter ones: else one that does not fit would end
# the section before they had their turn.
LONG_LINE: Final = 600
_END: Final = "\n"

DEFAULT_COUNTER: Final = "estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What the context of a turn is asked for by. ``vector`` is little-endian float32.

    ``section_budgets`` are tokens by section; a section that is not named shares what is left.
    """

    subjects: tuple[Subject, ...]
    token_budget: int
    contexts: frozenset[str] = frozenset({MAIN_CONTEXT})
    text: str = ""
    vector: bytes = b""
    token_counter: str = DEFAULT_COUNTER
    section_budgets: Mapping[Section, int] = field(default_factory=dict)
    read: ReadAt = PLAIN_READ
    ranking: RankingProfile = PLAIN_RANKING
    purpose: Purpose = Purpose.TURN


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may go in.

    Attributes:
        memory: The memory.
        line: What the model would see.
        place: Orders the lines of a section where they are shown; equal: as they were given.
        older_statement: A later statement of the same thing is a candidate too.
    """

    memory: Memory
    line: str
    place: tuple[int | str, ...] = ()
    older_statement: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the context."""

    section: Section
    memory: Memory
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Omitted:
    """A memory that did not get in, and why."""

    memory_id: UUID
    section: Section
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """The lines, all of them as one text, its tokens, and what was left out."""

    lines: tuple[Line, ...]
    text: str
    tokens: int
    omitted: tuple[Omitted, ...]


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """A context, whether its tokens are an estimate, and the revision that it is of."""

    context: Context
    estimated: bool
    revision: int


def assemble(
    candidates: Mapping[Section, Sequence[Candidate]],
    *,
    token_budget: int,
    section_budgets: Mapping[Section, int],
    count: Callable[[str], int],
) -> Context:
    """Return the context that fits a budget.

    A section with a budget of its own may take that and what the section served before it left of
    its own; the others share, first come first served, what no budget is set aside for. Headings
    and line ends count too, and the text as a whole is counted in the end: where a counter finds
    more in it than in its lines, lines served last go first.

    Args:
        candidates: By section, in the order in which they are to be served.
        token_budget: Tokens that the text may have.
        section_budgets: Tokens by section, together no more than the budget.
        count: Counts the tokens of a text.
    """
    distinct, reasons = _distinct(candidates)
    purse = _Purse(token_budget, section_budgets)
    taken: dict[Section, list[_Taken]] = {}
    for section in SERVED:
        allowance = purse.open(section)
        taken[section] = _fill(section, distinct[section], allowance, count)
        purse.close(section, allowance, sum(one.cost for one in taken[section]))
    text = _text(taken)
    tokens = count(text)
    while tokens > token_budget and _drop(taken, tokens - token_budget):
        text = _text(taken)
        tokens = count(text)
    lines = tuple(
        Line(section, one.candidate.memory, one.candidate.line, one.tokens)
        for section, shown in _shown(taken)
        for one in shown
    )
    return Context(lines, text, tokens, tuple(_omitted(candidates, taken, reasons)))


class _Taken(NamedTuple):
    """A candidate that goes in, its tokens, and what it costs with what is around it."""

    candidate: Candidate
    tokens: int
    cost: int


class _Purse:
    """Shares tokens out among sections, in the order in which they are served."""

    def __init__(self, token_budget: int, section_budgets: Mapping[Section, int]) -> None:
        self._left = token_budget
        self._own = section_budgets
        self._set_aside = sum(section_budgets.values())
        self._rolled_over = 0

    def open(self, section: Section) -> int:
        """Return what a section may take."""
        own = self._own.get(section)
        if own is None:
            return max(0, self._left - self._set_aside)
        self._set_aside -= own
        return max(0, min(own + self._rolled_over, self._left - self._set_aside))

    def close(self, section: Section, allowance: int, used: int) -> None:
        """Take what a section used."""
        self._left -= used
        self._rolled_over = allowance - used if section in self._own else 0


def _distinct(
    candidates: Mapping[Section, Sequence[Candidate]],
) -> tuple[dict[Section, list[Candidate]], dict[int, str]]:
    """Return the candidates that say something new, and why each other one is left out.

    Reasons are by the candidate's identity as an object: the same memory may come twice.
    """
    distinct: dict[Section, list[Candidate]] = {}
    reasons: dict[int, str] = {}
    ids: set[UUID] = set()
    said: set[tuple[object, ...]] = set()
    for section in SERVED:
        distinct[section] = []
        for one in candidates.get(section, ()):
            saying = _saying(one.memory)
            if one.older_statement:
                reasons[id(one)] = OLDER_STATEMENT
            elif one.memory.id in ids or saying in said:
                reasons[id(one)] = DUPLICATE
            else:
                ids.add(one.memory.id)
                said.add(saying)
                distinct[section].append(one)
    return distinct, reasons


def _saying(memory: Memory) -> tuple[object, ...]:
    """Return what a memory says of whom: equal for texts that differ in case and spaces only."""
    if memory.is_fact:
        return (memory.id,)
    return (memory.subject, memory.context, " ".join(memory.text.casefold().split()))


def _fill(
    section: Section, candidates: Sequence[Candidate], allowance: int, count: Callable[[str], int]
) -> list[_Taken]:
    """Return the candidates that fit."""
    exact = section is Section.FACTS
    if exact:
        candidates = sorted(
            candidates, key=lambda one: (not one.memory.is_fact, len(one.line) > LONG_LINE)
        )
    taken: list[_Taken] = []
    left = allowance
    end = count(_END)
    heading = count(HEADINGS[section]) + end if candidates else 0
    for one in candidates:
        tokens = count(one.line)
        cost = tokens + end + (0 if taken else heading)
        if cost <= left:
            taken.append(_Taken(one, tokens, cost))
            left -= cost
        elif exact:
            break
    return taken


def _drop(taken: Mapping[Section, list[_Taken]], excess: int) -> bool:
    """Drop lines that were served last, until they make up for an excess; False: none is left."""
    dropped = False
    for section in reversed(SERVED):
        while taken[section] and excess > 0:
            excess -= max(1, taken[section].pop().cost)
            dropped = True
    return dropped


def _shown(
    taken: Mapping[Section, Sequence[_Taken]],
) -> Iterator[tuple[Section, list[_Taken]]]:
    """Yield the sections that have lines, in the order in which they are shown."""
    for section in Section:
        if taken[section]:
            yield section, sorted(taken[section], key=lambda one: one.candidate.place)


def _text(taken: Mapping[Section, Sequence[_Taken]]) -> str:
    lines: list[str] = []
    for section, shown in _shown(taken):
        lines.append(HEADINGS[section])
        lines += [one.candidate.line for one in shown]
    return _END.join(lines)


def _omitted(
    candidates: Mapping[Section, Sequence[Candidate]],
    taken: Mapping[Section, Sequence[_Taken]],
    reasons: Mapping[int, str],
) -> Iterator[Omitted]:
    shown = {id(one.candidate) for lines in taken.values() for one in lines}
    for section in Section:
        for one in candidates.get(section, ()):
            if id(one) not in shown:
                yield Omitted(one.memory.id, section, reasons.get(id(one), BUDGET))
