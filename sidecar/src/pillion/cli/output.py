"""Where the commands print: results on stdout, progress and complaints on stderr.

With ``--json`` stdout holds JSON and nothing else: one document, or one per line for streams. A
failure is such a document too, with the single key "error". Colours appear on a terminal only,
and never when NO_COLOR is set; rich sees to both.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Without a terminal there is no width to fit; this one keeps a UUID and a sentence on one line.
_WIDTH_WITHOUT_TERMINAL = 160


class Output:
    """Prints for people, or for programs when ``as_json``."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = _console(stderr=False)
        self._err = _console(stderr=True)

    def document(self, content: object) -> None:
        """Print one JSON document on one line."""
        sys.stdout.write(json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
        sys.stdout.flush()

    def line(self, text: str, style: str = "") -> None:
        """Print a line for people. Text is printed as it is: brackets in it mean nothing."""
        self._out.print(text, style=style or None, markup=False)

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        to_stderr: bool = False,
    ) -> None:
        """Print a table for people."""
        table = Table(title=title or None, title_justify="left", header_style="bold")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(_escape(cell) for cell in row))
        (self._err if to_stderr else self._out).print(table)

    def pairs(self, title: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values for people, leaving out what is empty."""
        grid = Table(title=title or None, title_justify="left", show_header=False, box=None)
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, content in pairs:
            if content:
                grid.add_row(name, _escape(content))
        self._out.print(grid)

    def note(self, text: str) -> None:
        """Say something on stderr that is no result."""
        self._err.print(text, markup=False, highlight=False)

    def failure(self, sentence: str, document: dict[str, object]) -> None:
        """Say why a command failed: on stderr, or as a document."""
        if self.as_json:
            self.document({"error": document})
        else:
            self._err.print("error: ", style="bold red", end="")
            self._err.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def progress(self) -> Progress:
        """Return a progress bar over bytes on stderr; it is silent without a terminal."""
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[counts]}"),
            console=self._err,
            disable=not self._err.is_terminal,
        )


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_WITHOUT_TERMINAL
    return Console(stderr=stderr, width=width, highlight=False, emoji=False)


def _escape(text: str) -> str:
    """Keep rich from reading brackets in a memory's text as its markup."""
    return text.replace("[", r"\[")
