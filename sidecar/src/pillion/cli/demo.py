"""``pillion demo``: one story through a real server, every answer checked."""

from __future__ import annotations

import contextlib
import os
import uuid
from typing import TYPE_CHECKING, Final

import click
from pillion_client import TARGET_VARIABLE, NoServer

from pillion.cli.demo_story import Step, Story
from pillion.cli.exits import ExitCode
from pillion.cli.private_server import private_server
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion.cli.output import Output

_LOOK_SECONDS: Final = 0.5


@click.command()
@shared_options()
@pass_session
def demo(session: Session) -> int:
    """Play one story through a server and check every answer.

    Uses the server at --target, or the one of this directory; when none is running, starts one
    in a temporary directory and stops it at the end. Writes into a tenant of its own, demo-…,
    so it can be played again. Exit code 1: an answer was wrong.
    """
    output = session.output
    tenant = f"demo-{uuid.uuid4()}"
    steps: list[Step] = []
    with _server(session) as (target, is_private):
        if not session.json:
            kind = "a private server" if is_private else f"the server at {target}"
            output.line(f"Playing on {kind}, tenant {tenant}.\n")
        with session.client(target=target, tenant=tenant) as client:
            for step in Story(client).play():
                steps.append(step)
                if not session.json:
                    _show(output, step)
    wrong = [step.name for step in steps if not step.is_right]
    if session.json:
        output.document(
            {
                "tenant": tenant,
                "private_server": is_private,
                "right": not wrong,
                "steps": [
                    {
                        "name": step.name,
                        "title": step.title,
                        "result": step.result,
                        "checks": step.checks,
                        "right": step.is_right,
                    }
                    for step in steps
                ],
            }
        )
    elif wrong:
        output.line(f"\nWrong: {', '.join(wrong)}", style="bold red")
    else:
        output.line("\nEvery answer is right.", style="bold green")
    if is_private and not session.json:
        output.line("(played on a private server; nothing was kept)")
    return ExitCode.REFUSED if wrong else ExitCode.OK


@contextlib.contextmanager
def _server(session: Session) -> Iterator[tuple[str, bool]]:
    """Yield the target to play on, and whether it is a private server.

    A server that was asked for by name must be there; only the default may be absent.
    """
    with session.client() as client:
        target = client.target
        asked_for = session.target is not None or bool(os.environ.get(TARGET_VARIABLE))
        try:
            client.wait_until_ready(_LOOK_SECONDS)
            absent = False
        except NoServer:
            if asked_for:
                raise
            absent = True
    if not absent:
        yield target, False
        return
    if not session.json:
        session.output.note("no server is running here: starting one for the demo")
    with private_server() as private:
        yield private, True


def _show(output: Output, step: Step) -> None:
    output.line(step.title, style="bold")
    output.line(f"  {step.result}")
    for check, held in step.checks.items():
        output.line(f"  {'✓' if held else '✗'} {check}", style="green" if held else "bold red")
