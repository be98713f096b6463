"""``pillion info``."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Final

import click

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import moment

_HOUR: Final = 3600


@click.command()
@click.option(
    "--wait",
    "wait_seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait this long for a server that is starting.",
)
@shared_options()
@pass_session
def info(session: Session, wait_seconds: float | None) -> None:
    """Show what the server is, can do, and its limits."""
    with session.client() as client:
        if wait_seconds is not None:
            client.wait_until_ready(wait_seconds)
        found = client.info()
        target, healthy = client.target, client.health()
    output = session.output
    if session.json:
        output.document({**document(found), "target": target, "healthy": healthy})
        return
    embedder = found.embedder
    output.pairs(
        f"Pillion {found.server_version} at {target}",
        [
            ("healthy", "yes" if healthy else "no"),
            ("contract", found.contract),
            ("store", found.store),
            (
                "embedder",
                f"{embedder.name} {embedder.version}, {embedder.dimension} dimensions"
                if embedder
                else "none",
            ),
            ("serves since", moment(found.started_at)),
            ("can", ", ".join(sorted(found.capabilities))),
            *(
                (
                    field.name.replace("_bytes", "").replace("_", " "),
                    _limit(field.name, getattr(found.limits, field.name)),
                )
                for field in dataclasses.fields(found.limits)
            ),
        ],
    )


def _limit(name: str, limit: object) -> str:
    """Return a limit with its unit; "" when it is not published."""
    if not limit:
        return "for ever" if name == "history_window" else ""
    if isinstance(limit, timedelta):
        seconds = limit.total_seconds()
        return f"{seconds / _HOUR:g} h" if seconds >= _HOUR else f"{seconds:g} s"
    return f"{limit:,} bytes" if "bytes" in name else f"{limit:,}"
