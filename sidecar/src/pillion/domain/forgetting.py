"""What a Forget is about: its selectors, and what each of them admits. Values and pure tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import (
    check_count,
    check_fact_key,
    check_id,
    check_instant,
    check_share,
    check_subject,
    check_text,
)
from pillion.domain.memory import FOREVER, Memory, MemoryKind
from pillion.domain.queries import Filter, Window
from pillion.domain.validation import check_filter

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pillion.domain.memory import Episode
    from pillion.domain.scope import FactKey, Subject


@dataclass(frozen=True, slots=True)
class ByIds:
    """Memories and episodes by id, and what recalls those episodes."""

    ids: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class BySubject:
    """Everything about a subject; ``contexts`` None: in every context."""

    subject: Subject
    contexts: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class ByFact:
    """Every row of a fact, or of one member of a set."""

    fact: FactKey


@dataclass(frozen=True, slots=True)
class ByFilter:
    """Every memory that a filter admits, and every episode unless it asks what only memories have.

    Memories are judged as of now.
    """

    filter: Filter


@dataclass(frozen=True, slots=True)
class ByEpisode:
    """An episode, and what nothing but this episode states."""

    episode_id: UUID


@dataclass(frozen=True, slots=True)
class ByRecorded:
    """Everything that was recorded within a window."""

    window: Window


@dataclass(frozen=True, slots=True)
class ByTopic:
    """Every memory whose relevance for a text is ``score_min`` or more; empty subjects: any."""

    text: str
    score_min: float
    subjects: frozenset[Subject] = frozenset()


@dataclass(frozen=True, slots=True)
class ByRetentionClass:
    """Everything of a retention class that was kept for as long as the class says."""

    name: str


@dataclass(frozen=True, slots=True)
class Expired:
    """Everything past its ``expires_at``."""


@dataclass(frozen=True, slots=True)
class Decayed:
    """Every memory whose vitality is under the threshold of its kind. A kind not named stays."""

    below: Mapping[MemoryKind, float]


Selector: TypeAlias = (
    ByIds
    | BySubject
    | ByFact
    | ByFilter
    | ByEpisode
    | ByRecorded
    | ByTopic
    | ByRetentionClass
    | Expired
    | Decayed
)

# What says that its time is over, and not that it should never be heard of again: a summary
# outlives the episodes that it was made to replace.
AGEING: Final = (ByRetentionClass, Expired, Decayed)


def check_selector(selector: Selector) -> None:  # noqa: C901, PLR0912  (one a kind)
    """Refuse a malformed selector.

    Raises:
        PillionError: INVALID_FIELD, LIMIT_EXCEEDED or NOT_FINITE, with the field's path.
    """
    match selector:
        case ByIds(ids):
            if not ids:
                raise PillionError.of_field("selector.ids", "name at least one id")
            check_count("selector.ids", len(ids), limits.FORGET_IDS_MAX)
        case BySubject(subject):
            check_subject("selector.subject", subject)
        case ByFact(fact):
            check_fact_key("selector.fact", fact)
        case ByFilter(wanted):
            check_filter(wanted)
        case ByEpisode(episode_id):
            check_id("selector.episode_id", episode_id)
        case ByRecorded(window):
            check_instant("selector.recorded.from", window.start)
            check_instant("selector.recorded.to", window.end)
        case ByTopic(text, score_min, subjects):
            check_text("selector.topic.text", text, limits.QUERY_BYTES_MAX, required=True)
            check_share("selector.topic.score_min", score_min)
            check_count("selector.topic.subjects", len(subjects), limits.FILTER_SUBJECTS_MAX)
            for subject in subjects:
                check_subject("selector.topic.subjects", subject)
        case ByRetentionClass(name):
            check_text("selector.retention_class", name, limits.NAME_BYTES_MAX, required=True)
        case Decayed(below):
            if not below:
                raise PillionError.of_field("selector.decayed.thresholds", "name at least one kind")
            for vitality in below.values():
                check_share("selector.decayed.thresholds.vitality", vitality)
        case Expired():
            pass


def matches_everything(selector: Selector) -> bool:
    """Return whether a selector has no condition that could keep anything out.

    Contexts, statuses, validity and what was forgotten before are no such conditions: who leaves
    everything else out has hardly meant all the rest.
    """
    match selector:
        case ByFilter(wanted):
            return _is_open(wanted)
        case ByRecorded(window):
            return window == Window()
        case ByTopic(_, score_min):
            return score_min <= 0.0
        case Decayed(below):
            return all(below.get(kind, 0.0) >= 1.0 for kind in MemoryKind)
        case _:
            return False


def _is_open(wanted: Filter) -> bool:
    bare = Filter(
        subjects=wanted.subjects,
        kinds=wanted.kinds,
        attributes=wanted.attributes,
        labels_all=wanted.labels_all,
        labels_any=wanted.labels_any,
        labels_none=wanted.labels_none,
        created=wanted.created,
        valid_from=wanted.valid_from,
        importance_min=wanted.importance_min,
        confidence_min=wanted.confidence_min,
        source_kinds=wanted.source_kinds,
        episode_ids=wanted.episode_ids,
        session_ids=wanted.session_ids,
        derived_from=wanted.derived_from,
        any_of=wanted.any_of,
        none_of=wanted.none_of,
    )
    return bare == Filter(any_of=wanted.any_of) and (
        not wanted.any_of or any(_is_open(one) for one in wanted.any_of)
    )


def check_force(selector: Selector, *, force: bool) -> None:
    """Refuse a selector that matches everything, unless that is meant.

    Raises:
        PillionError: FORCE_REQUIRED.
    """
    if not force and matches_everything(selector):
        raise PillionError(
            Reason.FORCE_REQUIRED,
            "the selector matches everything: narrow it, or say force",
            metadata={"field": "force"},
        )


def stated_only_by(memory: Memory, episode_id: UUID) -> bool:
    """Return whether an episode stated a memory, and no other episode or later confirmation did."""
    return memory.source.episode_id == episode_id and set(memory.episode_ids) == {episode_id}


def out_of_recall(record: Memory | Episode) -> bool:
    """Return whether a Forget or a retraction took a record out already."""
    if record.expired_at != FOREVER:
        return True
    return isinstance(record, Memory) and (record.retracted_at != FOREVER or not record.on_timeline)
