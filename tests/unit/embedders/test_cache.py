"""The query cache: bounded, least recently used, one flight per text, errors not remembered."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.embedders import cache as cache_module
from pillion.embedders import hashing
from pillion.embedders.cache import QueryCache
from pillion.embedders.errors import EmbedderUnavailable

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
        self.entered.set()
        assert self.gate.wait(PATIENCE_S)
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
    recorder.error = EmbedderUnavailable("down", retry_after_ms=7)
    cache = QueryCache(recorder, entries_max=4)
    errors: list[Exception] = []

    def work(_: int) -> None:
        try:
            cache.embed_queries(["a"])
        except EmbedderUnavailable as error:
            errors.append(error)

    threads = in_threads(3, work)
    deadline = time.monotonic() + PATIENCE_S
    while cache.hits + cache.misses < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    recorder.gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [(str(one), one.retry_after_ms) for one in errors] == [("down", 7)] * 3
    assert len({id(one) for one in (*errors, recorder.error)}) == 4, "each has its own to raise"
    recorder.error = ConnectionError("a bug of the plug-in")
    with pytest.raises(EmbedderUnavailable, match="ConnectionError"):
        cache.embed_queries(["a"])
    recorder.error = None
    assert cache.embed_queries(["a"]).shape == (1, 64)


@pytest.fixture
def hung():
    """An embedder that does not answer before the test is over."""
    recorder = Recorder()
    recorder.gate.clear()
    yield recorder
    recorder.gate.set()


def reason_of(call) -> Reason:
    with pytest.raises(PillionError) as caught:
        call()
    return caught.value.reason


def test_nobody_waits_longer_than_he_has(hung) -> None:
    cache = QueryCache(hung, entries_max=4)
    late = Reason.DEADLINE_EXCEEDED
    assert reason_of(lambda: cache.embed_queries(["a"], within_seconds=0.01)) is late
    assert reason_of(lambda: cache.embed_queries(["a"], within_seconds=0)) is late, "in flight"
    assert reason_of(lambda: cache.embed_passages(["a"], within_seconds=0.01)) is late
    hung.gate.set()
    assert cache.embed_queries(["a"]).shape == (1, 64)
    assert hung.asked == [["a"]], "the call that was given up on is the one that answers"
    assert cache.embed_queries(["a"], within_seconds=0).shape == (1, 64), "what is here is free"
    assert cache.embed_passages(["a"], within_seconds=PATIENCE_S).shape == (1, 64)


@pytest.mark.parametrize(("verb", "queue_max"), [("queries", 64), ("passages", 16)])
def test_so_many_wait_and_no_more(hung, verb, queue_max) -> None:
    cache = QueryCache(hung, entries_max=4)
    embed = getattr(cache, f"embed_{verb}")
    held = []
    for number in range(cache_module.THREADS_MAX):
        hung.entered.clear()
        held += in_threads(1, lambda _, n=number: embed([f"held {n}"], within_seconds=PATIENCE_S))
        assert hung.entered.wait(PATIENCE_S)
    for number in range(queue_max):
        late = reason_of(lambda n=number: embed([str(n)], within_seconds=0))
        assert late is Reason.DEADLINE_EXCEEDED
    with pytest.raises(PillionError) as caught:
        embed(["one more"], within_seconds=PATIENCE_S)
    assert caught.value.reason is Reason.OVERLOADED
    assert caught.value.retry_after_ms
    hung.gate.set()
    for thread in held:
        thread.join(PATIENCE_S)
    assert embed(["one more"], within_seconds=PATIENCE_S).shape == (1, 64)


def test_a_stuck_embedder_is_not_waited_for_again(hung, monkeypatch) -> None:
    monkeypatch.setattr(cache_module, "QUERY_STALL_SECONDS", 0.0)
    cache = QueryCache(hung, entries_max=4)
    for number in range(cache_module.THREADS_MAX):
        hung.entered.clear()
        in_threads(
            1,
            lambda _, n=number: reason_of(lambda: cache.embed_queries([f"{n}"], within_seconds=0)),
        )
        assert hung.entered.wait(PATIENCE_S)
    busy = Reason.OVERLOADED
    assert reason_of(lambda: cache.embed_queries(["a"], within_seconds=PATIENCE_S)) is busy
    hung.gate.set()
    deadline = time.monotonic() + PATIENCE_S
    while len(cache) < cache_module.THREADS_MAX:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert cache.embed_queries(["0"]).shape == (1, 64)


def test_closing_waits_for_no_call_and_frees_who_waits(hung, monkeypatch) -> None:
    monkeypatch.setattr(cache_module, "THREADS_MAX", 1)
    cache = QueryCache(hung, entries_max=4)
    reasons = []

    def work(i: int) -> None:
        reasons.append(reason_of(lambda: cache.embed_queries([str(i)])))

    in_threads(1, lambda _: cache.embed_queries(["held"]))
    assert hung.entered.wait(PATIENCE_S)
    threads = in_threads(2, work)
    deadline = time.monotonic() + PATIENCE_S
    while cache.misses < 3:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    cache.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert reasons == [Reason.UNAVAILABLE] * 2
    assert hung.closed
    assert reason_of(lambda: cache.embed_queries(["late"])) is Reason.UNAVAILABLE


def test_closing_waits_for_a_stuck_embedder_for_a_limited_time(monkeypatch) -> None:
    monkeypatch.setattr(cache_module, "CLOSE_SECONDS", 0.01)
    release = threading.Event()
    recorder = Recorder()
    closed = threading.Event()

    def close() -> None:
        release.wait(PATIENCE_S)
        closed.set()

    recorder.close = close
    QueryCache(recorder, entries_max=4).close()
    assert not closed.is_set()  # it was left to itself
    release.set()
    assert closed.wait(PATIENCE_S)


@pytest.mark.parametrize(
    "made",
    [
        np.zeros((1, 64), np.float32),
        np.full((1, 64), np.nan, np.float32),
        np.full((1, 64), np.inf, np.float32),
        np.ones((1, 63), np.float32),
        np.ones((2, 64), np.float32),
        np.ones(64, np.float32),
        [["a"] * 64],
        None,
    ],
    ids=["zeros", "nan", "inf", "short", "two", "flat", "words", "none"],
)
def test_what_is_no_vector_is_the_embedders_fault_and_not_remembered(made) -> None:
    recorder = Recorder()
    good, recorder.embed_queries = recorder.embed_queries, lambda _: made
    cache = QueryCache(recorder, entries_max=4)
    assert reason_of(lambda: cache.embed_queries(["a"])) is Reason.PLUGIN_UNAVAILABLE
    assert len(cache) == 0
    recorder.embed_queries = good
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
