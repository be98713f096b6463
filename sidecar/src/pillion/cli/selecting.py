"""The options of commands that read: which memories, and as of when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from pillion_client import FactKey, Filter, MemoryKind, Subject, ValidityFilter

from pillion.cli.parameters import INSTANT, SUBJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_client.options import ReadOptions

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")
_KINDS = [kind.value for kind in MemoryKind if kind is not MemoryKind.UNSPECIFIED]


def read_options(command: CommandT) -> CommandT:
    """Add the options that say which instants of the two clocks a read asks about."""
    command = recorded_options(command)
    as_of = "What was so then. Default: --known-at, or when --at-revision was recorded, or now."
    return click.option("--as-of", type=INSTANT, help=as_of)(command)


def recorded_options(command: CommandT) -> CommandT:
    """Add the options that say which recorded state is read."""
    options = (
        click.option("--known-at", type=INSTANT, help="What was known then. Default: now."),
        click.option(
            "--at-revision",
            "exact_revision",
            type=click.IntRange(min=0),
            help="What was known at this revision.",
        ),
        click.option("--at-least-revision", type=int, help="Wait until this revision can be read."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def condition_options(command: CommandT) -> CommandT:
    """Add the options that say which memories take part."""
    options = (
        click.option("--subject", "subjects", type=SUBJECT, multiple=True, help="About whom."),
        click.option("--context", "contexts", multiple=True, help="In which contexts."),
        click.option("--all-contexts", is_flag=True, help="In every context."),
        click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True),
        click.option("--attribute", "attributes", multiple=True, help="Facts only, of these."),
        click.option("--label", "labels_all", multiple=True, help="With all of these labels."),
        click.option("--session", "session_ids", multiple=True, help="Of these sessions."),
        click.option("--superseded", is_flag=True, help="Also what is not valid (any more)."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def fact_or_id(record: str, attribute: str | None, context: str) -> FactKey | str:
    """Return the fact that a SUBJECT and an ATTRIBUTE name, or the id that comes alone.

    Raises:
        UsageError: A subject came without an attribute; ids have no colon.
        ValueError: An attribute came with what is no subject.
    """
    if attribute is not None:
        return FactKey(Subject.parse(record), attribute, context)
    if ":" in record:
        message = (
            f"a subject needs an ATTRIBUTE; `pillion list --subject {record}` shows everything "
            "about it"
        )
        raise click.UsageError(message)
    return record


def taken_filter(given: dict[str, Any]) -> Filter:
    """Take the conditions out of a command's options and return them as a filter."""
    superseded = given.pop("superseded")
    names = (
        "subjects",
        "contexts",
        "all_contexts",
        "kinds",
        "attributes",
        "labels_all",
        "session_ids",
    )
    return Filter(
        validity=ValidityFilter.ANY if superseded else ValidityFilter.UNSPECIFIED,
        **{name: given.pop(name) for name in names},
    )


def taken_read(given: dict[str, Any]) -> ReadOptions:
    """Take the instants out of a command's options.

    Raises:
        UsageError: Two options name a recorded state.
    """
    if given["known_at"] is not None and given["exact_revision"] is not None:
        message = "--known-at and --at-revision both name a recorded state: give one of them"
        raise click.UsageError(message)
    return {
        "as_of": given.pop("as_of", None),
        "known_at": given.pop("known_at"),
        "exact_revision": given.pop("exact_revision"),
        "at_least_revision": given.pop("at_least_revision"),
    }
