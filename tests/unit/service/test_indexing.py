"""Search above the index threshold: a lagging index hides nothing, and the answer says so."""

import threading

import numpy as np
import pytest
from pillion.domain.errors import Reason
from pillion.domain.queries import Exactness, Filter, SearchPath
from pillion.service import indexing
from pillion_storage.index.hnsw import HnswIndex
from pillion_testing.service import add, floats, patch, ram_service

DIMENSION = 8
FROM = 200


def vectors(count, seed=1):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, DIMENSION))
    rows = centres[rng.integers(0, 12, count)] + 0.2 * rng.normal(size=(count, DIMENSION))
    return rows.astype("<f4")


@pytest.fixture
def service():
    made = ram_service(index_from=FROM)
    yield made
    made.close()


def fill(service, rows, **more):
    for start in range(0, len(rows), 100):
        part = rows[start : start + 100]
        items = [
            add(f"memory {start + i}", vector=row.tobytes(), **more) for i, row in enumerate(part)
        ]
        service.import_(*items)


def index_of(service):
    return service.use_cases.searcher._residents.get(service.partition).view.ann


def settle(service):
    """Wait until the index has taken up every change; the thread says so under its lock."""
    index = index_of(service)
    with index._lock:
        assert index._lock.wait_for(lambda: index.lag == 0, timeout=60)


def brute_force(rows, query, count):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    order = np.argsort(-(unit @ (query / np.linalg.norm(query))), kind="stable")
    return {f"memory {i}" for i in order[:count]}


def texts(answer):
    return [hit.memory.text for hit in answer.hits]


def test_below_the_threshold_there_is_no_index(service):
    fill(service, vectors(FROM - 1))
    answer = service.search(vector=vectors(1, 2)[0].tobytes())
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    assert index_of(service).vectors == 0


def test_above_it_the_index_answers_and_says_approximate(service):
    rows = vectors(600)
    fill(service, rows)
    query = vectors(1, 2)[0]
    service.search(vector=query.tobytes())
    settle(service)
    answer = service.search(vector=query.tobytes(), top_k=10)
    assert (answer.path, answer.exactness) == (SearchPath.INDEX, Exactness.APPROXIMATE)
    assert answer.admitted == 0
    assert len(set(texts(answer)) & brute_force(rows, query, 10)) >= 9
    assert index_of(service).vectors == 600


def test_a_narrow_filter_is_scanned_exactly(service):
    rows = vectors(400)
    fill(service, rows[:300])
    fill(service, rows[300:], labels=("rare",))
    service.search(vector=rows[0].tobytes())
    settle(service)
    answer = service.search(
        vector=rows[350].tobytes(), filter=Filter(labels_all=frozenset({"rare"})), top_k=5
    )
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    assert answer.admitted == 100


def test_what_the_index_has_not_taken_up_is_found_all_the_same(service, monkeypatch):
    """The index's thread is held: every change since must still be seen by the next search."""
    rows = vectors(300)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    held = threading.Event()
    held_up = threading.Event()
    take_up = indexing.VectorIndex._take_up

    def slow(self, index, slots, **how):
        held_up.set()
        held.wait(60)
        take_up(self, index, slots, **how)

    monkeypatch.setattr(indexing.VectorIndex, "_take_up", slow)
    try:
        far = -rows.mean(axis=0).astype("<f4")
        new = service.one(add("the new one", vector=far.tobytes()))
        answer = service.search(vector=far.tobytes(), top_k=1)
        assert (answer.path, texts(answer)) == (SearchPath.INDEX, ["the new one"])
        assert held_up.wait(60)
        assert index_of(service).lag > 0
        assert texts(service.search(vector=far.tobytes(), top_k=1)) == ["the new one"]

        moved = rows[7] / np.linalg.norm(rows[7])
        service.one(patch(new.id, vector=moved.astype("<f4").tobytes()))
        nearest = service.search(vector=far.tobytes(), top_k=1)
        assert texts(nearest) != ["the new one"]
        assert "the new one" in texts(service.search(vector=moved.tobytes(), top_k=3))
    finally:
        held.set()
    settle(service)
    assert "the new one" in texts(service.search(vector=moved.tobytes(), top_k=3))


def test_an_index_that_lags_too_far_is_not_asked(service, monkeypatch):
    rows = vectors(300)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    monkeypatch.setattr(indexing, "DIRTY_MAX", 3)
    held = threading.Event()
    monkeypatch.setattr(indexing.VectorIndex, "_take_up", lambda *_, **__: held.wait(60))
    try:
        fill(service, vectors(80, 3))
        answer = service.search(vector=rows[0].tobytes())
        assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    finally:
        held.set()


def test_forgotten_memories_are_not_found_by_the_index(service):
    rows = vectors(400)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    first = service.search(vector=rows[0].tobytes(), top_k=3)
    service.forget(ids=tuple(hit.memory.id for hit in first.hits))
    after = service.search(vector=rows[0].tobytes(), top_k=3)
    assert after.path is SearchPath.INDEX
    assert not set(texts(after)) & set(texts(first))


def test_an_index_that_came_apart_is_not_trusted(service, monkeypatch):
    rows = vectors(300)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    whole = HnswIndex.search
    monkeypatch.setattr(
        HnswIndex, "search", lambda self, *a: whole(self, *a)._replace(complete=False)
    )
    answer = service.search(vector=rows[0].tobytes())
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)


def test_a_bad_query_vector_is_refused_by_the_index_path_too(service):
    rows = vectors(300)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    bad = floats(*([float("nan")] * DIMENSION))
    with service.refuses(Reason.NOT_FINITE, "vector"):
        service.search(vector=bad)


def test_closing_stops_the_thread(service):
    fill(service, vectors(300))
    service.search(vector=vectors(1)[0].tobytes())
    thread = index_of(service)._thread
    assert thread is not None
    service.close()
    assert not thread.is_alive()
