"""``pillion subject``: what a person may ask about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pillion_client import FactKey, Filter, MemoryStatus, ValidityFilter

from pillion.cli.documents import document
from pillion.cli.parameters import SUBJECT
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import interval, moment, what

if TYPE_CHECKING:
    from pillion_client import Client, Episode, HistoryEntry, Memory, Subject

    from pillion.cli.output import Output

_STATUSES = tuple(one for one in MemoryStatus if one is not MemoryStatus.UNSPECIFIED)
_PAGE = 500


@click.group()
def subject() -> None:
    """Answer what is remembered about a subject."""


@subject.command(name="export")
@click.argument("about", metavar="SUBJECT", type=SUBJECT)
@shared_options()
@pass_session
def export(session: Session, /, about: Subject) -> None:
    """Show all that is remembered about a subject.

    Episodes, memories in every context, guesses too, and each fact with its whole history on both
    clocks, also what was retracted or forgotten and not erased; all as of one revision. With
    --json: one document.
    """
    with session.client() as client:
        taken = _taken(client, about)
    if session.json:
        session.output.document(document(taken))
    else:
        _show(session.output, taken)


def _taken(client: Client, about: Subject) -> dict[str, Any]:
    revision = client.revision()
    everything = Filter(
        subjects=(about,),
        all_contexts=True,
        statuses=_STATUSES,
        include_retracted=True,
        include_expired=True,
        validity=ValidityFilter.ANY,
    )
    at: dict[str, Any] = {"exact_revision": revision} if revision else {}
    memories = list(client.list(filter=everything, page_size=_PAGE, **at))
    episodes = list(client.list_episodes(filter=everything, page_size=_PAGE, **at))
    keys = {FactKey(one.subject, one.attribute, one.context) for one in memories if one.attribute}
    facts = [
        {
            "attribute": key.attribute,
            "context": key.context,
            "history": list(client.history(key, **at)),
        }
        for key in sorted(keys, key=lambda key: (key.context, key.attribute))
    ]
    return {
        "subject": str(about),
        "revision": revision,
        "episodes": episodes,
        "memories": [one for one in memories if not one.attribute],
        "facts": facts,
    }


def _show(output: Output, taken: dict[str, Any]) -> None:
    facts: list[dict[str, Any]] = taken["facts"]
    memories: list[Memory] = taken["memories"]
    episodes: list[Episode] = taken["episodes"]
    output.line(f"What is remembered about {taken['subject']}, as of revision {taken['revision']}")
    if not (facts or memories or episodes):
        output.line("nothing")
        return
    for fact in facts:
        place = f" in {fact['context']}" if fact["context"] else ""
        output.line("")
        output.line(f"{fact['attribute']}{place}")
        entries: list[HistoryEntry] = fact["history"]
        for entry in entries:
            memory = entry.memory
            known = interval(entry.recorded_from, entry.recorded_to, "still held")
            output.line(
                f"  {what(memory)}, valid {interval(memory.valid_from, memory.valid_to)}, "
                f"known {known}{_standing(memory)}"
            )
    _list(
        output, "Memories", [(f"{what(one)}{_standing(one)}", one.created_at) for one in memories]
    )
    _list(output, "What was said", [(one.content, one.occurred_at) for one in episodes])


def _list(output: Output, title: str, lines: list[tuple[str, Any]]) -> None:
    if not lines:
        return
    output.line("")
    output.line(title)
    for text, instant in lines:
        output.line(f"  {moment(instant)}  {text}")


def _standing(memory: Memory) -> str:
    """Return what keeps a memory out of recall, if anything does."""
    if memory.status is MemoryStatus.CANDIDATE:
        return " (a guess)"
    if memory.retracted_at is not None:
        return " (retracted)"
    return ""
