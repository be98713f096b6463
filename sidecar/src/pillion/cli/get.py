"""``pillion get``."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click
from pillion_client import FactKey, NotFound

from pillion.cli.documents import document
from pillion.cli.selecting import fact_or_id, member_options, read_options, taken_member, taken_read
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import show_record

if TYPE_CHECKING:
    from pillion_client import Client, Memory, Record
    from pillion_client.options import ReadOptions


@click.command()
@click.argument("record", metavar="ID|SUBJECT")
@click.argument("attribute", required=False)
@click.option("--context", default="", help="The context of the fact.")
@member_options
@read_options
@shared_options()
@pass_session
def get(
    session: Session,
    /,
    record: str,
    attribute: str | None,
    *,
    context: str,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Show a memory, an episode, or the row of a fact that holds.

    An id is that of a memory or episode. A SUBJECT (type:id) comes with an ATTRIBUTE: then the
    row that holds --as-of is shown. Where the attribute is a set, --member names which.
    """
    read = taken_read(given)
    chosen = fact_or_id(record, attribute, context, taken_member(given))
    with session.client() as client:
        found: Record
        if isinstance(chosen, FactKey):
            found = _of_fact(client, chosen, read)
        else:
            found = _by_id(client, chosen, read)
    if session.json:
        session.output.document(document(found))
    else:
        show_record(session.output, found)


def _of_fact(client: Client, key: FactKey, read: ReadOptions) -> Memory:
    """Return the row of a fact that holds, or say where to see what held at other times."""
    try:
        return client.get_fact(key.subject, key.attribute, key.context, member=key.member, **read)
    except NotFound as error:
        words = ["pillion", "history", str(key.subject), key.attribute]
        words += ["--context", key.context] if key.context else []
        message = f"{error.message}; `{shlex.join(words)}` shows what was stated of it"
        raise NotFound(message, reason=error.reason, metadata=error.metadata) from error


def _by_id(client: Client, record_id: str, read: ReadOptions) -> Record:
    """Return the memory of an id, or else the episode of it."""
    try:
        return client.get(record_id, **read)
    except NotFound:
        pass
    try:
        return client.get_episode(record_id, **read)
    except NotFound as error:
        message = f"there is no memory or episode {record_id}"
        raise NotFound(message, reason=error.reason, metadata=error.metadata) from error
