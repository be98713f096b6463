"""Memories and episodes for people."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pillion_client import Episode, Memory, Subject

from pillion.cli.documents import instant_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_client import Edge, Record, Source, Value

    from pillion.cli.output import Output

_TEXT_CHARACTERS_MAX: Final = 300

MEMORY_COLUMNS: Final = ("what", "id", "about", "valid", "source")
"""The first is what matters of a memory."""


def moment(instant: datetime | None, absent: str = "") -> str:
    """Return an instant to the second as text, or what stands for none."""
    return absent if instant is None else instant_text(instant.replace(microsecond=0))


def interval(begins: datetime | None, ends: datetime | None, absent: str = "open") -> str:
    """Return a half-open interval of time as text."""
    return f"{moment(begins)} to {moment(ends, absent)}"


def about(record: Record) -> str:
    """Return whom a record is about, and in which context."""
    return str(record.subject) + (f" ({record.context})" if record.context else "")


def expiry(record: Record) -> str:
    """Return when a record leaves by itself, or that it has left: forgotten ones are kept too."""
    if record.expires_at is None:
        return ""
    past = record.expires_at <= datetime.now(UTC)
    return moment(record.expires_at) + (" (forgotten/expired)" if past else "")


def value_text(value: Value) -> str:
    """Return a fact's value for people: texts, times and subjects plain, others as JSON."""
    if isinstance(value, str | Subject):
        return str(value)
    if isinstance(value, datetime):
        return instant_text(value)
    return json.dumps(value, ensure_ascii=False)


def what(memory: Memory) -> str:
    """Return what a memory says in one cell of a table."""
    if memory.attribute is not None:
        return f"{memory.attribute} = {value_text(memory.value)}"
    return shortened(memory.text)


def shortened(text: str) -> str:
    """Return the text, or its beginning when it is too long for a table."""
    if len(text) <= _TEXT_CHARACTERS_MAX:
        return text
    return text[:_TEXT_CHARACTERS_MAX] + "…"


def by_whom(source: Source) -> str:
    """Return the author of a statement and the words, as they follow a verb; empty: unknown."""
    author = f" by {source.author}" if source.author else ""
    return author + (f' "{source.quote}"' if source.quote else "")


def confirmation(memory: Memory) -> str:
    """Return who confirmed a memory last, in which episode and in which words; empty: nobody."""
    source = memory.confirmation
    if source is None:
        return ""
    episode = f" in {source.episode_id}" if source.episode_id else ""
    return f"confirmed{by_whom(source)}{episode}"


def path_text(path: Sequence[Edge]) -> str:
    """Return the edges that a walk took, one after the other."""
    return ", ".join(f"{edge.from_subject} {edge.attribute} {edge.to_subject}" for edge in path)


def memory_row(memory: Memory) -> tuple[str, ...]:
    """Return a memory as a row under `MEMORY_COLUMNS`."""
    return (
        what(memory),
        memory.id,
        about(memory),
        interval(memory.valid_from, memory.valid_to),
        memory.source.episode_id or str(memory.source.kind),
    )


def show_record(output: Output, record: Record) -> None:
    """Print all of a record that is set."""
    if isinstance(record, Memory):
        _show_memory(output, record)
    else:
        _show_episode(output, record)


def _show_memory(output: Output, memory: Memory) -> None:
    source = memory.source
    output.pairs(
        f"memory {memory.id}",
        [
            ("about", str(memory.subject)),
            ("context", memory.context),
            ("kind", f"{memory.kind.value}, {memory.status.value}"),
            ("attribute", memory.attribute or ""),
            ("value", value_text(memory.value) if memory.attribute is not None else ""),
            ("text", memory.text),
            ("valid", interval(memory.valid_from, memory.valid_to)),
            ("expires", expiry(memory)),
            ("recorded", moment(memory.recorded_at)),
            ("source", str(source.kind)),
            ("episode", source.episode_id or ""),
            ("quote", source.quote or ""),
            ("author", source.author or ""),
            ("confirmation", confirmation(memory)),
            ("supersedes", memory.supersedes or ""),
            ("superseded by", memory.superseded_by or ""),
            ("retracted", moment(memory.retracted_at)),
            ("closed", moment(memory.closed_at)),
            ("importance", f"{memory.importance:g}"),
            ("confidence", f"{memory.confidence:g}"),
            ("labels", ", ".join(memory.labels)),
            ("session", memory.session_id or ""),
            ("stated again", str(memory.recurrence.count or "")),
            ("version", str(memory.version)),
            ("fact version", str(memory.fact_version or "")),
            ("vector", "pending" if memory.vector_pending else ""),
        ],
    )


def _show_episode(output: Output, episode: Episode) -> None:
    output.pairs(
        f"episode {episode.id}",
        [
            ("about", str(episode.subject)),
            ("context", episode.context),
            ("content", episode.content),
            ("media type", episode.media_type),
            ("source", episode.source_kind.value),
            ("author", episode.author or ""),
            ("occurred", moment(episode.occurred_at)),
            ("expires", expiry(episode)),
            ("recorded", moment(episode.recorded_at)),
            ("session", episode.session_id or ""),
            ("external ref", episode.external_ref or ""),
            ("labels", ", ".join(episode.labels)),
            ("recalled by", episode.memory_id or ""),
            ("version", str(episode.version)),
        ],
    )
