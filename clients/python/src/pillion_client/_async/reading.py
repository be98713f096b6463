"""Reading: search, get, lists and histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _from_wire, _methods, _requests
from pillion_client import _to_wire as wire
from pillion_client._async.caller import AsyncCaller
from pillion_client.enums import OlderStatements
from pillion_client.errors import Internal, NotFound
from pillion_client.models import (
    WHOLE,
    Episode,
    FactKey,
    HistoryEntry,
    Memory,
    Record,
    Subject,
    SubjectLike,
    Value,
    Whole,
)
from pillion_client.options import CallOptions, ReadOptions, SelectOptions
from pillion_client.searching import SearchResult, search_result

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from pillion_client.mutations import VectorLike
    from pillion_client.selection import Filter, GraphExpansion, Ranking


class AsyncReading(AsyncCaller):
    """The reading half of the client. Reads are sent again when the server is unavailable."""

    async def search(
        self,
        text: str | None = None,
        *,
        vector: VectorLike | None = None,
        top_k: int = 10,
        filter: Filter | None = None,  # noqa: A002  (the contract's name)
        ranking: Ranking | None = None,
        include_parts: bool = False,
        include_vectors: bool = False,
        include_trace: bool = False,
        expansion: GraphExpansion | None = None,
        older_statements: OlderStatements | str = OlderStatements.UNSPECIFIED,
        score_min: float = 0.0,
        without_access: bool = False,
        recall_target: float | None = None,
        **options: Unpack[SelectOptions],
    ) -> SearchResult:
        """Return the best memories for a text, a vector, both or neither.

        Args:
            text: The query, up to 8 KiB. With a vector too, it is used for terms.
            vector: The query as a vector, finite and not all zeros.
            top_k: How many, 1 to 1,000.
            filter: Which memories take part; or give single conditions of it by name.
            ranking: How relevance, recency and importance are weighed.
            include_parts: Return the parts of each score.
            include_vectors: Return vectors.
            include_trace: Return how the server came to its answer.
            expansion: Also walk the graph from what was found.
            older_statements: What becomes of older statements of the same thing.
            score_min: Drop hits with a lower score, 0 to 1.
            without_access: Do not count this search as a use of what it returns.
            recall_target: The least share of the true nearest that the index should find.
            **options: ``as_of``, ``known_at``, ``at_least_revision`` and more; conditions.
        """
        request = service.SearchRequest(
            partition=wire.partition(self._where(options)),
            text=text or "",
            vector=wire.optional_vector(vector),
            filter=_requests.selected(filter, options),
            read=_requests.read_options(options),
            ranking=wire.ranking(ranking),
            top_k=top_k,
            include_parts=include_parts,
            include_vectors=include_vectors,
            include_trace=include_trace,
            expansion=wire.expansion(expansion),
            older_statements=wire.enum_number(OlderStatements, older_statements),
            score_min=score_min,
            without_access=without_access,
            recall_target=recall_target,
        )
        return search_result(await self._call(_methods.SEARCH, request, options))

    async def get(
        self, memory_id: str, *, include_vector: bool = False, **options: Unpack[ReadOptions]
    ) -> Memory:
        """Return a memory by its id, whatever its validity.

        Raises:
            NotFound: There is none.
        """
        target = service.RecordTarget(memory_id=memory_id)
        record = await self._get(target, options, include_vector=include_vector)
        return _memory(record)

    async def get_fact(
        self,
        subject: SubjectLike,
        attribute: str,
        context: str = "",
        *,
        member: Value | Whole = WHOLE,
        include_vector: bool = False,
        **options: Unpack[ReadOptions],
    ) -> Memory:
        """Return the row of a fact that holds at ``as_of``; absent: now.

        Of an attribute that is registered as a set, name the ``member`` by its value; ``list``
        with the attribute returns all of them.

        Raises:
            NotFound: None does.
            InvalidArgument: The attribute is a set and no member is named, or the other way round.
        """
        about = Subject.parse(subject) if isinstance(subject, str) else subject
        target = _requests.record_target(FactKey(about, attribute, context, member))
        record = await self._get(target, options, include_vector=include_vector)
        return _memory(record)

    async def get_episode(self, episode_id: str, **options: Unpack[ReadOptions]) -> Episode:
        """Return an episode by its id.

        Raises:
            NotFound: There is none.
        """
        target = service.RecordTarget(episode_id=episode_id)
        record = await self._get(target, options, include_vector=False)
        if not isinstance(record, Episode):
            message = "the server answered with something that is not an episode"
            raise Internal(message)
        return record

    async def _get(
        self, target: service.RecordTarget, options: ReadOptions, *, include_vector: bool
    ) -> Record | None:
        request = service.GetRequest(
            partition=wire.partition(self._where(options)),
            target=target,
            read=_requests.read_options(options),
            include_vector=include_vector,
        )
        response = await self._call(_methods.GET, request, options)
        return _from_wire.record(response.record)

    async def _find_fact(self, key: FactKey, options: CallOptions) -> Memory | None:
        """Return the row of a fact that holds now, or None."""
        read = ReadOptions()
        if "partition" in options:
            read["partition"] = options["partition"]
        if "deadline_seconds" in options:
            read["deadline_seconds"] = options["deadline_seconds"]
        try:
            return await self.get_fact(
                key.subject, key.attribute, key.context, member=key.member, **read
            )
        except NotFound:
            return None

    async def batch_get(
        self,
        targets: Sequence[str | FactKey],
        *,
        include_vectors: bool = False,
        **options: Unpack[ReadOptions],
    ) -> tuple[Record | None, ...]:
        """Return 1 to 100 memories (by id) and facts (by key), all read at one revision.

        None stands where there is no such record. Episodes: see ``get_episode``.
        """
        request = service.BatchGetRequest(
            partition=wire.partition(self._where(options)),
            targets=[_requests.record_target(target) for target in targets],
            read=_requests.read_options(options),
            include_vectors=include_vectors,
        )
        response = await self._call(_methods.BATCH_GET, request, options)
        return tuple(
            _from_wire.record(item.record) if item.HasField("record") else None
            for item in response.items
        )

    async def list(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002  (the contract's name)
        page_size: int = 0,
        **options: Unpack[SelectOptions],
    ) -> AsyncIterator[Memory]:
        """Yield memories, oldest first, all read at one revision; pages are fetched as needed.

        Args:
            filter: Which memories; or give single conditions of it by name.
            page_size: Memories fetched at once; 0: the server's own.
            **options: See ``SelectOptions``. The deadline holds for each page.
        """
        async for record in self._pages(filter, page_size, options, episodes=False):
            if isinstance(record, Memory):
                yield record

    async def list_episodes(
        self,
        *,
        filter: Filter | None = None,  # noqa: A002  (the contract's name)
        page_size: int = 0,
        **options: Unpack[SelectOptions],
    ) -> AsyncIterator[Episode]:
        """Yield episodes, oldest first.

        Of the filter, only subjects, contexts, labels, session_ids and created hold.
        """
        async for record in self._pages(filter, page_size, options, episodes=True):
            if isinstance(record, Episode):
                yield record

    async def _pages(
        self, given: Filter | None, page_size: int, options: SelectOptions, *, episodes: bool
    ) -> AsyncIterator[Record | None]:
        request = service.ListRequest(
            partition=wire.partition(self._where(options)),
            filter=_requests.selected(given, options),
            read=_requests.read_options(options),
            page_size=page_size,
            episodes=episodes,
        )
        while True:
            response = await self._call(_methods.LIST, request, options)
            for record in response.records:
                yield _from_wire.record(record)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def history(
        self,
        target: str | FactKey,
        *,
        page_size: int = 0,
        **options: Unpack[ReadOptions],
    ) -> AsyncIterator[HistoryEntry]:
        """Yield the whole timeline of a fact key, or all versions of one memory by its id.

        Entries come by valid_from, then by recorded time; a key of a set tells of all its members
        or of the one it names. ``as_of`` is refused by the server: a history has every instant.
        """
        chosen = _requests.record_target(target)
        request = service.HistoryRequest(
            partition=wire.partition(self._where(options)),
            read=_requests.read_options(options),
            page_size=page_size,
        )
        if chosen.HasField("fact"):
            request.fact.CopyFrom(chosen.fact)
        else:
            request.memory_id = chosen.memory_id
        while True:
            response = await self._call(_methods.HISTORY, request, options)
            for entry in response.entries:
                yield _from_wire.history_entry(entry)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token


def _memory(record: Record | None) -> Memory:
    if not isinstance(record, Memory):
        message = "the server answered with something that is not a memory"
        raise Internal(message)
    return record
