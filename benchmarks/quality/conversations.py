"""LoCoMo as it is measured here: its turns, its questions, and the turns that answer them.

The data is public but not ours to ship (CC BY-NC 4.0): it is looked for where it is said to be,
else where PILLION_LOCOMO says, else at ``data/locomo/locomo10.json`` under the project.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "data" / "locomo" / "locomo10.json"
EVIDENCE = re.compile(r"^D0*(\d+):(?:0*\d+:)?0*(\d+)$")
CATEGORIES = {4: "single-hop", 1: "multi-hop", 2: "temporal", 3: "open-domain", 5: "adversarial"}
# The constants of the ranking were chosen on the first of these two halves alone.
TUNED_ON = 5


@dataclass(frozen=True)
class Question:
    """A question with the turns that hold its answer."""

    text: str
    category: int
    conversation: int  # from 0
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A conversation: its turns as lines for ``pillion import``, and its questions."""

    name: str
    turns: list[dict[str, Any]]
    questions: list[Question]


def find_data(asked: str | None) -> Path | None:
    """Return where the data is, or None when it is absent."""
    path = Path(asked or os.environ.get("PILLION_LOCOMO") or DATA)
    return path if path.is_file() else None


def conversations(path: Path, count: int) -> list[Conversation]:
    """Return the first conversations of the data."""
    found = []
    for number, sample in enumerate(json.loads(path.read_text(encoding="utf-8"))[:count]):
        turns = turns_of(sample["conversation"])
        there = {turn["external_ref"] for turn in turns}
        questions = questions_of(sample["qa"], number, there)
        found.append(Conversation(sample["sample_id"], turns, questions))
    return found


def turns_of(conversation: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation's turns, in their order, as episodes for ``pillion import``.

    The text is what was said, with the caption of a photo that was shared; the speaker is the
    episode's author.
    """
    lines = []
    sessions = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for name in sorted(sessions, key=lambda one: int(one.removeprefix("session_"))):
        stamp = conversation[f"{name}_date_time"]
        at = datetime.strptime(stamp, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[name]:
            text = turn["text"]
            if turn.get("blip_caption"):
                text += f" [shared: {turn['blip_caption']}]"
            lines.append(
                {
                    "type": "episode",
                    "subject": "conversation:locomo",
                    "content": text,
                    "source_kind": "user_statement",
                    "author": turn["speaker"],
                    "occurred_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "session_id": name,
                    "external_ref": turn["dia_id"],
                }
            )
    return lines


def questions_of(entries: list[dict[str, Any]], number: int, turns: set[str]) -> list[Question]:
    """Return the questions whose evidence names at least one turn."""
    found = []
    for entry in entries:
        named = set()
        for part in re.split(r"[;\s]+", " ".join(entry.get("evidence", []))):
            match = EVIDENCE.match(part)
            if match:
                named.add(f"D{match[1]}:{match[2]}")
        named &= turns
        if named:
            question = Question(entry["question"], entry["category"], number, frozenset(named))
            found.append(question)
    return found
