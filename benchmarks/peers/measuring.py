"""What one size of a run does: load everybody, then let them search in turns."""

from __future__ import annotations

import itertools
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import harness
from benchmarks.peers.catalogue import OURS
from benchmarks.peers.driven import Driven, PeerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from benchmarks.peers.catalogue import Entry

    Floats = NDArray[np.float32]

DIMENSION = 384
QUERIES = 256
SEED = 20261130
START_SECONDS = 90.0
ANSWER_SECONDS = 60.0  # beyond what a command may take by its own limit
WARM = 5
# The first is hnswlib's default.
EFFORTS = (10, 15, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 2560, 5120)
WORDS = tuple(map("".join, itertools.product("bdgklmnprst", "aeiou", "lmnrs", "aeio")))


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything: k, timed calls of each, and seconds for a load and for searches."""

    top_k: int
    calls: int
    rounds: int
    load_seconds: float
    search_seconds: float


def texts(count: int) -> list[str]:
    """Return distinct texts of a sentence's length, whose made-up words say nothing of vectors."""
    draw = random.Random(SEED)
    return [f"Note {i}: " + " ".join(draw.choices(WORDS, k=12)) for i in range(count)]


def clustered(count: int) -> tuple[Floats, Floats]:
    """Return vectors (count, 384) and queries of the same clusters."""
    both = harness.clustered(count + QUERIES, DIMENSION, seed=SEED)
    return both[:count], both[count:]


def glove(count: int, path: Path) -> tuple[Floats, Floats]:
    """Return real word vectors, unit, drawn from a .npy file (words, dimension), and queries."""
    words = np.load(path, mmap_mode="r")
    if count + QUERIES > len(words):
        raise ValueError(f"{path} has {len(words)} vectors, too few for {count}")
    drawn = np.random.default_rng(SEED).permutation(len(words))[: count + QUERIES]
    rows = np.asarray(words[np.sort(drawn)], np.float32)
    rows = np.random.default_rng(SEED).permutation(rows)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.ascontiguousarray(rows[:count]), np.ascontiguousarray(rows[count:])


def nearest(vectors: Floats, queries: Floats, k: int) -> list[set[int]]:
    """Return the true k nearest rows of each query by cosine; all are unit vectors."""
    found = []
    for query in queries:
        cosines = vectors @ query
        found.append(set(np.argpartition(-cosines, min(k, len(cosines) - 1))[:k].tolist()))
    return found


def recall(found: Sequence[Sequence[int]], first: int, truth: list[set[int]]) -> list[float]:
    """Return which share of the true ones each answer has; answer 0 is of query ``first``."""
    wanted = itertools.islice(itertools.cycle(truth), first % len(truth), None)
    return [
        len(near.intersection(rows)) / len(near) for rows, near in zip(found, wanted, strict=False)
    ]


def measure(
    pythons: dict[Entry, Path], vectors: Floats, queries: Floats, plan: Plan, scratch: Path
) -> dict[str, dict[str, Any]]:
    """Measure everybody with the same vectors; return a row each, with ``failed`` where it did."""
    files = {"vectors": scratch / "vectors.npy", "texts": scratch / "texts.json"}
    np.save(files["vectors"], vectors)
    files["texts"].write_text(json.dumps(texts(len(vectors))), encoding="utf-8")
    np.save(scratch / "queries.npy", queries)
    truth = nearest(vectors, queries, plan.top_k)
    rows: dict[str, dict[str, Any]] = {entry.name: {} for entry in pythons}
    running: dict[Entry, Driven] = {}
    try:
        for entry, python in pythons.items():
            if entry.memories_max is not None and len(vectors) > entry.memories_max:
                rows[entry.name]["failed"] = f"filled with at most {entry.memories_max:,} here"
            else:
                running[entry] = Driven(entry, python, scratch / entry.name)

        def load(entry: Entry) -> None:
            try:
                rows[entry.name] |= _load(running[entry], vectors.shape, files, plan)
                running[entry].ask(
                    ANSWER_SECONDS, do="queries", queries=str(scratch / "queries.npy")
                )
            except PeerError as error:
                rows[entry.name]["failed"] = str(error)
                running[entry].stop()

        with ThreadPoolExecutor(2) as two_at_a_time:
            list(two_at_a_time.map(load, running))
        _tune(running, rows, truth, plan)
        _search_in_turns(running, rows, truth, plan)
    finally:
        for driven in running.values():
            driven.stop()
    return rows


