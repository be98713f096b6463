"""Partitions in memory: loaded when they are used, and gone when others need the room."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.scope import Partition
from pillion.memory_share import memory_bytes, partitions_share
from pillion.service import ServiceSettings
from pillion.service.resident import Resident
from pillion_storage.api import StoreSettings
from pillion_storage.ram.store import RamStore
from pillion_testing.fakes import Patience
from pillion_testing.service import Service, add, floats

PARTITIONS = [Partition("production", f"tenant-{number}") for number in range(4)]
A, B, C, D = PARTITIONS


def made(budget: int | None, store=None) -> Service:
    return Service(
        store or RamStore(StoreSettings()),
        settings=ServiceSettings(partitions_memory_bytes=budget),
    )


def residents_of(service):
    return service.use_cases.searcher._residents


def tell(service, partition, number):
    service.write(add(f"memory {number}", vector=floats(1.0, number)), partition=partition)


def found(service, partition, number=1):
    answer = service.search(vector=floats(1.0, number), top_k=5, partition=partition)
    return [(hit.memory.text, hit.score) for hit in answer.hits]


@pytest.fixture
def service():
    service = made(1)
    for partition in PARTITIONS:
        tell(service, partition, 1)
    yield service
    service.close()


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from(PARTITIONS), st.integers(0, 9)), max_size=25)
)
def test_under_any_budget_every_answer_is_what_it_would_be_without_one(steps):
    services = [made(budget) for budget in (1, 20_000, None)]
    for is_write, partition, number in steps:
        for service in services:
            if is_write:
                tell(service, partition, number)
        answers = [found(service, partition, number) for service in services]
        assert answers[0] == answers[1] == answers[2]
    tight = residents_of(services[0])
    assert len(tight._loaded) <= 1
    assert residents_of(services[2]).evictions == 0
    for service in services:
        service.close()


def test_who_was_not_used_for_longest_leaves_first():
    service = made(None)
    for partition in PARTITIONS:
        tell(service, partition, 1)
        found(service, partition)
    residents = residents_of(service)
    found(service, A)
    residents._memory_bytes_max = 3 * residents._loaded[A].bytes  # two too many soon
    tell(service, Partition("production", "another"), 1)
    found(service, Partition("production", "another"))
    assert residents.peek(B) is None
    assert residents.peek(C) is None
    assert residents.peek(A) is not None
    assert residents.peek(D) is not None
    assert (residents.loads, residents.evictions) == (5, 2)
    service.close()


def test_what_a_search_uses_stays_until_the_search_is_over(service):
    residents = residents_of(service)
    with residents.using(A) as held:
        found(service, B)
        found(service, C)
        assert residents.peek(A) is held
        assert residents.peek(B) is None
        tell(service, A, 2)
        assert [text for text, _ in found(service, A, 2)] == ["memory 2", "memory 1"]
        assert residents.peek(A) is held
        found(service, D)
    assert residents.peek(A) is None, "it leaves as soon as nobody needs it any more"
    assert residents.peek(D) is not None


def test_what_left_leaves_nothing_behind(service):
    residents = residents_of(service)
    found(service, A)
    gone = weakref.ref(residents.peek(A))
    found(service, B)
    assert residents.peek(A) is None
    residents._closing.submit(lambda: None).result()  # whatever leaves is closed in order
    gc.collect()
    assert gone() is None


def test_a_partition_larger_than_the_budget_is_loaded_once_and_stays(service):
    residents = residents_of(service)
    for _ in range(3):
        assert found(service, A)
    assert residents.loads == 1
    assert residents.peek(A).memory_bytes > 1


def test_who_waits_for_a_load_waits_no_longer_than_its_deadline(monkeypatch):
    """Else one slow load would hold a thread of every caller of its partition, however many."""
    service = made(None)
    tell(service, A, 1)
    loading, go_on = threading.Event(), threading.Event()
    load = Resident._load

    def slow(self):
        loading.set()
        assert go_on.wait(60)
        return load(self)

    monkeypatch.setattr(Resident, "_load", slow)
    first = threading.Thread(target=found, args=(service, A))
    first.start()
    assert loading.wait(60)
    residents = residents_of(service)
    held = residents._loaded[A]
    try:
        with pytest.raises(PillionError) as refused, residents.using(A, Patience(0.0)):
            pass
        assert refused.value.reason is Reason.DEADLINE_EXCEEDED
        assert held.users == 1, "who gave up holds nothing"
    finally:
        go_on.set()
        first.join()
    assert held.users == 0
    assert [text for text, _ in found(service, A)] == ["memory 1"]
    assert residents.loads == 1
    service.close()


def test_the_order_of_turns_counts_from_the_first_search_by_words_on():
    service = made(None)
    count = 300
    for first in range(0, count, 50):
        turns = (add(f"turn {first + n}", session_id="s") for n in range(50))
        service.write(*turns, partition=A)
    found(service, A)
    resident = residents_of(service).peek(A)
    before = resident.memory_bytes
    words = resident.view.table.memory_bytes()
    service.search("turn", partition=A)
    words = resident.view.table.memory_bytes() - words
    # Beside the words: a place of 24 bytes, a tuple and a loan for each, in two dictionaries.
    assert 300 * count < resident.memory_bytes - before - words < 3000 * count
    service.close()


def test_a_partition_that_grows_is_measured_again(monkeypatch):
    monkeypatch.setattr("pillion.service.residents.USES_BETWEEN_MEASURES", 4)
    service = made(None)
    for partition in (A, B):
        tell(service, partition, 0)
        found(service, partition)
    residents = residents_of(service)
    residents._memory_bytes_max = 4 * residents.peek(A).memory_bytes
    for number in range(200):
        tell(service, A, number)
    for _ in range(4):
        found(service, A)
    assert residents.peek(B) is None
    assert residents.peek(A) is not None
    service.close()


def test_many_searches_of_many_partitions_at_once_find_what_there_is(service):
    wrong = []

    def search(place):
        for step in range(40):
            partition = PARTITIONS[(place + step) % len(PARTITIONS)]
            if [text for text, _ in found(service, partition)] != ["memory 1"]:
                wrong.append((place, step))

    threads = [threading.Thread(target=search, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    residents = residents_of(service)
    assert residents.loads - residents.evictions == len(residents._loaded)
    assert all(held.users == 0 for held in residents._loaded.values())


def test_a_load_that_fails_leaves_room_for_the_next(service, monkeypatch):
    residents = residents_of(service)
    failing = RuntimeError("no")

    def refuse(*_, **__):
        raise failing

    with monkeypatch.context() as patched:
        patched.setattr("pillion.service.residents.Resident", refuse)
        with pytest.raises(RuntimeError):
            residents.get(A)
    assert residents.peek(A) is None
    assert found(service, A)


def test_a_container_may_have_less_than_the_machine(tmp_path):
    limit = tmp_path / "memory.max"
    whole = memory_bytes(limit)
    assert whole > 0
    limit.write_text("max\n")
    assert memory_bytes(limit) == whole
    limit.write_text("1048576\n")
    assert memory_bytes(limit) == 1 << 20
    assert 0 < partitions_share(whole) < whole
