"""``pillion info``."""

from __future__ import annotations

import click

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import moment


@click.command()
@shared_options()
@pass_session
def info(session: Session) -> None:
    """Show what the server is, can do, and its limits."""
    with session.client() as client:
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
                (name.replace("_", " "), str(limit))
                for name, limit in document(found.limits).items()
            ),
        ],
    )
