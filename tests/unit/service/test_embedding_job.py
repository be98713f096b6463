"""Vectors that the server makes: queued in the store, made behind it, never lost or mixed."""

from __future__ import annotations

import threading

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.queries import SearchPath
from pillion.embedders.errors import EmbedderInputRejected, EmbedderUnavailable
from pillion.jobs import embedding
from pillion.jobs.embedding import EmbeddingJob
from pillion.service.partitions import KeySpaces
from pillion.service.pending import PendingVectors
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store
from pillion_testing.fakes import FakeEmbedder
from pillion_testing.service import (
    ACME,
    Service,
    add,
    episode,
    floats,
    lmdb_service,
    patch,
    put_fact,
    ram_service,
)

OTHER = type(ACME)("production", "other")


@pytest.fixture
def embedder():
    made = FakeEmbedder()
    yield made
    made.gate.set()


@pytest.fixture
def held(embedder):
    """A service whose own job is held at the gate, so that a test makes each batch itself."""
    embedder.gate.clear()
    service = ram_service(embedder=embedder)
    yield service
    embedder.gate.set()
    service.close()


def job_of(service, embedder) -> EmbeddingJob:
    """A job for the test's own thread, beside a queue counted anew."""
    pending = PendingVectors(service.store)
    pending.load()
    return EmbeddingJob(service.store, KeySpaces(service.store), embedder, pending)


def arrived(service, *ids, partition=ACME) -> None:
    """Wait for vectors by the store's own signal."""
    revision = 0
    while any(service.get(one, partition=partition).vector_pending for one in ids):
        revision = service.store.head(partition).revision
        if any(service.get(one, partition=partition).vector_pending for one in ids):
            assert service.store.wait(partition, revision, 60)


def test_queued_vectors_arrive_and_leave_versions_alone(embedder):
    service = ram_service(embedder=embedder)
    embedder.gate.clear()
    answer = service.write(add("one"), put_fact("two"))
    assert answer.vectors_pending == 2
    first, second = (one.id for one in answer.results)
    assert service.get(first).vector_pending
    embedder.gate.set()
    arrived(service, first, second)
    assert service.vector(first) == embedder.vector("one").tobytes()
    assert service.vector(second) == embedder.vector("mira deadline: two").tobytes()
    assert [service.get(one).version for one in (first, second)] == [answer.revision] * 2
    assert service.found("one", top_k=1) == [first]
    assert service.search("x").vectors_pending == 0
    service.close()
    assert embedder.closed


def test_the_vector_of_a_search_follows_what_arrives(embedder):
    service = ram_service(embedder=embedder)
    embedder.gate.clear()
    made = service.one(add("one"))
    (before,) = service.search("one").hits
    assert before.cosine is None
    assert before.lexical is not None, "it is found by its words meanwhile"
    assert 0 < before.relevance < 1
    assert before.memory.vector_pending
    embedder.gate.set()
    arrived(service, made.id)
    (after,) = service.search("one").hits
    assert after.cosine == pytest.approx(1.0)
    service.close()


def test_in_line_vectors_are_there_when_the_write_returns(embedder):
    service = ram_service(embedder=embedder)
    answer = service.write(add("one"), add("two"), mode=EmbeddingMode.INLINE)
    assert answer.vectors_pending == 0
    assert service.vector(answer.results[1].id) == embedder.vector("two").tobytes()
    embedder.available = False
    before = service.records()
    with pytest.raises(EmbedderUnavailable):
        service.write(add("three"), mode=EmbeddingMode.INLINE)
    assert service.records() == before
    service.close()


def test_an_embedder_that_is_away_loses_nothing(held, embedder):
    ids = [held.one(add(str(number))).id for number in range(3)]
    job = job_of(held, FakeEmbedder())
    job._embedder.available = False
    before = held.records()
    with pytest.raises(EmbedderUnavailable):
        job.make_some(ACME)
    assert held.records() == before
    job._embedder.available = True
    assert job.make_some(ACME) == 3
    assert all(held.vector(one) for one in ids)
    assert job.make_some(ACME) == 0


def test_the_thread_tries_again(embedder, monkeypatch):
    monkeypatch.setattr(embedding, "BACKOFF_FIRST_SECONDS", 0.001)
    embedder.available = False
    service = ram_service(embedder=embedder)
    made = service.one(add("one"))
    assert embedder.entered.wait(60)
    embedder.available = True
    arrived(service, made.id)
    service.close()


def test_a_search_knows_that_no_vector_is_to_come(held):
    bad = held.one(add("bad")).id
    assert [hit.memory.vector_pending for hit in held.search().hits] == [True]
    picky = FakeEmbedder()
    picky.refused = {"bad"}
    job_of(held, picky).make_some(held.partition)
    assert not held.get(bad).vector_pending
    assert [hit.memory.vector_pending for hit in held.search().hits] == [False]


