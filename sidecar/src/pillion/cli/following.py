"""Long work at the terminal: how far it is until it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_client import OperationState

from pillion.cli.documents import document
from pillion.cli.exits import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_client import Client, Operation

    from pillion.cli.session import Session

# How long one call waits for the end, in seconds; the work is shown as it is in between.
LOOK_SECONDS: Final = 1.0


def follow(
    session: Session,
    client: Client,
    operation: Operation,
    show_end: Callable[[Session, Operation], None],
) -> int | None:
    """Show how far long work is until it has ended; interrupted, the work goes on.

    ``show_end`` tells how it ended, where that is not told as JSON.
    """
    output = session.output
    output.note(f"operation {operation.name}; it goes on if you leave")
    with output.progress(of_bytes=False) as progress:
        task = progress.add_task(operation.verb, total=operation.total_units or None, counts="")
        while operation.state is OperationState.RUNNING:
            operation = client.wait_operation(operation.name, deadline_seconds=LOOK_SECONDS)
            progress.update(task, completed=operation.done_units)
    if session.json:
        output.document(document(operation))
    else:
        show_end(session, operation)
    return None if operation.state is OperationState.SUCCEEDED else ExitCode.REFUSED


def show_units(session: Session, operation: Operation) -> None:
    """Tell how work ended, and of how many units."""
    why = f": {operation.failure_reason}" if operation.failure_reason else ""
    session.output.line(
        f"{operation.verb} {operation.state.value}{why}: {operation.done_units} {operation.unit}"
    )
