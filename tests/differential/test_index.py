"""The index against plain numpy and against a model of its book-keeping.

Vectors are clustered, as embeddings are: on random Gaussian vectors of high dimension any graph
index fails, and the numbers say nothing about use.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pillion_storage.index import HnswIndex

DIMENSION = 64
CLUSTERS = 40


def clustered(count: int, seed: int, dimension: int = DIMENSION) -> np.ndarray:
    """Unit vectors around centres, spread within each along 12 directions of its own."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(CLUSTERS, dimension))
    directions = draw.normal(size=(CLUSTERS, 12, dimension)) * 0.35
    member = draw.integers(CLUSTERS, size=count)
    within = draw.normal(size=(count, 1, 12)) @ directions[member]
    rows = (centres[member] + within[:, 0] + draw.normal(size=(count, dimension)) * 0.05).astype(
        np.float32
    )
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def recall(index: HnswIndex, truth: dict[int, np.ndarray], queries: np.ndarray, ef: int) -> float:
    """Mean share of the exact ten nearest that the index finds."""
    slots = np.array(list(truth))
    matrix = np.stack(list(truth.values()))
    found = 0
    for query in queries:
        exact = slots[np.argsort(-(matrix @ query), kind="stable")[:10]]
        result = index.search(query, n=10, ef=ef)
        assert result.complete
        found += len(set(exact.tolist()) & set(result.slots.tolist()))
        np.testing.assert_allclose(
            result.cosines, [truth[slot] @ query for slot in result.slots.tolist()], atol=1e-5
        )
    return found / (10 * len(queries))


@pytest.fixture(scope="module")
def churned() -> tuple[HnswIndex, dict[int, np.ndarray]]:
    """6,000 vectors, then a third deleted, a fifth replaced, some deleted slots used again."""
    rows, other = clustered(6000, seed=1), clustered(6000, seed=1)[::-1]
    index = HnswIndex(DIMENSION)
    index.add(np.arange(6000), rows)
    truth = dict(enumerate(rows))
    gone = np.arange(0, 6000, 3)
    index.remove(gone)
    for slot in gone.tolist():
        del truth[slot]
    for changed in (np.arange(1, 6000, 5), gone[:500]):
        index.add(changed, other[changed])
        truth.update(zip(changed.tolist(), other[changed], strict=True))
    return index, truth


@pytest.mark.parametrize("ef", [64, 128, 256])
def test_recall_after_churn(churned, ef: int) -> None:
    index, truth = churned
    assert index.slots().tolist() == sorted(truth)
    assert recall(index, truth, clustered(6200, seed=1)[6000:], ef) >= 0.95


@pytest.mark.parametrize("n", [64, 256])
def test_long_lists_hold_the_exact_ten(churned, n: int) -> None:
    """What certification relies on: the list of n nearest is nearly exact at its top."""
    index, truth = churned
    slots, matrix = np.array(list(truth)), np.stack(list(truth.values()))
    queries = clustered(6100, seed=1)[6000:]
    found = 0
    for query in queries:
        exact = slots[np.argsort(-(matrix @ query), kind="stable")[:10]]
        result = index.search(query, n=n, ef=n)
        assert len(result.slots) == n
        found += len(set(exact.tolist()) & set(result.slots.tolist()))
    assert found / (10 * len(queries)) >= 0.95


def test_recall_after_a_scrub(churned) -> None:
    _, truth = churned
    copy = HnswIndex(DIMENSION)
    copy.add(np.fromiter(truth, np.uint32), np.stack(list(truth.values())))
    copy.remove([next(iter(truth))])
    copy.scrub()
    rest = dict(list(truth.items())[1:])
    assert recall(copy, rest, clustered(6100, seed=1)[6000:], ef=64) >= 0.95


