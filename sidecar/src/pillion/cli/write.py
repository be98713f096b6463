"""``pillion write fact|memory|episode``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from pillion_client import (
    ConflictPolicy,
    MemoryKind,
    MutationOutcome,
    Precondition,
    Source,
    SourceKind,
    must_exist,
    must_not_exist,
    unconditional,
    version_equals,
)

from pillion.cli.documents import document
from pillion.cli.parameters import INSTANT, SUBJECT, VALUE_TYPES, fact_value, text_or_stdin
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import moment

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pillion_client import Subject, WriteResult

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")
_KINDS = [kind.value for kind in MemoryKind if kind is not MemoryKind.UNSPECIFIED]
_SOURCES = [kind.value for kind in SourceKind if kind is not SourceKind.UNSPECIFIED]
_POLICIES = [policy.value for policy in ConflictPolicy if policy is not ConflictPolicy.UNSPECIFIED]

_GUESS: Final = "a candidate: reads leave it out until it is repeated, or `pillion confirm {id}`"


@click.group()
@shared_options()
def write() -> None:
    """State a fact, add a memory or capture an episode.

    A write has happened when its answer is printed: it is on disk.
    """


def _common(command: CommandT) -> CommandT:
    """Add the options that all three kinds of writes have."""
    options = (
        click.option("--id", "record_id", help="Your own UUID. Default: the server makes one."),
        click.option("--context", default="", help="A mode within the subject."),
        click.option("--label", "labels", multiple=True, help="A label; repeat for several."),
        click.option("--importance", type=float, help="0 to 1. Default: 0.5."),
        click.option("--session", "session_id", help="The session it belongs to."),
        click.option("--expires-at", type=INSTANT, help="When it leaves by itself."),
        click.option("--author", help="Who said it."),
        click.option("--request-id", help="Makes a repetition safe. Default: a new UUID."),
        click.option("--validate-only", is_flag=True, help="Check everything, change nothing."),
        click.option("--wait-for-vector", is_flag=True, help="Answer once it can be searched."),
        shared_options(),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _stated(command: CommandT) -> CommandT:
    """Add the options of what somebody stated at some time: facts and memories."""
    options = (
        click.option(
            "--source",
            "source_kind",
            type=click.Choice(_SOURCES),
            default=SourceKind.USER_STATEMENT.value,
            show_default=True,
            help="Where it comes from.",
        ),
        click.option("--episode", "episode_id", help="The episode that holds the words."),
        click.option("--quote", help="The exact words."),
        click.option("--confidence", type=float, help="0 to 1. Default: 1."),
        click.option("--valid-from", type=INSTANT, help="Since when it is so. Default: now."),
        click.option("--valid-to", type=INSTANT, help="Until when it is so. Default: open."),
        click.option("--pinned", is_flag=True, help="Exempt from decay."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@write.command()
@click.argument("subject", type=SUBJECT)
@click.argument("attribute")
@click.argument("value")
@click.option(
    "--type",
    "kind",
    type=click.Choice(VALUE_TYPES),
    default="text",
    show_default=True,
    help="What the value is.",
)
@click.option("--if-version", type=click.IntRange(min=1), help="Only if the fact's version is N.")
@click.option("--if-new", is_flag=True, help="Only if the fact was never stated.")
@click.option("--if-exists", is_flag=True, help="Only if the fact was stated before.")
@click.option(
    "--conflict-policy",
    type=click.Choice(_POLICIES),
    help="When another statement begins at the same instant.",
)
@_stated
@_common
@pass_session
def fact(
    session: Session,
    /,
    subject: Subject,
    attribute: str,
    value: str,
    *,
    kind: str,
    if_version: int | None,
    if_new: bool,
    if_exists: bool,
    conflict_policy: str | None,
    source_kind: str,
    episode_id: str | None,
    quote: str | None,
    author: str | None,
    **given: Any,  # noqa: ANN401  (the shared options, checked by the client)
) -> None:
    """State a fact: SUBJECT (type:id), ATTRIBUTE and VALUE.

    Without one of the --if options the last writer wins.
    """
    condition = _condition(if_version, if_new=if_new, if_exists=if_exists)
    fields, options = _split(given)
    with session.client() as client:
        result = client.put_fact(
            subject,
            attribute,
            fact_value(value, kind),
            source=Source(source_kind, episode_id, quote, author),
            precondition=condition,
            conflict_policy=conflict_policy or ConflictPolicy.UNSPECIFIED,
            **fields,
            **options,
        )
    show_written(session, result, f"{subject} {attribute}", source_kind)


@write.command()
@click.argument("subject", type=SUBJECT)
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(_KINDS),
    default=MemoryKind.EPISODIC.value,
    show_default=True,
    help="What kind of memory it is.",
)
@_stated
@_common
@pass_session
def memory(
    session: Session,
    /,
    subject: Subject,
    text: str,
    *,
    kind: str,
    source_kind: str,
    episode_id: str | None,
    quote: str | None,
    author: str | None,
    **given: Any,  # noqa: ANN401  (the shared options, checked by the client)
) -> None:
    """Add a memory about SUBJECT (type:id) with this TEXT; - reads it from stdin."""
    fields, options = _split(given)
    with session.client() as client:
        result = client.add_memory(
            subject,
            text_or_stdin(text),
            kind=kind,
            source=Source(source_kind, episode_id, quote, author),
            **fields,
            **options,
        )
    show_written(session, result, f"a memory about {subject}", source_kind)


@write.command()
@click.argument("subject", type=SUBJECT)
@click.argument("content")
@click.option(
    "--source-kind",
    type=click.Choice(_SOURCES),
    default=SourceKind.USER_STATEMENT.value,
    show_default=True,
    help="What sort of source it is.",
)
@click.option("--occurred-at", type=INSTANT, help="When it happened. Default: now.")
@click.option("--external-ref", help="Its id in the system it came from.")
@click.option("--media-type", help="What the content is. Default: text/plain.")
@_common
@pass_session
def episode(
    session: Session,
    /,
    subject: Subject,
    content: str,
    *,
    source_kind: str,
    occurred_at: datetime | None,
    external_ref: str | None,
    media_type: str | None,
    author: str | None,
    **given: Any,  # noqa: ANN401  (the shared options, checked by the client)
) -> None:
    """Capture an episode about SUBJECT (type:id) with this CONTENT; - reads it from stdin."""
    fields, options = _split(given)
    with session.client() as client:
        result = client.capture_episode(
            subject,
            text_or_stdin(content),
            source_kind=source_kind,
            occurred_at=occurred_at,
            external_ref=external_ref,
            media_type=media_type,
            author=author,
            **fields,
            **options,
        )
    show_written(session, result, f"an episode about {subject}")


def _condition(if_version: int | None, *, if_new: bool, if_exists: bool) -> Precondition:
    if sum([if_version is not None, if_new, if_exists]) > 1:
        message = "--if-version, --if-new and --if-exists exclude each other: give one"
        raise click.UsageError(message)
    if if_version is not None:
        return version_equals(if_version)
    if if_new:
        return must_not_exist
    return must_exist if if_exists else unconditional


def _split(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what the shared options gave into the record's fields and the call's options."""
    options = call_options(given)
    if given.pop("wait_for_vector"):
        options["embedding"] = "inline"
    record_id = given.pop("record_id")
    _refuse_empty(record_id, "--id")
    return {"id": record_id, **given}, options


