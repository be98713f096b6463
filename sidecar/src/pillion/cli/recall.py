"""``pillion recall``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pillion_client import RecallPurpose, RecallSection

from pillion.cli.documents import document
from pillion.cli.parameters import SUBJECT, SectionBudgetType
from pillion.cli.selecting import read_options, taken_read
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from pillion_client import RecallResult, Subject

_BUDGET: int = 1000


@click.command()
@click.argument("subject", type=SUBJECT)
@click.argument("query", required=False, default="")
@click.option(
    "--budget", type=int, default=_BUDGET, show_default=True, help="Tokens that it may take."
)
@click.option("--also", "others", type=SUBJECT, multiple=True, help="About whom else.")
@click.option("--context", "contexts", multiple=True, help="In which contexts.")
@click.option("--counter", default="", help="Who counts tokens, by plug-in name.")
@click.option(
    "--section",
    "sections",
    type=SectionBudgetType(),
    multiple=True,
    metavar="SECTION=TOKENS",
    help="A budget of its own for a section, for example related=300.",
)
@click.option("--start", is_flag=True, help="For the start of a session: profile and summaries.")
@read_options
@shared_options()
@pass_session
def recall(
    session: Session,
    /,
    subject: Subject,
    query: str,
    *,
    budget: int,
    others: tuple[Subject, ...],
    contexts: tuple[str, ...],
    counter: str,
    sections: tuple[tuple[RecallSection, int], ...],
    start: bool,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Show what a model should see in one turn about a subject.

    With a QUERY also what has to do with it; without, only what stands: facts, open items and the
    last summaries.
    """
    read = taken_read(given)
    with session.client() as client:
        result = client.recall(
            [subject, *others],
            query,
            token_budget=budget,
            contexts=contexts,
            token_counter=counter,
            section_budgets=dict(sections),
            purpose=RecallPurpose.SESSION_START if start else RecallPurpose.UNSPECIFIED,
            **read,
        )
    if session.json:
        session.output.document(document(result))
    else:
        _show(session, result, budget)


def _show(session: Session, result: RecallResult, budget: int) -> None:
    output = session.output
    for line in result.text.splitlines():
        output.line(line, "bold" if line.startswith("#") else "")
    about = "about " if result.tokens_estimated else ""
    output.note(
        f"{about}{result.tokens} of {budget} tokens, {len(result.lines)} lines, "
        f"at revision {result.revision}"
    )
    for one in result.omitted:
        output.note(f"left out: {one.memory_id} of {one.section.value} ({one.reason})")
