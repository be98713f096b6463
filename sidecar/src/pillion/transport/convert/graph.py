"""Walks along the graph: requests as queries, and whom they reach as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.domain.graph import Direction, NeighborsQuery
from pillion.domain.limits import GRAPH_EDGES_DEFAULT
from pillion.domain.scope import MAIN_CONTEXT
from pillion.transport.convert.edges import expansion_from_wire, fill_edge, fill_subject
from pillion.transport.convert.queries import read_from_wire
from pillion.transport.convert.scalars import optional_enum, subject_from_wire

if TYPE_CHECKING:
    from pillion.domain.graph import NeighborsAnswer


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
        fill_subject(made.subject, one.subject)
        for edge in one.path:
            fill_edge(made.path.add(), edge)
    return response
