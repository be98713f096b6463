"""``pillion stats``."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.filesize import decimal

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options


@click.command()
@click.option(
    "--all", "every_partition", is_flag=True, help="Of every partition, not only of yours."
)
@shared_options()
@pass_session
def stats(session: Session, *, every_partition: bool) -> None:
    """Show how much is stored and what lags."""
    with session.client() as client:
        found = client.stats(every_partition=every_partition)
    output = session.output
    if session.json:
        output.document(document(found))
        return
    store = found.store
    output.pairs(
        f"store {store.kind}, format {store.format_version}",
        [
            ("on disk", f"{decimal(store.disk_bytes)} of {decimal(store.disk_bytes_max)}"),
            ("commits", f"{store.commits} in {store.flushes} flushes"),
            ("waiting writes", str(store.queue_depth)),
            ("process", decimal(found.resident_bytes)),
            (
                "up for",
                str(timedelta(seconds=round(found.uptime.total_seconds()))) if found.uptime else "",
            ),
        ],
    )
    for one in found.partitions:
        output.line(
            f"{one.partition.namespace}/{one.partition.tenant}: revision {one.revision}, "
            f"{one.memories} memories, {one.episodes} episodes, "
            f"{one.records} records ({decimal(one.record_bytes)}), "
            f"{one.vectors_pending} vectors pending, {one.vectors_failed} failed, "
            f"index lag {one.index_lag}"
        )
