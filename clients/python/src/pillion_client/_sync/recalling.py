# Generated from _async/recalling.py by scripts/gen_sync_client.py (`make gen`). Do not edit.
"""Recall, the context of a turn, and Neighbors, a walk along the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _methods, _requests
from pillion_client import _to_wire as wire
from pillion_client._sync.caller import Caller
from pillion_client.enums import EdgeDirection, RecallPurpose, RecallSection
from pillion_client.recalling import (
    NeighborsResult,
    RecallResult,
    neighbors_result,
    recall_result,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pillion_client.models import SubjectLike
    from pillion_client.mutations import VectorLike
    from pillion_client.options import ReadOptions
    from pillion_client.selection import GraphExpansion, Ranking


class Recalling(Caller):
    """What a model should see, and what is connected with what."""

    def recall(
        self,
        subjects: SubjectLike | Sequence[SubjectLike],
        query: str = "",
        *,
        token_budget: int,
        query_vector: VectorLike | None = None,
        contexts: Sequence[str] = (),
        token_counter: str = "",
        section_budgets: Mapping[RecallSection | str, int] | None = None,
        ranking: Ranking | None = None,
        purpose: RecallPurpose | str = RecallPurpose.UNSPECIFIED,
        **options: Unpack[ReadOptions],
    ) -> RecallResult:
        """Return what a model should see in one turn, as lines with their sources.

        Args:
            subjects: About whom, 1 to 16.
            query: What the turn is about; "": only exact state, open items and sessions.
            token_budget: Tokens that the text may take, 1 to 1,000,000.
            query_vector: The query as a vector; None: the server embeds the query.
            contexts: In these contexts; none: the main one.
            token_counter: By plug-in name; "": "estimate".
            section_budgets: Tokens by section; the others share what is left.
            ranking: How relevance, recency and importance are weighed.
            purpose: "turn", or "session_start" for the profile, summaries and open items.
            **options: ``as_of``, ``known_at``, ``at_least_revision`` and more.
        """
        request = service.RecallRequest(
            partition=wire.partition(self._where(options)),
            subjects=_requests.some_subjects(subjects),
            contexts=contexts,
            query=query,
            query_vector=wire.optional_vector(query_vector),
            token_budget=token_budget,
            token_counter=token_counter,
            section_budgets=[
                service.SectionBudget(
                    section=wire.enum_number(RecallSection, section), tokens=tokens
                )
                for section, tokens in (section_budgets or {}).items()
            ],
            read=_requests.read_options(options),
            ranking=wire.ranking(ranking),
            purpose=wire.enum_number(RecallPurpose, purpose),
        )
        return recall_result(self._call(_methods.RECALL, request, options))

    def neighbors(
        self,
        subjects: SubjectLike | Sequence[SubjectLike],
        *,
        direction: EdgeDirection | str = EdgeDirection.UNSPECIFIED,
        expansion: GraphExpansion | None = None,
        contexts: Sequence[str] = (),
        edges_max: int = 0,
        **options: Unpack[ReadOptions],
    ) -> NeighborsResult:
        """Walk along facts whose value is a subject; return whom that reaches, with the paths.

        Args:
            subjects: From where, 1 to 16.
            direction: "out" from a subject to its values (the default), "in", or "both".
            expansion: How far, how wide, and along which attributes.
            contexts: In these contexts; none: the main one.
            edges_max: At most this many edges, 1 to 1,000; 0: 100.
            **options: ``as_of``, ``known_at``, ``at_least_revision`` and more.
        """
        request = service.NeighborsRequest(
            partition=wire.partition(self._where(options)),
            subjects=_requests.some_subjects(subjects),
            direction=wire.enum_number(EdgeDirection, direction),
            expansion=wire.expansion(expansion),
            read=_requests.read_options(options),
            contexts=contexts,
            edges_max=edges_max,
        )
        return neighbors_result(self._call(_methods.NEIGHBORS, request, options))
