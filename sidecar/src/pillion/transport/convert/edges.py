"""Edges of the graph, and how far to walk along them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion.domain.graph import Expansion
from pillion.domain.limits import GRAPH_DEPTH_DEFAULT, GRAPH_FAN_OUT_DEFAULT

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import search_pb2, types_pb2

    from pillion.domain.graph import Edge
    from pillion.domain.scope import Subject


def expansion_from_wire(asked: search_pb2.GraphExpansion) -> Expansion:
    """Return how far and how wide a walk goes; a message without anything is the default."""
    return Expansion(
        depth=asked.depth or GRAPH_DEPTH_DEFAULT,
        fan_out=asked.fan_out or GRAPH_FAN_OUT_DEFAULT,
        attributes=frozenset(asked.attributes),
    )


def fill_edge(target: search_pb2.Edge, edge: Edge) -> None:
    """Write an edge into a message."""
    fill_subject(getattr(target, "from"), edge.source)
    target.attribute = edge.attribute
    fill_subject(target.to, edge.target)
    target.memory_id = str(edge.memory_id)
    target.version = edge.version


def fill_subject(target: types_pb2.Subject, subject: Subject) -> None:
    """Write a subject into a message."""
    target.type = subject.type
    target.id = subject.id
