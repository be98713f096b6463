"""Memories as text: the sentence that is searched for a fact, and the line that a model reads.

A line is one line whatever it holds, and what was said comes last in it: content can neither begin
a line or a heading of its own nor pass for the instants and names before it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from pillion.domain.memory import FOREVER, MemoryKind
from pillion.domain.values import format_instant

if TYPE_CHECKING:
    from pillion.domain.memory import Memory
    from pillion.domain.scope import FactKey
    from pillion.domain.values import Value

# Whatever some reader takes for the end of a line, with the white space after it.
_BREAKS: Final = re.compile(r"(?:\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029])\s*")
_BREAK_SHOWN: Final = " ⏎ "
# Characters without a shape of their own: the other controls, and format characters that reorder
# text or carry text that nobody sees. The two joiners stay: Persian and emoji are made with them.
# Written out, so that the bytes do not depend on the Unicode tables of the Python that runs.
_INVISIBLE: Final = re.compile(
    r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_PLAIN_NAME: Final = re.compile(r"[\w.@+/-]+")
_MIDNIGHT: Final = "T00:00:00Z"
# What happened then, as opposed to what is so since then.
_EVENTS: Final = frozenset({MemoryKind.EPISODIC, MemoryKind.SESSION})


def render_fact(key: FactKey, value: Value) -> str:
    """Return a fact as a short sentence: ``mira passport deadline (work): 2026-07-15``."""
    attribute = key.attribute.replace("_", " ").replace(".", " ").strip()
    context = f" ({key.context})" if key.context else ""
    return f"{key.subject.id} {attribute}{context}: {value.render()}"


def render_line(memory: Memory) -> str:
    """Return a memory as the line that a model reads.

    ``- [since 2026-06-01] user:mira (work) passport_deadline: 2026-07-15``. Facts show their
    attribute and value, other memories their text; summaries of sessions name the session.
    """
    about = f"{_name(memory.subject.type)}:{_name(memory.subject.id)}"
    if memory.context:
        about += f" ({_name(memory.context)})"
    said = memory.text
    if memory.attribute and memory.value is not None:
        about += f" {_name(memory.attribute)}"
        said = memory.value.render()
    elif memory.kind is MemoryKind.SESSION and memory.session_id:
        about += f" session {_name(memory.session_id)}"
    return f"- [{_valid_time(memory)}] {about}: {one_line(said)}"


def one_line(text: str) -> str:
    """Return a text on one line: breaks are shown as ``⏎``, what has no shape is left out."""
    shown = _INVISIBLE.sub("", _BREAKS.sub(_BREAK_SHOWN, text))
    return shown.replace("\t", " ").strip()


def _name(name: str) -> str:
    """Return a name as it is, or in quotes where it could be taken for more than a name."""
    plain = one_line(name)
    return plain if _PLAIN_NAME.fullmatch(plain) else json.dumps(plain, ensure_ascii=False)


def _valid_time(memory: Memory) -> str:
    begun = _instant(memory.valid_from)
    if memory.valid_to != FOREVER:
        return f"{begun} to {_instant(memory.valid_to)}"
    return begun if memory.kind in _EVENTS else f"since {begun}"


def _instant(instant_us: int) -> str:
    """Return an instant to the second, or as a date where it is a midnight (UTC)."""
    whole = format_instant(instant_us // 1_000_000 * 1_000_000)
    return whole.removesuffix(_MIDNIGHT)
