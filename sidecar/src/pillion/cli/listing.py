"""``pillion list``."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from pillion_client import Episode

from pillion.cli.documents import document
from pillion.cli.selecting import condition_options, read_options, taken_filter, taken_read
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import MEMORY_COLUMNS, about, memory_row, moment, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_client import Record

_EPISODE_COLUMNS = ("content", "id", "about", "occurred", "source")


@click.command(name="list")
@click.option("--episodes", is_flag=True, help="List episodes instead of memories.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most this many."
)
@condition_options
@read_options
@shared_options()
@pass_session
def list_(session: Session, /, *, episodes: bool, limit: int, **given: Any) -> None:  # noqa: ANN401
    """List memories or episodes, oldest first.

    With --json: one record per line.
    """
    chosen, read = taken_filter(given), taken_read(given)
    output = session.output
    with session.client() as client:
        find = client.list_episodes if episodes else client.list
        found: Iterator[Record] = find(filter=chosen, page_size=min(limit, 1000), **read)
        if session.json:
            for record in islice(found, limit):
                output.document(document(record))
            return
        shown = list(islice(found, limit))
        more = next(found, None) is not None
    if not shown:
        output.line("nothing matched")
        return
    columns = _EPISODE_COLUMNS if episodes else MEMORY_COLUMNS
    output.records(columns, [_row(record) for record in shown], lead=1)
    if more:
        output.line(f"the first {limit}; --limit shows more")


def _row(record: Record) -> tuple[str, ...]:
    if isinstance(record, Episode):
        return (
            shortened(record.content),
            record.id,
            about(record),
            moment(record.occurred_at),
            record.source_kind.value,
        )
    return memory_row(record)
