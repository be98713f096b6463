"""Walks against brute force, over random graphs with a history, by both clocks and in contexts.

The reference walks the rows that List has at each revision, by plain search for the shortest
paths, and shares nothing with the product but the order in which edges are taken.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.graph import Direction, Edge, Expansion, NeighborsQuery, Walk
from pillion.domain.queries import ReadAt
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind
from pillion.service import walker as module
from pillion_testing.fakes import DAY, START, uuid7
from pillion_testing.service import put_fact, ram_service, retract

NODES = [Subject("node", name) for name in "abcdef"]
ATTRIBUTES = ["knows", "likes"]
CONTEXTS = ["", "work"]

nodes = st.sampled_from(NODES)
statements = st.tuples(
    nodes,
    st.sampled_from(ATTRIBUTES),
    st.none() | nodes,  # None: a value that is no subject, so that an edge ends
    st.sampled_from(["", "", "work"]),
    st.integers(0, 6),
)
walks = st.builds(
    NeighborsQuery,
    subjects=st.lists(nodes, min_size=1, max_size=2, unique=True).map(tuple),
    direction=st.sampled_from(Direction),
    expansion=st.builds(
        Expansion,
        depth=st.integers(1, 3),
        fan_out=st.integers(1, 4),
        attributes=st.sampled_from([frozenset(), frozenset({"knows"}), frozenset(ATTRIBUTES)]),
    ),
    contexts=st.sampled_from([frozenset({""}), frozenset({"work"}), frozenset(CONTEXTS)]),
    edges_max=st.integers(1, 8),
)


@dataclass
class Reference:
    """The rows of every fact at some revision."""

    rows: list

    def edges(self, as_of, query):
        """The edges that hold at an instant in some contexts, along some attributes."""
        wanted = query.expansion.attributes
        return [
            row
            for row in self.rows
            if row.valid_from <= as_of < row.valid_to
            and row.value_subject is not None
            and row.context in query.contexts
            and (not wanted or row.attribute in wanted)
        ]

    def neighbors(self, as_of, query):
        """The answer by brute force: all paths level by level, the first to reach a subject."""
        edges = self.edges(as_of, query)
        paths = {start: [] for start in query.subjects}
        level, found, truncated = list(query.subjects), [], False
        for _ in range(query.expansion.depth):
            reached = []
            for subject in level:
                ends = []
                for row in edges:
                    if row.subject == row.value_subject:
                        continue
                    if query.direction is not Direction.IN and row.subject == subject:
                        ends.append((1, row.attribute, row.value_subject, row.id.int))
                    if query.direction is not Direction.OUT and row.value_subject == subject:
                        ends.append((2, row.attribute, row.subject, row.id.int))
                ends.sort()
                truncated = truncated or len(ends) > query.expansion.fan_out
                for _, _, other, id_ in ends[: query.expansion.fan_out]:
                    if other in paths:
                        continue
                    if len(found) == query.edges_max:
                        return found, True
                    paths[other] = [*paths[subject], id_]
                    found.append((other, paths[other]))
                    reached.append(other)
            level = reached
        return found, truncated


def told(answer):
    found = [(one.subject, [edge.memory_id.int for edge in one.path]) for one in answer.neighbors]
    return found, answer.truncated


@given(st.lists(statements, max_size=25), st.lists(walks, min_size=1, max_size=3), st.data())
def test_a_walk_is_that_of_brute_force_now_and_at_every_instant_of_either_clock(
    stated, queries, data
):
    service = ram_service()
    for at, (subject, attribute, target, context, day) in enumerate(stated):
        service.clock.advance()
        value = Value(ValueKind.SUBJECT, target) if target else Value(ValueKind.INTEGER, at)
        service.write(
            put_fact(
                value,
                attribute=attribute,
                subject=subject,
                context=context,
                # Instants of their own, so that no two statements are in conflict.
                valid_from=START - day * DAY + at,
                importance=data.draw(st.sampled_from([0.1, 0.9])),
            )
        )
    instants = [START + 1000, START - DAY + 1000, START - 5 * DAY]
    revisions = {service.revision, service.revision // 2, 0}
    for query in queries:
        for instant in instants:
            for revision in [None, *sorted(revisions)]:
                read = ReadAt(as_of=instant, exact_revision=revision)
                answer = walked(service, replace(query, read=read))
                rows = service.listed(read=ReadAt(exact_revision=revision))
                assert told(answer) == Reference(rows).neighbors(instant, query)
                for one in answer.neighbors:
                    assert connected(query.subjects, one)
    service.close()


def connected(starts, neighbor):
    """Whether a path leads from a start to the subject, each edge from where the last one ended."""
    ends = set(starts)
    for edge in neighbor.path:
        ends = {edge.target for _ in [1] if edge.source in ends} | {
            edge.source for _ in [1] if edge.target in ends
        }
    return neighbor.subject in ends


def walked(service, query):
    return service.use_cases.walker.neighbors(service.partition, query, service.patience)


@given(st.lists(st.tuples(nodes, nodes, st.sampled_from(ATTRIBUTES)), max_size=20), st.randoms())
def test_the_order_in_which_edges_come_does_not_matter(pairs, random):
    edges = [
        Edge(source, attribute, target, uuid7(number), number)
        for number, (source, target, attribute) in enumerate(pairs, 1)
    ]

    def walk(some):
        made = Walk(NODES[:2], Direction.BOTH, Expansion(depth=3, fan_out=3), edges_max=4)
        while made.frontier:
            made.advance(some)
        return made.neighbors, made.truncated

    shuffled = edges * 2
    random.shuffle(shuffled)
    assert walk(shuffled) == walk(edges)


def test_a_hub_with_more_edges_than_a_search_returns(monkeypatch):
    """Groups are asked in halves, so that no subject's edges are crowded out by another's."""
    monkeypatch.setattr(module, "BEST_MAX", 4)
    service = ram_service()
    hub, start = NODES[0], NODES[1]
    for number in range(9):
        target = Value(ValueKind.SUBJECT, Subject("leaf", str(number)))
        service.write(put_fact(target, attribute=f"a{number}", subject=hub, importance=0.9))
    service.put(Value(ValueKind.SUBJECT, NODES[2]), attribute="knows", subject=start)
    query = NeighborsQuery(subjects=(hub, start), expansion=Expansion(fan_out=100))
    answer = walked(service, query)
    assert [one.subject for one in answer.neighbors if one.path[0].source == start] == [NODES[2]]
    assert len(answer.neighbors) == 4 + 1
    assert answer.truncated
    service.close()


def test_what_is_no_longer_or_not_yet_so_is_no_edge():
    service = ram_service()
    a, b, c = NODES[:3]
    row = service.put(Value(ValueKind.SUBJECT, b), attribute="knows", subject=a)
    service.put(Value(ValueKind.SUBJECT, c), attribute="likes", subject=a, valid_from=START + DAY)
    known = service.revision
    service.clock.advance()
    assert told(walked(service, NeighborsQuery(subjects=(a,))))[0] == [(b, [row.id.int])]
    service.one(retract(row.id))
    assert told(walked(service, NeighborsQuery(subjects=(a,)))) == ([], False)
    into_b = NeighborsQuery(subjects=(b,), direction=Direction.IN)
    assert told(walked(service, into_b)) == ([], False)
    before = replace(into_b, read=ReadAt(exact_revision=known))
    assert told(walked(service, before))[0] == [(a, [row.id.int])]
    service.close()


class Hurried:
    """A deadline of which so much is left at each look."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)

    def remaining_seconds(self):
        return self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]

    def check(self):
        pass


