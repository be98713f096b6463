"""What Recall and Neighbors answer with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_client import _from_wire, enums
from pillion_client._to_wire import enum_members

if TYPE_CHECKING:
    from datetime import datetime

    from pillion_proto.memory.v1 import memory_service_pb2 as service

    from pillion_client.models import Subject
    from pillion_client.results import Edge

_SECTIONS: Final = enum_members(enums.RecallSection)


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a line comes from: a version of a memory, its episode, and when it is so.

    ``episode_id`` None: none was captured. ``valid_to`` None: open.
    """

    memory_id: str
    version: int
    episode_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None


@dataclass(frozen=True, slots=True)
class RecallLine:
    """One line of a context: its section, what the model sees, its tokens, where it comes from."""

    section: enums.RecallSection
    text: str
    tokens: int
    citation: Citation


@dataclass(frozen=True, slots=True)
class OmittedLine:
    """A memory that did not get in, and why: "budget", "duplicate" or "older_statement"."""

    memory_id: str
    section: enums.RecallSection
    reason: str


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The context of a turn.

    Attributes:
        text: All lines with their headings, ready for the model.
        tokens: Of the text, by the counter used.
        tokens_estimated: True when the counter estimates.
        omitted: What did not get in.
        revision: The revision that was read.
    """

    lines: tuple[RecallLine, ...]
    text: str
    tokens: int
    tokens_estimated: bool
    omitted: tuple[OmittedLine, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class Neighbor:
    """A subject that a walk reached, and the edges from a start to it."""

    subject: Subject
    path: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class NeighborsResult:
    """The subjects that a walk reached, nearest first.

    ``truncated``: a bound cut the walk.
    """

    neighbors: tuple[Neighbor, ...]
    truncated: bool
    revision: int


def recall_result(message: service.RecallResponse) -> RecallResult:
    """Return a context."""
    return RecallResult(
        tuple(map(_line, message.lines)),
        message.text,
        message.tokens,
        message.tokens_estimated,
        tuple(
            OmittedLine(one.memory_id, _section(one.section), one.reason) for one in message.omitted
        ),
        message.revision,
    )


def _line(message: service.RecallLine) -> RecallLine:
    cited = message.citation
    return RecallLine(
        _section(message.section),
        message.text,
        message.tokens,
        Citation(
            cited.memory_id,
            cited.version,
            cited.episode_id or None,
            _from_wire.instant(cited.valid_from) if cited.HasField("valid_from") else None,
            _from_wire.instant(cited.valid_to) if cited.HasField("valid_to") else None,
        ),
    )


def _section(number: int) -> enums.RecallSection:
    return _SECTIONS.get(number, enums.RecallSection.UNSPECIFIED)


def neighbors_result(message: service.NeighborsResponse) -> NeighborsResult:
    """Return what a walk reached."""
    return NeighborsResult(
        tuple(
            Neighbor(_from_wire.subject(one.subject), tuple(map(_from_wire.edge, one.path)))
            for one in message.neighbors
        ),
        message.truncated,
        message.revision,
    )
