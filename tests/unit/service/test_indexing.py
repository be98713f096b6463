"""Search above the index threshold: a lagging index hides nothing, and the answer says so."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import Reason
from pillion.domain.queries import Exactness, Filter, RankingProfile, ReadAt, SearchPath
from pillion.service import indexing, ranked
from pillion_storage.index.hnsw import HnswIndex
from pillion_testing.fakes import DAY, START
from pillion_testing.service import DEAR_SCAN, add, floats, patch, ram_service

DIMENSION = 8
FROM = 200
# What is fresh and important wins over what is close.
BY_PRIOR = RankingProfile(relevance_weight=0.2, recency_weight=0.5, importance_weight=0.3)


def vectors(count, seed=1):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, DIMENSION))
    rows = centres[rng.integers(0, 12, count)] + 0.2 * rng.normal(size=(count, DIMENSION))
    return rows.astype("<f4")


@pytest.fixture
def service():
    made = ram_service(index_from=FROM, costs=DEAR_SCAN)
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
    return [f"memory {i}" for i in order[:count]]


def texts(answer):
    return [hit.memory.text for hit in answer.hits]


def test_below_the_threshold_there_is_no_index(service):
    fill(service, vectors(FROM - 1))
    answer = service.search(vector=vectors(1, 2)[0].tobytes())
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    assert index_of(service).vectors == 0


def test_above_it_the_index_answers_and_says_certified(service):
    rows = vectors(600)
    fill(service, rows)
    query = vectors(1, 2)[0]
    service.search(vector=query.tobytes())
    settle(service)
    answer = service.search(vector=query.tobytes(), top_k=10)
    assert (answer.path, answer.exactness) == (SearchPath.INDEX, Exactness.CERTIFIED)
    assert (answer.admitted, answer.bound) == (0, None)
    assert texts(answer) == brute_force(rows, query, 10)
    assert index_of(service).vectors == 600
    assert answer.plan.situation.indexed == 600
    assert answer.plan.index_ns < answer.plan.scan_ns


def test_only_a_scan_promises_every_true_nearest(service):
    rows = vectors(300)
    fill(service, rows)
    service.search(vector=rows[0].tobytes())
    settle(service)
    answer = service.search(vector=rows[0].tobytes(), recall_target=1.0)
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    for bad, reason in (
        (0.4, Reason.INVALID_FIELD),
        (1.5, Reason.INVALID_FIELD),
        (float("nan"), Reason.NOT_FINITE),
    ):
        with service.refuses(reason, "recall_target"):
            service.search(vector=rows[0].tobytes(), recall_target=bad)


def test_a_fresh_memory_outside_the_nearest_is_found(service):
    """It is not among the nearest that the index names, and wins by its recency."""
    rows = vectors(600)
    fill(service, rows, valid_from=START - 3000 * DAY, importance=0.0)
    far = -rows.mean(axis=0).astype("<f4")
    fresh = service.one(add("fresh", vector=far.tobytes(), importance=1.0)).id
    query = rows[0]
    service.search(vector=query.tobytes())
    settle(service)
    answer = service.search(vector=query.tobytes(), top_k=3, ranking=BY_PRIOR)
    assert (answer.path, answer.exactness) == (SearchPath.INDEX, Exactness.CERTIFIED)
    assert answer.hits[0].memory.id == fresh


def test_what_certification_gives_up_on_is_bounded(service, monkeypatch):
    """With no look at anything else allowed, the answer says what it may have missed."""
    rows = vectors(600)
    fill(service, rows, valid_from=START - 3000 * DAY, importance=0.0)
    far = -rows.mean(axis=0).astype("<f4")
    fresh = service.one(add("fresh", vector=far.tobytes(), importance=1.0)).id
    service.search(vector=rows[0].tobytes())
    settle(service)
    asked = {"vector": rows[0].tobytes(), "top_k": 3, "ranking": BY_PRIOR}
    whole = service.search(**asked).hits
    monkeypatch.setattr(ranked, "CERTIFY_ROWS_MAX", 0)
    answer = service.search(**asked)
    assert (answer.path, answer.exactness) == (SearchPath.INDEX, Exactness.APPROXIMATE)
    assert fresh not in {hit.memory.id for hit in answer.hits}
    assert whole[0].memory.id == fresh
    assert answer.bound >= whole[0].score


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_certified_is_what_a_scan_finds(certified, data):
    """Ids, order and every part of every score; over filters, instants, profiles and lag."""
    query = data.draw(st.integers(0, 2**32 - 1).map(lambda seed: vectors(1, seed)[0]))
    weights = data.draw(st.tuples(*[st.sampled_from([0.1, 0.6, 1.0])] * 3))
    asked = {
        "vector": query.tobytes(),
        "top_k": data.draw(st.sampled_from([1, 5, 30])),
        "ranking": RankingProfile(
            relevance_weight=weights[0], recency_weight=weights[1], importance_weight=weights[2]
        ),
        "filter": Filter(
            labels_any=data.draw(st.sampled_from([frozenset(), frozenset({"even"})])),
            importance_min=data.draw(st.sampled_from([0.0, 0.5])),
        ),
        "read": ReadAt(as_of=START - data.draw(st.integers(0, 500)) * DAY),
        "score_min": data.draw(st.sampled_from([0.0, 0.4])),
    }
    answer = certified.search(**asked)
    scan = certified.search(**asked, recall_target=1.0)
    assert scan.exactness is Exactness.EXACT
    assert answer.hits == scan.hits
    assert answer.path is not SearchPath.INDEX or answer.exactness is Exactness.CERTIFIED
    certified.paths.append(answer.path)


@pytest.fixture(scope="module")
def certified():
    made = ram_service(index_from=FROM, costs=DEAR_SCAN)
    made.paths = []
    draw = np.random.default_rng(7)
    rows = vectors(900)
    for start in range(0, len(rows), 100):
        made.import_(
            *[
                add(
                    f"memory {n}",
                    vector=rows[n].tobytes(),
                    valid_from=START - int(draw.integers(1, 600)) * DAY,
                    importance=float(draw.random()),
                    labels=("even",) if n % 2 else (),
                )
                for n in range(start, start + 100)
            ]
        )
    made.search(vector=rows[0].tobytes())
    settle(made)
    made.forget(ids=tuple(hit.memory.id for hit in made.search(vector=rows[5].tobytes()).hits))
    yield made
    made.close()
    assert made.paths.count(SearchPath.INDEX) > len(made.paths) // 4


def test_a_narrow_filter_is_scanned_exactly(service):
    rows = vectors(400)
    fill(service, rows[:390])
    fill(service, rows[390:], labels=("rare",))
    service.search(vector=rows[0].tobytes())
    settle(service)
    answer = service.search(
        vector=rows[395].tobytes(), filter=Filter(labels_all=frozenset({"rare"})), top_k=5
    )
    assert (answer.path, answer.exactness) == (SearchPath.SCAN, Exactness.EXACT)
    assert answer.admitted == 10


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
