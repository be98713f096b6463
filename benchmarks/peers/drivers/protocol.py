"""What every driver speaks: a line of JSON in on stdin, a line of JSON out on stdout.

A driver is a process of its own, in the environment that its product is installed in, which may
have nothing of ours but numpy. Its commands, by ``do``:

``open``    folder, dimension, count: make an empty store there. Answers version.
``load``    vectors (.npy), texts (.json), seconds: put every row in, in batches, until done or out
            of time; row i has number i. Answers loaded, seconds.
``queries`` queries (.npy): what is searched for from now on.
``tune``    effort: search as thoroughly as that. Only for drivers that can.
``search``  first, count, k, warm, seconds: search for query ``first`` and those after it, round and
            round, ``warm`` of them untimed, until ``count`` are timed or the time is over; one is
            timed whatever it takes. Answers took (seconds of each) and found (row numbers of each).
``close``   answers, and ends the process.

What goes wrong is answered as ``error``. What a product prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class Peer(Protocol):
    """A product under measurement. Only `search` is timed."""

    batch: int
    """How many rows `add` is given at once."""

    def open(self, folder: Path, dimension: int, count: int) -> str:
        """Make an empty store in the folder; return the product's version."""
        ...

    def add(self, first: int, vectors: Any, texts: list[str]) -> None:
        """Put rows in, float32 (n, dimension), numbered from ``first``."""
        ...

    def ready(self) -> None:
        """Do what a user would after loading and before searching."""
        ...

    def prepare(self, query: Any) -> Any:
        """Return a query, float32 (dimension,), in the product's form. It is searched for next."""
        ...

    def search(self, asked: Any, k: int) -> Any:
        """Search, and return what the product returns."""
        ...

    def rows(self, answer: Any) -> list[int]:
        """Return the numbers of the rows in an answer, best first."""
        ...

    def close(self) -> None:
        """Let go of the store."""
        ...


class Driver:
    """Does what the commands say with one product."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._queries: Any = None

    def open(self, folder: str, dimension: int, count: int) -> dict[str, Any]:
        return {"version": self._peer.open(Path(folder), dimension, count)}

    def load(self, vectors: str, texts: str, seconds: float) -> dict[str, Any]:
        rows = np.load(vectors)
        words = json.loads(Path(texts).read_text(encoding="utf-8"))
        start = time.perf_counter()
        loaded = 0
        while loaded < len(rows) and time.perf_counter() - start < seconds:
            end = min(loaded + self._peer.batch, len(rows))
            self._peer.add(loaded, rows[loaded:end], words[loaded:end])
            loaded = end
        if loaded == len(rows):
            self._peer.ready()
        return {"loaded": loaded, "seconds": round(time.perf_counter() - start, 2)}

    def queries(self, queries: str) -> dict[str, Any]:
        self._queries = np.load(queries)
        return {"count": len(self._queries)}

    def tune(self, effort: int) -> dict[str, Any]:
        self._peer.tune(effort)  # type: ignore[attr-defined]  # asked of those that have it
        return {}

    def search(self, first: int, count: int, k: int, warm: int, seconds: float) -> dict[str, Any]:
        clock = time.perf_counter
        took: list[float] = []
        found: list[list[int]] = []
        begun = clock()
        for place in range(warm):
            if clock() - begun > seconds / 4:
                break
            asked = self._peer.prepare(self._queries[(first + place) % len(self._queries)])
            self._peer.search(asked, k)
        begun = clock()
        for place in range(count):
            asked = self._peer.prepare(self._queries[(first + place) % len(self._queries)])
            start = clock()
            answer = self._peer.search(asked, k)
            took.append(clock() - start)
            found.append(self._peer.rows(answer))
            if clock() - begun > seconds:
                break
        return {"took": took, "found": found}

    def close(self) -> dict[str, Any]:
        self._peer.close()
        return {}


def serve(peer: Peer) -> None:
    """Answer commands until ``close`` or the end of input."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # products print what they like: not among the answers
    driver = Driver(peer)
    for line in sys.stdin:
        command = json.loads(line)
        do = command.pop("do")
        try:
            answer = getattr(driver, do)(**command)
        except Exception as error:  # noqa: BLE001 - whatever a product raises is its result
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if do == "close":
            answers.close()
            # Some products leave threads behind that keep the interpreter from ending.
            os._exit(0)