def call_options(given: dict[str, Any]) -> dict[str, Any]:
    """Take the options of the call out of a command's options.

    Raises:
        BadParameter: The request id is empty.
    """
    options: dict[str, Any] = {"validate_only": given.pop("validate_only")}
    request_id = given.pop("request_id")
    _refuse_empty(request_id, "--request-id")  # a new one would make the repetition unsafe
    if request_id is not None:
        options["request_id"] = request_id
    return options


def _refuse_empty(given: str | None, option: str) -> None:
    if given is not None and not given:
        message = "it is empty: give an id, or leave the option out"
        raise click.BadParameter(message, param_hint=option)


def show_written(
    session: Session, result: WriteResult, what: str, source_kind: str | None = None
) -> None:
    """Print what a write of one mutation did.

    A guess is created as a candidate, which no read returns unasked: whoever is not told looks for
    it in vain.
    """
    output = session.output
    if session.json:
        output.document(document(result))
        return
    done = result.only
    guessed = (
        source_kind == SourceKind.INFERENCE.value
        and done.outcome is MutationOutcome.CREATED
        and not done.fact_version
    )
    output.pairs(
        f"{done.outcome.value}: {what}",
        [
            ("id", done.id),
            ("version", str(done.version)),
            ("fact version", str(done.fact_version or "")),
            ("superseded", done.superseded_id or ""),
            ("recalled by", done.memory_id or ""),
            ("holds until", moment(done.valid_to)),
            ("standing", _GUESS.format(id=done.id) if guessed else ""),
            ("request id", result.request_id),
            ("replayed", "yes: this is the first answer" if result.replayed else ""),
        ],
    )
