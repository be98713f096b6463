"""The index by example: refusals, edges, deletions, rebuilds and what remains in memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from pillion_storage.index import HnswIndex, graph, hnsw

DIMENSION = 16


def unit_rows(count: int, seed: int = 1, dimension: int = DIMENSION) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def filled(count: int, **options) -> tuple[HnswIndex, np.ndarray]:
    index, rows = HnswIndex(DIMENSION, **options), unit_rows(count)
    index.add(np.arange(count), rows)
    return index, rows


def raw_bytes(index: HnswIndex) -> bytes:
    """Everything that hnswlib would save of this index."""
    return pickle.dumps(index._graph._index)


def test_an_empty_index_answers() -> None:
    slots, cosines, complete = HnswIndex(DIMENSION).search(np.ones(DIMENSION), n=10, ef=64)
    assert (len(slots), len(cosines), complete) == (0, 0, True)
    assert (slots.dtype, cosines.dtype) == (np.uint32, np.float32)


def test_finds_itself_with_the_true_cosine() -> None:
    index, rows = filled(200)
    query = rows[17] * 5  # length does not matter
    slots, cosines, complete = index.search(query, n=5, ef=64)
    assert slots[0] == 17
    assert complete
    assert np.all(np.diff(cosines) <= 0)
    np.testing.assert_allclose(cosines, rows[slots] @ rows[17], atol=1e-5)


def test_asking_for_more_than_there_is() -> None:
    index, _ = filled(7)
    result = index.search(np.ones(DIMENSION), n=1000, ef=64)
    assert sorted(result.slots) == list(range(7))
    assert result.complete


def test_slots_are_32_bit_and_sparse() -> None:
    index = HnswIndex(DIMENSION)
    index.add([0, 2**32 - 1], unit_rows(2))
    assert index.slots().tolist() == [0, 2**32 - 1]
    assert index.search(unit_rows(2)[1], n=1, ef=8).slots[0] == 2**32 - 1


def test_replacing_moves_the_slot() -> None:
    index, rows = filled(50)
    elsewhere = -rows[3]
    index.add([3], [elsewhere])
    assert (index.live, index.deleted) == (50, 1)
    result = index.search(elsewhere, n=50, ef=100)
    assert result.slots[0] == 3
    assert len(set(result.slots.tolist())) == 50  # once, not twice
    assert index.search(rows[3], n=1, ef=100).slots[0] != 3  # not where it was


def test_removing_is_idempotent_and_counts() -> None:
    index, rows = filled(10)
    assert index.remove([2, 3, 77]) == 2
    assert index.remove([2]) == 0
    assert (index.live, index.deleted) == (8, 2)
    assert 2 not in index.search(rows[2], n=10, ef=64).slots


def test_everything_removed_then_filled_again() -> None:
    index, rows = filled(300)
    index.remove(np.arange(300))
    assert len(index.search(rows[0], n=5, ef=64).slots) == 0
    index.add(np.arange(300), rows)
    assert index.live == 300
    result = index.search(rows[9], n=10, ef=128)
    assert result.slots[0] == 9
    assert result.complete


def test_grows_beyond_its_capacity() -> None:
    count = graph.CAPACITY_MIN * 2 + 10
    index, rows = filled(count)
    before = HnswIndex(DIMENSION).memory_bytes
    assert index.memory_bytes > before
    assert index.search(rows[count - 1], n=1, ef=64).slots[0] == count - 1
    assert index.search(rows[0], n=1, ef=64).slots[0] == 0


@pytest.mark.parametrize(
    ("slots", "vectors", "message"),
    [
        ([1], [[np.nan] * DIMENSION], "finite"),
        ([1], [[np.inf] * DIMENSION], "finite"),
        ([1], [[1e300] * DIMENSION], "finite"),
        ([1], [[0.0] * DIMENSION], "zero"),
        ([1], [[1.0] * (DIMENSION + 1)], "shape"),
        ([1, 2], [[1.0] * DIMENSION], "shape"),
        ([1, 1], [[1.0] * DIMENSION] * 2, "twice"),
        ([-1], [[1.0] * DIMENSION], "outside"),
        ([2**32], [[1.0] * DIMENSION], "outside"),
        ([1.5], [[1.0] * DIMENSION], "integers"),
        ([[1]], [[1.0] * DIMENSION], "flat"),
    ],
)
def test_refused_additions_change_nothing(slots, vectors, message: str) -> None:
    index, _ = filled(3)
    with pytest.raises(ValueError, match=message):
        index.add(slots, vectors)
    assert (index.live, index.deleted) == (3, 0)


@pytest.mark.parametrize(
    "query", [[np.nan] * DIMENSION, [0.0] * DIMENSION, [1.0], [[1.0] * 16] * 2]
)
def test_refused_queries(query) -> None:
    index, _ = filled(3)
    with pytest.raises(ValueError, match=r"finite|zero|components"):
        index.search(query, n=1, ef=1)


@pytest.mark.parametrize(("n", "ef"), [(0, 1), (1, 0), (-1, 5)])
def test_refused_bounds(n: int, ef: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        filled(1)[0].search(np.ones(DIMENSION), n=n, ef=ef)


@pytest.mark.parametrize(
    "options",
    [{"dimension": 0}, {"m": 1}, {"ef_construction": 0}, {"rebuild_at": 0.0}],
)
def test_refused_parameters(options) -> None:
    with pytest.raises(ValueError, match="must be"):
        HnswIndex(**{"dimension": DIMENSION, **options})


def test_tiny_and_huge_vectors_have_directions() -> None:
    index = HnswIndex(DIMENSION)
    rows = unit_rows(2)
    index.add([0, 1], np.stack([rows[0] * np.float32(1e-40), rows[1] * np.float32(1e30)]))
    slots, cosines, _ = index.search(rows[1], n=1, ef=4)
    assert slots[0] == 1
    assert cosines[0] == pytest.approx(1, abs=1e-5)


def test_the_same_changes_give_the_same_graph() -> None:
    results = []
    for _ in range(2):
        index, rows = filled(500)
        index.remove(np.arange(0, 500, 3))
        results.append([index.search(row, n=10, ef=10).slots.tolist() for row in rows[:50]])
    assert results[0] == results[1]


def test_needs_rebuild_at_the_threshold() -> None:
    index, _ = filled(100, rebuild_at=0.25)
    assert not HnswIndex(DIMENSION).needs_rebuild
    index.remove(range(24))
    assert not index.needs_rebuild
    index.remove([24])
    assert index.needs_rebuild
    assert index.scrub()
    assert (index.live, index.deleted, index.needs_rebuild) == (75, 0, False)


def test_an_unreachable_rest_is_told_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """hnswlib raises when it reaches too few; the search gives what can be had and says so."""
    index, rows = filled(100)
    real = index._graph._index
    asked: list[int] = []

    class Broken:
        """hnswlib over a graph of which only 30 nodes can be reached."""

        def knn_query(self, query, k, num_threads):
            asked.append(k)
            if k > 30:
                raise RuntimeError(
                    "Cannot return the results in a contiguous 2D array. Probably ef is"
                )
            return real.knn_query(query, k=k, num_threads=num_threads)

    monkeypatch.setattr(index._graph, "_index", Broken())
    result = index.search(rows[0], n=80, ef=64)
    assert asked == [80, 40, 20]
    asked.clear()
    assert len(result.slots) == 20
    assert not result.complete
    assert index.search(rows[0], n=25, ef=64).complete
    assert asked == [64, 25]


def test_another_error_of_hnswlib_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    index, rows = filled(10)

    class Broken:
        def knn_query(self, query, k, num_threads):
            raise RuntimeError("Not enough memory")

    monkeypatch.setattr(index._graph, "_index", Broken())
    with pytest.raises(RuntimeError, match="memory"):
        index.search(rows[0], n=1, ef=1)


def test_removed_vectors_linger_until_scrubbed() -> None:
    """The reason for `scrub`: erasure must reach the index's own bytes."""
    index, rows = filled(200)
    stored = {i: index._graph.vectors([i])[1].tobytes() for i in (5, 6, 7)}
    index.remove([5])
    index.add([6], [-rows[6]])
    before = raw_bytes(index)
    assert stored[5] in before
    assert stored[6] in before
    assert index.scrub()
    after = raw_bytes(index)
    assert stored[5] not in after
    assert stored[6] not in after
    assert stored[7] in after
    assert not index.scrub()


