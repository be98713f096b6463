"""``pillion forget``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from pillion_client import FactKey, ForgetMode, Memory, PermissionDenied, Whole

from pillion.cli.documents import document
from pillion.cli.parameters import SUBJECT
from pillion.cli.selecting import member_options, taken_member
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import what

if TYPE_CHECKING:
    from pillion_client import Client, ForgetResult, Subject

_SHOWN = 10
_MODES = [mode.value for mode in ForgetMode if mode is not ForgetMode.UNSPECIFIED]


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--subject", type=SUBJECT, help="Everything about a subject.")
@click.option("--context", "contexts", multiple=True, help="With --subject: only in these.")
@click.option("--attribute", help="With --subject: only this fact.")
@member_options
@click.option("--episode", "episode_id", help="Everything that came from an episode.")
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    default=ForgetMode.EXPIRE.value,
    show_default=True,
    help="expire: out of recall, in history. retract: no longer so. "
    "erase: gone for good; this version does not serve it yet.",
)
@click.option("--yes", is_flag=True, help="Do it, and not only show what it would take.")
@click.option("--dry-run", is_flag=True, help="Only show what it would take, for ids too.")
@click.option("--reason-code", default="", help="Why, for the audit log: a code, no content.")
@shared_options()
@pass_session
def forget(
    session: Session,
    /,
    ids: tuple[str, ...],
    *,
    subject: Subject | None,
    contexts: tuple[str, ...],
    attribute: str | None,
    episode_id: str | None,
    mode: str,
    yes: bool,
    dry_run: bool,
    reason_code: str,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Take memories out of recall, or retract them.

    IDs are forgotten at once. Anything else is only shown first; --yes shows it and does it.
    """
    if yes and dry_run:
        message = "--yes and --dry-run contradict each other: give one"
        raise click.UsageError(message)
    selector = _selector(ids, subject, contexts, attribute, episode_id)
    member = taken_member(given)
    if not isinstance(member, Whole):
        if "fact" not in selector:
            message = "--member narrows a fact: give --subject and --attribute too"
            raise click.UsageError(message)
        selector["fact"] = replace(selector["fact"], member=member)
    call = {**selector, "mode": mode, "reason_code": reason_code}
    made: dict[str, ForgetResult] = {}
    taken: list[Memory] = []
    with session.client() as client:
        if dry_run or not ids:
            made["preview"] = client.forget(**call, dry_run=True)
            taken = [] if session.json else _examples(client, made["preview"])
        if not dry_run and (ids or yes):
            made["result"] = client.forget(**call, dry_run=False)
    if session.json:
        session.output.document(document(made))
        return
    for name, result in made.items():
        preview = name == "preview"
        _show(session, result, "would be forgotten" if preview else "forgotten")
        if preview:
            for memory in taken:
                session.output.record((memory.id, str(memory.subject), what(memory)), 3)
    if "result" not in made and not dry_run:
        session.output.note("nothing was changed; say --yes to do it")


def _selector(
    ids: tuple[str, ...],
    subject: Subject | None,
    contexts: tuple[str, ...],
    attribute: str | None,
    episode_id: str | None,
) -> dict[str, Any]:
    if sum([bool(ids), subject is not None, episode_id is not None]) != 1:
        message = "say what to forget by one of: ids, --subject, --episode"
        raise click.UsageError(message)
    if subject is None and (contexts or attribute is not None):
        message = "--context and --attribute narrow a subject: give --subject too"
        raise click.UsageError(message)
    if ids:
        return {"ids": ids}
    if subject is None:
        return {"episode_id": episode_id}
    if attribute is None:
        return {"subject": subject, "contexts": contexts}
    if len(contexts) > 1:
        message = "one fact lives in one context: give --context once"
        raise click.UsageError(message)
    return {"fact": FactKey(subject, attribute, *contexts)}


def _examples(client: Client, preview: ForgetResult) -> list[Memory]:
    """Return some of the memories that a preview is of, to show what they say."""
    ids = preview.report.sample_ids[:_SHOWN] if preview.report is not None else ()
    if not ids:
        return []
    try:
        return [one for one in client.batch_get(ids) if isinstance(one, Memory)]
    except PermissionDenied:  # who may forget need not be one who may read
        return []


def _show(session: Session, result: ForgetResult, done: str) -> None:
    output = session.output
    report = result.report
    if report is None:
        name = result.operation.name if result.operation else ""
        output.line(f"the work goes on in the background as {name}")
        return
    output.line(
        f"{done}: {report.memories} memories, {report.episodes} episodes, {report.derived} derived"
    )
    if not (report.memories or report.episodes):
        output.line("nothing was left to do: all of it had ended, or was forgotten before")
    output.pairs(
        "",
        [
            ("for example", ", ".join(report.sample_ids[:_SHOWN])),
            ("exempt", ", ".join(report.exempt_ids)),
            ("receipt", report.receipt.id if report.receipt else ""),
        ],
    )
