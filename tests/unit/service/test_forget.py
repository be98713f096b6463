"""Forget by ids, subject and fact: what goes, what is counted, and that it goes once."""

from __future__ import annotations

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import Reason
from pillion.domain.memory import FOREVER, EndReason, MemoryStatus
from pillion.domain.queries import Filter
from pillion.domain.scope import Subject
from pillion_testing.fakes import START, Patience, uuid7
from pillion_testing.service import MIRA, add, episode, key_of, ram_service

EXPIRE, RETRACT = ForgetMode.EXPIRE, ForgetMode.RETRACT
BOB = Subject("user", "bob")


@pytest.fixture
def full():
    """Memories, episodes and facts of two subjects in two contexts, an hour ago."""
    service = ram_service()
    now, service.clock.now = service.clock.now, START - 3600
    for subject in (MIRA, BOB):
        for context in ("", "work"):
            service.write(
                add(f"{subject} {context}", subject=subject, context=context),
                episode(f"heard {subject} {context}", subject=subject, context=context),
                episode("not indexed", subject=subject, context=context, indexed=False),
            )
            service.put("old", subject=subject, context=context, valid_from=START - 7200)
            service.put("new", subject=subject, context=context)
    service.clock.now = now
    yield service
    service.close()


def shown(service):
    """What is recalled, and which episodes are listed, by subject and context."""
    recalled = Filter(contexts=None, valid_only=False)
    return {
        (one.subject.id, one.context, kind)
        for kind, records in (
            ("memory", service.listed(recalled)),
            ("episode", service.listed(recalled, episodes=True)),
        )
        for one in records
    }


@pytest.mark.parametrize("mode", [EXPIRE, RETRACT])
@pytest.mark.parametrize("contexts", [None, frozenset({"work"}), frozenset({""})])
def test_a_subject_goes_in_every_context_or_in_one(full, mode, contexts):
    bob = {one for one in shown(full) if one[0] == "bob"}
    dry = full.forget(mode, subject=MIRA, contexts=contexts, dry_run=True)
    report = full.forget(mode, subject=MIRA, contexts=contexts)
    assert (dry.memories, dry.episodes, dry.sample_ids) == (
        report.memories,
        report.episodes,
        report.sample_ids,
    )
    each = 1 if contexts else 2
    # Of two rows of a fact the older one has ended: there is nothing to retract.
    assert report.memories == each * (4 if mode is EXPIRE else 3)
    assert report.episodes == each * 2
    assert (
        len(report.sample_ids) == len(set(report.sample_ids)) == report.memories + report.episodes
    )
    left = shown(full)
    assert bob <= left
    now = {one.context for one in full.listed(Filter(subjects=frozenset({MIRA}), contexts=None))}
    assert now == {"", "work"} - (contexts or {"", "work"})
    assert ("mira", "work", "episode") not in left or contexts == {""}


@pytest.mark.parametrize("mode", [EXPIRE, RETRACT])
@pytest.mark.parametrize("selector", [{"subject": MIRA}, {"fact": key_of()}])
def test_a_dry_run_changes_nothing(full, mode, selector):
    before = full.records(), full.revision
    report = full.forget(mode, dry_run=True, request_id="r", **selector)
    assert report.dry_run
    assert report.memories > 0
    assert (full.records(), full.revision) == before
    real = full.forget(mode, request_id="r", **selector)  # a dry run uses no request_id up
    assert not real.dry_run
    assert real.memories == report.memories


@pytest.mark.parametrize("mode", [EXPIRE, RETRACT])
def test_forgetting_again_finds_nothing_left(full, mode):
    full.forget(mode, subject=MIRA)
    before = full.records()
    again = full.forget(mode, subject=MIRA)
    assert (again.memories, again.episodes, again.sample_ids) == (0, 0, ())
    assert full.records() == before


def test_expired_is_out_of_recall_and_in_history(service):
    row = service.put("v", valid_from=START - 5)
    service.clock.advance(1)
    service.forget(ids=(row.id,))
    assert service.current() is None
    assert service.found() == []
    assert service.listed(Filter()) == []
    kept = service.get(row.id)
    assert (kept.expired_at, kept.valid_to, kept.end_reason) == (START + 1, FOREVER, EndReason.OPEN)
    assert kept.version > row.version
    assert len(service.history(key_of())[0]) == 2
    assert service.found(filter=Filter(include_expired=True)) == [row.id]


def test_retracted_ends_now_and_was_so_before(service):
    row = service.put("v", valid_from=START - 5)
    memory = service.one(add("m", valid_from=START - 5)).id
    future = service.one(add("tomorrow", valid_from=START + 5)).id
    service.forget(RETRACT, ids=(row.id, memory, future))
    assert service.value_at(START - 1) == "v"
    assert service.value_at() is None
    assert service.get(memory).valid_to == START
    assert service.get(future).end_reason is EndReason.WITHDRAWN
    assert service.found() == []


def test_by_fact_every_row_goes_and_no_other_key(full):
    report = full.forget(fact=key_of())
    assert (report.memories, report.episodes) == (2, 0)
    assert full.current() is None
    assert full.current(as_of=START - 7000) is None
    assert full.value_at(key=key_of(context="work")) == "new"
    assert full.value_at(key=key_of(subject=BOB)) == "new"


