"""A Forget in the background comes to what one in the foreground does, whatever interrupts it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pillion.domain.commands import ForgetCommand, ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.forgetting import ByFilter, ByIds, ByRecorded, BySubject, out_of_recall
from pillion.domain.operations import OperationState
from pillion.domain.queries import Filter, Window
from pillion.service.holds import HoldCommand
from pillion_storage.api import KEY_SPACE_END
from pillion_testing.fakes import START
from pillion_testing.migrating import ByHand
from pillion_testing.service import EVERYTHING, MIRA, add, episode, patch, put_fact

EVER = ByRecorded(Window(START - 1))


@pytest.fixture
def hand():
    made = ByHand()
    for start in range(0, 180, 60):
        made.service.write(*[add(str(start + n)) for n in range(60)])
    made.service.write(put_fact("a"), put_fact("b", attribute="other"), episode("e"))
    yield made
    made.service.close()


def begin(hand, selector, mode=ForgetMode.EXPIRE, **more):
    service = hand.service
    command = ForgetCommand(mode=mode, selector=selector, **more)
    return service.use_cases.background_forgetter.begin(
        service.partition, command, service.patience
    )


def notes(service):
    page = service.store.scan(service.partition, b"u", b"v", limit=100)
    return list(page.rows)


def standing(service):
    records = service.listed(EVERYTHING) + service.listed(EVERYTHING, episodes=True)
    return {one.id for one in records if not out_of_recall(one)}


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
@pytest.mark.parametrize("selector", [EVER, BySubject(MIRA)])
def test_it_comes_to_what_the_foreground_does(hand, mode, selector):
    service = hand.service
    service.clock.advance()
    shown = service.forget(mode, selector=selector, dry_run=True)
    begun = begin(hand, selector, mode, preview_revision=shown.revision)
    assert begun.state is OperationState.RUNNING
    assert begun.total > 0
    done = hand.finish(begun)
    assert done.state is OperationState.SUCCEEDED
    assert done.done == done.total
    assert (done.work.memories, done.work.episodes) == (shown.memories, shown.episodes)
    assert done.work.unpreviewed == 0
    assert set(done.work.sample_ids) == set(shown.sample_ids)
    again = service.forget(mode, selector=selector)
    assert (again.memories, again.episodes) == (0, 0)
    assert notes(service) == []


def test_a_retraction_leaves_no_older_statement_that_goes_on(hand):
    service = hand.service
    service.put("old", attribute="plan", valid_from=START - 50)
    service.put("later", attribute="plan", valid_from=START + 50)
    hand.finish(begin(hand, BySubject(MIRA), ForgetMode.RETRACT))
    assert service.listed(Filter()) == []
    again = service.forget(ForgetMode.RETRACT, selector=BySubject(MIRA))
    assert again.memories == 0


def test_it_goes_on_in_a_new_process_and_counts_nothing_twice(hand):
    begun = begin(hand, EVER)
    hand.step(begun)
    half = hand.get(begun)
    assert 0 < half.done < half.total
    # Everything that it needs is in the store: this is what a new process starts from.
    done = hand.finish(begun)
    assert done.work.memories + done.work.episodes == half.total
    assert standing(hand.service) == set()


def test_a_cancelled_one_leaves_the_rest_and_its_notes_go(hand):
    begun = begin(hand, EVER)
    hand.step(begun)
    before = len(standing(hand.service))
    ended = hand.cancel(begun)
    assert ended.state is OperationState.CANCELLED
    assert not hand.step(begun)
    assert len(standing(hand.service)) == before > 0
    assert notes(hand.service) == []
    assert hand.finish(begin(hand, EVER)).state is OperationState.SUCCEEDED
    assert standing(hand.service) == set()


def test_what_changed_meanwhile_or_came_later_stays(hand):
    service = hand.service
    changed = service.listed(Filter())[100]
    wanted = ByFilter(replace(EVERYTHING, importance_min=0.1))
    begun = begin(hand, wanted)
    service.write(patch(changed.id, text="about something else"))
    late = service.one(add("late")).id
    hand.finish(begun)
    assert standing(service) >= {changed.id, late}


def test_what_is_held_stays_and_what_was_named_fails(hand):
    service = hand.service
    kept = service.listed(Filter())[3].id
    command = HoldCommand(record_id=kept, held=True, reason_code="case")
    service.use_cases.holds.set(service.partition, command, service.patience)
    done = hand.finish(begin(hand, EVER))
    assert done.work.exempt_ids == (kept,)
    assert standing(service) == {kept}
    failed = hand.finish(begin(hand, ByIds((kept,))))
    assert (failed.state, failed.failure_reason) == (OperationState.FAILED, "SEALED")
    assert notes(service) == []


def test_one_at_a_time_and_once_for_a_request_id(hand):
    first = begin(hand, EVER, request_id="r", body_digest=b"1")
    assert begin(hand, EVER, request_id="r", body_digest=b"1").id == first.id
    for request_id, reason in (("r", Reason.REQUEST_ID_REUSED), ("s", Reason.ALREADY_RUNNING)):
        with pytest.raises(PillionError) as caught:
            begin(hand, EVER, request_id=request_id, body_digest=b"2")
        assert caught.value.reason is reason


def test_nothing_of_the_selector_is_kept(hand):
    service = hand.service
    begin(hand, ByFilter(replace(EVERYTHING, labels_none=frozenset({"canary-label"}))))
    page = service.store.scan(service.partition, b"", KEY_SPACE_END, limit=1000)
    assert not any(b"canary" in row.value for row in page.rows if row.key[:1] in b"ou")


def test_bad_ones_are_refused(hand, monkeypatch):
    with hand.service.refuses(Reason.FORCE_REQUIRED):
        begin(hand, ByRecorded(Window()))
    with hand.service.refuses(Reason.INVALID_FIELD, "background"):
        begin(hand, ByFilter(Filter(importance_min=0.5)), ForgetMode.RETRACT)
    monkeypatch.setattr("pillion.service.background_forget.FORGET_BACKGROUND_MAX", 10)
    with hand.service.refuses(Reason.LIMIT_EXCEEDED):
        begin(hand, EVER)