def test_a_wiped_vector_is_nowhere_and_its_place_is_used_again() -> None:
    index, rows = filled(200)
    stored = {i: index._graph.vectors([i])[1].tobytes() for i in (5, 6, 7)}
    index.remove([5])
    index.add([6], [-rows[6]])
    assert (index.live, index.deleted, index.unwiped) == (199, 2, 2)
    assert index.wipe() == 1  # the one that was removed first
    assert stored[5] not in raw_bytes(index)
    assert stored[6] in raw_bytes(index)
    assert index.wipe(10) == 1
    assert index.wipe() == 0
    after = raw_bytes(index)
    assert stored[6] not in after
    assert stored[7] in after
    assert (index.live, index.deleted, index.unwiped) == (199, 2, 0)

    index.add([300, 301, 302], rows[:3])
    assert (index.live, index.deleted) == (202, 0)  # two wiped nodes and a new one
    for slot in (300, 301, 302):
        assert slot in index.search(rows[slot - 300], n=2, ef=64).slots
    assert 5 not in index.slots()
    assert index.search(-rows[6], n=1, ef=64).slots[0] == 6


def test_the_entry_and_everything_around_it_can_be_wiped() -> None:
    """Wiped nodes still lead on: what is left is reached past them."""
    index, rows = filled(400)
    index.remove(range(380))
    index.wipe(400)
    for slot in range(380, 400):
        result = index.search(rows[slot], n=20, ef=200)
        assert result.slots[0] == slot
        assert result.complete


