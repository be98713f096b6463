"""The graph of facts whose value is a subject: walks over it, breadth first and bounded.

Pure: a walk says whose edges it needs next and is given them. The same edges give the same walk,
in whatever order they come: of each subject they are taken by direction, attribute, other end and
memory, and a subject is reached once, by the first of the shortest paths. So cycles end.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_count, check_text
from pillion.domain.queries import PLAIN_READ
from pillion.domain.recall_checks import check_subjects
from pillion.domain.scope import MAIN_CONTEXT
from pillion.domain.validation import check_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from pillion.domain.memory import Memory
    from pillion.domain.queries import ReadAt
    from pillion.domain.scope import Subject


class Direction(IntEnum):
    """Which way along an edge. Numbers as in the contract."""

    OUT = 1
    IN = 2
    BOTH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """How far and how wide a walk goes. No attributes: along any."""

    depth: int = limits.GRAPH_DEPTH_DEFAULT
    fan_out: int = limits.GRAPH_FAN_OUT_DEFAULT
    attributes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighborsQuery:
    """A walk from some subjects."""

    subjects: tuple[Subject, ...]
    direction: Direction = Direction.OUT
    expansion: Expansion = Expansion()
    contexts: frozenset[str] = frozenset({MAIN_CONTEXT})
    read: ReadAt = PLAIN_READ
    edges_max: int = limits.GRAPH_EDGES_DEFAULT


@dataclass(frozen=True, slots=True)
class Edge:
    """A fact whose value is a subject, and the version of the memory that states it."""

    source: Subject
    attribute: str
    target: Subject
    memory_id: UUID
    version: int


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A subject that a walk reached, and the edges from a start to it."""

    subject: Subject
    path: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class NeighborsAnswer:
    """Whom a walk reached, nearest first; ``truncated``: a bound cut it."""

    neighbors: tuple[Neighbor, ...]
    truncated: bool
    revision: int


def edge_of(memory: Memory) -> Edge | None:
    """Return the edge that a memory is; None: its value is no subject."""
    target = memory.value_subject
    if target is None or not memory.is_fact:
        return None
    return Edge(memory.subject, memory.attribute, target, memory.id, memory.version)


class Walk:
    """One walk: ask for ``frontier``, give its edges to ``advance``, until there is no frontier.

    Attributes:
        frontier: The subjects whose edges are needed next, in the order in which they were reached.
        neighbors: Whom it has reached, nearest first.
        truncated: Whether a bound has cut it.
    """

    def __init__(
        self,
        starts: Sequence[Subject],
        direction: Direction,
        expansion: Expansion,
        *,
        edges_max: int,
    ) -> None:
        self._direction = direction
        self._fan_out = expansion.fan_out
        self._levels_left = expansion.depth
        self._edges_max = edges_max
        self._paths: dict[Subject, tuple[Edge, ...]] = dict.fromkeys(starts, ())
        self.frontier: tuple[Subject, ...] = tuple(self._paths)
        self.neighbors: list[Neighbor] = []
        self.truncated = False

    @property
    def visited(self) -> frozenset[Subject]:
        """The starts and whom it has reached."""
        return frozenset(self._paths)

    def advance(self, edges: Iterable[Edge]) -> None:
        """Go one level further along the edges of the frontier, given in any order."""
        by_subject = self._ends(edges)
        reached: list[Subject] = []
        for subject in self.frontier:
            ends = sorted(by_subject[subject], key=_order)
            if len(ends) > self._fan_out:
                self.truncated = True
            for _, other, edge in ends[: self._fan_out]:
                if other in self._paths:
                    continue
                if len(self.neighbors) == self._edges_max:
                    self.truncated = True
                    self.frontier = ()
                    return
                self._paths[other] = (*self._paths[subject], edge)
                self.neighbors.append(Neighbor(other, self._paths[other]))
                reached.append(other)
        self._levels_left -= 1
        self.frontier = tuple(reached) if self._levels_left > 0 else ()

    def cut(self) -> None:
        """End the walk where it is, for a bound that it does not know of."""
        self.truncated = self.truncated or bool(self.frontier)
        self.frontier = ()

    def _ends(self, edges: Iterable[Edge]) -> dict[Subject, list[tuple[Direction, Subject, Edge]]]:
        """Return the other ends of edges by the subject that they are walked from.

        An edge may be given twice: it was found from either end. One that leads back to where it
        comes from leads nowhere.
        """
        ends: dict[Subject, list[tuple[Direction, Subject, Edge]]] = defaultdict(list)
        for edge in {one.memory_id: one for one in edges if one.source != one.target}.values():
            if self._direction is not Direction.IN:
                ends[edge.source].append((Direction.OUT, edge.target, edge))
            if self._direction is not Direction.OUT:
                ends[edge.target].append((Direction.IN, edge.source, edge))
        return ends


def _order(end: tuple[Direction, Subject, Edge]) -> tuple[int, str, Subject, int]:
    direction, other, edge = end
    return direction, edge.attribute, other, edge.memory_id.int


_FIELD: Final = "expansion"


def check_expansion(expansion: Expansion) -> None:
    """Refuse a walk beyond its bounds."""
    _check_bound(f"{_FIELD}.depth", expansion.depth, limits.GRAPH_DEPTH_MAX)
    _check_bound(f"{_FIELD}.fan_out", expansion.fan_out, limits.GRAPH_FAN_OUT_MAX)
    check_count(f"{_FIELD}.attributes", len(expansion.attributes), limits.GRAPH_ATTRIBUTES_MAX)
    for attribute in expansion.attributes:
        check_text(f"{_FIELD}.attributes", attribute, limits.NAME_BYTES_MAX, required=True)


def check_neighbors(query: NeighborsQuery) -> None:
    """Refuse a malformed walk."""
    check_subjects(query.subjects)
    check_count("contexts", len(query.contexts), limits.FILTER_CONTEXTS_MAX)
    for context in query.contexts:
        check_text("contexts", context, limits.CONTEXT_BYTES_MAX)
    check_expansion(query.expansion)
    _check_bound("edges_max", query.edges_max, limits.GRAPH_EDGES_MAX)
    if query.read is not PLAIN_READ:
        check_read(query.read)


def _check_bound(field: str, value: int, value_max: int) -> None:
    if value < 1:
        raise PillionError.of_field(field, "must be 1 or more")
    if value > value_max:
        raise PillionError.of_field(
            field, f"is {value}; at most {value_max} are allowed", Reason.LIMIT_EXCEEDED
        )
