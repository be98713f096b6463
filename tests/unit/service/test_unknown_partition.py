"""Reads of a partition that nobody wrote to: nothing is found, written or kept in memory."""

from __future__ import annotations

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.queries import Filter, ReadAt, Target
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store
from pillion_testing.fakes import uuid7
from pillion_testing.service import ACME, MIRA, Service, add, floats, key_of, put_fact


@pytest.fixture
def service(tmp_path):
    made = Service(open_store(StoreSettings(directory=tmp_path, size_bytes_initial=1 << 20)))
    yield made
    made.close()


def batch_get(service):
    targets = (Target(fact=key_of()), Target(memory_id=uuid7(1)), Target(episode_id=uuid7(1)))
    found, revision = service.use_cases.reader.batch_get(
        service.partition, targets, ReadAt(), include_vectors=True, deadline=service.patience
    )
    return found, revision


def list_of_mira(service):
    page = service.list(Filter(subjects=frozenset({MIRA})))
    return page.records, page.next_token, page.revision


def search(service):
    answer = service.search("words", vector=floats(1, 2), include_vectors=True)
    return answer.hits, answer.revision, answer.admitted, answer.vectors_pending


def refusal(call):
    with pytest.raises(PillionError) as caught:
        call()
    return caught.value.reason


READS = {
    "get": (lambda service: refusal(lambda: service.get(uuid7(1))), Reason.NOT_FOUND),
    "batch_get": (batch_get, ((None, None, None), 0)),
    "list": (lambda service: service.listed(), []),
    "list_episodes": (lambda service: service.listed(episodes=True), []),
    "list_subject": (list_of_mira, ((), "", 0)),
    "history": (lambda service: refusal(lambda: service.history(key_of())), Reason.NOT_FOUND),
    "search": (search, ((), 0, 0, 0)),
    "validate": (
        lambda service: service.write(put_fact("v"), validate_only=True).revision,
        0,
    ),
    "forget_dry_run": (
        lambda service: service.forget(subject=MIRA, dry_run=True).memories,
        0,
    ),
    "consolidate_dry_run": (lambda service: service.consolidate(dry_run=True).clusters, 0),
}


@pytest.mark.parametrize(("read", "answer"), READS.values(), ids=READS)
def test_reads_leave_no_trace(service, read, answer):
    before = service.store.stats()
    assert read(service) == answer
    assert list(service.store.partitions()) == []
    assert service.store.stats() == before
    assert not service.use_cases.reader._keys._spaces
    assert not service.use_cases.searcher._residents._loaded


def test_what_is_refused_elsewhere_is_refused_there_too(service):
    long = Filter(labels_any=frozenset({"x" * 1000}))
    assert refusal(lambda: service.search(filter=long)) is Reason.LIMIT_EXCEEDED
    assert refusal(lambda: service.search(vector=floats(0, 0))) is Reason.NOT_FINITE
    assert refusal(lambda: service.search(top_k=0)) is Reason.INVALID_FIELD


def test_the_first_write_after_reads_is_found_by_name(service):
    for read, _ in READS.values():
        read(service)
    service.write(put_fact("v"), add("hello"))
    assert service.value_at() == "v"
    assert len(list_of_mira(service)[0]) == 2
    assert len(service.search(filter=Filter(subjects=frozenset({MIRA}))).hits) == 2
    assert list(service.store.partitions()) == [ACME]
