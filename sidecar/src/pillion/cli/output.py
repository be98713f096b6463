"""Where the commands print: results on stdout, progress and complaints on stderr.

With ``--json`` stdout holds JSON and nothing else: one document, or one per line for streams. A
failure is such a document too, with the single key "error". Colours appear on a terminal only,
and never when NO_COLOR is set; rich sees to both, and to COLUMNS.

What is not a terminal gets plain lines: one for each record, its cells separated by tabs, never
wrapped, so that grep and cut work. A terminal gets a table where it fits, else blocks: what matters
in one line, the rest dim below it. Ids are never broken.
"""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TABLE_COLUMNS_MIN: Final = 120
"""Below this width records are blocks."""

_PAIRS_COLUMNS_MIN: Final = 60  # the longest name and a UUID
_LEAD_COLUMNS_MIN: Final = 24  # what a table must leave for the column that may wrap
_PROGRESS_COLUMNS_FULL: Final = 110


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
        if self._out.is_terminal:
            for part in text.split("\n"):
                self._out.print(Text(_hanging(part, self._out.width), style), soft_wrap=True)
        else:  # not through rich, which makes spaces of tabs
            sys.stdout.write(text + "\n")

    def records(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        lead: int,
        *,
        labelled: bool = False,
    ) -> None:
        """Print records for people; the first ``lead`` columns are what matters of each.

        Only the last of these may wrap. ``labelled``: where there is no room for a table, and so
        for no heads of columns, the cells behind those say what they are.
        """
        if not self._out.is_terminal:
            for row in rows:
                self.line("\t".join(_one_line(cell) for cell in row))
        elif _fits(columns, rows, lead, self._out.width):
            table = Table(header_style="bold")
            for number, column in enumerate(columns):
                table.add_column(column, no_wrap=number != lead - 1)
            for row in rows:
                table.add_row(*(Text(cell) for cell in row))
            self._out.print(table)
        else:
            for row in rows:
                self._block(_labelled(columns, row, lead) if labelled else row, lead)

    def record(self, row: Sequence[str], lead: int) -> None:
        """Print one of many records that come one by one, never as a table."""
        if self._out.is_terminal:
            self._block(row, lead)
        else:
            self.line("\t".join(_one_line(cell) for cell in row))

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Print a small table whose last column may wrap."""
        if title:
            self.line(title)
        self.records(columns, list(rows), len(columns))

    def _block(self, row: Sequence[str], lead: int) -> None:
        width = self._out.width
        first = "  ".join(_one_line(cell) for cell in row[:lead] if cell)
        wrapped = textwrap.wrap(
            first, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        for line in wrapped:
            self._out.print(Text(line), soft_wrap=True)
        rest = ""
        for cell in filter(None, row[lead:]):
            if rest and len(rest) + 2 + len(cell) > width:
                self._out.print(Text(rest, "dim"), soft_wrap=True)
                rest = ""
            rest += "  " + _one_line(cell)
        if rest:
            self._out.print(Text(rest, "dim"), soft_wrap=True)

    def pairs(self, title: str, pairs: Iterable[tuple[str, str]]) -> None:
        """Print names and values for people, leaving out what is empty."""
        said = [(name, content) for name, content in pairs if content]
        if not self._out.is_terminal or self._out.width < _PAIRS_COLUMNS_MIN:
            for line in ([title] if title else []) + [
                f"{name}\t{content}" for name, content in said
            ]:
                self.line(line)
            return
        grid = Table(title=title or None, title_justify="left", show_header=False, box=None)
        grid.add_column(style="cyan", no_wrap=True)
        grid.add_column()
        for name, content in said:
            grid.add_row(name, Text(content))
        self._out.print(grid)

    def note(self, text: str) -> None:
        """Say something on stderr that is no result."""
        self._err.print(text, markup=False, highlight=False, soft_wrap=not self._err.is_terminal)

    def failure(self, sentence: str, document: dict[str, object]) -> None:
        """Say why a command failed: on stderr, or as a document."""
        if self.as_json:
            self.document({"error": document})
        else:
            self._err.print("error: ", style="bold red", end="")
            self._err.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def progress(self, *, of_bytes: bool = True) -> Progress:
        """Return a progress bar over bytes or things on stderr; silent without a terminal."""
        amount = DownloadColumn() if of_bytes else MofNCompleteColumn()
        shown: list[ProgressColumn] = [TextColumn("{task.description}")]
        if self._err.width >= _PROGRESS_COLUMNS_FULL:
            shown += [BarColumn(), TaskProgressColumn(), amount, TimeRemainingColumn()]
        else:
            shown += [BarColumn(10), TaskProgressColumn(), TimeRemainingColumn(compact=True)]
        return Progress(
            *shown,
            TextColumn("{task.fields[counts]}"),
            console=self._err,
            disable=not self._err.is_terminal,
        )


def _console(*, stderr: bool) -> Console:
    return Console(stderr=stderr, highlight=False, emoji=False)


def _hanging(text: str, width: int) -> str:
    """Wrap a line between words, indented further than it begins."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return textwrap.fill(
        text,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


def _labelled(columns: Sequence[str], row: Sequence[str], lead: int) -> list[str]:
    """Return a row whose cells from ``lead`` on say what they are."""
    named = zip(columns[lead:], row[lead:], strict=True)
    return [*row[:lead], *(f"{name} {cell}" if cell else "" for name, cell in named)]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fits(columns: Sequence[str], rows: Sequence[Sequence[str]], lead: int, width: int) -> bool:
    """Say whether a table leaves its one column that wraps enough to be read."""
    if width < TABLE_COLUMNS_MIN:
        return False
    sizes = [
        max(cell_len(line) for cell in cells for line in (cell.splitlines() or [""]))
        for cells in zip(columns, *rows, strict=True)
    ]
    wraps = lead - 1
    fixed = sum(sizes) - sizes[wraps] + 3 * len(columns) + 1
    return fixed + min(sizes[wraps], _LEAD_COLUMNS_MIN) <= width