def test_what_is_removed_during_a_rebuild_does_not_linger_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rebuild has copied the vector; its removal comes by the journal."""
    index, _ = filled(300)
    stored = index._graph.vectors([7])[1].tobytes()
    index.remove([0])
    apply = hnsw._Change.apply

    def remove_then(self, graph):
        if graph is not index._graph and self.vectors is not None and 7 in index.slots():
            apply(self, graph)
            index.remove([7])
            return 0
        return apply(self, graph)

    monkeypatch.setattr(hnsw._Change, "apply", remove_then)
    assert index.scrub()
    assert 7 not in index.slots()
    assert index.unwiped == 0
    assert stored not in raw_bytes(index)


def test_a_rebuild_that_is_told_to_stop_changes_nothing() -> None:
    index, rows = filled(300)
    index.remove([0])
    graph_before = index._graph
    assert not index.scrub(lambda: False)
    assert index._graph is graph_before
    assert index._journal is None
    assert index.search(rows[9], n=1, ef=64).slots[0] == 9
    assert index.scrub()


def test_rebuild_from_replaces_the_content() -> None:
    index, rows = filled(100)
    index.rebuild_from([1000, 1001], rows[:2])
    assert index.slots().tolist() == [1000, 1001]
    assert index.deleted == 0
    index.rebuild_from([], np.empty((0, DIMENSION)))
    assert index.live == 0


def test_a_refused_rebuild_changes_nothing() -> None:
    index, rows = filled(10)
    with pytest.raises(ValueError, match="finite"):
        index.rebuild_from([1], [[np.nan] * DIMENSION])
    assert index.live == 10
    index.add([99], [rows[0]])  # no lock was left held
    assert index.live == 11


@pytest.mark.parametrize("rows_changed", [3, hnsw.SLICE_ROWS * 3])
def test_changes_during_a_rebuild_survive_it(
    monkeypatch: pytest.MonkeyPatch, rows_changed: int
) -> None:
    """Changes land in the middle of the build, few or more than one catch-up round takes."""
    index, rows = filled(1000)
    index.remove([0])
    made: list[graph.Graph] = []
    new_graph = index._new_graph

    def change_once(capacity: int) -> graph.Graph:
        fresh = new_graph(capacity)
        made.append(fresh)
        moved = np.arange(10, 10 + rows_changed)
        index.add(moved, -rows[moved])
        index.remove([500, 501])
        index.add([5000], [rows[500]])
        # Readers are served by the old graph, which has the changes already.
        assert index.search(rows[500], n=1, ef=64).slots[0] == 5000
        return fresh

    monkeypatch.setattr(index, "_new_graph", change_once)
    assert index.scrub()
    assert index._graph is made[0]
    assert index.live == 1000 - 1 - 2 + 1
    assert index.search(-rows[11], n=1, ef=64).slots[0] == 11
    assert index.search(rows[500], n=1, ef=64).slots[0] == 5000
    assert not {0, 500, 501} & set(index.slots().tolist())
    assert index._journal is None


def test_a_failed_rebuild_keeps_the_old_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    index, rows = filled(100)
    index.remove([1])

    def fail(_capacity: int) -> graph.Graph:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(index, "_new_graph", fail)
        with pytest.raises(MemoryError):
            index.scrub()
    assert index._journal is None
    assert index.search(rows[0], n=1, ef=64).slots[0] == 0
    assert index.scrub()


def test_readers_and_writers_are_served_during_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """The build happens while nothing is held: others get through in the middle of it."""
    index, rows = filled(400)
    index.remove([0])
    building, served = threading.Event(), threading.Event()
    new_graph = index._new_graph

    def wait_for_the_others(capacity: int) -> graph.Graph:
        building.set()
        assert served.wait(10)
        return new_graph(capacity)

    monkeypatch.setattr(index, "_new_graph", wait_for_the_others)
    rebuild = threading.Thread(target=index.scrub, daemon=True)
    rebuild.start()
    assert building.wait(10)
    index.add([9999], [rows[1]])
    assert set(index.search(rows[1], n=2, ef=32).slots.tolist()) == {1, 9999}
    served.set()
    rebuild.join(10)
    assert not rebuild.is_alive()
    assert 9999 in index.slots()


MEASURE = """
import numpy as np, psutil
from pillion_storage.index.hnsw import HnswIndex
rows = np.random.default_rng(1).normal(size=(20_000, 384)).astype(np.float32)
process = psutil.Process()
index = HnswIndex(384, ef_construction=20, capacity=len(rows))
before = process.memory_info().rss
for start in range(0, len(rows), 500):  # in parts: the call's own copy is no part of it
    index.add(np.arange(start, start + 500), rows[start : start + 500])
print(index.memory_bytes, process.memory_info().rss - before)
"""


@pytest.mark.slow
def test_the_memory_estimate_is_near_the_truth() -> None:
    """In a process of its own: in ours, memory that earlier tests freed would be used again."""
    pytest.importorskip("psutil")
    told = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    estimate, grown = map(int, told.stdout.split())
    assert estimate == pytest.approx(grown, rel=0.35)
