"""Say, in one place, what this machine lacks to build Pillion, and what to install."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PYTHON_OLDEST = (3, 11)
RUST_OLDEST = (1, 89)  # as ranker-rs/Cargo.toml says
MISSING_HEADER = (
    "Python's C headers (Python.h) are not installed: hnswlib is compiled on this machine. "
    "Install your system's python3-dev (Debian, Ubuntu) or python3-devel (Fedora) package."
)


def rust_version() -> tuple[int, int]:
    """Return the version of rustc; (0, 0) when there is none."""
    if shutil.which("rustc") is None:
        return (0, 0)
    told = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"rustc (\d+)\.(\d+)", told.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def missing_tools() -> list[str]:
    """Return one sentence for each tool that is absent, with what to install."""
    missing = []
    if sys.version_info[:2] < PYTHON_OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        missing.append(
            f"Python 3.11 or newer is needed, this is {found}. "
            "Install one and run `make PYTHON=python3.11 ...`."
        )
    if shutil.which("cargo") is None or rust_version() < RUST_OLDEST:
        missing.append(
            "A Rust toolchain (cargo and rustc, 1.89 or newer) is not on the PATH. "
            "Install or update it with rustup or your system's package manager."
        )
    if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
        missing.append(
            "A C++ compiler (c++, g++ or clang++) is not on the PATH. "
            "Install your system's g++ or clang package."
        )
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        missing.append(MISSING_HEADER)
    try:
        import ensurepip  # noqa: F401  (only its presence matters)
        import venv  # noqa: F401
    except ImportError:
        missing.append(
            "Python's venv module is not installed. "
            "Install your system's python3-venv package (Debian, Ubuntu)."
        )
    return missing


def main() -> int:
    """Print what is missing; the exit code is how many things are."""
    missing = missing_tools()
    for sentence in missing:
        print(f"missing: {sentence}", file=sys.stderr)
    return len(missing)


if __name__ == "__main__":
    sys.exit(main())
