"""Reindex: every vector made anew, whoever made the last ones, while writes and searches go on."""

import itertools

import pytest
from pillion.domain.errors import Reason
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.operations import OperationState
from pillion.domain.queries import SearchPath
from pillion.domain.reindexing import REINDEX, ReindexPhase
from pillion.service import reindexer
from pillion_storage.api import Batch, StoreSettings
from pillion_storage.keys import memory_key, operation_slot, vector_key
from pillion_storage.lmdb import open_store
from pillion_testing.fakes import FakeEmbedder
from pillion_testing.service import ACME, DEAR_SCAN, Service, add, floats, ram_service, refusal


class ByHand:
    """A service whose operations and queued vectors wait for a test's word."""

    def __init__(self, service):
        self.service = service.by_hand()
        self.cases = service.use_cases

    def begin(self, *, re_embed=True):
        return self.cases.reindexer.reindex(ACME, self.service.patience, re_embed=re_embed)

    def step(self, operation):
        return self.cases.operator.advance(ACME, operation.id)

    def get(self, operation):
        return self.cases.operations.get(ACME, str(operation.id))

    def cancel(self, operation):
        return self.cases.operations.cancel(ACME, str(operation.id), self.service.patience)

    def finish(self, operation):
        for _ in itertools.takewhile(lambda _: self.step(operation), range(1000)):
            pass
        return self.get(operation)


@pytest.fixture
def reopened(tmp_path):
    """Opens the same store with one embedder after another."""
    opened = []

    def reopen(embedder=None, **more):
        ids = opened[-1].ids if opened else None
        if opened:
            opened[-1].close()
        settings = StoreSettings(directory=tmp_path / "store", size_bytes_initial=1 << 20)
        opened.append(Service(open_store(settings), embedder=embedder, ids=ids, **more))
        return ByHand(opened[-1])

    yield reopen
    opened[-1].close()


def texts_of(count):
    return [f"text {number}" for number in range(count)]


def written(hand, texts, mode=EmbeddingMode.INLINE):
    return [hand.service.one(add(text), mode=mode).id for text in texts]


def vectors(hand, ids):
    return [hand.service.vector(one) for one in ids]


def made_by(embedder, texts):
    return [embedder.vector(text).tobytes() for text in texts]


def test_texts_written_without_an_embedder_get_vectors(reopened):
    texts = texts_of(70)
    ids = written(reopened(), texts, EmbeddingMode.QUEUED)
    embedder = FakeEmbedder()
    hand = reopened(embedder)
    done = hand.finish(hand.begin())
    assert (done.state, done.verb) == (OperationState.SUCCEEDED, REINDEX)
    assert (done.done, done.total) == (70, 70)
    assert vectors(hand, ids) == made_by(embedder, texts)
    assert hand.service.found(vector=embedder.vector("text 9").tobytes(), top_k=1) == [ids[9]]


@pytest.mark.parametrize("other", [FakeEmbedder(version="2"), FakeEmbedder("e5", dimension=16)])
def test_another_embedder_is_let_in_again(reopened, other):
    texts = texts_of(600)
    hand = reopened(FakeEmbedder())
    ids = written(hand, texts)
    hand = reopened(other)
    assert refusal(lambda: hand.service.write(add("new"))).reason is Reason.EMBEDDER_MISMATCH
    assert hand.service.search("text 9").path is SearchPath.NO_VECTOR
    operation = hand.begin()
    space = hand.cases.statistics.statistics
    while hand.get(operation).work.phase is ReindexPhase.QUEUE:
        assert not space(ACME).partitions[0].embedder.same_space(other.identity)
        assert ids[9] in hand.service.found("text 9")
        hand.step(operation)
    assert space(ACME).partitions[0].embedder.same_space(other.identity)
    assert space(ACME).partitions[0].vectors_pending == 600
    late = written(hand, ["late"])  # writers are let in from here on
    hand.step(operation)
    found = hand.service.search("text 9")
    assert found.vectors_pending == 600 - 32
    assert ids[9] == found.hits[0].memory.id
    done = hand.finish(operation)
    assert (done.state, done.done) == (OperationState.SUCCEEDED, 600)
    assert vectors(hand, [*ids, *late]) == made_by(other, [*texts, "late"])
    assert hand.service.search("text 9").vectors_pending == 0


def test_a_vector_serves_until_the_new_one_takes_its_place(reopened):
    embedder = FakeEmbedder()
    hand = reopened(embedder)
    texts = texts_of(100)
    ids = written(hand, texts)
    stale = made_by(embedder, ["as an older policy had it"])[0]
    places = [vector_key(ids[3]), vector_key(ids[99])]
    hand.service.store.commit(ACME, Batch(puts=dict.fromkeys(places, stale)))
    operation = hand.begin()
    hand.step(operation)  # queued
    hand.step(operation)  # the oldest are made
    assert vectors(hand, [ids[3], ids[99]]) == [made_by(embedder, [texts[3]])[0], stale]
    assert ids[99] in hand.service.found(vector=stale, top_k=1)
    hand.finish(operation)
    assert vectors(hand, ids) == made_by(embedder, texts)


