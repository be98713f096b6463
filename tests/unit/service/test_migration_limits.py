"""Migrations: what is too much for a commit, what they lead to, and what they keep nobody from."""

import dataclasses
import threading

import pytest
from pillion.domain.errors import Reason
from pillion.domain.limits import OPERATION_KEPT_US
from pillion.domain.mutations import Outcome
from pillion.domain.operations import OperationState
from pillion.domain.schemas import ExistingValues
from pillion.domain.values import Value, ValueKind
from pillion.jobs.operations import OperationsJob
from pillion.service import migrating
from pillion.service.draft import Draft
from pillion.service.operations import RunningOperations
from pillion_testing.fakes import uuid7
from pillion_testing.migrating import INFERRED, NUMBER, TEXT, TO_INT, ByHand, history
from pillion_testing.service import ram_service, refusal


@pytest.fixture
def hand():
    made = ByHand()
    yield made
    made.service.close()


def of_at_most(hand, monkeypatch, records):
    """A store of which one commit takes so many records, and depends on so many."""
    store = hand.service.store
    small = dataclasses.replace(store.features, batch_ops_max=records)
    monkeypatch.setattr(store, "_features", small)
    monkeypatch.setattr(migrating, "TIDY_ROWS", records // 2)


@pytest.mark.parametrize("fits", [True, False])
def test_a_timeline_has_more_rows_than_a_commit_may_depend_on(hand, monkeypatch, fits):
    service = hand.service
    service.register(TEXT)
    for number in range(120):
        service.put(str(number) if fits else f"x{number}", valid_from=number + 1)
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    of_at_most(hand, monkeypatch, 100)
    operation = hand.migrate(TO_INT).operation
    done = hand.finish(operation)
    assert done.state is OperationState.SUCCEEDED
    assert (done.migration.migrated, done.migration.misfits) == ((120, 0) if fits else (0, 120))
    assert service.value_at(60) == (59 if fits else "x59")


def test_what_no_commit_takes_ends_the_migration(hand, monkeypatch):
    history(hand)
    operation = hand.migrate(TO_INT).operation
    of_at_most(hand, monkeypatch, 2)
    assert not hand.step(operation)
    of_at_most(hand, monkeypatch, 100)
    failed = hand.get(operation)
    assert failed.state is OperationState.FAILED
    assert failed.failure_reason == Reason.LIMIT_EXCEEDED.value
    assert hand.finish(hand.migrate(TO_INT).operation).state is OperationState.SUCCEEDED


@pytest.mark.parametrize("back", [False, True])
def test_a_migrated_candidate_is_found_by_what_it_says_then(hand, back):
    service = hand.service
    service.register(TEXT)
    guess = service.put("7", source=INFERRED)
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    operation = hand.migrate(TO_INT).operation
    hand.step(operation)
    says = Value(ValueKind.INTEGER, 7)
    if back:
        hand.finish(hand.roll_back(operation))
        service.register(TEXT, existing=ExistingValues.MAY_DIFFER)
        says = "7"
    again = service.put(says, source=INFERRED)
    assert (again.outcome, again.id) == (Outcome.EVIDENCE, guess.id)


def test_nobody_vouches_for_values_that_are_being_migrated(hand):
    history(hand)
    operation = hand.migrate(TO_INT).operation
    refused = refusal(lambda: hand.service.register(TEXT))
    assert refused.reason is Reason.ALREADY_RUNNING
    assert refused.metadata["operation"] == str(operation.id)
    hand.finish(operation)
    assert refusal(lambda: hand.service.register(TEXT)).reason is Reason.SCHEMA_VIOLATION


def test_an_operation_that_cannot_go_on_keeps_no_other_waiting():
    service = ram_service()
    running = RunningOperations(service.store)
    bad, good = uuid7(1), uuid7(2)
    left = [None] * 5
    finished = threading.Event()

    def advance(_, operation_id):
        if operation_id == bad:
            raise OSError
        left.pop()
        if not left:
            finished.set()
        return bool(left)

    for one in (bad, good):
        running.add(service.partition, one)
    job = OperationsJob(running, advance)
    job.start()
    assert finished.wait(10)
    job.stop()
    service.close()


def test_a_request_is_remembered_for_longer_than_its_operation(hand):
    hand.service.register(TEXT)
    hand.service.put("7")
    hand.service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    first = hand.migrate(TO_INT, request_id="r", body_digest=b"d").operation
    hand.finish(first)
    hand.service.clock.advance(OPERATION_KEPT_US + 1)
    hand.finish(hand.migrate(TO_INT).operation)  # whoever begins another sweeps
    assert refusal(lambda: hand.get(first)).reason is Reason.NOT_FOUND
    again = refusal(lambda: hand.migrate(TO_INT, request_id="r", body_digest=b"d"))
    assert again.reason is Reason.ALREADY_ENDED
    assert again.metadata["operation"] == str(first.id)


@pytest.mark.parametrize("rows", [40, 160])
def test_a_long_key_goes_back_in_one_pass(hand, monkeypatch, rows):
    """What a roll-back goes through grows with the rows, not with their square."""
    service = hand.service
    service.register(TEXT)
    for number in range(rows):
        service.put(str(number), valid_from=2 * number + 1)
        service.put(str(number), valid_from=2 * number + 2)
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
    operation = hand.migrate(TO_INT).operation
    while hand.service.value_at(2 * rows) != rows - 1:
        hand.step(operation)
    back = hand.roll_back(operation)
    gone_through = 0
    scan = Draft.scan

    def counted(*arguments, **options):
        nonlocal gone_through
        for found in scan(*arguments, **options):
            gone_through += 1
            yield found

    monkeypatch.setattr(Draft, "scan", counted)
    hand.finish(back)
    assert [service.value_at(2 * n + 2) for n in range(rows)] == [str(n) for n in range(rows)]
    assert 0 < gone_through <= 4 * rows
