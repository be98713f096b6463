"""Memories and episodes for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_client import Episode, Memory

from pillion.cli.documents import instant_text, value_document

if TYPE_CHECKING:
    from datetime import datetime

    from pillion_client import Record, Value

    from pillion.cli.output import Output

_TEXT_CHARACTERS_MAX: Final = 300

MEMORY_COLUMNS: Final = ("id", "about", "what", "valid from", "valid to", "source")


def moment(instant: datetime | None, absent: str = "") -> str:
    """Return an instant as text, or what stands for none."""
    return absent if instant is None else instant_text(instant)


def value_text(value: Value) -> str:
    """Return a fact's value in one line."""
    return str(value) if isinstance(value, str) else str(value_document(value))


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


def memory_row(memory: Memory) -> tuple[str, ...]:
    """Return a memory as a row under `MEMORY_COLUMNS`."""
    about = str(memory.subject) + (f" ({memory.context})" if memory.context else "")
    source = memory.source.episode_id or str(memory.source.kind)
    return (
        memory.id,
        about,
        what(memory),
        moment(memory.valid_from),
        moment(memory.valid_to, "open"),
        source,
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
            ("valid", f"{moment(memory.valid_from)} to {moment(memory.valid_to, 'open')}"),
            ("recorded", moment(memory.recorded_at)),
            ("source", str(source.kind)),
            ("episode", source.episode_id or ""),
            ("quote", source.quote or ""),
            ("author", source.author or ""),
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
            ("recorded", moment(episode.recorded_at)),
            ("session", episode.session_id or ""),
            ("external ref", episode.external_ref or ""),
            ("labels", ", ".join(episode.labels)),
            ("recalled by", episode.memory_id or ""),
            ("version", str(episode.version)),
        ],
    )
