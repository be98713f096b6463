"""``pillion import``: JSON Lines into the server, with back-pressure, safe to run again."""

from __future__ import annotations

import contextlib
import json
import stat
from collections import deque
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
from pillion_client import NotServed, Partition, PillionError

from pillion.cli.exits import ExitCode, report_failure
from pillion.cli.import_lines import LineError, Rejection, parse_line, read_lines
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from pillion_client import Client, ImportAck, ImportItem
    from rich.progress import Progress, TaskID

REJECTIONS_SHOWN_MAX: Final = 20
REJECTIONS_KEPT_MAX: Final = 1000
"""How many rejections a JSON summary lists; ``--rejects`` has them all."""


@dataclass(slots=True)
class Tally:
    """What an import has come to so far."""

    lines: int = 0
    written: int = 0
    existing: int = 0
    rejected: int = 0
    revision: int | None = None
    """The newest revision that this run wrote; None: it wrote nothing."""
    vectors_pending: int = 0
    rejections: list[Rejection] = field(default_factory=list)

    def counts(self) -> str:
        """Return the numbers in a few words."""
        return f"{self.written} new, {self.existing} already there, {self.rejected} rejected"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an item that is on its way came from."""

    line: int
    begin_offset: int


class Import:
    """One run over one file. Memory: the items on their way, and the first rejections."""

    def __init__(
        self,
        file: BinaryIO,
        partition: Partition,
        rejects: IO[str] | None,
        advance: Callable[[int | None, Tally], None],
    ) -> None:
        self.tally = Tally()
        self._file = file
        self._partition = partition
        self._rejects = rejects
        self._advance = advance
        # The items that are on their way, oldest first; the first one has this position.
        self._places: deque[_Place] = deque()
        self._first_position = 0
        self._read_offset = 0

    def run(self, client: Client, embedding: str) -> None:
        """Import everything, counting as batches are acknowledged."""
        acks = client.import_(self._items(), embedding=embedding)
        with contextlib.closing(acks):
            for ack in acks:
                self._acknowledge(ack)
        # Rejected and blank lines at the end belong to no acknowledgement.
        self._advance(None, self.tally)

    def _items(self) -> Iterator[ImportItem]:
        for raw in read_lines(self._file):
            begin_offset, self._read_offset = self._read_offset, raw.end_offset
            self.tally.lines += 1
            try:
                item = parse_line(raw.data, self._partition)
            except LineError as error:
                self._reject(Rejection(raw.number, "LINE_INVALID", error.field, error.message))
                continue
            self._places.append(_Place(raw.number, begin_offset))
            yield item

    def _acknowledge(self, ack: ImportAck) -> None:
        tally = self.tally
        for rejection in ack.rejections:
            place = self._places[rejection.position - self._first_position]
            self._reject(
                Rejection(place.line, rejection.reason, rejection.field, rejection.message)
            )
        read_offset = self._read_offset
        for _ in range(ack.items):
            self._places.popleft()
        self._first_position += ack.items
        tally.written += ack.written
        tally.existing += ack.existing
        if ack.revision:
            tally.revision = max(tally.revision or 0, ack.revision)
        tally.vectors_pending = ack.vectors_pending
        # Everything before the oldest item that is on its way is done, rejected lines too.
        self._advance(self._places[0].begin_offset if self._places else read_offset, tally)

    def _reject(self, rejection: Rejection) -> None:
        self.tally.rejected += 1
        if len(self.tally.rejections) < REJECTIONS_KEPT_MAX:
            self.tally.rejections.append(rejection)
        if self._rejects is not None:
            self._rejects.write(json.dumps(asdict(rejection), ensure_ascii=False) + "\n")


@click.command(name="import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--rejects",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write each rejected line's number and reason here, as JSON Lines.",
)
@click.option("--wait-for-vectors", is_flag=True, help="Write memories with their vectors.")
@shared_options()
@pass_session
def import_(
    session: Session, file: BinaryIO, *, rejects: Path | None, wait_for_vectors: bool
) -> int:
    """Import memories, episodes and facts from JSON Lines.

    FILE is - for stdin. Each line is an object with "type": "memory", "episode" or "fact", and
    the contract's fields; times have an offset. Bad lines are reported and the rest goes in
    (exit code 4). Ids follow from what a line says, so running an import again writes nothing
    twice.
    """
    output = session.output
    # Where no partition is named the server knows which; for the ids any fixed name will do.
    partition = Partition(session.namespace or "default", session.tenant or "default")
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(rejects.open("w", encoding="utf-8")) if rejects else None
        client = stack.enter_context(session.client())
        progress = stack.enter_context(output.progress())
        task = progress.add_task("importing", total=_size(file), counts="")
        work = Import(file, partition, sink, _advancer(progress, task))
        failure: PillionError | None = None
        interrupted = False
        try:
            work.run(client, "inline" if wait_for_vectors else "queued")
        except PillionError as error:
            failure = error
        except KeyboardInterrupt:
            interrupted = True
    return _report(session, work.tally, failure, interrupted=interrupted)


def _size(file: BinaryIO) -> int | None:
    """Return the bytes of a regular file; None: they are not known beforehand."""
    try:
        found = Path(f"/dev/fd/{file.fileno()}").stat()
    except OSError:  # stdin that is no file, in tests
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _advancer(progress: Progress, task: TaskID) -> Callable[[int | None, Tally], None]:
    """Return what moves the bar to a byte of the file; None: to its end."""
    total = progress.tasks[task].total

    def advance(offset: int | None, tally: Tally) -> None:
        done = total if offset is None else offset
        progress.update(task, completed=done, counts=tally.counts())

    return advance


def _report(
    session: Session, tally: Tally, failure: PillionError | None, *, interrupted: bool
) -> int:
    output = session.output
    again = "what was acknowledged is there; run the same command again to go on"
    if session.json:
        summary: dict[str, Any] = asdict(tally)
        summary["complete"] = failure is None and not interrupted
        if failure is None:
            output.document(summary)
        else:
            output.note(json.dumps(summary, ensure_ascii=False))
    else:
        output.line(f"{tally.lines} lines: {tally.counts()}")
        if tally.vectors_pending:
            output.line(f"vectors still to be made: {tally.vectors_pending}")
    if tally.rejections and not session.json:
        shown = tally.rejections[:REJECTIONS_SHOWN_MAX]
        for one in shown:
            # The server's messages begin with the field.
            named = not one.field or one.message.startswith(one.field)
            why = one.message if named else f"{one.field}: {one.message}"
            output.note(f"line {one.line}: {why}")
        if tally.rejected > len(shown):
            output.note(f"and {tally.rejected - len(shown)} more: --rejects FILE has them all")
    if failure is not None:
        if isinstance(failure, NotServed):
            output.note("this server does not take imports: write the lines one by one")
        elif not session.json:
            output.note(again)
        return report_failure(failure, output)
    if interrupted:
        output.note(f"stopped: {again}")
        return ExitCode.INTERRUPTED
    return ExitCode.PARTLY if tally.rejected else ExitCode.OK
