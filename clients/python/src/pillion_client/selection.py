"""What a read asks for: filters, ranking and time windows, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pillion_client.enums import (
    MemoryKind,
    MemoryStatus,
    RecencyAnchor,
    SourceKind,
    ValidityFilter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from pillion_client.models import SubjectLike


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A half-open window [start, end); None: unbounded on that side."""

    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories take part. All conditions must hold; an empty one admits everything.

    Left alone, candidates, retracted and expired memories and every context but the main one
    stay out, and only memories that are valid at the read's ``as_of`` take part.
    """

    subjects: tuple[SubjectLike, ...] = ()
    contexts: tuple[str, ...] = ()
    all_contexts: bool = False
    kinds: tuple[MemoryKind | str, ...] = ()
    statuses: tuple[MemoryStatus | str, ...] = ()
    attributes: tuple[str, ...] = ()
    labels_all: tuple[str, ...] = ()
    labels_any: tuple[str, ...] = ()
    labels_none: tuple[str, ...] = ()
    created: TimeWindow | None = None
    valid_from: TimeWindow | None = None
    importance_min: float = 0.0
    confidence_min: float = 0.0
    source_kinds: tuple[SourceKind | str, ...] = ()
    episode_ids: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    include_retracted: bool = False
    include_expired: bool = False
    validity: ValidityFilter | str = ValidityFilter.UNSPECIFIED
    any_of: tuple[Filter, ...] = ()
    none_of: tuple[Filter, ...] = ()
    derived_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How the parts of a score are weighed. None: the profile's own value.

    Attributes:
        half_lives: By kind, the time after which recency has halved; None: no decay. A kind named
            here goes before the half-lives that attributes are registered with.
        diversity: 0 is pure score, 1 pure diversity.
    """

    name: str = ""
    relevance_weight: float | None = None
    recency_weight: float | None = None
    importance_weight: float | None = None
    half_lives: Mapping[MemoryKind | str, timedelta | None] = field(default_factory=dict)
    recency_anchor: RecencyAnchor | str = RecencyAnchor.UNSPECIFIED
    diversity: float | None = None


@dataclass(frozen=True, slots=True)
class GraphExpansion:
    """A walk along edges that adds what it finds to a search."""

    depth: int = 1
    fan_out: int = 20
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """Everything about a topic that scores at least ``score_min``, 0 to 1."""

    text: str
    score_min: float
    subjects: tuple[SubjectLike, ...] = ()
