"""The query cache: bounded, least recently used, one flight per text, errors not remembered."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.embedders import hashing
from pillion.embedders.cache import QueryCache

PATIENCE_S = 10.0


class Recorder:
    """The hashing embedder, with a record of what it was asked and a gate to hold it at."""

    def __init__(self) -> None:
        self.inner = hashing.create({"dimension": 64})
        self.identity = self.inner.identity
        self.asked: list[list[str]] = []
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.closed = False

    def embed_queries(self, texts):
        self.asked.append(list(texts))
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
        if self.error:
            raise self.error
        return self.inner.embed_queries(texts)

    def embed_passages(self, texts):
        return self.inner.embed_passages(texts)

    def close(self) -> None:
        self.closed = True


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=5), max_size=20), st.integers(1, 4))
def test_against_a_model(calls: list[list[str]], entries_max: int) -> None:
    """Right vectors always; embedded are exactly the texts that an LRU of that size lacks."""
    recorder = Recorder()
    cache = QueryCache(recorder, entries_max=entries_max)
    model: OrderedDict[str, None] = OrderedDict()
    for texts in calls:
        recorder.asked.clear()
        vectors = cache.embed_queries(texts)
        np.testing.assert_array_equal(vectors, recorder.inner.embed_queries(texts))
        missing = [text for text in dict.fromkeys(texts) if text not in model]
        assert recorder.asked == ([missing] if missing else [])
        for text in texts:
            if text in model:
                model.move_to_end(text)
        for text in missing:
            model[text] = None
        while len(model) > entries_max:
            model.popitem(last=False)
        assert len(cache) == len(model)
    assert cache.hits + cache.misses == sum(map(len, calls))


def test_a_caller_may_change_what_it_got() -> None:
    cache = QueryCache(Recorder(), entries_max=4)
    cache.embed_queries(["a"])[:] = 0
    assert np.linalg.norm(cache.embed_queries(["a"])) == pytest.approx(1)


def in_threads(count: int, target) -> list[threading.Thread]:
    threads = [threading.Thread(target=target, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_one_flight_for_one_text() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    cache = QueryCache(recorder, entries_max=4)
    results: list[np.ndarray] = []
    threads = in_threads(8, lambda _: results.append(cache.embed_queries(["same"])))
    deadline = time.monotonic() + PATIENCE_S
    while cache.hits + cache.misses < 8:  # all eight are in
        assert time.monotonic() < deadline
        time.sleep(0.001)
    recorder.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert recorder.asked == [["same"]]
    assert len(results) == 8
    assert (cache.misses, cache.hits) == (1, 7)


def test_calls_that_need_each_others_texts_do_not_deadlock() -> None:
    recorder = Recorder()
    cache = QueryCache(recorder, entries_max=100)
    done: list[int] = []

    def work(i: int) -> None:
        for round_ in range(100):
            texts = [f"{round_} a", f"{round_} b"]
            cache.embed_queries(texts if i % 2 else texts[::-1])
        done.append(i)

    for thread in in_threads(4, work):
        thread.join(PATIENCE_S)
    assert sorted(done) == [0, 1, 2, 3]


def test_an_error_reaches_all_and_is_forgotten() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    recorder.error = ConnectionError("down")
    cache = QueryCache(recorder, entries_max=4)
    errors: list[Exception] = []

    def work(_: int) -> None:
        try:
            cache.embed_queries(["a"])
        except ConnectionError as error:
            errors.append(error)

    threads = in_threads(3, work)
    deadline = time.monotonic() + PATIENCE_S
    while cache.hits + cache.misses < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    recorder.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(errors) == 3
    recorder.error = None
    assert cache.embed_queries(["a"]).shape == (1, 64)


def test_clear_and_close() -> None:
    recorder = Recorder()
    cache = QueryCache(recorder, entries_max=4)
    cache.embed_queries(["secret question"])
    assert b"secret" not in repr(cache._vectors).encode()
    cache.close()
    assert len(cache) == 0
    assert recorder.closed
    with pytest.raises(ValueError, match="entries_max"):
        QueryCache(recorder, entries_max=0)
