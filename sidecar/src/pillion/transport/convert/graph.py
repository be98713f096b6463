"""Walks along the graph: requests as queries, edges and whom they reach as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.domain.graph import Direction, Expansion, NeighborsQuery
from pillion.domain.limits import (
    GRAPH_DEPTH_DEFAULT,
    GRAPH_EDGES_DEFAULT,
    GRAPH_FAN_OUT_DEFAULT,
)
from pillion.domain.scope import MAIN_CONTEXT
from pillion.transport.convert.queries import read_from_wire
from pillion.transport.convert.scalars import optional_enum, subject_from_wire

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import search_pb2, types_pb2

    from pillion.domain.graph import Edge, NeighborsAnswer
    from pillion.domain.scope import Subject


def expansion_from_wire(asked: search_pb2.GraphExpansion) -> Expansion:
    """Return how far and how wide a walk goes; a message without anything is the default."""
    return Expansion(
        depth=asked.depth or GRAPH_DEPTH_DEFAULT,
        fan_out=asked.fan_out or GRAPH_FAN_OUT_DEFAULT,
        attributes=frozenset(asked.attributes),
    )


def neighbors_from_wire(request: wire.NeighborsRequest) -> NeighborsQuery:
    """Return what a walk asks for."""
    return NeighborsQuery(
        subjects=tuple(map(subject_from_wire, request.subjects)),
        direction=optional_enum(Direction, request.direction, "direction") or Direction.OUT,
        expansion=expansion_from_wire(request.expansion),
        contexts=frozenset(request.contexts or (MAIN_CONTEXT,)),
        read=read_from_wire(request),
        edges_max=request.edges_max or GRAPH_EDGES_DEFAULT,
    )


def neighbors_to_wire(answer: NeighborsAnswer) -> wire.NeighborsResponse:
    """Return the answer to a walk."""
    response = wire.NeighborsResponse(truncated=answer.truncated, revision=answer.revision)
    for one in answer.neighbors:
        made = response.neighbors.add()
        _fill_subject(made.subject, one.subject)
        for edge in one.path:
            fill_edge(made.path.add(), edge)
    return response


def fill_edge(target: search_pb2.Edge, edge: Edge) -> None:
    """Write an edge into a message."""
    _fill_subject(getattr(target, "from"), edge.source)
    target.attribute = edge.attribute
    _fill_subject(target.to, edge.target)
    target.memory_id = str(edge.memory_id)
    target.version = edge.version


def _fill_subject(target: types_pb2.Subject, subject: Subject) -> None:
    target.type = subject.type
    target.id = subject.id
