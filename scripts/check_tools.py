"""Say, in one place, what this machine lacks to build Pillion, and what to install."""

from __future__ import annotations

import shutil
import sys
import sysconfig
from pathlib import Path

PYTHON_OLDEST = (3, 11)
MISSING_HEADER = (
    "Python's C headers (Python.h) are not installed: hnswlib is compiled on this machine. "
    "Install your system's python3-dev (Debian, Ubuntu) or python3-devel (Fedora) package."
)


def missing_tools() -> list[str]:
    """Return one sentence for each tool that is absent, with what to install."""
    missing = []
    if sys.version_info[:2] < PYTHON_OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        missing.append(
            f"Python 3.11 or newer is needed, this is {found}. "
            "Install one and run `make PYTHON=python3.11 ...`."
        )
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        missing.append(
            "A Rust toolchain (cargo and rustc, 1.85 or newer) is not on the PATH. "
            "Install it with rustup or your system's package manager."
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
