"""What the contract speaks of, as frozen values: the nouns that come back, and some that go in.

Times are timezone-aware ``datetime`` in UTC; a half-open interval holds its start and not its end.
An absent text is None, an absent list an empty tuple. Vectors are one-dimensional ``float32``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pillion_client.enums import MemoryKind, MemoryStatus, SourceKind

Vector: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Partition:
    """One tenant of one namespace: the unit of isolation."""

    namespace: str = "default"
    tenant: str = "default"


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Whom or what a memory is about, for example ``Subject("user", "mira")``."""

    type: str
    id: str

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Read ``type:id``; the id may hold further colons.

        Raises:
            ValueError: The text has no colon, or nothing on one side of it.
        """
        kind, colon, identity = text.partition(":")
        if not (kind and colon and identity):
            message = f'{text!r} is not a subject: write "type:id", for example "user:mira"'
            raise ValueError(message)
        return cls(kind, identity)

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


SubjectLike: TypeAlias = Subject | str
"""A subject, or its ``type:id`` text."""

JsonValue: TypeAlias = dict[str, object] | list[object] | None
Value: TypeAlias = str | int | float | bool | datetime | Subject | JsonValue
"""A fact's value. A ``Subject`` makes the fact an edge of the graph; None is JSON's null."""


class Unchanged(Enum):
    """What a function given to ``update_fact`` returns to leave the fact as it is."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""The only member of ``Unchanged``."""


class Whole(Enum):
    """What a ``FactKey`` has for a member where it names none."""

    WHOLE = "whole"


WHOLE: Final = Whole.WHOLE
"""The only member of ``Whole``."""


@dataclass(frozen=True, slots=True)
class FactKey:
    """The key of a fact: at any instant it has at most one value.

    Attributes:
        member: Where the attribute is registered as a set, which of its members, by its value.
            WHOLE: the set as a whole, or the one value of any other attribute.
    """

    subject: Subject
    attribute: str
    context: str = ""
    member: Value | Whole = WHOLE


@dataclass(frozen=True, slots=True)
class Source:
    """Who said something, in which episode and in which words."""

    kind: SourceKind | str
    episode_id: str | None = None
    quote: str | None = None
    author: str | None = None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """How often, and by which episodes, a memory was stated again."""

    count: int = 0
    episode_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as the server holds it. With an attribute it is one row of a fact's timeline.

    Attributes:
        version: The revision that last changed it: the token for ``version_equals``.
        fact_version: The version of the whole timeline: the token for ``version_equals`` in
            ``put_fact``. 0 for memories that are not facts.
        vector: Present only where the request asked for it. Takes no part in comparison.
        confirmation: Who confirmed it last, where, in which words; None: nobody did.
    """

    id: str
    partition: Partition
    subject: Subject
    context: str
    kind: MemoryKind
    attribute: str | None
    value: Value
    text: str
    vector: Vector | None = field(compare=False)
    importance: float
    confidence: float
    status: MemoryStatus
    pinned: bool
    pii_labels: tuple[str, ...]
    labels: tuple[str, ...]
    source: Source
    derived_from: tuple[str, ...]
    consolidated_into: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime | None
    superseded_by: str | None
    supersedes: str | None
    created_at: datetime | None
    updated_at: datetime | None
    last_used_at: datetime | None
    use_count: int
    recurrence: Recurrence
    expires_at: datetime | None
    retention_class: str | None
    schema_version: int
    version: int
    fact_version: int
    retracted_at: datetime | None
    closed_at: datetime | None
    vector_pending: bool
    session_id: str | None
    legal_hold: bool
    confirmation: Source | None = None

    @property
    def key(self) -> FactKey | None:
        """The fact key, or None when this is no fact."""
        if self.attribute is None:
            return None
        return FactKey(self.subject, self.attribute, self.context)


@dataclass(frozen=True, slots=True)
class Episode:
    """A raw source as captured. Never edited."""

    id: str
    partition: Partition
    subject: Subject
    context: str
    content: str
    media_type: str
    source_kind: SourceKind
    author: str | None
    occurred_at: datetime | None
    session_id: str | None
    external_ref: str | None
    labels: tuple[str, ...]
    retention_class: str | None
    expires_at: datetime | None
    recorded_at: datetime | None
    version: int
    memory_id: str | None


Record: TypeAlias = Memory | Episode


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One version of one row: a rectangle of the plane of valid and recorded time.

    Attributes:
        recorded_to_revision: The revision that ended it, not included; None: it still holds.
        recorded_to: When it stopped being held; None: it still is.
    """

    memory: Memory
    recorded_from_revision: int
    recorded_to_revision: int | None
    recorded_from: datetime | None
    recorded_to: datetime | None
