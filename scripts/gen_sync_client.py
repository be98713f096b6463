"""Generate the blocking Python client from the asyncio one, or check that it is fresh.

Token by token: ``async`` and ``await`` go, names and the words of docstrings are replaced by
their blocking counterparts, and everything else stays as it was written. What really differs
between the two worlds lives in ``pillion_client/_runtime``, twice, by hand.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "clients" / "python" / "src" / "pillion_client"
SOURCE = PACKAGE / "_async"
TARGET = PACKAGE / "_sync"

HEADER = "# Generated from _async/{name} by scripts/gen_sync_client.py (`make gen`). Do not edit.\n"

NAMES = {
    "AsyncClient": "Client",
    "AsyncCaller": "Caller",
    "AsyncReading": "Reading",
    "AsyncRecalling": "Recalling",
    "AsyncRegistry": "Registry",
    "AsyncTracing": "Tracing",
    "AsyncTransport": "Transport",
    "AsyncWatching": "Watching",
    "AsyncWriting": "Writing",
    "AsyncGenerator": "Generator",
    "AsyncIterable": "Iterable",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "_async": "_sync",
    "asynchronous": "synchronous",
}
# Types that mean the same once nothing is awaited: `Awaitable[X] | X` is `X`.
PHRASES = (
    ("Awaitable[Value | Unchanged] | Value | Unchanged", "Value | Unchanged"),
    ("Iterable[ImportItem] | Iterable[ImportItem]", "Iterable[ImportItem]"),
    ("import Awaitable, Callable\n", "import Callable\n"),
    (
        "import Generator, Iterable, Iterator, Iterable, Sequence\n",
        "import Generator, Iterable, Iterator, Sequence\n",
    ),
)
PROSE = (
    (
        "The asyncio client, written by hand. ``_sync`` is generated from it.",
        "The blocking client.",
    ),
    (
        "A client for asyncio. One per event loop, shared by all its tasks.",
        "A client that blocks. One per process, shared by all its threads.",
    ),
    ("``async with``", "``with``"),
)


def make_sync(text: str) -> str:
    """Return the blocking counterpart of a module's text."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    edits: list[tuple[int, int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type in {tokenize.NAME, tokenize.ASYNC, tokenize.AWAIT}:
            if token.string in {"async", "await"}:
                spaces = len(text[end:]) - len(text[end:].lstrip(" "))
                edits.append((begin, end + spaces, ""))
            elif token.string in NAMES:
                edits.append((begin, end, NAMES[token.string]))
        elif token.type == tokenize.STRING:
            edits.append((begin, end, _prose(token.string)))
    for begin, end, replacement in reversed(edits):
        text = text[:begin] + replacement + text[end:]
    for old, new in PHRASES:
        text = text.replace(old, new)
    return text


def _prose(text: str) -> str:
    for old, new in PROSE:
        text = text.replace(old, new)
    return re.sub(r"\bAsync(?=[A-Z])", "", text)


def generate() -> dict[str, str]:
    """Return the text of each generated module by its name."""
    return {
        path.name: _formatted(
            HEADER.format(name=path.name) + make_sync(path.read_text(encoding="utf-8"))
        )
        for path in sorted(SOURCE.glob("*.py"))
    }


def _formatted(text: str) -> str:
    """Return the text in the house's format: shorter names join lines that had to be broken."""
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--isolated", "--line-length=100", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def main() -> int:
    """Write the modules; with ``--check`` say which committed ones differ."""
    made = generate()
    if "--check" in sys.argv[1:]:
        there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
        stale = sorted(name for name in made | there if made.get(name) != there.get(name))
        for name in stale:
            print(f"stale: {(TARGET / name).relative_to(ROOT)}: run `make gen` and commit it")
        return 1 if stale else 0
    TARGET.mkdir(exist_ok=True)
    for name, text in made.items():
        (TARGET / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
