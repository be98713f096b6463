"""``pillion forget``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pillion_client import ForgetMode, Memory, PermissionDenied

from pillion.cli.documents import document
from pillion.cli.forgetting import selector_options, taken_selector
from pillion.cli.receipts import show_receipt
from pillion.cli.selecting import member_options, taken_member
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import what

if TYPE_CHECKING:
    from pillion_client import Client, ForgetResult

_SHOWN = 10
_MODES = [mode.value for mode in ForgetMode if mode is not ForgetMode.UNSPECIFIED]


@click.command()
@click.argument("ids", nargs=-1)
@member_options
@selector_options
@click.option(
    "--mode",
    type=click.Choice(_MODES),
    default=ForgetMode.EXPIRE.value,
    show_default=True,
    help="expire: out of recall, in history. retract: no longer so. "
    "erase: gone for good, with all that follows from it.",
)
@click.option("--erase", is_flag=True, help="The same as --mode erase.")
@click.option("--yes", is_flag=True, help="Do it, and not only show what it would take.")
@click.option("--force", is_flag=True, help="Also where it matches everything.")
@click.option("--background", is_flag=True, help="With --yes: as work that goes on by itself.")
@click.option("--dry-run", is_flag=True, help="Only show what it would take, for ids too.")
@click.option("--reason-code", default="", help="Why, for the audit log: a code, no content.")
@shared_options()
@pass_session
def forget(
    session: Session,
    /,
    ids: tuple[str, ...],
    *,
    mode: str,
    erase: bool,
    yes: bool,
    force: bool,
    background: bool,
    dry_run: bool,
    reason_code: str,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Take memories out of recall, retract or erase them.

    IDs are forgotten at once. Anything else, and whatever is to be erased, is only shown first;
    --yes shows it and does it.
    """
    mode = ForgetMode.ERASE.value if erase else mode
    if yes and dry_run:
        message = "--yes and --dry-run contradict each other: give one"
        raise click.UsageError(message)
    selector = taken_selector(ids, taken_member(given), given)
    call = {**selector, "mode": mode, "reason_code": reason_code}
    made: dict[str, ForgetResult] = {}
    taken: list[Memory] = []
    with session.client() as client:
        erases = mode == ForgetMode.ERASE.value
        if dry_run or not ids or erases:
            made["preview"] = client.forget(**call, dry_run=True)
            taken = [] if session.json else _examples(client, made["preview"])
        if not dry_run and (yes or (ids and not erases)):
            seen = made["preview"].revision if "preview" in made else 0
            made["result"] = client.forget(
                **call,
                dry_run=False,
                force=force,
                preview_revision=seen,
                background=background,
            )
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
            ("held, and kept", ", ".join(report.exempt_ids)),
            ("not in the preview", str(report.unpreviewed) if report.unpreviewed else ""),
        ],
    )
    if report.receipt is not None:
        show_receipt(output, report.receipt)