def test_searching_while_it_changes() -> None:
    """Threads search, add, replace, remove and scrub at once: no error, no absent slot."""
    rows = clustered(4000, seed=2)
    index = HnswIndex(DIMENSION)
    index.add(np.arange(1000), rows[:1000])
    stop = threading.Event()
    errors: list[BaseException] = []

    def guarded(work) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - handed to the main thread
                errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def search() -> None:
        draw = np.random.default_rng()
        while not stop.is_set():
            query = rows[draw.integers(4000)]
            slots, cosines, complete = index.search(query, n=20, ef=64)
            assert complete
            assert len(set(slots.tolist())) == 20
            assert np.all(np.diff(cosines) <= 0)
            # Slots 0..499 are never touched: a result is right about them at any moment.
            for slot, cosine in zip(slots.tolist(), cosines.tolist(), strict=True):
                if slot < 500:
                    assert cosine == pytest.approx(float(rows[slot] @ query), abs=1e-4)

    def scrub() -> None:
        while not stop.is_set():
            index.scrub()

    searchers = [guarded(search), guarded(search), guarded(scrub)]
    for start in range(1000, 4000, 250):
        index.add(np.arange(start, start + 250), rows[start : start + 250])
        index.add(np.arange(500, 600), rows[start : start + 100])
        index.remove(np.arange(start, start + 250, 2))
    stop.set()
    for thread in searchers:
        thread.join(30)
        assert not thread.is_alive()
    assert errors == []
    expected = set(range(1000)) | set(range(1001, 4000, 2))
    assert set(index.slots().tolist()) == expected
    for slot in (0, 999, 1001, 3999):
        assert slot in index.search(rows[slot], n=5, ef=64).slots


SLOTS = st.integers(0, 30)


class BookKeeping(RuleBasedStateMachine):
    """Any order of changes leaves the index with exactly the vectors that a dict has."""

    @initialize()
    def start(self) -> None:
        self.index = HnswIndex(8, m=4, ef_construction=40)
        self.model: dict[int, np.ndarray] = {}
        self.made = 0

    def vectors(self, count: int) -> np.ndarray:
        self.made += 1
        rows = np.random.default_rng(self.made).normal(size=(count, 8)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    @rule(slots=st.lists(SLOTS, unique=True, max_size=8))
    def add(self, slots: list[int]) -> None:
        vectors = self.vectors(len(slots))
        before, wiped = self.index.deleted, self.index.deleted - self.index.unwiped
        replaced = sum(slot in self.model for slot in slots)
        self.index.add(slots, vectors)
        assert self.index.deleted == before + replaced - min(wiped, len(slots))
        self.model.update(zip(slots, vectors, strict=True))

    @rule(slots=st.lists(SLOTS, unique=True, max_size=8))
    def remove(self, slots: list[int]) -> None:
        present = [slot for slot in slots if slot in self.model]
        assert self.index.remove(slots) == len(present)
        for slot in present:
            del self.model[slot]

    @rule()
    def remove_everything(self) -> None:
        assert self.index.remove(range(31)) == len(self.model)
        self.model.clear()

    @rule(limit=st.integers(1, 10))
    def wipe(self, limit: int) -> None:
        before = self.index.unwiped
        assert self.index.wipe(limit) == min(limit, before)

    @rule(gone=st.lists(SLOTS, unique=True, max_size=4))
    def restart(self, gone: list[int]) -> None:
        """Taken out and put back, some slots gone meanwhile."""
        if self.index.live + self.index.deleted == 0:
            return
        state, slots, live = self.index.capture()
        live &= ~np.isin(slots, gone)
        self.index = HnswIndex.restored(state, slots, live)
        for slot in gone:
            self.model.pop(slot, None)

    @rule()
    def scrub(self) -> None:
        assert self.index.scrub() == (self.index.deleted > 0 or self._had_deleted)
        assert self.index.deleted == 0

    @rule()
    def rebuild(self) -> None:
        vectors = np.stack(list(self.model.values())) if self.model else np.empty((0, 8))
        self.index.rebuild_from(list(self.model), vectors)
        assert self.index.deleted == 0

    @invariant()
    def same_content(self) -> None:
        self._had_deleted = self.index.deleted > 0
        assert self.index.live == len(self.model)
        assert self.index.slots().tolist() == sorted(self.model)
        result = self.index.search(np.ones(8), n=100, ef=100)
        assert set(result.slots.tolist()) <= set(self.model)
        assert result.complete == (len(result.slots) == len(self.model))
        stored = self.index._graph.vectors(list(self.model))
        for slot, row in zip(stored[0].tolist(), stored[1], strict=True):
            np.testing.assert_allclose(row, self.model[slot], atol=1e-6)
        for slot, cosine in zip(result.slots.tolist(), result.cosines.tolist(), strict=True):
            expected = float(self.model[slot].sum() / np.sqrt(8))
            assert cosine == pytest.approx(expected, abs=1e-5)


TestBookKeeping = BookKeeping.TestCase
TestBookKeeping.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