def test_a_walk_ends_before_its_caller_is_gone():
    service = ram_service()
    for one, other in itertools.pairwise(NODES):
        service.put(Value(ValueKind.SUBJECT, other), attribute="knows", subject=one)
    query = NeighborsQuery(subjects=(NODES[0],), expansion=Expansion(depth=3))
    # Looks: while waiting for the revision it may look too, so time runs out only at the end.
    whole = service.use_cases.walker.neighbors(service.partition, query, Hurried(9.0))
    cut = service.use_cases.walker.neighbors(service.partition, query, Hurried(9.0, 9.0, 0.1))
    assert (len(whole.neighbors), whole.truncated) == (3, False)
    assert (len(cut.neighbors), cut.truncated) == (1, True)
    service.close()


@pytest.mark.parametrize("edges_max", [1, 2, 3])
def test_a_walk_is_cut_only_where_there_is_more(edges_max):
    service = ram_service()
    for at, node in enumerate(NODES[1:3]):
        service.put(Value(ValueKind.SUBJECT, node), attribute=ATTRIBUTES[at], subject=NODES[0])
    answer = walked(service, NeighborsQuery(subjects=(NODES[0],), edges_max=edges_max))
    assert (len(answer.neighbors), answer.truncated) == (min(edges_max, 2), edges_max == 1)
    service.close()
