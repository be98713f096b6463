"""``pillion history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pillion.cli.documents import document
from pillion.cli.selecting import (
    fact_or_id,
    member_options,
    recorded_options,
    taken_member,
    taken_read,
)
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import confirmation, expiry, interval, moment, what

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pillion_client import HistoryEntry, Memory


@click.command()
@click.argument("record", metavar="ID|SUBJECT")
@click.argument("attribute", required=False)
@click.option("--context", default="", help="The context of the fact.")
@member_options
@recorded_options
@shared_options()
@pass_session
def history(
    session: Session,
    /,
    record: str,
    attribute: str | None,
    *,
    context: str,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Show a fact's whole timeline, or a memory's versions.

    An id is that of a memory. A SUBJECT (type:id) comes with an ATTRIBUTE. With --json: one
    entry per line. With --known-at or --at-revision: as it was known then.
    """
    read = taken_read(given)
    chosen = fact_or_id(record, attribute, context, taken_member(given))
    output = session.output
    with session.client() as client:
        entries = client.history(chosen, **read)
        if session.json:
            for entry in entries:
                output.document(document(entry))
            return
        found = list(entries)
    if not found:
        output.line("no history")
        return
    columns = ("what", "change", "id", "valid", "known", "source")
    output.records(columns, [_row(one, change) for one, change in _changes(found)], lead=2)


def _row(entry: HistoryEntry, change: str) -> tuple[str, ...]:
    memory = entry.memory
    return (
        what(memory),
        change,
        memory.id,
        f"valid {interval(memory.valid_from, memory.valid_to)}",
        f"known {interval(entry.recorded_from, entry.recorded_to, 'still held')}",
        _source(memory),
    )


def _source(memory: Memory) -> str:
    """Return who stated a row, in which episodes, and who confirmed it."""
    source = memory.source
    said = str(source.kind) + (f" by {source.author}" if source.author else "")
    episodes = ([source.episode_id] if source.episode_id else []) + [*memory.recurrence.episode_ids]
    said += f" in {', '.join(episodes)}" if episodes else ""
    confirmed = confirmation(memory)
    return f"{said}, {confirmed}" if confirmed else said


def _changes(entries: Sequence[HistoryEntry]) -> Iterator[tuple[HistoryEntry, str]]:
    """Yield each entry with what made it differ from the version of its row before it."""
    in_order = sorted(entries, key=lambda entry: entry.recorded_from_revision)
    before: dict[str, Memory] = {}
    changes: dict[int, str] = {}
    for entry in in_order:
        memory = entry.memory
        changes[id(entry)] = _change(before.get(memory.id), entry)
        before[memory.id] = memory
    for entry in entries:
        yield entry, changes[id(entry)]


def _change(old: Memory | None, entry: HistoryEntry) -> str:
    new = entry.memory
    if new.retracted_at is not None and (old is None or old.retracted_at is None):
        return f"corrected by {new.superseded_by}" if new.superseded_by else "retracted"
    if old is None:
        expires = expiry(new)
        return f"stated, expires {expires}" if expires else "stated"
    return _change_of(old, new, entry)


def _change_of(old: Memory, new: Memory, entry: HistoryEntry) -> str:
    expires = expiry(new)
    if new.retracted_at is None and old.retracted_at is not None:
        return "restored"
    if new.status != old.status or new.recurrence.count > old.recurrence.count:
        # A candidate, or what was stated, may be confirmed now, and once more by somebody else.
        again = new.status == old.status and new.confirmation == old.confirmation
        return "stated again" if again else new.status.value
    if new.expires_at != old.expires_at:
        known = entry.recorded_from
        gone = new.expires_at is not None and (known is None or new.expires_at <= known)
        return f"forgotten {moment(new.expires_at)}" if gone else f"expires {expires or 'never'}"
    if new.superseded_by != old.superseded_by or new.valid_to != old.valid_to:
        return f"superseded by {new.superseded_by}" if new.superseded_by else "valid time changed"
    return "changed"
