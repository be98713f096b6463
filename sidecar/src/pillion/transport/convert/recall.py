"""Recall: its request as a query, and a context as its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.domain.errors import PillionError
from pillion.domain.memory import FOREVER
from pillion.domain.recall import DEFAULT_COUNTER, Purpose, RecallQuery, Section
from pillion.domain.scope import MAIN_CONTEXT
from pillion.service.profiles import BUILT_IN
from pillion.transport.convert.instants import put_instant
from pillion.transport.convert.queries import ranking_from_wire, read_from_wire
from pillion.transport.convert.scalars import enum_from_wire, optional_enum, subject_from_wire

if TYPE_CHECKING:
    from pillion.domain.memory import Memory
    from pillion.domain.recall import RecallAnswer
    from pillion.service.profiles import Profiles


def recall_from_wire(request: wire.RecallRequest, profiles: Profiles = BUILT_IN) -> RecallQuery:
    """Return what a Recall asks for, under the profiles that this server has."""
    return RecallQuery(
        subjects=tuple(map(subject_from_wire, request.subjects)),
        contexts=frozenset(request.contexts or (MAIN_CONTEXT,)),
        text=request.query,
        vector=request.query_vector,
        token_budget=request.token_budget,
        token_counter=request.token_counter or DEFAULT_COUNTER,
        section_budgets=_section_budgets(request),
        read=read_from_wire(request),
        ranking=ranking_from_wire(request, profiles),
        purpose=optional_enum(Purpose, request.purpose, "purpose") or Purpose.TURN,
    )


def _section_budgets(request: wire.RecallRequest) -> dict[Section, int]:
    budgets: dict[Section, int] = {}
    for at, one in enumerate(request.section_budgets):
        field = f"section_budgets[{at}].section"
        section = enum_from_wire(Section, one.section, field)
        if section in budgets:
            raise PillionError.of_field(field, "the section is named twice")
        budgets[section] = one.tokens
    return budgets


def recall_to_wire(answer: RecallAnswer) -> wire.RecallResponse:
    """Return the answer to a Recall."""
    context = answer.context
    response = wire.RecallResponse(
        text=context.text,
        tokens=context.tokens,
        tokens_estimated=answer.estimated,
        revision=answer.revision,
    )
    for line in context.lines:
        made = response.lines.add(section=line.section, text=line.text, tokens=line.tokens)
        _cite(made.citation, line.memory)
    for one in context.omitted:
        response.omitted.add(memory_id=str(one.memory_id), section=one.section, reason=one.reason)
    return response


def _cite(citation: wire.Citation, memory: Memory) -> None:
    citation.memory_id = str(memory.id)
    citation.version = memory.version
    if memory.source.episode_id is not None:
        citation.episode_id = str(memory.source.episode_id)
    put_instant(citation.valid_from, memory.valid_from)
    if memory.valid_to != FOREVER:
        put_instant(citation.valid_to, memory.valid_to)
