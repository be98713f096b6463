"""Recall and Neighbors at the edge: every field is converted, absent stays absent."""

from __future__ import annotations

from uuid import UUID

import pytest
from pillion.domain.errors import PillionError
from pillion.domain.graph import (
    Direction,
    Edge,
    Expansion,
    Neighbor,
    NeighborsAnswer,
    NeighborsQuery,
)
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.queries import RankingProfile, ReadAt
from pillion.domain.recall import (
    Context,
    Line,
    Omitted,
    Purpose,
    RecallAnswer,
    RecallQuery,
    Section,
)
from pillion.domain.scope import Subject
from pillion.transport.convert.graph import neighbors_from_wire, neighbors_to_wire
from pillion.transport.convert.queries import search_from_wire
from pillion.transport.convert.recall import recall_from_wire, recall_to_wire
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1 import search_pb2
from pillion_testing.fakes import uuid7

from .conftest import a_memory

MIRA, ACME = Subject("user", "mira"), Subject("org", "acme")
WIRE_MIRA = {"type": "user", "id": "mira"}


def test_a_recall_without_anything_is_the_default():
    assert recall_from_wire(wire.RecallRequest(token_budget=9)) == RecallQuery(
        subjects=(), token_budget=9
    )


def test_a_recall_converts_whole():
    request = wire.RecallRequest(
        partition={"tenant": "t"},
        subjects=[WIRE_MIRA, {"type": "org", "id": "acme"}],
        contexts=["", "work"],
        query="q",
        query_vector=b"1234",
        token_budget=100,
        token_counter="words",  # noqa: S106  (no secret)
        section_budgets=[{"section": 5, "tokens": 40}, {"section": 2, "tokens": 50}],
        read={"at_least_revision": 9, "as_of": {"seconds": 4}},
        ranking={"relevance_weight": 0.0, "half_lives": [{"kind": 1}]},
        purpose=2,
    )
    assert len(request.ListFields()) == len(wire.RecallRequest.DESCRIPTOR.fields)
    query = recall_from_wire(request)
    assert query == RecallQuery(
        subjects=(MIRA, ACME),
        contexts=frozenset({"", "work"}),
        text="q",
        vector=b"1234",
        token_budget=100,
        token_counter="words",  # noqa: S106
        section_budgets={Section.RELATED: 40, Section.FACTS: 50},
        read=ReadAt(at_least_revision=9, as_of=4_000_000),
        ranking=RankingProfile(relevance_weight=0.0, half_lives={MemoryKind.EPISODIC: None}),
        purpose=Purpose.SESSION_START,
    )
    default = RecallQuery(subjects=(), token_budget=1)
    for name in RecallQuery.__slots__:
        assert getattr(query, name) != getattr(default, name), name


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"section_budgets": [{"tokens": 1}]}, "section_budgets[0].section"),
        ({"section_budgets": [{"section": 6}]}, "section_budgets[0].section"),
        ({"section_budgets": [{"section": 2}, {"section": 2}]}, "section_budgets[1].section"),
        ({"purpose": 3}, "purpose"),
        ({"read": {"at_least_revision": -1}}, "read.at_least_revision"),
    ],
)
def test_what_a_recall_cannot_mean_is_refused(given, field):
    with pytest.raises(PillionError) as caught:
        recall_from_wire(wire.RecallRequest(**given))
    assert [one.field for one in caught.value.violations] == [field]


def test_a_context_goes_out_whole():
    cited = a_memory(
        id=uuid7(1),
        version=7,
        valid_from=1_000_000,
        valid_to=2_000_000,
        source=Source(SourceKind.USER_STATEMENT, uuid7(9)),
    )
    bare = a_memory(id=uuid7(2), version=8)
    context = Context(
        lines=(Line(Section.FACTS, cited, "- a", 3), Line(Section.RELATED, bare, "- b", 2)),
        text="# x\n- a",
        tokens=5,
        omitted=(Omitted(uuid7(3), Section.OPEN_ITEMS, "budget"),),
    )
    response = recall_to_wire(RecallAnswer(context, True, 11))
    assert len(response.ListFields()) == len(wire.RecallResponse.DESCRIPTOR.fields)
    first, second = response.lines
    assert len(first.ListFields()) == len(wire.RecallLine.DESCRIPTOR.fields)
    assert len(first.citation.ListFields()) == len(wire.Citation.DESCRIPTOR.fields)
    assert (first.section, first.text, first.tokens) == (2, "- a", 3)
    assert (first.citation.memory_id, first.citation.version) == (str(uuid7(1)), 7)
    assert first.citation.episode_id == str(uuid7(9))
    assert (first.citation.valid_from.seconds, first.citation.valid_to.seconds) == (1, 2)
    assert second.citation.episode_id == ""
    assert not second.citation.HasField("valid_to")
    assert (response.text, response.tokens, response.tokens_estimated) == ("# x\n- a", 5, True)
    assert response.revision == 11
    (left_out,) = response.omitted
    assert (left_out.memory_id, left_out.section, left_out.reason) == (str(uuid7(3)), 3, "budget")


def test_a_walk_without_anything_is_the_default():
    assert neighbors_from_wire(wire.NeighborsRequest()) == NeighborsQuery(subjects=())


def test_a_walk_converts_whole():
    request = wire.NeighborsRequest(
        partition={"tenant": "t"},
        subjects=[WIRE_MIRA],
        direction=3,
        expansion={"depth": 2, "fan_out": 7, "attributes": ["a", "b"]},
        read={"exact_revision": 4},
        contexts=["work"],
        edges_max=8,
    )
    assert len(request.ListFields()) == len(wire.NeighborsRequest.DESCRIPTOR.fields)
    expansion = Expansion(depth=2, fan_out=7, attributes=frozenset({"a", "b"}))
    assert neighbors_from_wire(request) == NeighborsQuery(
        subjects=(MIRA,),
        direction=Direction.BOTH,
        expansion=expansion,
        read=ReadAt(exact_revision=4),
        contexts=frozenset({"work"}),
        edges_max=8,
    )
    search = wire.SearchRequest(top_k=1, expansion=request.expansion)
    assert search_from_wire(search).expansion == expansion
    assert search_from_wire(wire.SearchRequest(top_k=1)).expansion is None
    with pytest.raises(PillionError):
        neighbors_from_wire(wire.NeighborsRequest(direction=4))


def test_whom_a_walk_reached_goes_out_whole():
    edge = Edge(MIRA, "works_at", ACME, UUID(int=5), 6)
    response = neighbors_to_wire(NeighborsAnswer((Neighbor(ACME, (edge,)),), True, 9))
    assert len(response.ListFields()) == len(wire.NeighborsResponse.DESCRIPTOR.fields)
    (one,) = response.neighbors
    (step,) = one.path
    assert len(step.ListFields()) == len(search_pb2.Edge.DESCRIPTOR.fields)
    assert (one.subject.id, getattr(step, "from").id, step.to.id) == ("acme", "mira", "acme")
    assert (step.attribute, step.memory_id, step.version) == ("works_at", str(UUID(int=5)), 6)
