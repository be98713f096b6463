"""``pillion verify``: check a data directory that no server has open."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pillion_storage.errors import StoreError

from pillion.cli.exits import ExitCode
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from pillion_storage.sealed import MasterKeys
    from pillion_storage.verify import Report


@click.command()
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".pillion"),
    show_default=True,
    envvar="PILLION_DIRECTORY",
    help="The directory of the store.  [env: PILLION_DIRECTORY]",
)
@click.option(
    "--master-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of the master key, to check also that each encrypted value is genuine.  "
    "[default: DIRECTORY/keys/master.key, if it is there]",
)
@shared_options(only=("--json",))
@pass_session
def verify(session: Session, directory: Path, master_key_file: Path | None) -> ExitCode:
    """Check every record of a stopped server's directory.

    Nothing is changed. Without the master key, encrypted values are checked by their checksums
    only. The key is also taken from the variable PILLION_MASTER_KEY.

    Exit codes: 0 nothing is wrong; 1 something is, and is listed; 3 the directory is in use, is no
    store, or is of a newer format, or its keys cannot be used.
    """
    output = session.output
    try:
        report, authenticated = _check(directory, master_key_file)
    except StoreError as error:
        output.failure(str(error), {"message": str(error), "reason": type(error).__name__})
        return ExitCode.NO_SERVER
    findings = [asdict(finding) for finding in report.findings]
    if session.json:
        output.document(
            {
                "clean": report.clean,
                "values_authenticated": authenticated,
                "findings_total": report.findings_total,
                "findings": findings,
                "rows": report.rows,
            }
        )
        return ExitCode.OK if report.clean else ExitCode.REFUSED
    if report.clean:
        output.line(f"nothing is wrong in {sum(report.rows.values())} rows of {directory}")
        if authenticated is False:
            output.note("values were not authenticated, for want of the master key")
        return ExitCode.OK
    output.table(
        f"{report.findings_total} findings in {directory}",
        ("record", "problem"),
        [(finding.record, finding.problem) for finding in report.findings],
    )
    output.note("the data is damaged: keep a copy, and restore from a backup")
    return ExitCode.REFUSED


def _check(directory: Path, master_key_file: Path | None) -> tuple[Report, bool | None]:
    """Return the report, and whether encrypted values were authenticated; None: there are none.

    Raises:
        StoreError: The directory, the keyring or the master key cannot be used.
    """
    # They load the engine, which `verify --help` can do without.
    from pillion_storage.sealed import (
        KEYS_DIRECTORY,
        EnvironmentMasterKey,
        FileMasterKey,
        opened_check,
    )
    from pillion_storage.verify import verify as check

    keys_directory = directory / KEYS_DIRECTORY
    if not (keys_directory / "keyring").exists():
        return check(directory), None
    path = master_key_file or keys_directory / "master.key"
    master: MasterKeys
    if path.exists() or master_key_file is not None:
        master = FileMasterKey(path)
    elif "PILLION_MASTER_KEY" in os.environ:
        master = EnvironmentMasterKey("PILLION_MASTER_KEY", os.environ)
    else:
        return check(directory), False
    with opened_check(keys_directory, master) as open_seals:
        return check(directory, open_seals=open_seals), True
