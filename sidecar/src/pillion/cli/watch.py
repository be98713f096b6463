"""``pillion watch``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click
from pillion_client import Episode

from pillion.cli.documents import document
from pillion.cli.selecting import condition_options, taken_filter
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import about, moment, shortened, what

if TYPE_CHECKING:
    from pillion_client import Filter, RecordChange, WatchEvent


@click.command()
@click.option(
    "--after",
    type=click.IntRange(min=0),
    help="Begin after this revision; 0: with the oldest commit kept. Default: from now on.",
)
@click.option(
    "--heartbeat",
    type=click.FloatRange(1, 300),
    help="Seconds of silence after which the server says so. Default: 30.",
)
@condition_options
@shared_options()
@pass_session
def watch(
    session: Session,
    /,
    *,
    after: int | None,
    heartbeat: float | None,
    **given: Any,  # noqa: ANN401
) -> None:
    """Show changes as they are committed, until interrupted.

    Each line has the revision of its commit: --after goes on from there another time. Restarts
    of the server are waited for. With --json: one commit per line, and heartbeats, which have no
    changes.
    """
    output = session.output
    with session.client() as client:
        for event in client.watch(after, filter=_chosen(given), heartbeat_seconds=heartbeat):
            if session.json:
                output.document(document(event))
            else:
                for change in event.changes:
                    output.record(_row(event, change), lead=3)
                sys.stdout.flush()  # whoever reads a pipe waits for it


def _chosen(given: dict[str, Any]) -> Filter | None:
    """Return the filter; without any condition every record in every context is shown."""
    named = any(given.values())
    chosen = taken_filter(given)
    return chosen if named else None


def _row(event: WatchEvent, change: RecordChange) -> tuple[str, ...]:
    record = change.record
    start = (str(event.revision), str(change.kind))
    if record is None:
        return (*start, change.id)
    said = shortened(record.content) if isinstance(record, Episode) else what(record)
    return (*start, said, change.id, about(record), moment(event.recorded_at))
