"""``pillion hold``."""

from __future__ import annotations

import click
from pillion_client import Subject

from pillion.cli.session import Session, pass_session, shared_options


@click.command()
@click.argument("held", metavar="ID|SUBJECT")
@click.option("--reason-code", required=True, help="Why: a code, no content.")
@click.option("--lift", is_flag=True, help="Lift the hold instead.")
@shared_options()
@pass_session
def hold(session: Session, /, held: str, *, reason_code: str, lift: bool) -> None:
    """Put a legal hold on a record, or on all about a subject.

    What is held is neither forgotten nor erased until the hold is lifted. An id is that of a
    memory or an episode; of a SUBJECT (type:id) what is recorded later is held too.
    """
    about = Subject.parse(held) if ":" in held else None
    with session.client() as client:
        count = client.set_legal_hold(
            not lift,
            record_id=None if about is not None else held,
            subject=about,
            reason_code=reason_code,
        )
    if session.json:
        session.output.document({"held": count})
    elif lift:
        session.output.line("lifted")
    else:
        session.output.line(f"held: {count} records")