def test_a_refused_text_is_set_aside_alone(held, embedder):
    picky = FakeEmbedder()
    picky.refused = {"bad"}
    job = job_of(held, picky)
    answer = held.write(*[add(text) for text in ("a", "b", "bad", "c", "d")])
    ids = [one.id for one in answer.results]
    assert job.make_some(ACME) == 5
    assert [bool(held.vector(one)) for one in ids] == [True, True, False, True, True]
    assert not held.get(ids[2]).vector_pending
    statistics = held.use_cases.statistics.statistics(ACME).partitions[0]
    assert statistics.vectors_failed == 1
    held.write(patch(ids[2], text="good"))
    assert job.make_some(ACME) == 1
    assert held.vector(ids[2]) == picky.vector("good").tobytes()
    assert held.use_cases.statistics.statistics(ACME).partitions[0].vectors_failed == 0


def test_a_text_that_changes_while_its_vector_is_made_gets_the_new_ones(held):
    class Slow(FakeEmbedder):
        def embed_passages(self, texts):
            if texts == ["old"]:
                held.write(patch(made.id, text="new"))
            return super().embed_passages(texts)

    made = held.one(add("old"))
    job = job_of(held, Slow())
    assert job.make_some(ACME) == 0, "its memory changed: nothing is committed"
    assert held.get(made.id).vector_pending
    assert job.make_some(ACME) == 1
    assert held.vector(made.id) == Slow().vector("new").tobytes()


def test_a_stop_in_the_middle_loses_nothing(tmp_path, embedder):
    embedder.gate.clear()
    service = lmdb_service(tmp_path / "store", embedder=embedder)
    ids = [service.one(add(str(number))).id for number in range(100)]
    assert embedder.entered.wait(60)
    stopped = threading.Thread(target=service.close)
    stopped.start()
    embedder.gate.set()
    stopped.join(60)
    assert not stopped.is_alive()
    store = open_store(StoreSettings(directory=tmp_path / "store", size_bytes_initial=1 << 20))
    again = FakeEmbedder()
    service = Service(store, embedder=again)
    arrived(service, *ids)
    assert [service.vector(one) for one in ids] == [
        again.vector(str(number)).tobytes() for number in range(100)
    ]
    service.close()


def test_stopping_wakes_a_job_that_is_about_to_wait(embedder, monkeypatch):
    """The stop comes between the job's look at the flag and its wait for work."""
    monkeypatch.setattr(embedding, "IDLE_SECONDS", 3600.0)
    service = ram_service()
    pending = PendingVectors(service.store)
    job = EmbeddingJob(service.store, KeySpaces(service.store), embedder, pending)
    wait, about_to_wait, go_on = pending.wait, threading.Event(), threading.Event()

    def late_wait(seconds):
        about_to_wait.set()
        assert go_on.wait(60)
        return wait(seconds)

    monkeypatch.setattr(pending, "wait", late_wait)
    job.start()
    assert about_to_wait.wait(60)
    stopper = threading.Thread(target=job.stop, daemon=True)
    wake, woken = pending.wake, threading.Event()
    monkeypatch.setattr(pending, "wake", lambda: (wake(), woken.set()))
    stopper.start()
    assert woken.wait(60)
    go_on.set()
    stopper.join(60)
    assert not stopper.is_alive()


def test_one_partitions_trouble_does_not_hold_up_another(embedder, monkeypatch):
    monkeypatch.setattr(embedding, "BACKOFF_FIRST_SECONDS", 0.001)
    service = ram_service(embedder=embedder)
    embedder.gate.clear()
    make_some = EmbeddingJob.make_some

    def broken(self, partition, **more):
        if partition == ACME:
            raise ValueError("a bug")
        return make_some(self, partition, **more)

    monkeypatch.setattr(EmbeddingJob, "make_some", broken)
    service.write(add("stuck"))
    made = service.one(add("fine"), partition=OTHER)
    embedder.gate.set()
    arrived(service, made.id, partition=OTHER)
    service.close()


def test_counts_are_what_the_store_holds(held):
    for number in range(5):
        answer = held.write(add(str(number)))
    assert answer.vectors_pending == 5
    answer = held.write(patch(answer.results[0].id, text="again"))
    assert answer.vectors_pending == 5, "one memory waits once"
    counted = PendingVectors(held.store)
    counted.load()
    assert counted.count(ACME) == held.use_cases.writer._pending.count(ACME) == 5


def test_a_count_is_never_negative(held):
    """The job may be done before the write that queued has added its number."""
    pending = PendingVectors(held.store)
    pending.add(ACME, -1)
    assert pending.count(ACME) == 0
    pending.add(ACME, 1)
    assert pending.count(ACME) == 0


# --- one space a partition ---------------------------------------------------------------------


