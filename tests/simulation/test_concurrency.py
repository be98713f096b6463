"""Many threads on one service over LMDB: no update is lost, nothing half-done is seen."""

from __future__ import annotations

import itertools
import threading

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import EndReason
from pillion.domain.mutations import ConflictPolicy, Outcome
from pillion.domain.queries import Filter
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import START
from pillion_testing.service import (
    NEW,
    add,
    key_of,
    lmdb_service,
    patch,
    put_fact,
    version_is,
)

THREADS = 8


@pytest.fixture
def service(tmp_path):
    made = lmdb_service(tmp_path / "store")
    yield made
    made.close()


def at_once(work) -> None:
    """Run ``work(number)`` in every thread, begun together; raise what one raises."""
    barrier, failures = threading.Barrier(THREADS), []

    def run(number):
        barrier.wait(60)
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def retried(call, *, reasons) -> int:
    """Call until it works; return how often it was refused for one of the reasons."""
    for tries in range(10_000):
        try:
            call()
        except PillionError as error:
            if error.reason not in reasons:
                raise
        else:
            return tries
    raise AssertionError("never")


def test_increments_of_a_fact_are_never_lost(service):
    service.put(Value(ValueKind.INTEGER, 0), when=NEW, valid_from=START - 1)
    each = 20

    def increment():
        row = service.current()
        service.write(
            put_fact(
                Value(ValueKind.INTEGER, row.value.data + 1),
                when=version_is(row.fact_version),
                policy=ConflictPolicy.CORRECT,
            )
        )

    def work(_):
        for _ in range(each):
            retried(increment, reasons={Reason.VERSION_MISMATCH})

    at_once(work)
    assert service.value_at() == THREADS * each
    entries, _, _ = service.history(key_of(), page_size=1000)
    stated = [one.memory.value.data for one in entries if one.memory.supersedes is not None]
    assert set(stated) == set(range(1, THREADS * each + 1))


def test_increments_of_a_memory_are_never_lost(service):
    made = service.one(add("0"))
    each = 20

    def increment():
        now = service.get(made.id)
        service.write(patch(made.id, version_is(now.version), text=str(int(now.text) + 1)))

    at_once(lambda _: [retried(increment, reasons={Reason.VERSION_MISMATCH}) for _ in range(each)])
    assert service.get(made.id).text == str(THREADS * each)


def test_only_one_creates_a_fact(service):
    won = []

    def work(number):
        try:
            service.write(put_fact(str(number), when=NEW))
        except PillionError as error:
            assert error.reason is Reason.ALREADY_EXISTS  # noqa: PT017 - or it has won
        else:
            won.append(str(number))

    at_once(work)
    assert [service.value_at()] == won


def test_one_request_from_many_threads_takes_effect_once(service):
    answers = []

    def work(_):
        answers.append(service.write(put_fact("v"), add("m"), request_id="r"))

    at_once(work)
    assert service.revision == 1
    assert {answer.results for answer in answers} == {answers[0].results}
    assert sum(not answer.replayed for answer in answers) == 1


def test_statements_from_many_threads_form_one_timeline(service):
    """Nobody names a version: the service plans again when somebody was faster."""

    def work(number):
        for step in range(10):
            instant = START - 1000 + step * THREADS + number
            call = put_fact(str(number % 2), valid_from=instant)
            retried(lambda call=call: service.write(call), reasons={Reason.OVERLOADED})

    at_once(work)
    for instant in range(START - 1000, START - 1000 + 10 * THREADS):
        assert service.value_at(instant) == str((instant - START + 1000) % THREADS % 2)
    rows = [one for one in service.listed(Filter(valid_only=False)) if one.on_timeline]
    rows.sort(key=lambda one: one.valid_from)
    for one, following in itertools.pairwise(rows):
        assert one.valid_to == following.valid_from
        assert one.end_reason is EndReason.SUPERSEDED


def test_a_search_beside_writers_sees_whole_batches(service):
    """Each write moves a pair of memories together; a search never finds half a pair."""
    done = threading.Event()
    torn = []

    def work(number):
        if number:
            for step in range(10):
                label = f"{number}-{step}"
                service.write(add("left", labels=(label,)), add("right", labels=(label,)))
        else:
            for _ in range(40):
                hits = service.search(top_k=1000).hits
                labels = [hit.memory.labels for hit in hits]
                if any(labels.count(one) != 2 for one in set(labels)):
                    torn.append(labels)
            done.set()

    at_once(work)
    assert done.is_set()
    assert not torn
    assert len(service.search(top_k=1000).hits) == 2 * 10 * (THREADS - 1)


def test_evidence_from_many_threads_is_counted_exactly(service):
    row = service.put("v", valid_from=START - 1000)

    def work(number):
        for step in range(10):
            call = put_fact("v", valid_from=START - 900 + step * THREADS + number)
            retried(lambda call=call: service.write(call), reasons={Reason.OVERLOADED})

    at_once(work)
    assert service.get(row.id).recurrence.count == 10 * THREADS
    assert service.put("v", valid_from=START - 900).outcome is Outcome.EVIDENCE
