"""``pillion``: the commands, each loaded when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Final

import click
from pillion_client import PillionError

from pillion.cli.exits import ExitCode, report_failure
from pillion.cli.output import Output
from pillion.cli.session import Session, shared_options

if TYPE_CHECKING:
    from collections.abc import Sequence

# Name, module of pillion.cli, command in it, and its line in the list, so that listing them
# loads none. A test holds these lines to the commands' own.
COMMANDS: Final = {
    "bench": (
        "bench",
        "bench",
        "Measure latency under load, on a server started for it and removed at the end.",
    ),
    "confirm": (
        "standing",
        "confirm",
        "Record that a user confirmed a memory: a guess becomes a fact by it.",
    ),
    "demo": ("demo", "demo", "Play one story through a server and check every answer."),
    "explain": (
        "explain",
        "explain",
        "Show how a search came to its answer, or where a memory was lost.",
    ),
    "forget": ("forget", "forget", "Take memories out of recall, retract or erase them."),
    "get": ("get", "get", "Show a memory, an episode, or the row of a fact that holds."),
    "history": ("history", "history", "Show a fact's whole timeline, or a memory's versions."),
    "hold": (
        "hold",
        "hold",
        "Put a legal hold on a record, or on all about a subject.",
    ),
    "import": ("importing", "import_", "Import memories, episodes and facts from JSON Lines."),
    "info": ("info", "info", "Show what the server is, can do, and its limits."),
    "list": ("listing", "list_", "List memories or episodes, oldest first."),
    "neighbors": (
        "neighbors",
        "neighbors",
        "Show whom facts whose value is a subject lead to.",
    ),
    "recall": ("recall", "recall", "Show what a model should see in one turn about a subject."),
    "receipts": (
        "receipts",
        "receipts",
        "Show what was erased, from where, and how that was proved.",
    ),
    "reindex": (
        "reindex",
        "reindex",
        "Build a partition's indexes anew, and its vectors if asked for.",
    ),
    "restore": ("standing", "restore", "Take the last retraction of a memory back."),
    "retract": ("standing", "retract", "Say that a memory, or a fact, is no longer so."),
    "schema": (
        "schema",
        "schema",
        "Register attributes with a JSON Schema, and look at what is registered.",
    ),
    "search": ("search", "search", "Find the best memories for a text."),
    "serve": ("serve", "serve", "Run a server."),
    "stats": ("stats", "stats", "Show how much is stored and what lags."),
    "subject": ("subject", "subject", "Answer what is remembered about a subject."),
    "trace": ("trace", "trace", "Show what a record came from, and what came from it."),
    "verify": ("verify", "verify", "Check every record of a stopped server's directory."),
    "watch": ("watch", "watch", "Show changes as they are committed, until interrupted."),
    "write": ("write", "write", "State a fact, add a memory or capture an episode."),
}


class LazyGroup(click.Group):
    """Loads a command's module when the command is asked for: ``serve`` brings a whole server."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None when there is none of the name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(
            importlib.import_module(f"pillion.cli.{module}"), attribute
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list without loading the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][2]) for name in self.list_commands(ctx)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pillion")
@shared_options(of_group=True)
def group() -> None:
    """A memory sidecar for AI agents.

    The options below can also follow the command. Exit codes: 0 done; 1 the server said no, or
    verify found damage; 2 the command line is wrong; 3 no server answers, or verify cannot have
    the directory; 4 an import went in partly; 130 interrupted.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    session = Session()
    as_json = "--json" in arguments
    try:
        outcome = group.main(
            args=list(arguments), prog_name="pillion", standalone_mode=False, obj=session
        )
    except PillionError as error:
        return report_failure(error, Output(as_json=as_json))
    except click.exceptions.Abort:
        Output(as_json=as_json).note("interrupted")
        return ExitCode.INTERRUPTED
    except click.ClickException as error:
        return _report_usage(error, as_json=as_json)
    except ValueError as error:
        # The client refuses what could only fail at the server: it says which value and why.
        Output(as_json=as_json).failure(str(error), {"message": str(error), "reason": "USAGE"})
        return ExitCode.USAGE
    return outcome if isinstance(outcome, int) else ExitCode.OK


def _report_usage(error: click.ClickException, *, as_json: bool) -> ExitCode:
    if as_json:
        document: dict[str, object] = {"message": error.format_message(), "reason": "USAGE"}
        Output(as_json=True).failure("", document)
    else:
        error.show()
    return ExitCode.USAGE


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))
