"""Taking a retraction back: what returns, and what is refused."""

from __future__ import annotations

import pytest
from pillion.domain import limits
from pillion.domain.errors import Reason
from pillion.domain.memory import FOREVER, EndReason, MemoryStatus
from pillion.domain.mutations import ConflictPolicy
from pillion.service import surroundings
from pillion_testing.fakes import START
from pillion_testing.service import (
    NEW,
    add,
    key_of,
    put_fact,
    restore,
    retract,
    version_is,
)


def values(service, *instants):
    return [service.value_at(START - one) for one in instants]


def test_a_row_holds_again_and_is_the_row_it_was(service):
    row = service.put("a", valid_from=START - 9)
    service.one(retract(row.id, valid_to=START - 5))
    assert service.get(row.id).end_reason is EndReason.RETRACTED
    service.put("b", valid_from=START - 3, valid_to=START - 2)
    result = service.one(restore(row.id))
    assert (result.id, result.fact_version) == (row.id, service.revision)
    assert values(service, 9, 5, 3, 2, 0) == ["a", "a", "b", "a", "a"]
    back = service.get(row.id)
    assert (back.end_reason, back.retracted_at) == (EndReason.SUPERSEDED, FOREVER)


def test_a_row_that_was_never_so_returns(service):
    service.put("z", valid_from=START - 20)
    row = service.put("a", valid_from=START - 9)
    service.one(retract(row.id, valid_to=START - 9))
    assert values(service, 10, 9, 0) == ["z", "z", "z"]  # the earlier statement goes on
    service.one(restore(row.id))
    assert values(service, 10, 9, 0) == ["z", "a", "a"]
    assert service.current().id == row.id


def test_a_row_returns_over_the_retraction_that_it_had_replaced(service):
    first = service.put("z", valid_from=START - 20)
    service.one(retract(first.id, valid_to=START - 9))
    row = service.put("a", valid_from=START - 9)
    service.one(retract(row.id, valid_to=START - 9))
    assert values(service, 10, 9, 0) == ["z", None, None]
    service.one(restore(row.id))
    assert values(service, 10, 9, 0) == ["z", "a", "a"]
    service.one(retract(row.id, valid_to=START - 9))
    assert values(service, 10, 9, 0) == ["z", None, None]  # the retraction still stands behind it


def test_it_is_refused_where_another_statement_began_there_since(service):
    row = service.put("a", valid_from=START - 9)
    service.one(retract(row.id, valid_to=START - 9))
    other = service.put("b", valid_from=START - 9)
    with service.refuses(Reason.FACT_CONFLICT) as caught:
        service.one(restore(row.id))
    assert caught.value.metadata["existing_id"] == str(other.id)


def test_it_is_refused_where_nothing_is_retracted(service):
    row = service.put("a", valid_from=START - 9)
    added = service.one(add("tea"))
    for one in (row, added):
        with service.refuses(Reason.ALREADY_ENDED):
            service.one(restore(one.id))
    service.one(retract(row.id, valid_to=START - 5))
    service.one(restore(row.id))
    with service.refuses(Reason.ALREADY_ENDED):
        service.one(restore(row.id))
    service.one(retract(row.id, valid_to=START - 5))
    service.put("c", valid_from=START - 9, policy=ConflictPolicy.CORRECT)
    with service.refuses(Reason.ALREADY_ENDED):
        service.one(restore(row.id))


def test_what_must_hold_of_it_is_demanded(service):
    row = service.put("a", valid_from=START - 9)
    service.one(retract(row.id, valid_to=START - 5))
    version = service.get(row.id).version
    with service.refuses(Reason.VERSION_MISMATCH):
        service.one(restore(row.id, version_is(version + 1)))
    with service.refuses(Reason.INVALID_FIELD):
        service.one(restore(row.id, NEW))
    service.one(restore(row.id, version_is(version)))


def test_evidence_that_went_with_a_row_returns_with_it(service):
    row = service.put("a", valid_from=START - 9)
    for instant in (7, 5, 3):
        service.put("a", valid_from=START - instant)
    service.one(retract(row.id, valid_to=START - 7))
    service.put("b", valid_from=START - 6)
    assert values(service, 8, 7, 6, 5, 3) == ["a", None, "b", "b", "b"]
    service.one(restore(row.id))
    assert values(service, 8, 7, 6, 5, 3) == ["a", "a", "b", "a", "a"]


@pytest.mark.parametrize("instant", [9, 5])
@pytest.mark.parametrize("lasts", [False, True])
def test_an_untyped_memory_and_a_guess_are_restored_too(service, instant, lasts):
    end = START + 9 if lasts else None
    added = service.one(add("tea", valid_from=START - 9, valid_to=end))
    guess = service.put("a", valid_from=START - 9, valid_to=end, status=MemoryStatus.CANDIDATE)
    for one in (added, guess):
        before = service.get(one.id)
        service.one(retract(one.id, valid_to=START - instant))
        service.one(restore(one.id))
        after = service.get(one.id)
        assert (after.valid_to, after.end_reason) == (before.valid_to, before.end_reason)
        assert after.retracted_at == FOREVER


