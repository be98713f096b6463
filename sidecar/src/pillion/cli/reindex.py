"""``pillion reindex``."""

from __future__ import annotations

import click

from pillion.cli.following import follow, show_units
from pillion.cli.session import Session, pass_session, shared_options


@click.command()
@click.option(
    "--re-embed",
    is_flag=True,
    help="Also make every vector anew, with the server's embedder.",
)
@shared_options()
@pass_session
def reindex(session: Session, *, re_embed: bool) -> int | None:
    """Build a partition's indexes anew, and its vectors if asked for.

    Texts that were written without an embedder get vectors by it, and a partition whose vectors are
    another embedder's takes writes again. Searches and writes go on meanwhile.
    """
    with session.client() as client:
        return follow(session, client, client.reindex(re_embed=re_embed), show_units)
