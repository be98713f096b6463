"""The decay sweep of a million rows beside a bare read of the columns that it reads.

Most sweeps find little: what faded was taken by those before. Both sides are measured in one run,
in turns. Run it from the repository's root:

    pytest benchmarks/micro/test_decay.py --benchmark-json=decay.json
    python benchmarks/keep_micro.py decay.json
"""

import time
from functools import cache

import numpy as np
import pillion_ranker as ranker
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

ROWS = 1_000_000
STEP = 50_000
NOW = 1_800_000_000_000_000
DAY = 86_400_000_000
ROUNDS = 40


@cache
def table() -> ranker.Table:
    """Memories of every kind, up to 400 days old, a fifth of them used since."""
    rng = np.random.default_rng(1)
    made = ranker.Table(1)
    for start in range(0, ROWS, STEP):
        ids = np.zeros((STEP, 16), np.uint8)
        numbers = np.arange(start, start + STEP, dtype=">u8")
        ids[:, 0], ids[:, 8:] = 1, numbers.view(np.uint8).reshape(STEP, 8)
        valid_from = NOW - rng.integers(0, 400 * DAY, STEP)
        used = valid_from + rng.integers(0, 50 * DAY, STEP)
        made.upsert(
            ids=ids,
            created=valid_from,
            last_used=np.where(rng.random(STEP) < 0.2, used, 0),
            valid_from=valid_from,
            valid_to=np.full(STEP, ranker.TIME_OPEN),
            recorded=valid_from,
            expires=np.full(STEP, ranker.TIME_OPEN),
            importance=rng.random(STEP, dtype=np.float32),
            confidence=np.ones(STEP, np.float32),
            kind=rng.integers(1, 6, STEP, dtype=np.uint8),
            status=np.full(STEP, ranker.STATUS_STATED, np.uint8),
            flags=np.zeros(STEP, np.uint16),
            subject=rng.integers(1, 1000, STEP).astype(np.uint64),
            context=np.ones(STEP, np.uint64),
            attribute=np.zeros(STEP, np.uint64),
            label_offsets=np.zeros(STEP + 1, np.uint32),
            label_hashes=np.zeros(0, np.uint64),
            has_vector=np.zeros(STEP, bool),
            vectors=np.zeros((STEP, 1), np.float32),
        )
    return made


@cache
def columns() -> list[np.ndarray]:
    """As many bytes as the sweep reads: flags, valid from, last used, expiry, kind, importance."""
    rng = np.random.default_rng(2)
    types = (np.uint16, np.int64, np.int64, np.int64, np.uint8, np.float32)
    return [rng.integers(0, 100, ROWS).astype(one) for one in types]


@pytest.mark.parametrize("threshold", [1e-9, 1e-5, 1e-2])
def test_decay_sweep(benchmark: BenchmarkFixture, threshold: float) -> None:
    swept, bytes_alike = table(), columns()
    below = np.zeros(6, np.float32)
    below[1] = below[4] = threshold
    asked = {
        "now": NOW,
        "profile": ranker.Profile(recency_anchor=1),
        "filter": ranker.Filter(not_expired_at=NOW),
        "below": below,
    }
    best = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for side, call in enumerate(
            (lambda: swept.vitality(**asked), lambda: [one.max() for one in bytes_alike])
        ):
            start = time.perf_counter()
            call()
            best[side] = min(best[side], time.perf_counter() - start)
    benchmark.extra_info.update(
        cpu_path=ranker.cpu_path(),
        rows=ROWS,
        found=len(swept.vitality(**asked)),
        sweep_ms=best[0] * 1e3,
        read_ms=best[1] * 1e3,
        times_bare_read=best[0] / best[1],
    )
    benchmark(swept.vitality, **asked)