def test_a_statement_that_covers_too_many_others_is_refused_whole(service, monkeypatch):
    monkeypatch.setattr(surroundings, "TIMELINE_WALK_MAX", 20)
    assert limits.TIMELINE_WALK_MAX > 20
    numbers = range(0, 60, 2)
    service.write(
        *(put_fact("a", valid_from=START - n - 2, valid_to=START - n - 1) for n in numbers)
    )
    with service.refuses(Reason.LIMIT_EXCEEDED):
        service.put("b", valid_from=START - 90)
    service.put("b", valid_from=START - 90, valid_to=START - 40)
    assert service.value_at(START - 45, key_of()) == "b"


def test_of_two_retractions_the_earlier_stands_when_the_later_is_taken_back(service):
    made = service.one(add(valid_from=START - 9)), service.put("a", valid_from=START - 9)
    for row in made:
        service.one(retract(row.id, valid_to=START - 3))
        first = service.get(row.id)
        service.clock.advance()
        service.one(retract(row.id, valid_to=START - 5))
        service.one(restore(row.id))
        back = service.get(row.id)
        assert (back.valid_to, back.end_reason) == (START - 3, EndReason.RETRACTED)
        assert first.retracted_at <= back.retracted_at < FOREVER


@pytest.mark.parametrize("then_back", [False, True])
def test_evidence_whose_place_was_taken_returns_too(service, then_back):
    row = service.put("a", valid_from=START - 9)
    service.put("a", valid_from=START - 5)
    service.one(retract(row.id, valid_to=START - 7))
    # What goes on behind an end that was named begins at the evidence's very instant ...
    service.put("b", valid_from=START - 8)
    service.put("c", valid_from=START - 6, valid_to=START - 5)
    if then_back:  # ... or what began there was never so.
        other = service.put("d", valid_from=START - 5)
        service.one(retract(other.id, valid_to=START - 5))
    service.one(restore(row.id))
    assert values(service, 9, 8, 6, 5, 0) == ["a", "b", "c", "a", "a"]


def test_evidence_returns_over_a_retraction_that_began_in_its_place(service):
    row = service.put("a", valid_from=START - 9)
    service.put("a", valid_from=START - 5, valid_to=START - 3)
    service.one(retract(row.id, valid_to=START - 7))
    other = service.put("b", valid_from=START - 6)
    service.one(retract(other.id, valid_to=START - 5))
    service.one(restore(row.id))
    assert values(service, 7, 6, 5, 3, 0) == ["a", "b", "a", None, None]
    service.one(retract(other.id, valid_to=START - 6))  # the row before reaches the evidence then
    assert values(service, 7, 6, 5, 3, 0) == ["a", "a", "a", None, None]


def test_what_was_taken_twice_returns_with_what_took_it_first(service):
    early = service.put("a", valid_from=START - 9, valid_to=START - 1)
    late = service.put("b", valid_from=START - 7)
    row = service.put("a", valid_from=START - 6)
    service.put("a", valid_from=START - 4)
    service.one(retract(row.id, valid_to=START - 6))
    service.one(retract(late.id, valid_to=START - 7))
    service.one(retract(early.id, valid_to=START - 8))
    service.one(restore(early.id))
    assert values(service, 9, 6, 4, 1, 0) == ["a", "a", "a", None, None]
    service.one(restore(row.id))
    assert values(service, 9, 6, 4, 1, 0) == ["a", "a", "a", "a", "a"]


@pytest.fixture
def few_are_read(monkeypatch):
    monkeypatch.setattr(surroundings, "TIMELINE_READ_MAX", 20)
    assert limits.TIMELINE_READ_MAX > 20


def stated_often(service):
    row = service.put("a", valid_from=START - 99)
    service.write(*(put_fact("a", valid_from=START - n) for n in range(2, 60)))
    return row


def test_evidence_that_a_retraction_took_is_not_gone_through(service, few_are_read):
    row = stated_often(service)
    service.one(retract(row.id, valid_to=START - 70))
    assert values(service, 99, 50, 0) == ["a", None, None]
    service.put("b", valid_from=START - 80)
    service.put("c", valid_from=START - 40)
    assert values(service, 99, 80, 50, 40, 0) == ["a", "b", None, "c", "c"]


def test_where_evidence_asleep_has_to_be_gone_through_there_is_an_end_to_it(service, few_are_read):
    row = stated_often(service)
    service.one(retract(row.id, valid_to=START - 99))
    with service.refuses(Reason.LIMIT_EXCEEDED):
        service.value_at(START)
    assert service.value_at(START - 99) is None
