"""The effort that was measured on a sample keeps its promise for queries of the same kind."""

import numpy as np
import pillion_ranker as ranker
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.service.index_recall import EFFORTS, RecallMeasurement, RecallTable, effort_unknown
from pillion_storage.index import HnswIndex

DIMENSION = 64
COUNT = 3000
QUERIES = 150


def clustered(count, seed, clusters=60, spread=16):
    """Unit vectors around centres, spread within each along directions of its own."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(clusters, DIMENSION))
    directions = draw.normal(size=(clusters, spread, DIMENSION)) * 0.4
    member = draw.integers(clusters, size=count)
    within = (draw.normal(size=(count, 1, spread)) @ directions[member])[:, 0]
    rows = (centres[member] + within + draw.normal(size=(count, DIMENSION)) * 0.1).astype("f4")
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def table_of(rows):
    """A table with these vectors and nothing else to tell its rows apart; and their slots."""
    count = len(rows)
    ids = np.zeros((count, 16), np.uint8)
    ids[:, :4] = np.arange(1, count + 1, dtype=">u4").view(np.uint8).reshape(count, 4)
    times = np.zeros(count, np.int64)
    open_end = np.full(count, ranker.TIME_OPEN, np.int64)
    zeros = np.zeros(count, np.uint64)
    table = ranker.Table(DIMENSION)
    slots = table.upsert(
        ids=ids,
        created=times,
        last_used=times,
        valid_from=times,
        valid_to=open_end,
        recorded=times,
        expires=open_end,
        importance=np.zeros(count, np.float32),
        confidence=np.zeros(count, np.float32),
        kind=np.ones(count, np.uint8),
        status=np.full(count, 2, np.uint8),
        flags=np.zeros(count, np.uint16),
        subject=zeros,
        context=zeros,
        attribute=zeros,
        label_offsets=np.zeros(count + 1, np.uint32),
        label_hashes=np.zeros(0, np.uint64),
        has_vector=np.ones(count, np.bool_),
        vectors=rows,
    )
    return table, slots


@pytest.fixture(scope="module")
def measured():
    """An index after churn: a third of its places were freed, wiped and used again."""
    rows = clustered(COUNT + QUERIES, seed=1)
    table, slots = table_of(rows[:COUNT])
    index = HnswIndex(DIMENSION)
    index.add(slots, rows[:COUNT][::-1])
    index.remove(slots[::3])
    index.wipe(COUNT)
    index.add(slots, rows[:COUNT])
    measurement = RecallMeasurement(index, table, seed=1)
    while measurement.step():
        pass
    return index, slots, rows, measurement.table()


@pytest.mark.parametrize("target", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("k", [5, 10, 50])
def test_the_target_is_met_on_other_queries(measured, target, k):
    index, slots, rows, found = measured
    effort = found.effort_for(target, k)
    assert effort is not None
    total = 0
    for query in rows[COUNT:]:
        exact = slots[np.argsort(-(rows[:COUNT] @ query), kind="stable")[:k]]
        total += len(np.intersect1d(exact, index.search(query, k, effort).slots))
    # A sample of 48 tells a mean to some two percent.
    assert total / (k * QUERIES) >= target - 0.03


def test_a_higher_target_never_takes_less_effort(measured):
    *_, found = measured
    efforts = [found.effort_for(target, 10) or 10**9 for target in (0.5, 0.8, 0.9, 0.95, 0.99)]
    assert efforts == sorted(efforts)


TABLES = st.dictionaries(
    st.sampled_from([10, 100]),
    st.dictionaries(st.sampled_from(EFFORTS), st.floats(0, 1), min_size=1),
    min_size=1,
)


@given(TABLES, st.floats(0, 1), st.integers(1, 1000))
def test_a_table_gives_an_effort_that_was_seen_to_do(found, target, k):
    table = RecallTable(found)
    effort = table.effort_for(target, k)
    length = min((one for one in found if one >= k), default=max(found))
    if effort is None:
        assert all(share < target for share in found[length].values())
        return
    assert effort >= k
    assert any(
        share >= target and effort >= one * max(k, length) // length
        for one, share in found[length].items()
    )


@given(TABLES)
def test_a_table_comes_back_from_its_rows(found):
    table = RecallTable(found)
    again = RecallTable.of_rows(table.rows())
    assert again is not None
    assert again.rows() == table.rows()


@pytest.mark.parametrize("rows", [[], [[10]], [[10, 64, 2.0]], [["a", 1, 1]], [[0, 1, 0.5]], [3]])
def test_rows_that_are_no_table_are_none(rows):
    assert RecallTable.of_rows(rows) is None


def test_too_few_vectors_are_not_measured():
    rows = clustered(8, seed=2)
    table, slots = table_of(rows)
    index = HnswIndex(DIMENSION)
    index.add(slots, rows)
    measurement = RecallMeasurement(index, table, seed=1)
    assert not measurement.step()
    assert measurement.table() is None
    assert effort_unknown(10) >= 10
