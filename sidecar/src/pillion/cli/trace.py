"""``pillion trace``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from pillion_client import Memory
from pillion_client.traces import TRACE_RECORDS_MAX

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import about, by_whom, interval, moment, shortened, what

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_client import Record, Trace, TraceLink

_UP: Final = {
    "stated": "stated by",
    "supported": "supported by",
    "confirmed": "confirmed by",
    "derived": "derived from",
}
_DOWN: Final = {
    "stated": "states",
    "supported": "supports",
    "confirmed": "confirms",
    "derived": "led to",
}


@click.command()
@click.argument("record", metavar="ID")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=TRACE_RECORDS_MAX,
    show_default=True,
    help="Follow at most this many records.",
)
@shared_options()
@pass_session
def trace(session: Session, record: str, *, limit: int) -> None:
    """Show what a record came from, and what came from it.

    The id is that of a memory or an episode. Sources are followed up to the episodes, and on the
    other side everything that was stated by, supported by, confirmed by or derived from the record.
    """
    output = session.output
    with session.client() as client:
        found = client.trace(record, records_max=limit)
    if session.json:
        output.document(
            {
                "root": found.root.id,
                "complete": found.complete,
                "links": [
                    {"source": one.source_id, "derived": one.derived_id, "how": one.how}
                    for one in found.links
                ],
                "records": [document(one) for one in found.records.values()],
            }
        )
        return
    output.line(_line(found.root))
    for line in _tree(found, found.root.id, up=True):
        output.line(line)
    for line in _tree(found, found.root.id, up=False):
        output.line(line)
    if not found.complete:
        output.line(f"the first {limit}; --limit shows more")


def _tree(found: Trace, root_id: str, *, up: bool) -> Iterator[str]:
    """Yield the lines of one direction, each record below what leads to it, once."""
    shown = {root_id}

    def steps(record_id: str) -> tuple[TraceLink, ...]:
        return found.sources_of(record_id) if up else found.derived_of(record_id)

    pending = [(link, 1) for link in reversed(steps(root_id))]
    while pending:
        link, depth = pending.pop()
        next_id = link.source_id if up else link.derived_id
        record = found.records.get(next_id)
        verb = (_UP if up else _DOWN)[link.how]
        indent = "  " * depth
        if record is None:
            yield f"{indent}{verb} {next_id} (gone, or not followed)"
        elif next_id in shown:
            yield f"{indent}{verb} {next_id} (see above)"
        else:
            shown.add(next_id)
            yield f"{indent}{verb} {_line(record)}"
            pending += [(one, depth + 1) for one in reversed(steps(next_id))]


def _line(record: Record) -> str:
    """Return a record in one line: what it is, its id, whom it is about, when and what it says."""
    if isinstance(record, Memory):
        when = f"valid {interval(record.valid_from, record.valid_to)}"
        said = f"{what(record)}" + (f' "{record.source.quote}"' if record.source.quote else "")
        if record.confirmation is not None:
            said += f", confirmed{by_whom(record.confirmation)}"
        kind = f"memory ({record.status.value})"
    else:
        when = moment(record.occurred_at)
        said = f'"{shortened(record.content)}"'
        kind = "episode" + (f" by {record.author}" if record.author else "")
    return " ".join(f"{kind} {record.id}  {about(record)}, {when}: {said}".split("\n"))
