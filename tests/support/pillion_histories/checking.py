"""The checker of linearizability: a Go program around Porcupine, built when it is needed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "linearizability" / "checker"
GO_OLDEST = (1, 19)
# Where this is set, the checker must be there: then a run without it fails instead of skipping.
REQUIRED_VARIABLE = "PILLION_REQUIRE_GO"
BUILD_SECONDS = 300
CHECK_SECONDS = 600


class NoCheckerError(Exception):
    """The checker can't be built here; the message says what is missing."""


def required():
    """Return whether a run without the checker is a failure."""
    return os.environ.get(REQUIRED_VARIABLE, "") not in ("", "0")


def build(directory):
    """Build the checker into a directory and return the program.

    Raises:
        NoCheckerError: Go is not there or too old, or its one module can't be fetched.
    """
    go = shutil.which("go")
    if go is None:
        raise NoCheckerError("Go isn't installed: histories can't be checked for linearizability")
    told = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"go(\d+)\.(\d+)", told)
    if version is None or tuple(map(int, version.groups())) < GO_OLDEST:
        oldest = ".".join(map(str, GO_OLDEST))
        raise NoCheckerError(f"Go {oldest} or newer is needed, found: {told.strip() or 'none'}")
    program = Path(directory) / "checker"
    try:
        done = subprocess.run(
            [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(program), "."],
            cwd=SOURCE,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoCheckerError(f"the checker wasn't built within {BUILD_SECONDS} s") from None
    if done.returncode:
        raise NoCheckerError(f"the checker can't be built: {done.stderr.strip()[-2000:]}")
    return program


def check(program, paths):
    """Return the checker's verdict on the histories in these files, as it printed it.

    Raises:
        RuntimeError: It reached none: the files are no histories, or the search took too long.
    """
    done = subprocess.run(
        [str(program), *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=CHECK_SECONDS,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)
