"""Candidates: out of every answer, one for each claim, promoted by episodes or by a user."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import Reason
from pillion.domain.memory import (
    FOREVER,
    EndReason,
    MemoryKind,
    MemoryStatus,
    Recurrence,
    Source,
    SourceKind,
)
from pillion.domain.mutations import AddMemory, ConflictPolicy, Outcome
from pillion.domain.queries import Filter
from pillion.service import ServiceSettings
from pillion_testing.fakes import START, uuid7
from pillion_testing.service import (
    EXISTS,
    NEW,
    add,
    close_item,
    confirm,
    episode,
    floats,
    key_of,
    memory,
    patch,
    ram_service,
    retract,
    version_is,
)

CANDIDATE = MemoryStatus.CANDIDATE
ASKED = Filter(statuses=frozenset({CANDIDATE}), valid_only=False)


def told(service, count=1):
    """The ids of new episodes; of one alone, that id."""
    made = [service.one(episode(f"words {n}", indexed=False)).id for n in range(count)]
    return made[0] if count == 1 else made


def inferred(episode_id=None):
    return Source(SourceKind.INFERENCE, episode_id)


def guess(service, value="v", told_by=None, **more):
    return service.put(value, source=inferred(told_by), **more)


def note(service, text="likes tea", told_by=None, **more):
    more.setdefault("kind", MemoryKind.SEMANTIC)
    return service.one(add(text, source=inferred(told_by), **more))


@pytest.fixture(params=["fact", "untyped"])
def infer(request):
    return guess if request.param == "fact" else note


def test_candidates_come_back_only_when_asked_for(service, infer):
    made = infer(service, told_by=told(service))
    one = service.get(made.id)  # by its id, which is asking for it
    assert one.status is CANDIDATE
    assert service.listed(Filter()) == []
    assert service.found() == []
    assert service.current() is None
    if one.is_fact:
        with service.refuses(Reason.NOT_FOUND):
            service.history(key_of())
    assert [one.id for one in service.listed(ASKED)] == [made.id]
    assert service.found(filter=ASKED) == [made.id]


def test_what_was_a_candidate_is_no_part_of_its_keys_history(service):
    for one in told(service, 3):
        made = guess(service, told_by=one)
        service.clock.advance()
    entries, _, _ = service.history(key_of())
    assert [(one.memory.id, one.memory.status) for one in entries] == [
        (made.id, MemoryStatus.CONFIRMED)
    ]
    versions, _, _ = service.history(memory_id=made.id)  # by its id, which is asking for it
    assert [one.memory.status for one in versions] == [CANDIDATE, CANDIDATE, MemoryStatus.CONFIRMED]


def test_a_repeat_by_another_episode_grows_the_candidate(service, infer):
    one, two = told(service, 2)
    first = infer(service, told_by=one, valid_from=START - 5, confidence=0.4)
    again = infer(service, told_by=two, valid_from=START - 9, confidence=0.7)
    assert (first.outcome, again.outcome) == (Outcome.CREATED, Outcome.EVIDENCE)
    assert again.id == first.id
    kept = service.get(first.id)
    assert kept.recurrence == Recurrence(1, (two,))
    assert (kept.status, kept.valid_from, kept.confidence) == (CANDIDATE, START - 9, 0.7)
    assert kept.version == service.revision
    assert len(service.listed(ASKED)) == 1


def test_an_episode_counts_once(service, infer):
    one, two = told(service, 2)
    first = infer(service, told_by=one)
    for again in (one, one):
        before = service.get(first.id)
        result = infer(service, told_by=again)
        assert (result.id, result.outcome, result.version) == (
            first.id,
            Outcome.UNCHANGED,
            before.version,
        )
        assert service.get(first.id) == before
    infer(service, told_by=two)
    assert infer(service, told_by=two).outcome is Outcome.UNCHANGED
    assert service.get(first.id).recurrence == Recurrence(1, (two,))


def test_what_no_episode_says_never_promotes(service, infer):
    first = infer(service)
    for _ in range(5):
        assert infer(service).outcome is Outcome.EVIDENCE
    kept = service.get(first.id)
    assert (kept.status, kept.recurrence) == (CANDIDATE, Recurrence(5, ()))


def test_the_third_episode_puts_a_fact_on_its_timeline(service):
    stated = service.put("old", valid_from=START - 50)
    results = [guess(service, "new", told_by=one, valid_from=START - 9) for one in told(service, 3)]
    assert [one.outcome for one in results] == [
        Outcome.CREATED,
        Outcome.EVIDENCE,
        Outcome.SUPERSEDED,
    ]
    row = service.current()
    assert (row.id, row.status) == (results[0].id, MemoryStatus.CONFIRMED)
    assert (results[2].superseded_id, row.supersedes) == (stated.id, stated.id)
    assert results[2].fact_version == row.fact_version == service.revision
    assert (row.source.kind, row.recurrence.count) == (SourceKind.INFERENCE, 2)
    assert service.listed(ASKED) == []
    # What is said after that is a candidate of its own again.
    assert guess(service, "new", told_by=told(service)).outcome is Outcome.CREATED


def test_the_third_episode_confirms_an_untyped_memory(service):
    results = [note(service, told_by=one) for one in told(service, 3)]
    assert [one.outcome for one in results] == [
        Outcome.CREATED,
        Outcome.EVIDENCE,
        Outcome.UPDATED,
    ]
    assert service.get(results[0].id).status is MemoryStatus.CONFIRMED
    assert service.found() == [results[0].id]


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_how_many_episodes_are_enough_is_a_setting(limit):
    service = ram_service(settings=ServiceSettings(promote_after_episodes=limit))
    for count, one in enumerate(told(service, 6), 1):
        guess(service, told_by=one)
        assert (service.value_at() == "v") == (0 < limit <= count)
        if service.value_at():
            break
    service.close()


def test_claims_differ_by_all_that_they_say(service):
    episodes = itertools.cycle(told(service, 2))
    stated = [
        lambda: guess(service, "a", told_by=next(episodes)),
        lambda: guess(service, "b", told_by=next(episodes)),
        lambda: guess(service, "a", told_by=next(episodes), context="work"),
        lambda: guess(service, "a", told_by=next(episodes), attribute="other"),
        lambda: guess(service, "a", told_by=next(episodes), valid_to=START + 9),
        lambda: note(service, "a", told_by=next(episodes)),
        lambda: note(service, "b", told_by=next(episodes)),
        lambda: note(service, "a", told_by=next(episodes), context="work"),
        lambda: note(service, "a", told_by=next(episodes), kind=MemoryKind.PROCEDURAL),
        lambda: note(service, "a", told_by=next(episodes), valid_to=START + 9),
    ]
    made = [one() for one in stated]
    assert {one.outcome for one in made} == {Outcome.CREATED}
    next(episodes)
    again = [one() for one in stated]
    assert [one.id for one in again] == [one.id for one in made]
    assert {one.outcome for one in again} == {Outcome.EVIDENCE}


def test_another_tenants_candidate_is_not_repeated(service, infer):
    mine = infer(service)
    service.partition = type(service.partition)("production", "umbrella")
    theirs = infer(service)
    assert theirs.outcome is Outcome.CREATED
    assert theirs.id != mine.id


def test_a_promoted_guess_loses_to_a_user_of_the_same_instant(service):
    stated = service.put("said", valid_from=START - 9)
    one, two, three, four = told(service, 4)
    made = guess(service, "guessed", told_by=one, valid_from=START - 9)
    guess(service, "guessed", told_by=two, valid_from=START - 9)
    for late in (three, four):
        held_up = guess(service, "guessed", told_by=late, valid_from=START - 9)
        assert (held_up.id, held_up.outcome) == (made.id, Outcome.KEPT_EXISTING)
        assert service.get(made.id).version == held_up.version == service.revision
        assert service.current().id == stated.id
    kept = service.get(made.id)
    assert (kept.status, kept.recurrence.count) == (CANDIDATE, 3)


def test_a_promoted_guess_loses_to_what_is_stated_as_well_as_it(service):
    """Equal sources at one instant: neither is refused, and the timeline stays as it is."""
    for one in told(service, 3):
        guess(service, "first", told_by=one, valid_from=START - 9)
    row = service.current()
    results = [
        guess(service, "second", told_by=one, valid_from=START - 9) for one in told(service, 3)
    ]
    assert results[2].outcome is Outcome.KEPT_EXISTING
    assert service.current() == row
    # A user settles it.
    assert service.one(confirm(results[0].id)).outcome is Outcome.CORRECTED
    assert service.value_at() == "second"


def test_a_promoted_guess_that_is_stated_already_is_evidence(service):
    stated = service.put("v", valid_from=START - 9)
    told_by = told(service, 3)
    made = [guess(service, "v", told_by=one, valid_from=START - 5) for one in told_by]
    assert (made[2].id, made[2].outcome) == (stated.id, Outcome.EVIDENCE)
    row = service.current()
    assert (row.id, row.status) == (stated.id, MemoryStatus.CONFIRMED)
    assert set(row.recurrence.episode_ids) == set(told_by)
    served = service.get(made[0].id)
    assert (served.end_reason, served.superseded_by) == (EndReason.WITHDRAWN, stated.id)
    assert served.status is CANDIDATE
    entries, _, _ = service.history(key_of())
    assert {one.memory.id for one in entries} == {stated.id}


@pytest.mark.parametrize("ended_by", ["retract", "retract later", "forget", "confirm", "expiry"])
def test_a_candidate_that_ended_is_not_grown(service, infer, ended_by):
    one, two = told(service, 2)
    first = infer(service, told_by=one, valid_from=START - 9, expires_at=START + 100)
    if ended_by == "retract":
        service.write(retract(first.id, valid_to=START - 9))
    elif ended_by == "retract later":
        service.write(retract(first.id, valid_to=START - 4))
    elif ended_by == "forget":
        service.forget(ids=(first.id,))
    elif ended_by == "confirm":
        service.write(confirm(first.id))
    else:
        service.clock.advance(200)
    if ended_by != "expiry":  # time alone writes nothing
        assert not [key for key in service.records() if key.startswith(b"n")]
    before = service.get(first.id)
    again = infer(service, told_by=two, valid_from=START - 9)
    assert again.outcome is Outcome.CREATED
    assert again.id != first.id
    assert service.get(first.id).recurrence == before.recurrence
    assert infer(service, told_by=one, valid_from=START - 9).id == again.id


def test_a_candidate_whose_text_was_changed_is_found_by_the_new_text(service):
    one, two, three = told(service, 3)
    first = note(service, "likes tea", told_by=one)
    service.write(patch(first.id, text="likes green tea"))
    assert note(service, "likes green tea", told_by=two).id == first.id
    assert note(service, "likes tea", told_by=three).outcome is Outcome.CREATED


def test_a_closed_item_is_not_grown(service):
    one, two = told(service, 2)
    first = note(service, kind=MemoryKind.OPEN_ITEM, told_by=one, valid_from=START - 5)
    service.write(close_item(first.id))
    again = note(service, kind=MemoryKind.OPEN_ITEM, told_by=two, valid_from=START - 5)
    assert again.outcome is Outcome.CREATED


@pytest.mark.parametrize("kind", ["fact", "untyped"])
def test_a_named_candidate_that_became_evidence_is_not_counted_again(service, kind):
    infer = guess if kind == "fact" else note
    first = infer(service)
    assert infer(service, id=uuid7(700)).outcome is Outcome.EVIDENCE
    with service.refuses(Reason.ALREADY_EXISTS):
        infer(service, id=uuid7(700))
    assert service.get(first.id).recurrence.count == 1
    ack = service.import_(
        add("likes tea", id=uuid7(700), kind=MemoryKind.SEMANTIC, source=inferred())
    )
    assert ack.existing == (1 if kind == "untyped" else 0)


def test_preconditions_hold_for_candidates_too(service):
    with service.refuses(Reason.VERSION_MISMATCH):
        guess(service, when=version_is(3))
    with service.refuses(Reason.NOT_FOUND):
        guess(service, when=EXISTS)
    first = guess(service, when=NEW)
    assert guess(service, when=NEW).id == first.id  # the key has no row yet
    service.write(confirm(first.id))
    with service.refuses(Reason.ALREADY_EXISTS):
        guess(service, when=NEW)


def test_a_repeat_with_a_vector_that_does_not_fit_is_refused(service, infer):
    infer(service, vector=floats(1, 0, 0, 0))
    with service.refuses(Reason.DIMENSION_MISMATCH):
        infer(service, vector=floats(1, 0))


def test_one_write_may_state_and_promote_a_candidate(service):
    ids = [uuid7(800 + n) for n in range(3)]
    answer = service.write(
        *[episode(f"said {n}", id=one, indexed=False) for n, one in enumerate(ids)],
        *[
            AddMemory(memory("likes tea", kind=MemoryKind.SEMANTIC, source=inferred(one)), NEW)
            for one in ids
        ],
    )
    assert [one.outcome for one in answer.results[3:]] == [
        Outcome.CREATED,
        Outcome.EVIDENCE,
        Outcome.UPDATED,
    ]
    assert len(service.listed(Filter())) == 1


def test_consolidation_promotes_what_is_due_by_now():
    service = ram_service(settings=ServiceSettings(promote_after_episodes=0))
    told_by = told(service, 3)

    def by_all(infer, *stated, **more):
        return {infer(service, *stated, told_by=one, **more).id for one in told_by}.pop()

    due = by_all(guess)
    text = by_all(note)
    not_due = guess(service, "w", told_by=told_by[0], attribute="other").id
    elsewhere = by_all(guess, context="work")
    held_up = by_all(guess, "x", attribute="taken", valid_from=START - 9)
    service.put("y", attribute="taken", valid_from=START - 9)
    lowered = type(service)(
        service.store,
        clock=service.clock,
        ids=service.ids,
        settings=ServiceSettings(promote_after_episodes=3),
    )
    before = lowered.records()
    assert set(lowered.consolidate(dry_run=True).promoted) == {due, text}
    assert lowered.records() == before
    report = lowered.consolidate(request_id="once")
    assert set(report.promoted) == {due, text}
    assert lowered.consolidate(request_id="once").promoted == report.promoted
    assert lowered.consolidate().promoted == ()
    statuses = {one: lowered.get(one).status for one in (due, text, not_due, elsewhere, held_up)}
    assert statuses == {
        due: MemoryStatus.CONFIRMED,
        text: MemoryStatus.CONFIRMED,
        not_due: CANDIDATE,
        elsewhere: CANDIDATE,
        held_up: CANDIDATE,
    }
    assert lowered.value_at() == "v"
    lowered.close()


@settings(max_examples=60, deadline=None)
@given(
    st.permutations(range(4)),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
    st.integers(1, 4),
)
def test_the_order_of_repeats_does_not_matter(order, instants, limit):
    """Whichever comes first, the claim holds since the earliest instant among those counted."""
    service = ram_service(settings=ServiceSettings(promote_after_episodes=limit))
    told_by = told(service, 4)
    for place in order[:limit]:
        guess(service, told_by=told_by[place], valid_from=START - instants[place])
    row = service.current()
    assert row.valid_from == min(START - instants[place] for place in order[:limit])
    assert {row.source.episode_id, *row.recurrence.episode_ids} == {
        told_by[place] for place in order[:limit]
    }
    assert row.valid_to == FOREVER
    service.close()


def test_a_confirmation_keeps_what_a_policy_would_refuse(service):
    """A candidate never disturbs a put: the policies look at the timeline alone."""
    guess(service, "guessed", valid_from=START - 9)
    stated = service.put("said", valid_from=START - 9, policy=ConflictPolicy.REJECT)
    assert stated.outcome is Outcome.CREATED
