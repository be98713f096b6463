"""From how many vectors on is the HNSW index faster than the exact scan?

    python -m pytest benchmarks/micro/test_index.py -s -p no:cacheprovider

Exact: `Table.search`. Approximate: `HnswIndex.search` for n candidates, then `Table.score` over
them. Both give the best 10 of the final score, one caller thread, no filter beyond the default.
Writes benchmarks/runs/<date>/index_crossover.json; docs/adr/0006 quotes it.
"""

from __future__ import annotations

import datetime as dt
import json
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from pillion_ranker import TIME_OPEN, Filter, Profile, Table, cpu_path
from pillion_storage.index import HnswIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DIMENSION = 384
SIZES = (1_000, 5_000, 10_000, 25_000, 50_000, 100_000)
CANDIDATES = (64, 256)
QUERIES = 200
K = 10
NOW_US = 1_800_000_000_000_000
YEAR_US = 365 * 86_400 * 1_000_000

SEED = 20261130
RUNS = Path(__file__).parents[1] / "runs"


def clustered(count: int, draw: np.random.Generator) -> NDArray[np.float32]:
    """300 clusters, within each a spread of 24 dimensions: the shape of embeddings of dialogue."""
    centres = draw.normal(size=(300, DIMENSION))
    directions = draw.normal(size=(300, 24, DIMENSION)) * 0.2
    rows = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, 2_000):
        size = min(2_000, count - start)
        member = draw.integers(300, size=size)
        within = np.einsum("ij,ijk->ik", draw.normal(size=(size, 24)), directions[member])
        rows[start : start + size] = centres[member] + within
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def upsert(
    table: Table, first: int, vectors: NDArray[np.float32], draw: np.random.Generator
) -> None:
    """Rows of one kind whose ages spread over a year and whose importance is uniform."""
    n = len(vectors)
    ids = np.zeros((n, 16), np.uint8)
    ids[:, :8] = np.arange(first + 1, first + n + 1, dtype=">u8").view(np.uint8).reshape(n, 8)
    created = NOW_US - draw.integers(0, YEAR_US, size=n)
    zeros = np.zeros(n, np.uint64)
    slots = table.upsert(
        ids=ids,
        created=created,
        last_used=created,
        valid_from=created,
        valid_to=np.full(n, TIME_OPEN),
        recorded=created,
        expires=np.full(n, TIME_OPEN),
        importance=draw.random(n, np.float32),
        confidence=np.ones(n, np.float32),
        kind=np.full(n, 1, np.uint8),
        status=np.full(n, 2, np.uint8),
        flags=np.zeros(n, np.uint16),
        subject=zeros,
        context=zeros,
        attribute=zeros,
        label_offsets=np.zeros(n + 1, np.uint32),
        label_hashes=np.empty(0, np.uint64),
        has_vector=np.ones(n, np.bool_),
        vectors=vectors,
    )
    assert slots.tolist() == list(range(first, first + n))


def latency_us(
    call: Callable[[NDArray[np.float32]], object], queries: NDArray[np.float32]
) -> dict[str, float]:
    """Median, 99th percentile and minimum of one call per query, after a warm-up."""
    for query in queries[:20]:
        call(query)
    taken = []
    for query in queries:
        start = time.perf_counter_ns()
        call(query)
        taken.append((time.perf_counter_ns() - start) / 1000)
    return {
        "p50": round(float(np.median(taken)), 1),
        "p99": round(float(np.percentile(taken, 99)), 1),
        "min": round(min(taken), 1),
    }


@pytest.mark.slow
def test_crossover() -> None:
    draw = np.random.default_rng(SEED)
    vectors = clustered(max(SIZES) + QUERIES, draw)
    queries, vectors = vectors[-QUERIES:], vectors[:-QUERIES]
    table, profile, admit_all = Table(DIMENSION), Profile(), Filter()
    index = HnswIndex(DIMENSION, capacity=max(SIZES))

    def exact(query: NDArray[np.float32]) -> NDArray[np.uint32]:
        return table.search(query=query, now=NOW_US, profile=profile, filter=admit_all, k=K).slots

    def through_index(query: NDArray[np.float32], n: int) -> NDArray[np.uint32]:
        near = index.search(query, n=n, ef=n)
        return table.score(
            query=query, now=NOW_US, profile=profile, filter=admit_all, slots=near.slots, k=K
        ).slots

    sizes: list[dict[str, object]] = []
    done, build_s, build_cpu_s = 0, 0.0, 0.0
    for size in SIZES:
        fresh = vectors[done:size]
        upsert(table, done, fresh, draw)
        wall, cpu = time.perf_counter(), time.process_time()
        index.add(np.arange(done, size), fresh)
        build_s += time.perf_counter() - wall
        build_cpu_s += time.process_time() - cpu
        done = size
        row: dict[str, object] = {
            "vectors": size,
            "exact_us": latency_us(exact, queries),
            "index_build_s": round(build_s, 1),
            "index_build_cpu_s": round(build_cpu_s, 1),
        }
        matrix = vectors[:size]
        nearest = [set(np.argpartition(-(matrix @ q), K)[:K].tolist()) for q in queries]
        for n in CANDIDATES:
            row[f"index_{n}_us"] = latency_us(lambda q, n=n: through_index(q, n), queries)
            found = [set(index.search(q, n=n, ef=n).slots.tolist()) for q in queries]
            cosine = np.mean([len(a & b) / K for a, b in zip(nearest, found, strict=True)])
            top = np.mean(
                [
                    len(set(exact(q).tolist()) & set(through_index(q, n).tolist())) / K
                    for q in queries
                ]
            )
            row[f"index_{n}_cosine_recall"] = round(float(cosine), 4)
            row[f"index_{n}_final_recall"] = round(float(top), 4)
            assert cosine >= 0.95
        sizes.append(row)
        print(json.dumps(row))

    crossover = {
        str(n): next(
            (
                row["vectors"]
                for row in sizes
                if row[f"index_{n}_us"]["p50"] < row["exact_us"]["p50"]
            ),
            None,
        )
        for n in CANDIDATES
    }
    print("first measured size at which the index is faster, by n:", crossover)
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    target = RUNS / today / "index_crossover.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "command": "python -m pytest benchmarks/micro/test_index.py -s",
        "date": today,
        "machine": "2 vCPU AMD EPYC, AVX-512",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ranker_cpu_path": cpu_path(),
        "data": f"{DIMENSION} dimensions, 300 clusters of 24-d spread, seed {SEED}",
        "queries": QUERIES,
        "k": K,
        "hnsw": {"m": 16, "ef_construction": 200, "build_threads": 2},
        "sizes": sizes,
        "index_faster_from": crossover,
    }
    target.write_text(json.dumps(result, indent=2) + "\n")
