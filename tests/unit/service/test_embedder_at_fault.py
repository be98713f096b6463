"""An embedder that hangs, or returns what is no vector: nobody waits for it and nothing breaks."""

from __future__ import annotations

import logging
import threading
import time

import numpy as np
import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.mutations import EmbeddingMode
from pillion.jobs import embedding
from pillion.jobs.embedding import EmbeddingJob
from pillion.service.partitions import KeySpaces
from pillion.service.pending import PendingVectors
from pillion_storage.api import Batch
from pillion_storage.keys import vector_key
from pillion_testing.fakes import FakeEmbedder, Patience
from pillion_testing.service import ACME, add, floats, ram_service

INLINE = EmbeddingMode.INLINE
MADE = {
    "zeros": lambda rows: rows * 0,
    "nan": lambda rows: rows * np.nan,
    "infinite": lambda rows: rows * np.inf,
    "short": lambda rows: rows[:, 1:],
    "few": lambda rows: rows[1:],
    "flat": lambda rows: rows[0],
    "nothing": lambda _: None,
}


class Faulty(FakeEmbedder):
    """Its answers pass through ``spoil``; queries wait at the gate ``queries``."""

    def __init__(self) -> None:
        super().__init__()
        self.spoil = lambda rows: rows
        self.queries = threading.Event()
        self.queries.set()

    def embed_passages(self, texts):
        return self.spoil(super().embed_passages(texts))

    def embed_queries(self, texts):
        assert self.queries.wait(60)
        return self.spoil(super().embed_queries(texts))


@pytest.fixture
def embedder():
    made = Faulty()
    yield made
    made.gate.set()
    made.queries.set()


@pytest.fixture
def service(embedder):
    made = ram_service(embedder=embedder)
    yield made
    embedder.gate.set()
    made.close()


def refused(service, reason, call) -> PillionError:
    with service.refuses(reason) as caught:
        call()
    return caught.value


def test_a_search_waits_for_the_embedder_as_long_as_it_has(service, embedder):
    made = service.one(add("one"), mode=INLINE)
    embedder.queries.clear()
    service.patience = Patience(0.01)
    refused(service, Reason.DEADLINE_EXCEEDED, lambda: service.search("one"))
    assert service.found() == [made.id], "what needs no embedder is answered"
    service.patience = Patience()
    embedder.queries.set()
    assert service.found("one") == [made.id]


def test_an_inline_write_waits_for_the_embedder_as_long_as_it_has(service, embedder):
    embedder.gate.clear()
    service.patience = Patience(0.01)
    late = Reason.DEADLINE_EXCEEDED
    refused(service, late, lambda: service.write(add("one"), mode=INLINE))
    refused(service, late, lambda: service.import_(add("one"), mode=INLINE))
    service.patience = Patience()
    embedder.gate.set()
    assert service.vector(service.one(add("two"), mode=INLINE).id)


def test_stopping_leaves_a_hung_embedder_behind(service, embedder, monkeypatch):
    monkeypatch.setattr(embedding, "STOP_SECONDS", 0.01)
    embedder.gate.clear()
    service.write(add("one"))
    assert embedder.entered.wait(60)
    started = time.monotonic()
    service.close()
    assert time.monotonic() - started < 45  # the embedder would have waited for 60


@pytest.mark.parametrize("spoil", MADE.values(), ids=MADE)
def test_an_inline_write_names_the_embedders_fault(service, embedder, spoil):
    embedder.spoil = spoil
    writes = (
        lambda: service.write(add("one"), mode=INLINE),
        lambda: service.import_(add("one"), mode=INLINE),
    )
    for write in writes:
        error = refused(service, Reason.PLUGIN_UNAVAILABLE, write)
        assert "fake" in error.message


@pytest.mark.parametrize("spoil", MADE.values(), ids=MADE)
def test_a_query_without_a_usable_vector_is_the_embedders_fault(service, embedder, spoil):
    made = service.one(add("one"), mode=INLINE)
    embedder.spoil = spoil
    refused(service, Reason.PLUGIN_UNAVAILABLE, lambda: service.search("one"))
    embedder.spoil = lambda rows: rows
    assert service.found("one") == [made.id]


@pytest.mark.parametrize("spoil", MADE.values(), ids=MADE)
def test_the_job_sets_aside_what_got_no_usable_vector(service, embedder, spoil):
    embedder.gate.clear()  # the service's own job waits
    bad = service.one(add("bad")).id
    faulty = Faulty()
    faulty.spoil = spoil
    pending = PendingVectors(service.store)
    pending.load()
    job = EmbeddingJob(service.store, KeySpaces(service.store), faulty, pending)
    assert job.make_some(ACME) == 1
    assert b"x" + bad.bytes in service.records()
    assert service.vector(bad) == b""
    assert pending.count(ACME) == 0
    faulty.spoil = lambda rows: rows
    good = service.one(add("good")).id
    pending.add(ACME, 1)
    assert job.make_some(ACME) == 1
    (first, second) = service.search("good").hits
    assert (first.memory.id, second.memory.id) == (good, bad)
    assert second.cosine is None


def test_one_bad_vector_sets_aside_its_own_text_only(service, embedder):
    embedder.gate.clear()
    ids = [service.one(add(text)).id for text in "abc"]
    faulty = Faulty()
    faulty.spoil = lambda rows: rows * np.array([[1], [np.nan], [1]], np.float32)
    pending = PendingVectors(service.store)
    pending.load()
    assert (
        EmbeddingJob(service.store, KeySpaces(service.store), faulty, pending).make_some(ACME) == 3
    )
    assert [bool(service.vector(one)) for one in ids] == [True, False, True]


@pytest.mark.parametrize(
    "stored",
    [bytes(32), floats(*[float("nan")] * 8), floats(*[float("inf")] * 8), floats(1, 2), b"", b"x"],
    ids=["zeros", "nan", "infinite", "short", "empty", "odd"],
)
@pytest.mark.parametrize("loaded", [False, True], ids=["at the load", "by the feed"])
def test_a_bad_vector_in_the_store_is_as_none(service, embedder, caplog, stored, loaded):
    good, bad, other = (service.one(add(text), mode=INLINE).id for text in ("good", "bad", "other"))
    if loaded:
        service.search("good")
    with caplog.at_level(logging.ERROR, logger="pillion.service.resident"):
        for one in (bad, other):
            key = vector_key(one)
            service.store.commit(ACME, Batch(puts={key: stored}, owners={key: b"whoever"}))
            hits = service.search("good").hits
    assert hits[0].memory.id == good
    assert [hit.cosine for hit in hits[1:]] == [None, None]
    assert len(caplog.records) == 1
