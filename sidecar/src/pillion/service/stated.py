"""What a caller states, as the memory that it becomes; and its text, as it is embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import checked_value
from pillion.domain.indexed_text import with_speaker
from pillion.domain.memory import (
    CONFIDENCE_DEFAULT,
    FOREVER,
    IMPORTANCE_DEFAULT,
    EndReason,
    Episode,
    Memory,
    MemoryKind,
    MemoryStatus,
    Source,
    SourceKind,
)
from pillion.domain.mutations import AddMemory, CaptureEpisode, PatchMemory, PutFact
from pillion.domain.rendering import render_fact
from pillion.domain.scope import FactKey

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from pillion.domain.mutations import MemoryDraft, Mutation

T = TypeVar("T")


def text_of(draft: MemoryDraft) -> str:
    """Return the text of a memory as stated."""
    if draft.text.strip() or draft.value is None:
        return draft.text
    key = FactKey(draft.subject, draft.context, draft.attribute)
    return render_fact(key, draft.value)


def text_to_embed(mutation: Mutation) -> str | None:
    """Return the text that the server would have to embed for a mutation; None: none.

    Of a patch it is the new text alone, whoever says it: the record isn't read yet.
    """
    match mutation:
        case PutFact(fact=stated) | AddMemory(memory=stated) if not stated.vector:
            text = text_of(stated)
            turn = stated.kind is MemoryKind.EPISODIC
            return with_speaker(text, stated.source.author) if turn else text
        case CaptureEpisode(indexed=True, vector=b"") as episode:
            return with_speaker(episode.content, episode.author)
        case PatchMemory(patch=patch) if "text" in patch.fields and not patch.vector:
            return patch.text
        case _:
            return None


def memory_of(stated: MemoryDraft, *, now: int, new_id: Callable[[], UUID]) -> Memory:
    """Return the memory that a caller's words become, with the server's defaults.

    Args:
        stated: The words.
        now: The time of the write, microseconds since the epoch.
        new_id: Names the memory where the caller does not.

    Raises:
        PillionError: INTERVAL_EMPTY when it ends before it begins; INVALID_FIELD for its value.
    """
    status = stated.status
    if status is None:
        inferred = stated.source.kind is SourceKind.INFERENCE
        status = MemoryStatus.CANDIDATE if inferred else MemoryStatus.STATED
    valid_from = stated.valid_from if stated.valid_from is not None else now
    if stated.valid_to is not None and stated.valid_to <= valid_from:
        raise PillionError.of_field(
            "valid_to",
            "must come after valid_from (the server's time when absent)",
            Reason.INTERVAL_EMPTY,
        )
    return Memory(
        id=stated.id if stated.id is not None else new_id(),
        subject=stated.subject,
        context=stated.context,
        kind=stated.kind,
        attribute=stated.attribute,
        value=checked_value("value", stated.value) if stated.value is not None else None,
        text=text_of(stated),
        source=stated.source,
        importance=given_or(stated.importance, IMPORTANCE_DEFAULT),
        confidence=given_or(stated.confidence, CONFIDENCE_DEFAULT),
        status=status,
        pinned=stated.pinned,
        pii_labels=tuple(sorted(set(stated.pii_labels))),
        labels=tuple(sorted(set(stated.labels))),
        derived_from=tuple(dict.fromkeys(stated.derived_from)),
        valid_from=valid_from,
        valid_to=given_or(stated.valid_to, FOREVER),
        end_reason=EndReason.OPEN if stated.valid_to is None else EndReason.STATED,
        expires_at=given_or(stated.expires_at, FOREVER),
        retention_class=stated.retention_class,
        session_id=stated.session_id,
        created_at=now,
        updated_at=now,
    )


def recalling(episode: Episode, memory_id: UUID, importance: float | None, now: int) -> Memory:
    """Return the EPISODIC memory by which an episode is recalled."""
    inferred = episode.source_kind is SourceKind.INFERENCE
    return Memory(
        id=memory_id,
        subject=episode.subject,
        context=episode.context,
        kind=MemoryKind.EPISODIC,
        text=episode.content,
        source=Source(episode.source_kind, episode.id, author=episode.author),
        importance=given_or(importance, IMPORTANCE_DEFAULT),
        status=MemoryStatus.CANDIDATE if inferred else MemoryStatus.STATED,
        labels=episode.labels,
        valid_from=episode.occurred_at,
        expires_at=episode.expires_at,
        retention_class=episode.retention_class,
        session_id=episode.session_id,
        created_at=now,
        updated_at=now,
    )


def given_or(value: T | None, default: T) -> T:
    """Return what was given, or what stands for nothing given."""
    return default if value is None else value