def test_clients_vectors_are_never_replaced():
    service = ram_service(embedder=FakeEmbedder())
    hand = ByHand(service)
    theirs = service.one(add("one", vector=floats(1, 2)))
    assert refusal(hand.begin).reason is Reason.EMBEDDER_MISMATCH
    assert service.vector(theirs.id) == floats(1, 2)
    done = hand.finish(hand.begin(re_embed=False))
    assert done.state is OperationState.SUCCEEDED
    service.close()


def test_clients_do_not_get_in_between(reopened):
    written(reopened(), texts_of(3), EmbeddingMode.QUEUED)
    hand = reopened(FakeEmbedder())
    operation = hand.begin()
    vector = floats(*range(1, 9))
    refused = refusal(lambda: hand.service.write(add("theirs", vector=vector)))
    assert refused.reason is Reason.EMBEDDER_MISMATCH
    assert hand.finish(operation).state is OperationState.SUCCEEDED


def test_without_an_embedder_there_is_nothing_to_embed_with():
    service = ram_service()
    service.write(add("one"))
    refused = refusal(ByHand(service).begin)
    assert refused.reason is Reason.EMBEDDER_MISMATCH
    service.close()


@pytest.mark.parametrize("steps", range(7))
def test_it_goes_on_after_a_stop_at_any_step(reopened, steps):
    texts = texts_of(100)
    ids = written(reopened(FakeEmbedder()), texts)
    other = FakeEmbedder(version="2")
    hand = reopened(other)
    operation = hand.begin()
    for _ in range(steps):
        hand.step(operation)
    hand = reopened(other)
    done = hand.finish(operation)
    assert (done.state, done.done) == (OperationState.SUCCEEDED, 100)
    assert vectors(hand, ids) == made_by(other, texts)


def test_the_former_embedder_may_come_back_in_the_middle(reopened, monkeypatch):
    monkeypatch.setattr(reindexer, "QUEUED_PER_ROOM", 1)
    former, texts = FakeEmbedder(), texts_of(100)
    ids = written(reopened(former), texts)
    hand = reopened(FakeEmbedder(version="2"))
    operation = hand.begin()
    hand.step(operation)
    assert sum(not one for one in vectors(hand, ids)) == 64
    kept = hand.cancel(operation)
    assert kept.state is OperationState.RUNNING, "half of the vectors are gone"
    hand = reopened(former)
    assert not hand.step(operation)
    failed = hand.get(operation)
    assert (failed.state, failed.failure_reason) == (
        OperationState.FAILED,
        Reason.EMBEDDER_MISMATCH.value,
    )
    hand = ByHand(hand.service)
    assert hand.finish(hand.begin()).state is OperationState.SUCCEEDED
    assert vectors(hand, ids) == made_by(former, texts)


def test_one_at_a_time_and_cancelled_it_lets_the_next_begin(reopened):
    embedder = FakeEmbedder()
    hand = reopened(embedder)
    ids = written(hand, texts_of(100))
    operation = hand.begin()
    refused = refusal(hand.begin)
    assert refused.reason is Reason.ALREADY_RUNNING
    assert refused.metadata["operation"] == str(operation.id)
    hand.step(operation)
    assert hand.cancel(operation).state is OperationState.CANCELLED
    assert not hand.step(operation)
    assert hand.finish(hand.begin()).state is OperationState.SUCCEEDED
    assert vectors(hand, ids) == made_by(embedder, texts_of(100))
    assert not hand.service.store.read(ACME, [operation_slot(REINDEX)]).entries


def test_forgotten_and_refused_texts_hold_nothing_up(reopened):
    embedder = FakeEmbedder()
    hand = reopened(embedder)
    ids = written(hand, texts_of(50))
    operation = hand.begin()
    hand.step(operation)
    embedder.refused = {"text 7"}
    gone = Batch(deletes=[memory_key(ids[5]), vector_key(ids[5])])
    hand.service.store.commit(ACME, gone)
    assert hand.finish(operation).state is OperationState.SUCCEEDED
    assert hand.cases.statistics.statistics(ACME).partitions[0].vectors_failed == 1
    assert hand.cases.statistics.statistics(ACME).partitions[0].vectors_pending == 0


def test_an_embedder_that_is_away_holds_it_up_and_loses_nothing(reopened):
    embedder = FakeEmbedder()
    hand = reopened(embedder)
    ids = written(hand, texts_of(40))
    operation = hand.begin()
    hand.step(operation)
    embedder.available = False
    with pytest.raises(Exception, match="down"):
        hand.step(operation)
    assert hand.get(operation).state is OperationState.RUNNING
    embedder.available = True
    assert hand.finish(operation).state is OperationState.SUCCEEDED
    assert all(vectors(hand, ids))


def test_what_is_in_memory_is_built_anew_and_answers_meanwhile():
    service = ram_service(embedder=FakeEmbedder(), index_from=50, costs=DEAR_SCAN)
    hand = ByHand(service)
    ids = written(hand, texts_of(200))
    before = service.found("text 9")
    cases = service.use_cases
    former = cases.searcher._residents.peek(ACME)
    operation = hand.begin(re_embed=False)
    hand.step(operation)
    fresh = cases.searcher._residents.peek(ACME)
    assert fresh is not former
    assert former.view.table.memory_bytes()  # whoever holds it may go on
    assert service.found("text 9") == before
    assert hand.finish(operation).state is OperationState.SUCCEEDED
    assert fresh.view.ann.vectors == len(ids)
    assert service.found("text 9") == before
    service.close()
