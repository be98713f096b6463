"""What an index's nearest, certified, find under filters from broad to narrow.

The graph knows nothing of filters. Of its nearest a narrow filter admits few or none, and a search
that re-ranked them would miss nearly all there is; certification finds the rest by their priors.
"""

from __future__ import annotations

import numpy as np
import pillion_ranker as ranker
import pytest
from pillion_storage.index import HnswIndex

ROWS, DIMENSION, QUERIES, K = 10_000, 16, 20, 10
NOW = 1_800_000_000_000_000
DAY = 86_400_000_000
# The label 1 + n is on every row whose number EVERY[n] divides: 50 % to 0.01 % of the rows.
EVERY = (2, 10, 100, 1_000, 10_000)


@pytest.fixture(scope="module")
def partition() -> tuple[ranker.Table, HnswIndex, np.ndarray]:
    draw = np.random.default_rng(20_261_130)
    centres = draw.normal(size=(40, DIMENSION))

    def clustered(count: int) -> np.ndarray:
        member = draw.integers(40, size=count)
        noise = 0.5 * draw.normal(size=(count, DIMENSION))
        return np.ascontiguousarray(centres[member] + noise, dtype=np.float32)

    vectors, numbers = clustered(ROWS), np.arange(ROWS)
    ids = np.zeros((ROWS, 16), np.uint8)
    ids[:, :4] = (numbers + 1).astype(">u4").view(np.uint8).reshape(ROWS, 4)
    labels = [[1 + n for n, each in enumerate(EVERY) if row % each == 0] for row in range(ROWS)]
    offsets = np.cumsum([0, *map(len, labels)]).astype(np.uint32)
    ages = NOW - draw.integers(0, 400, ROWS) * DAY
    times = dict.fromkeys(("created", "last_used", "valid_from", "recorded"), ages)
    open_ = np.full(ROWS, ranker.TIME_OPEN)
    hashes = np.zeros(ROWS, np.uint64)
    table = ranker.Table(DIMENSION)
    slots = table.upsert(
        ids=ids,
        **times,
        valid_to=open_,
        expires=open_,
        importance=draw.random(ROWS, dtype=np.float32),
        confidence=np.ones(ROWS, np.float32),
        kind=draw.integers(1, 6, ROWS, dtype=np.uint8),
        status=np.full(ROWS, ranker.STATUS_STATED, np.uint8),
        flags=np.zeros(ROWS, np.uint16),
        subject=hashes,
        context=hashes,
        attribute=hashes,
        label_offsets=offsets,
        label_hashes=np.array([one for row in labels for one in row], np.uint64),
        has_vector=np.ones(ROWS, np.bool_),
        vectors=vectors,
    )
    index = HnswIndex(DIMENSION, capacity=ROWS)
    index.add(slots, vectors)
    return table, index, clustered(QUERIES)


@pytest.mark.parametrize("number", range(len(EVERY)))
def test_recall_under_a_filter(partition, number: int) -> None:
    table, index, queries = partition
    admitted = ranker.Filter(labels_all=[1 + number])
    profile = ranker.Profile()
    assert table.count(admitted) == ROWS // EVERY[number]
    found = wanted = plain = 0
    for query in queries:
        asked = {"query": query, "now": NOW, "profile": profile, "filter": admitted, "k": K}
        near = index.search(query, 64, 64)
        exact = {row[0] for row in table.search(**asked, exact_float=True).rows()}
        certified = table.certify(
            **asked, slots=near.slots, horizon=float(near.cosines[-1]), rows_max=ROWS
        )
        assert certified.bound is None
        found += len(exact & {row[0] for row in certified.rows()})
        plain += len(exact & {row[0] for row in table.score(**asked, slots=near.slots).rows()})
        wanted += len(exact)
    assert wanted == QUERIES * min(K, ROWS // EVERY[number])
    assert found >= 0.99 * wanted
    assert plain < 0.9 * wanted  # or this would be no test of certification
