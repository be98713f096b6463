"""``pillion retract``, ``restore`` and ``confirm``: what becomes of what was stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from pillion_client import (
    Confirm,
    Precondition,
    Restore,
    Retract,
    Source,
    SourceKind,
    must_exist,
    unconditional,
    version_equals,
)

from pillion.cli.parameters import INSTANT
from pillion.cli.selecting import fact_or_id, member_options, taken_member
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.write import call_options, show_written

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pillion_client import Mutation

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")


def _common(command: CommandT) -> CommandT:
    """Add the options that all three commands have."""
    options = (
        click.option("--if-version", type=click.IntRange(min=1), help="Only if its version is N."),
        click.option("--request-id", help="Makes a repetition safe. Default: a new UUID."),
        click.option("--validate-only", is_flag=True, help="Check everything, change nothing."),
        shared_options(),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("record", metavar="ID|SUBJECT")
@click.argument("attribute", required=False)
@click.option("--context", default="", help="The context of the fact.")
@member_options
@click.option("--at", type=INSTANT, help="From this instant on. Default: now.")
@_common
@pass_session
def retract(
    session: Session,
    /,
    record: str,
    attribute: str | None,
    *,
    context: str,
    at: datetime | None,
    if_version: int | None,
    **given: Any,  # noqa: ANN401  (see `selecting` and `write.call_options`)
) -> None:
    """Say that a memory, or a fact, is no longer so.

    An id is that of a memory. A SUBJECT (type:id) comes with an ATTRIBUTE: then the row that holds
    --at is meant. From its very beginning on it was never so. `pillion restore` takes it back.
    """
    target = fact_or_id(record, attribute, context, taken_member(given))
    change = Retract(target, _condition(if_version, unconditional), at)
    _write(session, change, given, f"{record} {attribute}" if attribute is not None else record)


@click.command()
@click.argument("memory_id", metavar="ID")
@_common
@pass_session
def restore(
    session: Session,
    /,
    memory_id: str,
    *,
    if_version: int | None,
    **given: Any,  # noqa: ANN401  (see `write.call_options`)
) -> None:
    """Take the last retraction of a memory back.

    Only the last one: what an earlier retraction of the same memory took stays as it is.
    """
    _write(session, Restore(memory_id, _condition(if_version, must_exist)), given, memory_id)


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option("--episode", "episode_id", help="The episode that holds the words.")
@click.option("--quote", help="The exact words.")
@click.option("--author", help="Who confirmed it.")
@_common
@pass_session
def confirm(
    session: Session,
    /,
    memory_id: str,
    *,
    episode_id: str | None,
    quote: str | None,
    author: str | None,
    if_version: int | None,
    **given: Any,  # noqa: ANN401  (see `write.call_options`)
) -> None:
    """Record that a user confirmed a memory: a guess becomes a fact by it."""
    source = Source(SourceKind.USER_CONFIRMATION, episode_id, quote, author)
    change = Confirm(memory_id, source, _condition(if_version, must_exist))
    _write(session, change, given, memory_id)


def _condition(if_version: int | None, otherwise: Precondition) -> Precondition:
    return version_equals(if_version) if if_version is not None else otherwise


def _write(session: Session, change: Mutation, given: dict[str, Any], what: str) -> None:
    with session.client() as client:
        result = client.write(change, **call_options(given))
    show_written(session, result, what)
