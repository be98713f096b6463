"""``pillion neighbors``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pillion_client import EdgeDirection, GraphExpansion

from pillion.cli.documents import document
from pillion.cli.parameters import SUBJECT
from pillion.cli.selecting import read_options, taken_read
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import path_text

if TYPE_CHECKING:
    from pillion_client import Neighbor, NeighborsResult, Subject

_COLUMNS = ("reached", "path", "memories")
_DIRECTIONS = [one.value for one in EdgeDirection if one is not EdgeDirection.UNSPECIFIED]


@click.command()
@click.argument("subjects", type=SUBJECT, nargs=-1, required=True, metavar="SUBJECT...")
@click.option(
    "--direction",
    type=click.Choice(_DIRECTIONS),
    default="out",
    show_default=True,
    help="From subjects to their values, from values to subjects, or both.",
)
@click.option("--depth", type=int, default=1, show_default=True, help="How many edges far, to 3.")
@click.option("--fan-out", type=int, default=20, show_default=True, help="Edges of each subject.")
@click.option("--along", "attributes", multiple=True, help="Only along these attributes.")
@click.option("--context", "contexts", multiple=True, help="In which contexts.")
@click.option("--edges", "edges_max", type=int, default=100, show_default=True, help="At most.")
@read_options
@shared_options()
@pass_session
def neighbors(
    session: Session,
    /,
    subjects: tuple[Subject, ...],
    *,
    direction: str,
    depth: int,
    fan_out: int,
    attributes: tuple[str, ...],
    contexts: tuple[str, ...],
    edges_max: int,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Show whom facts whose value is a subject lead to.

    A fact `user:mira employer = org:acme` leads from user:mira to org:acme, and back with
    --direction in.
    """
    read = taken_read(given)
    with session.client() as client:
        result = client.neighbors(
            subjects,
            direction=direction,
            expansion=GraphExpansion(depth, fan_out, attributes),
            contexts=contexts,
            edges_max=edges_max,
            **read,
        )
    if session.json:
        session.output.document(document(result))
    else:
        _show(session, result)


def _show(session: Session, result: NeighborsResult) -> None:
    output = session.output
    if not result.neighbors:
        output.line("nothing is connected")
    else:
        output.records(_COLUMNS, [_row(one) for one in result.neighbors], lead=2)
    if result.truncated:
        output.note("there is more: raise --fan-out or --edges")


def _row(neighbor: Neighbor) -> tuple[str, str, str]:
    memories = " ".join(edge.memory_id for edge in neighbor.path)
    return str(neighbor.subject), path_text(neighbor.path), memories
