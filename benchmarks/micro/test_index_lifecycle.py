"""What an index's life costs: deleted nodes, wiping, snapshots, and reads beside all of it.

    python -m pytest benchmarks/micro/test_index_lifecycle.py -s -p no:cacheprovider

Clustered vectors as in `test_index`. Writes benchmarks/runs/<date>/index_lifecycle.json, which
docs/adr/0018 quotes. PILLION_BENCH_VECTORS and PILLION_BENCH_DIMENSION change the size.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pillion_storage.index import HnswIndex, snapshot
from pillion_storage.index.graph_state import layout_of
from pillion_storage.index.hnsw import EF_CONSTRUCTION, M

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

VECTORS = int(os.environ.get("PILLION_BENCH_VECTORS", "20000"))
DIMENSION = int(os.environ.get("PILLION_BENCH_DIMENSION", "384"))
QUERIES = 200
TIMED = 150
WIPED_SHARE = 0.33  # wiping takes long, so it is looked at for this share only
SEED = 20261130
RUNS = Path(__file__).parents[1] / "runs"


def clustered(count: int, draw: np.random.Generator) -> NDArray[np.float32]:
    """300 clusters, within each a spread of 24 dimensions."""
    centres = draw.normal(size=(300, DIMENSION))
    directions = draw.normal(size=(300, 24, DIMENSION)) * 0.2
    rows = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, 2_000):
        size = min(2_000, count - start)
        member = draw.integers(300, size=size)
        within = np.einsum("ij,ijk->ik", draw.normal(size=(size, 24)), directions[member])
        rows[start : start + size] = centres[member] + within
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def milliseconds(taken: list[float]) -> dict[str, float]:
    return {
        "p50": round(1000 * float(np.median(taken)), 2),
        "p99": round(1000 * float(np.percentile(taken, 99)), 2),
        "max": round(1000 * max(taken), 2),
    }


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def copy_of(index: HnswIndex) -> HnswIndex:
    return HnswIndex.restored(*index.capture())


def found(
    index: HnswIndex, rows: NDArray[np.float32], queries: NDArray[np.float32]
) -> dict[str, Any]:
    """Recall of the ten nearest and the median time of a search, for two efforts."""
    slots = index.slots()
    scores = queries @ rows[slots].T
    told: dict[str, Any] = {}
    for effort in (64, 256):
        hit, taken = 0, []
        for query, score in zip(queries, scores, strict=True):
            exact = slots[np.argpartition(-score, 10)[:10]]
            start = time.perf_counter()
            near = index.search(query, effort, effort)
            taken.append(time.perf_counter() - start)
            hit += len(np.intersect1d(exact, near.slots[:10]))
        told[f"recall_{effort}"] = round(hit / (10 * len(queries)), 4)
        told[f"us_{effort}"] = round(1e6 * float(np.median(taken)))
    return told


def beside(
    index: HnswIndex, queries: NDArray[np.float32], work: Callable[[], None]
) -> dict[str, float]:
    """The latency of searches in this thread while another one works, until that is done."""
    thread = threading.Thread(target=work, daemon=True)
    taken = []
    thread.start()
    while thread.is_alive() or len(taken) < len(queries):
        query = queries[len(taken) % len(queries)]
        taken.append(timed(lambda: index.search(query, 256, 256)))  # noqa: B023 - called at once
    thread.join()
    return milliseconds(taken) | {"searches": len(taken)}


@pytest.mark.slow
def test_lifecycle(tmp_path: Path) -> None:
    draw = np.random.default_rng(SEED)
    rows = clustered(VECTORS + 2 * TIMED + QUERIES, draw)
    queries, more = rows[-QUERIES:], rows[VECTORS:-QUERIES]
    index = HnswIndex(DIMENSION, capacity=VECTORS + 2 * TIMED)
    report: dict[str, Any] = {
        "machine": platform.platform(),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg(),
        "vectors": VECTORS,
        "dimension": DIMENSION,
    }
    report["build_seconds"] = round(timed(lambda: index.add(np.arange(VECTORS), rows[:VECTORS])), 1)

    report["deleted"] = {}
    for share in (0.0, 0.10, 0.25, 0.33, 0.50):
        gone = draw.permutation(VECTORS)[: int(share * VECTORS)]
        marked = copy_of(index)
        marked.remove(gone)
        wiped = copy_of(marked)  # what is put back has its deleted vectors blank
        report["deleted"][str(share)] = {
            "marked": found(marked, rows, queries),
            "put back": found(wiped, rows, queries),
        }
        if share == WIPED_SHARE:
            marked.wipe(VECTORS)
            report["deleted"][str(share)]["wiped"] = found(marked, rows, queries)

    work = copy_of(index)
    gone = np.arange(TIMED)
    work.remove(gone)
    report["wipe_ms"] = milliseconds([timed(work.wipe) for _ in gone])
    for what, base in (("add_to_wiped_ms", 0), ("add_new_ms", TIMED)):
        report[what] = milliseconds(
            [
                timed(lambda: work.add([VECTORS + base + i], more[base + i : base + i + 1]))  # noqa: B023
                for i in range(TIMED)
            ]
        )

    path = tmp_path / "a.hnsw"
    layout = layout_of(DIMENSION, M, EF_CONSTRUCTION)
    state, slots, live = index.capture()
    ids = np.ones((state.count, 16), np.uint8)
    manifest = snapshot.Manifest(
        *("bench", "index", ["test", "1", ""], DIMENSION, VECTORS, state.count, 1, 1, "0.8.0"),
        *(state.max_level, state.entry, state.layout, state.upper.nbytes),
    )
    made = snapshot.Snapshot(manifest, ids, state)
    report["snapshot"] = {
        "capture_seconds": round(timed(index.capture), 3),
        "write_seconds": round(timed(lambda: snapshot.write(path, made, None)), 3),
        "bytes": path.stat().st_size,
        "read_seconds": round(timed(lambda: snapshot.read(path, layout, None, lambda _: None)), 3),
        "restore_seconds": round(timed(lambda: HnswIndex.restored(state, slots, live)), 3),
    }

    index.remove(range(0, VECTORS, 3))
    report["search_ms"] = {"alone": beside(index, queries, lambda: None)}
    adding = [(VECTORS + i, more[i : i + 1]) for i in range(TIMED)]

    def add_one_by_one() -> None:
        for slot, row in adding:
            index.add([slot], row)

    report["search_ms"]["beside additions"] = beside(index, queries, add_one_by_one)
    report["search_ms"]["beside wiping"] = beside(index, queries, lambda: index.wipe(50) and None)
    few = HnswIndex(DIMENSION)
    few.add(np.arange(4000), rows[:4000])
    few.remove(range(0, 4000, 3))
    report["search_ms"]["few alone"] = beside(few, queries, lambda: None)
    report["search_ms"]["few beside a rebuild"] = beside(few, queries, lambda: few.scrub() and None)

    told = json.dumps(report, indent=2)
    print(told)
    folder = RUNS / dt.datetime.now(dt.UTC).date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index_lifecycle.json").write_text(told + "\n", encoding="utf-8")
