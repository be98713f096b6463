"""What ``pillion`` exits with, and how it says why."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pillion_client import (
    AlreadyExists,
    NoServer,
    NotServed,
    PillionError,
    Unauthenticated,
    VersionMismatch,
)

if TYPE_CHECKING:
    from pillion.cli.output import Output

# The server's option of the same name takes the list of all tokens.
CREDENTIAL_HINT: Final = "the token itself, not the server's list"


class ExitCode(IntEnum):
    """The exit codes, as documented by ``pillion --help``."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NO_SERVER = 3
    PARTLY = 4
    INTERRUPTED = 130


def report_failure(error: PillionError, output: Output) -> ExitCode:
    """Say why a call failed and what to do, and return the exit code."""
    fields = [
        {"field": violation.field, "description": violation.description}
        for violation in error.field_violations
    ]
    document: dict[str, object] = {
        "message": error.message,
        "code": error.code.name,
        "reason": error.reason,
        "metadata": error.metadata,
        "field_violations": fields,
    }
    if error.retry_after_seconds is not None:
        document["retry_after_seconds"] = error.retry_after_seconds
    output.failure(_sentence(error), document)
    return ExitCode.NO_SERVER if isinstance(error, NoServer) else ExitCode.REFUSED


def _sentence(error: PillionError) -> str:
    match error:
        case VersionMismatch(current=int(current)) | AlreadyExists(current=int(current)) if (
            current and f"version {current}" not in error.message
        ):
            return f"{error.message} (its version is now {current})"
        case NoServer():
            return f"{error.message}, or --target unix:///path/to/pillion.sock"
        case Unauthenticated():
            return (
                f"this server needs a token: --token-file FILE ({CREDENTIAL_HINT}); {error.message}"
            )
        case NotServed():
            return f"{error.message}; `pillion info` lists what this server serves"
    details = [
        f"{violation.field}: {violation.description}"
        for violation in error.field_violations
        if violation.description not in error.message
    ]
    return "; ".join([error.message, *details])