def test_a_clients_vector_is_refused_among_the_servers(embedder):
    service = ram_service(embedder=embedder)
    service.write(add("one"))
    with pytest.raises(PillionError) as caught:
        service.write(add("two", vector=floats(*range(1, 9))))
    assert caught.value.reason is Reason.EMBEDDER_MISMATCH
    service.close()


def test_the_server_makes_no_vectors_among_the_clients(embedder):
    service = ram_service(embedder=embedder)
    theirs = service.one(add("one", vector=floats(1, 2)))
    answer = service.write(add("two"), put_fact("three"))
    assert answer.vectors_pending == 0
    assert service.vector(answer.results[0].id) == b""
    found = service.search("one")
    assert (found.path, found.hits[0].memory.id) == (SearchPath.NO_VECTOR, theirs.id)
    assert not embedder.calls
    assert service.found(vector=floats(1, 2), top_k=1) == [theirs.id]
    service.close()


def test_another_embedder_after_a_restart_is_refused(tmp_path, embedder):
    service = lmdb_service(tmp_path / "store", embedder=embedder)
    made = service.one(add("one"), mode=EmbeddingMode.INLINE)
    embedder.gate.clear()
    queued = service.one(add("queued"))
    closing = threading.Thread(target=service.close)
    closing.start()
    embedder.available = False
    embedder.gate.set()
    closing.join(60)
    settings = StoreSettings(directory=tmp_path / "store", size_bytes_initial=1 << 20)
    for other in (FakeEmbedder(version="2"), FakeEmbedder(name="e5"), FakeEmbedder(dimension=16)):
        service = Service(open_store(settings), embedder=other, ids=service.ids)
        with pytest.raises(PillionError) as caught:
            service.write(add("two"))
        assert caught.value.reason is Reason.EMBEDDER_MISMATCH
        found = service.search("one")
        assert (found.path, found.hits[0].memory.id) == (SearchPath.NO_VECTOR, made.id)
        assert not other.calls, "texts of another space are never embedded"
        assert service.vector(made.id) == embedder.vector("one").tobytes()
        service.close()
    service = Service(open_store(settings), ids=service.ids)  # no embedder at all
    service.write(add("three"))
    assert len(service.found()) == 3
    service.close()
    service = Service(open_store(settings), embedder=FakeEmbedder(), ids=service.ids)
    service.write(add("four"))
    assert service.found("one", top_k=1) == [made.id]
    arrived(service, queued.id)  # it waited for its own embedder
    assert service.vector(queued.id) == embedder.vector("queued").tobytes()
    service.close()


def test_a_measured_floor_does_not_make_another_space(embedder):
    from dataclasses import replace

    service = ram_service(embedder=embedder)
    service.write(add("one"), mode=EmbeddingMode.INLINE)
    embedder.identity = replace(embedder.identity, unrelated_cosine=0.7)
    service.write(add("two"), mode=EmbeddingMode.INLINE)
    service.close()


def test_an_embedder_that_refuses_in_line_says_so(embedder):
    service = ram_service(embedder=embedder)
    embedder.refused = {"bad"}
    before = service.records()
    with pytest.raises(EmbedderInputRejected):
        service.write(add("bad"), mode=EmbeddingMode.INLINE)
    assert service.records() == before
    service.close()


@pytest.mark.parametrize("mode", [EmbeddingMode.QUEUED, EmbeddingMode.INLINE])
def test_the_vector_of_a_turn_is_made_of_its_speaker_and_its_words(embedder, mode):
    service = ram_service(embedder=embedder)
    said = Source(SourceKind.USER_STATEMENT, author="Mira")
    answer = service.write(
        episode("I went there.", author="Mira"),
        episode("Mira: I went there.", author="Mira"),
        add("I stayed.", source=said),
        add("It rained.", kind=MemoryKind.SEMANTIC, source=said),
        mode=mode,
    )
    ids = [one.memory_id or one.id for one in answer.results]
    arrived(service, *ids)
    texts = ['Mira: "I went there."', "Mira: I went there.", 'Mira: "I stayed."', "It rained."]
    assert [service.vector(one) for one in ids] == [embedder.vector(t).tobytes() for t in texts]
    # The text that is shown stays as it was said.
    assert service.get(ids[0]).text == "I went there."
    service.close()


def test_a_turn_is_patched_in_line_by_its_new_words_and_in_the_queue_by_its_speaker_too(embedder):
    service = ram_service(embedder=embedder)
    one = service.write(episode("I went there.", author="Mira")).results[0].memory_id
    arrived(service, one)
    service.write(patch(one, text="I stayed."), mode=EmbeddingMode.INLINE)
    assert service.vector(one) == embedder.vector("I stayed.").tobytes()
    service.write(patch(one, text="I left."))
    arrived(service, one)
    assert service.vector(one) == embedder.vector('Mira: "I left."').tobytes()
    service.close()
