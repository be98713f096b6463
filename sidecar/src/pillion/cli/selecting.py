"""The options of commands that read: which memories, and as of when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from pillion_client import (
    WHOLE,
    FactKey,
    Filter,
    MemoryKind,
    OlderStatements,
    Ranking,
    Subject,
    ValidityFilter,
    Whole,
)

from pillion.cli.parameters import INSTANT, SUBJECT, VALUE_TYPES, fact_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_client import Value
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


def ranking_options(command: CommandT) -> CommandT:
    """Add the options that say how what was found is put in order."""
    options = (
        click.option("--profile", default="", help="A ranking profile of the server's settings."),
        click.option("--diversity", type=float, help="0: by score alone; 1: as diverse as can be."),
        click.option("--fold", is_flag=True, help="Fold older statements into the latest one."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def taken_ranking(given: dict[str, Any]) -> dict[str, Any]:
    """Take the order out of a command's options, as arguments of a search."""
    profile, diversity = given.pop("profile"), given.pop("diversity")
    fold = OlderStatements.FOLD if given.pop("fold") else OlderStatements.UNSPECIFIED
    ranking = (
        Ranking(name=profile, diversity=diversity) if profile or diversity is not None else None
    )
    return {"ranking": ranking, "older_statements": fold}


def member_options(command: CommandT) -> CommandT:
    """Add the options that name one member of an attribute that is a set."""
    options = (
        click.option("--member", help="Of an attribute that is a set: this one, by its value."),
        click.option(
            "--member-type",
            type=click.Choice(VALUE_TYPES),
            default="text",
            show_default=True,
            help="What the member is.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def taken_member(given: dict[str, Any]) -> Value | Whole:
    """Take the member out of a command's options.

    Raises:
        BadParameter: The word is not of its type.
    """
    member, kind = given.pop("member"), given.pop("member_type")
    return WHOLE if member is None else fact_value(member, kind, "--member")


def fact_or_id(
    record: str, attribute: str | None, context: str, member: Value | Whole = WHOLE
) -> FactKey | str:
    """Return the fact that a SUBJECT and an ATTRIBUTE name, or the id that comes alone.

    Raises:
        UsageError: A subject came without an attribute (ids have no colon), or a member did.
        ValueError: An attribute came with what is no subject.
    """
    if attribute is not None:
        return FactKey(Subject.parse(record), attribute, context, member)
    if not isinstance(member, Whole):
        message = "--member is of a fact: give a SUBJECT and an ATTRIBUTE"
        raise click.UsageError(message)
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
