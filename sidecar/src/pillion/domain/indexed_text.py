"""What the words of a query are compared with: a policy, apart from the text that is shown.

A fact is indexed by its text and by the sentence that renders it. An episodic memory is indexed
with its speaker and its date in words and, more weakly, with the turns before it, for what a turn
is about was often said a turn earlier. docs/adr/0022 has the measurements behind the weights.

Walls: a turn borrows only from turns of its own subject, context and session, which
``conversation_of`` names, and only from those that outlive it, by ``lent_until``. What is borrowed
is derived data: it lives in memory only, and goes with the turn that it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pillion.domain.limits import BORROWED_CHARACTERS_MAX
from pillion.domain.memory import FOREVER, MemoryKind, MemoryStatus
from pillion.domain.rendering import render_fact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Subject

OWN_WEIGHT: Final = 8
"""What a word of a memory's own text counts, in the eighths that the index counts words by."""

BORROWED_WEIGHTS: Final = (4, 2, 1)
"""What a word of the turn before counts, of the one before that, and of the third."""

SESSIONLESS_GAP_US: Final = 3600 * 1_000_000
"""How long before a turn without a session another one may be and still count as before it."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


class EpisodeIndexing(StrEnum):
    """What of an episodic memory is indexed."""

    CONTEXT = "context"  # speaker, date, text and the turns before
    PLAIN = "plain"  # the text alone


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of indexed text, and what each of its words counts, in eighths of a word."""

    text: str
    weight: int = OWN_WEIGHT


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a turn's neighbours have in common with it."""

    subject: Subject
    context: str
    session_id: str


def own_parts(memory: Memory, indexing: EpisodeIndexing) -> tuple[Part, ...]:
    """Return what is indexed of a memory itself. Depends on nothing else that is stored."""
    parts = [memory.text]
    if memory.value is not None:
        rendered = render_fact(memory.fact_key, memory.value)
        if rendered != memory.text:
            parts.append(rendered)
    if memory.kind is MemoryKind.EPISODIC and indexing is EpisodeIndexing.CONTEXT:
        parts.append(date_in_words(memory.valid_from))
        if memory.source.author:
            parts.append(memory.source.author)
    return tuple(Part(one) for one in parts)


def embedded_text(memory: Memory) -> str:
    """Return the text that a memory's vector is made of: a turn's with its speaker."""
    if memory.kind is not MemoryKind.EPISODIC:
        return memory.text
    return with_speaker(memory.text, memory.source.author)


def with_speaker(text: str, speaker: str) -> str:
    """Return a turn as a quotation of its speaker; without one, or where it names it, the turn.

    No word of any language is in between: the quotation marks alone make most of the difference
    to the default embedder (docs/adr/0022).
    """
    said, name = text.casefold(), speaker.casefold()
    if not name or (said.startswith(name) and not said[len(name) :][:1].isalnum()):
        return text
    return f'{speaker}: "{text}"'


def borrowed_parts(before: Sequence[str]) -> tuple[Part, ...]:
    """Return what is indexed of the turns before, the nearest first; as many as have a weight."""
    return tuple(
        Part(lendable(text), weight) for text, weight in zip(before, BORROWED_WEIGHTS, strict=False)
    )


def lendable(text: str) -> str:
    """Return what followers borrow of a turn: its beginning, ended between two words."""
    if len(text) <= BORROWED_CHARACTERS_MAX:
        return text
    cut = text[: BORROWED_CHARACTERS_MAX + 1]
    whole = cut.rsplit(maxsplit=1)[0] if not cut[-1].isspace() else cut
    return (whole if len(whole) < len(cut) else cut[:-1]).rstrip()


def conversation_of(memory: Memory) -> Conversation | None:
    """Return the conversation that a memory is a turn of; None: it is no turn.

    Without a session only captured episodes are turns: what was stated by itself has no before.
    """
    if memory.kind is not MemoryKind.EPISODIC:
        return None
    if not memory.session_id and memory.source.episode_id is None:
        return None
    return Conversation(memory.subject, memory.context, memory.session_id)


def lent_until(memory: Memory) -> int:
    """Return until when followers may be found by a turn's words; 0: not at all.

    A turn lends only to those that leave recall no later than it does: what can't be found itself
    is not found through another. What is out of recall, or not established, lends nothing.
    """
    out = memory.expired_at != FOREVER or memory.retracted_at != FOREVER or not memory.on_timeline
    if out or memory.status is MemoryStatus.CANDIDATE:
        return 0
    return memory.expires_at


def date_in_words(instant: int) -> str:
    """Return an instant's day in UTC in the two forms that people ask by: words and ISO 8601."""
    day = _EPOCH + timedelta(microseconds=instant)
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year} {day.date().isoformat()}"