def _load(
    driven: Driven, shape: tuple[int, ...], files: dict[str, Path], plan: Plan
) -> dict[str, Any]:
    count, dimension = shape
    version = driven.open(dimension, count, within=START_SECONDS)
    answer = driven.ask(
        plan.load_seconds + ANSWER_SECONDS,
        do="load",
        seconds=plan.load_seconds,
        **{name: str(path) for name, path in files.items()},
    )
    if answer["loaded"] < count:
        raise PeerError(
            f"loaded {answer['loaded']:,} of {count:,} in {plan.load_seconds:.0f} s, "
            "which is all that it is given"
        )
    return {"version": version, "load_seconds": answer["seconds"]}


def _tune(
    running: dict[Entry, Driven],
    rows: dict[str, dict[str, Any]],
    truth: list[set[int]],
    plan: Plan,
) -> None:
    """Raise the effort of those that are to have our recall until they have it."""
    tuned = [entry for entry in running if entry.at_our_recall and "failed" not in rows[entry.name]]
    ours = [entry for entry in running if entry.name == OURS and "failed" not in rows[OURS]]
    if not tuned or not ours:
        return

    def recall_of(driven: Driven) -> float:
        answer = driven.ask(
            plan.search_seconds + ANSWER_SECONDS,
            **_searching(0, len(truth), WARM, plan.top_k, plan.search_seconds),
        )
        return float(np.mean(recall(answer["found"], 0, truth)))

    for entry in tuned:
        row = rows[entry.name]
        try:
            row["recall_wanted"] = round(recall_of(running[ours[0]]), 4)
            for effort in EFFORTS:
                running[entry].ask(ANSWER_SECONDS, do="tune", effort=effort)
                row["effort"] = effort
                reached = recall_of(running[entry])
                row.setdefault("recall_at_default", round(reached, 4))
                if reached >= row["recall_wanted"]:
                    break
        except PeerError as error:
            row["failed"] = str(error)


def _searching(first: int, count: int, warm: int, k: int, seconds: float) -> dict[str, Any]:
    return {
        "do": "search",
        "first": first,
        "count": count,
        "k": k,
        "warm": warm,
        "seconds": seconds,
    }


def _search_in_turns(
    running: dict[Entry, Driven],
    rows: dict[str, dict[str, Any]],
    truth: list[set[int]],
    plan: Plan,
) -> None:
    """Time everybody in short turns, so that what the machine does meanwhile falls on each."""
    took: dict[str, list[float]] = {entry.name: [] for entry in running}
    shares: dict[str, list[float]] = {entry.name: [] for entry in running}
    turn, seconds = plan.calls // plan.rounds, plan.search_seconds / plan.rounds
    for _ in range(plan.rounds):
        for entry, driven in running.items():
            if "failed" in rows[entry.name]:
                continue
            first = len(took[entry.name])
            # One that takes seconds is not warmed by a call more, and the run has an end.
            slow = bool(took[entry.name]) and took[entry.name][-1] > seconds / WARM
            try:
                answer = driven.ask(
                    seconds + ANSWER_SECONDS,
                    **_searching(first, turn, 0 if slow else WARM, plan.top_k, seconds),
                )
            except PeerError as error:
                rows[entry.name]["failed"] = str(error)
                continue
            took[entry.name] += answer["took"]
            shares[entry.name] += recall(answer["found"], first, truth)
    for entry in running:
        if "failed" not in rows[entry.name]:
            rows[entry.name] |= harness.percentiles(took[entry.name])
            rows[entry.name]["recall"] = round(float(np.mean(shares[entry.name])), 4)
