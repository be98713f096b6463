"""``pillion history``."""

from __future__ import annotations

import click
from pillion_client import FactKey, Subject

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import moment, what


@click.command()
@click.argument("record", metavar="ID|SUBJECT")
@click.argument("attribute", required=False)
@click.option("--context", default="", help="The context of the fact.")
@shared_options()
@pass_session
def history(session: Session, record: str, attribute: str | None, *, context: str) -> None:
    """Show a fact's whole timeline, or a memory's versions.

    An id is that of a memory. A SUBJECT (type:id) comes with an ATTRIBUTE. With --json: one
    entry per line.
    """
    chosen: str | FactKey = record
    if attribute is not None:
        chosen = FactKey(Subject.parse(record), attribute, context)
    output = session.output
    with session.client() as client:
        entries = client.history(chosen)
        if session.json:
            for entry in entries:
                output.document(document(entry))
            return
        rows = [
            (
                what(entry.memory),
                moment(entry.memory.valid_from),
                moment(entry.memory.valid_to, "open"),
                moment(entry.recorded_from),
                moment(entry.recorded_to, "still held"),
                entry.memory.source.episode_id or str(entry.memory.source.kind),
                entry.memory.id,
            )
            for entry in entries
        ]
    if not rows:
        output.line("no history")
        return
    columns = ("what", "valid from", "valid to", "known from", "known to", "source", "id")
    output.table("", columns, rows)
