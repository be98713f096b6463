"""``pillion verify``: check a data directory that no server has open."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from pillion_storage.errors import StoreError

from pillion.cli.exits import ExitCode
from pillion.cli.session import Session, pass_session, shared_options


@click.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".pillion"),
    show_default=True,
    envvar="PILLION_DIRECTORY",
    help="The directory of the store.  [env: PILLION_DIRECTORY]",
)
@shared_options(only=("--json",))
@pass_session
def verify(session: Session, directory: Path) -> ExitCode:
    """Check every record of a stopped server's directory.

    Nothing is changed. Exit codes: 0 nothing is wrong; 1 something is, and is listed; 3 the
    directory is in use, is no store, or is of a newer format.
    """
    # Loads the engine, which `verify --help` can do without.
    from pillion_storage.verify import verify as check

    output = session.output
    try:
        report = check(directory)
    except StoreError as error:
        output.failure(str(error), {"message": str(error), "reason": type(error).__name__})
        return ExitCode.NO_SERVER
    findings = [asdict(finding) for finding in report.findings]
    if session.json:
        output.document(
            {
                "clean": report.clean,
                "findings_total": report.findings_total,
                "findings": findings,
                "rows": report.rows,
            }
        )
        return ExitCode.OK if report.clean else ExitCode.REFUSED
    if report.clean:
        output.line(f"nothing is wrong in {sum(report.rows.values())} rows of {directory}")
        return ExitCode.OK
    output.table(
        f"{report.findings_total} findings in {directory}",
        ("record", "problem"),
        [(finding.record, finding.problem) for finding in report.findings],
    )
    output.note("the data is damaged: keep a copy, and restore from a backup")
    return ExitCode.REFUSED
