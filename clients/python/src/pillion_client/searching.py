"""What a search answers with. Hits keep the message they came in and convert what is looked at.

Ten hits with every field converted cost several times what the whole rest of the answer costs,
and most callers look at a few fields; so a hit is a view, and ``memory`` is made on first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_client import _from_wire, enums
from pillion_client._to_wire import enum_members

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import memory_service_pb2 as service
    from pillion_proto.memory.v1 import search_pb2

    from pillion_client.models import Memory
    from pillion_client.results import Edge, ScoreParts

_EXACTNESS: Final = enum_members(enums.Exactness)
_PATHS: Final = enum_members(enums.SearchPath)


class SearchHit:
    """One memory that a search returned, with its score, 0 to 1.

    ``id``, ``text`` and ``score`` cost nothing; ``memory`` is converted once, on first use.
    """

    __slots__ = ("_memory", "_message")

    def __init__(self, message: search_pb2.SearchHit) -> None:
        self._message = message
        self._memory: Memory | None = None

    @property
    def id(self) -> str:
        """The memory's id."""
        return self._message.memory.id

    @property
    def text(self) -> str:
        """The memory's text."""
        return self._message.memory.text

    @property
    def score(self) -> float:
        """The combined score, 0 to 1."""
        return self._message.score

    @property
    def memory(self) -> Memory:
        """The whole memory."""
        if self._memory is None:
            self._memory = _from_wire.memory(self._message.memory)
        return self._memory

    @property
    def parts(self) -> ScoreParts | None:
        """The parts of the score. None: the search did not ask for them."""
        if not self._message.HasField("parts"):
            return None
        return _from_wire.score_parts(self._message.parts)

    @property
    def older_statement(self) -> bool:
        """True when a later statement of the same thing leads the group it is in."""
        return self._message.older_statement

    @property
    def folded_ids(self) -> tuple[str, ...]:
        """Older statements that were folded into this hit."""
        return tuple(self._message.folded_ids)

    @property
    def path(self) -> tuple[Edge, ...]:
        """The path that graph expansion took to it. Empty: it was found by the query."""
        return tuple(_from_wire.edge(step) for step in self._message.path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchHit):
            return NotImplemented
        return self._message == other._message

    __hash__ = None  # type: ignore[assignment]  # as mutable as the message inside

    def __repr__(self) -> str:
        return f"SearchHit(id={self.id!r}, score={self.score:.4f})"


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best memories, best first.

    Attributes:
        hits: Empty: nothing matched.
        exactness: Whether this is the true top-k.
        bound: For APPROXIMATE: no missed memory scores higher. None: no bound is known.
        admitted: Memories that the filter admitted; 0 for the path INDEX, not counted.
        vectors_pending: Admitted memories whose vector is not there yet.
        trace: How the server came to its answer, as the contract's message; None: not asked for.
    """

    hits: tuple[SearchHit, ...]
    revision: int
    exactness: enums.Exactness
    path: enums.SearchPath
    bound: float | None
    admitted: int
    vectors_pending: int
    trace: search_pb2.SearchTrace | None


def search_result(message: service.SearchResponse) -> SearchResult:
    """Return what a search found."""
    return SearchResult(
        tuple(map(SearchHit, message.hits)),
        message.revision,
        _EXACTNESS.get(message.exactness, enums.Exactness.UNSPECIFIED),
        _PATHS.get(message.path, enums.SearchPath.UNSPECIFIED),
        message.bound if message.HasField("bound") else None,
        message.admitted,
        message.vectors_pending,
        message.trace if message.HasField("trace") else None,
    )