def test_a_guess_of_the_fact_goes_with_it(service):
    service.put("v", valid_from=START - 5)
    guess = service.put("w", status=MemoryStatus.CANDIDATE)
    report = service.forget(fact=key_of())
    assert report.memories == 2
    assert service.get(guess.id).expired_at == START


def test_an_episode_takes_the_memory_that_recalls_it_along(service):
    told = service.one(episode("hello"))
    other = service.one(add("other")).id
    report = service.forget(ids=(told.id,))
    assert (report.memories, report.episodes) == (1, 1)
    assert set(report.sample_ids) == {told.id, told.memory_id}
    assert service.get(told.memory_id).expired_at == START
    assert service.found() == [other]
    assert service.listed(Filter(), episodes=True) == []


def test_ids_are_one_commit_or_nothing(service):
    ids = [service.one(add(str(number))).id for number in range(3)]
    with service.refuses(Reason.NOT_FOUND):
        service.forget(ids=(*ids, uuid7(999)))
    before = service.revision
    report = service.forget(ids=(*ids, ids[0]))
    assert report.memories == 3
    assert service.revision == report.revision == before + 1


def test_a_request_id_gets_the_first_answer(service):
    made = service.one(add("a")).id
    first = service.forget(ids=(made,), request_id="r", body_digest=b"1")
    service.write(add("b"))
    again = service.forget(ids=(made,), request_id="r", body_digest=b"1")
    assert again == first
    assert first.memories == 1
    with service.refuses(Reason.REQUEST_ID_REUSED):
        service.forget(ids=(made,), request_id="r", body_digest=b"2")


@pytest.mark.parametrize(
    ("selector", "reason", "field"),
    [
        ({"ids": ()}, Reason.INVALID_FIELD, "selector.ids"),
        ({"subject": Subject("user", "")}, Reason.INVALID_FIELD, "selector.subject.id"),
        ({"fact": key_of("")}, Reason.INVALID_FIELD, "selector.fact.attribute"),
        ({"ids": tuple(map(uuid7, range(1, 102)))}, Reason.LIMIT_EXCEEDED, "selector.ids"),
        ({"subject": MIRA, "request_id": "x" * 65}, Reason.LIMIT_EXCEEDED, "request_id"),
    ],
)
def test_malformed_selectors_are_refused(service, selector, reason, field):
    service.write(add())
    with service.refuses(reason, field):
        service.forget(**selector)


def test_a_large_subject_goes_in_steps_and_can_be_gone_on_with(service):
    for _ in range(3):
        service.write(*[add(str(number)) for number in range(90)])

    class Impatient(Patience):
        left = 4  # one before each read of the index, one before each commit

        def check(self):
            Impatient.left -= 1
            if Impatient.left < 0:
                self.seconds = 0
            super().check()

    service.patience = Impatient()
    from pillion.domain.errors import PillionError

    with pytest.raises(PillionError) as caught:
        service.forget(subject=MIRA)
    assert caught.value.reason is Reason.DEADLINE_EXCEEDED
    service.patience = Patience()
    assert len(service.listed(Filter())) == 70
    report = service.forget(subject=MIRA)
    assert report.memories == 70
    assert service.listed(Filter()) == []


def test_an_episode_and_a_memory_of_one_id_are_told_apart(service):
    """A caller may choose ids; a subject's episodes are never mistaken for another's memory."""
    same = uuid7(800)
    service.write(add("bob's", id=same, subject=BOB))
    service.write(episode("mira's", id=same, subject=MIRA, indexed=False))
    report = service.forget(subject=MIRA)
    assert (report.memories, report.episodes) == (0, 1)
    assert service.get(same).expired_at == FOREVER
    assert service.get_episode(same).expired_at == START
    service.put("v", id=uuid7(801), valid_from=START - 5, subject=BOB)
    heard = uuid7(802)
    service.put("v", id=heard, valid_from=START - 4, subject=BOB)  # became evidence
    service.write(episode("mira's", id=heard, subject=MIRA, indexed=False))
    service.forget(fact=key_of(subject=BOB))
    assert service.get_episode(heard).expired_at == FOREVER


@pytest.mark.parametrize("selector", [{"fact": key_of()}, {"subject": MIRA}])
def test_what_went_on_behind_a_row_to_come_is_retracted_too(selector):
    service = ram_service()
    service.put("a", valid_from=START - 100)
    service.put("b", valid_from=START - 50, valid_to=START + 400)
    service.put("c", valid_from=START + 200)
    assert service.forget(RETRACT, **selector).memories == 3
    assert [service.value_at(START + after) for after in (0, 300, 500)] == [None] * 3
    assert service.value_at(START - 60) == "a"
    assert service.forget(RETRACT, **selector).memories == 0
    service.close()


def test_what_a_row_of_this_very_instant_hid_is_retracted_too():
    service = ram_service()
    service.put("a", valid_from=START - 5)
    service.put("b", valid_from=START, valid_to=START + 3)
    service.forget(RETRACT, fact=key_of())
    assert [service.value_at(START + after) for after in (0, 2, 4)] == [None] * 3
    assert service.value_at(START - 1) == "a"
    service.close()
