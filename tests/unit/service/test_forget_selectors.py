"""Every selector of Forget against plain Python over a random store, its preview and its limits."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.decay import has_faded
from pillion.domain.errors import Reason
from pillion.domain.forgetting import (
    ByEpisode,
    ByFilter,
    ByIds,
    ByRecorded,
    ByRetentionClass,
    BySubject,
    ByTopic,
    Decayed,
    Expired,
    matches_everything,
    out_of_recall,
)
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.queries import NESTED, Filter, Window
from pillion.domain.retention import RetentionClass, RetentionClasses
from pillion.domain.scope import Subject
from pillion.jobs.ageing import AgeingSettings
from pillion.service import ServiceSettings
from pillion.service.holds import HoldCommand
from pillion.service.ranking import HALF_LIVES_US
from pillion_testing.fakes import DAY, START, uuid7
from pillion_testing.service import EVERYTHING, MIRA, add, episode, put_fact, ram_service

BOB = Subject("user", "bob")
HOUR = DAY // 24
CLASSES = RetentionClasses(
    {
        "chat": RetentionClass(owner="privacy", keep_for=10 * DAY),
        "ledger": RetentionClass(owner="finance"),
    }
)
RECORDED = Window(START - 20 * DAY, START - 5 * DAY)
THRESHOLDS = {MemoryKind.EPISODIC: 0.2, MemoryKind.SEMANTIC: 0.3}
CONTEXTS = ("", "work")
LABELS = ("a", "b", "c")


@pytest.fixture
def full(request):
    """Forty days of memories, facts and episodes, each day some; told by a seed."""
    seed = getattr(request, "param", 1)
    draw = random.Random(seed)
    service = ram_service(settings=ServiceSettings(ageing=AgeingSettings(classes=CLASSES)))
    service.clock.now = START - 40 * DAY
    for _ in range(80):
        service.clock.advance(DAY // 2)
        subject, context = draw.choice((MIRA, BOB)), draw.choice(CONTEXTS)
        where = {"subject": subject, "context": context}
        until = service.clock.now + draw.choice((2, 30, 90)) * DAY
        more = {
            **where,
            "retention_class": draw.choice(("", "chat", "ledger")),
            "labels": tuple(draw.sample(LABELS, draw.randrange(3))),
        }
        expires = {"expires_at": until} if draw.random() < 0.3 else {}
        heard = service.one(episode(f"heard {draw.random()}", **more, **expires)).id
        source = Source(SourceKind.USER_STATEMENT, heard if draw.random() < 0.5 else None)
        service.write(
            add(
                f"text {draw.randrange(6)}",
                kind=draw.choice((MemoryKind.EPISODIC, MemoryKind.PROCEDURAL)),
                importance=draw.choice((0.1, 0.5, 0.9)),
                source=source,
                pinned=draw.random() < 0.2,
                **more,
                **expires,
            ),
            put_fact(str(draw.randrange(3)), source=source, **where),
        )
    service.clock.now = START
    yield service
    service.close()


def everything(service):
    return service.listed(EVERYTHING) + service.listed(EVERYTHING, episodes=True)


def standing(service):
    return {one.id: one for one in everything(service) if not out_of_recall(one)}


def is_memory(record) -> bool:
    return hasattr(record, "kind")


def when(record) -> int:
    return record.created_at if is_memory(record) else record.recorded_at


PLAIN = Filter(labels_any=frozenset({"a", "b"}))
SELECTORS = {
    "filter": (
        ByFilter(PLAIN),
        lambda one: (
            one.context == ""
            and {"a", "b"} & set(one.labels)
            and one.expires_at > START
            and (not is_memory(one) or one.valid_from <= START < one.valid_to)
        ),
    ),
    "filter of one subject and kind": (
        ByFilter(
            replace(EVERYTHING, subjects=frozenset({BOB}), kinds=frozenset({MemoryKind.PROCEDURAL}))
        ),
        lambda one: is_memory(one) and one.subject == BOB and one.kind is MemoryKind.PROCEDURAL,
    ),
    "filter of an attribute": (
        ByFilter(replace(EVERYTHING, attributes=frozenset({"deadline"}))),
        lambda one: is_memory(one) and one.attribute == "deadline",
    ),
    "recorded": (ByRecorded(RECORDED), lambda one: RECORDED.holds(when(one))),
    "recorded since": (
        ByRecorded(Window(START - DAY, None)),
        lambda one: when(one) >= START - DAY,
    ),
    "class": (
        ByRetentionClass("chat"),
        lambda one: one.retention_class == "chat" and when(one) < START - 10 * DAY,
    ),
    "class without end": (ByRetentionClass("ledger"), lambda _: False),
    "expired": (Expired(), lambda one: one.expires_at <= START),
    "decayed": (
        Decayed(THRESHOLDS),
        lambda one: (
            is_memory(one)
            and one.expires_at > START
            and has_faded(one, START, HALF_LIVES_US[one.kind], THRESHOLDS)
        ),
    ),
}


@pytest.mark.parametrize("full", [1, 2, 3], indirect=True)
@pytest.mark.parametrize("name", SELECTORS)
def test_a_selector_takes_what_plain_python_says_and_nothing_else(full, name):
    selector, means = SELECTORS[name]
    before = standing(full)
    meant = {one.id for one in before.values() if means(one)}
    assert meant or name == "class without end", "the store has none of it: a weak test"
    unchanged = full.records(), full.revision
    preview = full.forget(selector=selector, dry_run=True)
    assert (full.records(), full.revision) == unchanged
    report = full.forget(selector=selector, preview_revision=preview.revision)
    assert before.keys() - standing(full).keys() == meant
    counts = (report.memories, report.episodes, report.derived, report.unpreviewed)
    assert counts == (preview.memories, preview.episodes, preview.derived, 0)
    assert report.memories + report.episodes == len(meant)
    assert set(report.sample_ids) == set(preview.sample_ids)
    assert set(report.sample_ids) <= meant
    again = full.forget(selector=selector)
    assert (again.memories, again.episodes) == (0, 0)


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
def test_an_episode_takes_what_nothing_else_states(service, mode):
    first = service.one(episode("first", indexed=True)).id
    other = service.one(episode("other")).id
    service.clock.advance()
    alone = service.put("x", source=Source(SourceKind.USER_STATEMENT, first)).id
    both = service.put("y", attribute="both", source=Source(SourceKind.USER_STATEMENT, first)).id
    service.put("y", attribute="both", source=Source(SourceKind.USER_STATEMENT, other))
    service.clock.advance()
    report = service.forget(mode, selector=ByEpisode(first))
    gone = {one.id for one in everything(service) if out_of_recall(one)}
    assert {first, alone} <= gone
    assert not {other, both} & gone
    assert report.episodes == 1
    with service.refuses(Reason.NOT_FOUND):
        service.forget(mode, selector=ByEpisode(uuid7(77)))


def test_a_topic_is_all_memories_that_are_near_enough_and_the_episodes_that_they_recall(full):
    full.one(episode("the passport lapses in May", indexed=True))
    before = standing(full)
    selector = ByTopic("the passport lapses in May", 0.2)
    preview = full.forget(selector=selector, dry_run=True)
    report = full.forget(selector=selector)
    assert (preview.memories, preview.episodes) == (report.memories, report.episodes) == (1, 1)
    gone = [before[one] for one in before.keys() - standing(full).keys()]
    assert {one.text if is_memory(one) else one.content for one in gone} == {
        "the passport lapses in May"
    }
    nothing = full.forget(selector=ByTopic("zebra crossing quarterly", 0.99))
    assert (nothing.memories, nothing.episodes, nothing.sample_ids) == (0, 0, ())


@pytest.mark.parametrize("full", [1, 2], indirect=True)
@pytest.mark.parametrize("score_min", [0.2, 0.6])
def test_a_topic_takes_what_a_search_by_relevance_alone_finds(full, score_min):
    before = standing(full)
    about = frozenset({BOB})
    hits = full.search(
        "text 1",
        top_k=1000,
        filter=Filter(contexts=None, statuses=frozenset(), valid_only=False, subjects=about),
    ).hits
    meant = {hit.memory.id for hit in hits if hit.relevance >= score_min}
    assert meant
    full.forget(selector=ByTopic("text 1", score_min, about))
    gone = before.keys() - standing(full).keys()
    assert {one for one in gone if is_memory(before[one])} == meant


def test_a_topic_of_a_thousand_memories_is_refused(service):
    for _ in range(10):
        service.write(*[add("the same words") for _ in range(100)])
    with service.refuses(Reason.LIMIT_EXCEEDED, "selector.topic.score_min"):
        service.forget(selector=ByTopic("the same words", 0.2), dry_run=True)


@pytest.mark.parametrize(
    "selector",
    [
        ByFilter(Filter()),
        ByFilter(EVERYTHING),
        ByFilter(replace(EVERYTHING, any_of=(NESTED, Filter(labels_all=frozenset("a"))))),
        ByRecorded(Window()),
        ByTopic("x", 0.0),
        Decayed(dict.fromkeys(MemoryKind, 1.0)),
    ],
)
def test_what_matches_everything_wants_force(service, selector):
    service.write(add("x"))
    assert matches_everything(selector)
    with service.refuses(Reason.FORCE_REQUIRED):
        service.forget(selector=selector)
    service.forget(selector=selector, dry_run=True)  # showing it needs none
    service.forget(selector=selector, force=True)


@pytest.mark.parametrize(
    "selector",
    [
        ByFilter(Filter(kinds=frozenset(MemoryKind))),
        ByFilter(replace(EVERYTHING, none_of=(Filter(labels_all=frozenset("a")),))),
        ByRecorded(Window(0)),
        ByTopic("x", 0.1),
        Decayed(dict.fromkeys(list(MemoryKind)[1:], 1.0)),
        Expired(),
        BySubject(MIRA),
    ],
)
def test_what_has_a_condition_wants_none(selector):
    assert not matches_everything(selector)


@pytest.mark.parametrize(
    ("selector", "reason", "field"),
    [
        (ByTopic("", 0.5), Reason.INVALID_FIELD, "selector.topic.text"),
        (ByTopic("x", 1.5), Reason.INVALID_FIELD, "selector.topic.score_min"),
        (ByTopic("x", float("nan")), Reason.NOT_FINITE, "selector.topic.score_min"),
        (Decayed({}), Reason.INVALID_FIELD, "selector.decayed.thresholds"),
        (
            Decayed({MemoryKind.SESSION: -1.0}),
            Reason.INVALID_FIELD,
            "selector.decayed.thresholds.vitality",
        ),
        (ByRetentionClass(""), Reason.INVALID_FIELD, "selector.retention_class"),
        (ByRetentionClass("unknown"), Reason.INVALID_FIELD, "selector.retention_class"),
        (ByRecorded(Window(-(2**62))), Reason.INVALID_FIELD, "selector.recorded.from"),
        (ByFilter(Filter(importance_min=2.0)), Reason.INVALID_FIELD, "filter.importance_min"),
    ],
)
def test_malformed_selectors_are_refused_by_their_field(service, selector, reason, field):
    service.write(add())
    with service.refuses(reason, field):
        service.forget(selector=selector, force=True)


def test_a_real_run_tells_what_its_preview_did_not_show(service):
    service.write(add("one"), add("two"))
    selector = ByRecorded(Window(START - 1))
    preview = service.forget(selector=selector, dry_run=True)
    service.clock.advance()
    service.write(add("three"))
    report = service.forget(selector=selector, preview_revision=preview.revision)
    assert (preview.memories, report.memories, report.unpreviewed) == (2, 3, 1)


# --- what follows --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
def test_what_was_made_from_nothing_else_follows(service, mode):
    one, two, other = (service.one(add(text)).id for text in ("one", "two", "other"))
    both = service.one(add("both", derived_from=(one, two))).id
    deeper = service.one(add("deeper", derived_from=(both,))).id
    mixed = service.one(add("mixed", derived_from=(one, other))).id
    service.clock.advance()
    preview = service.forget(mode, selector=ByIds((one, two)), dry_run=True)
    report = service.forget(mode, selector=ByIds((one, two)))
    assert (preview.memories, preview.derived) == (report.memories, report.derived) == (2, 2)
    gone = {one.id for one in everything(service) if out_of_recall(one)}
    assert gone == {one, two, both, deeper}
    service.forget(mode, selector=ByIds((other,)))
    assert out_of_recall(service.get(mixed))


def test_a_summary_outlives_episodes_that_merely_grew_old(service):
    old = [service.one(add(f"day {n}", importance=0.3)).id for n in range(3)]
    summary = service.one(
        add("days", kind=MemoryKind.SEMANTIC, derived_from=tuple(old), importance=0.8)
    ).id
    service.clock.advance(180 * DAY)
    report = service.forget(selector=Decayed({MemoryKind.EPISODIC: 0.1}))
    assert (report.memories, report.derived) == (3, 0)
    assert not out_of_recall(service.get(summary))


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
def test_a_preview_of_many_steps_counts_what_follows_once(service, mode):
    ids = []
    for _ in range(3):
        ids += [one.id for one in service.write(*[add("x") for _ in range(90)]).results]
    service.one(add("all", subject=BOB, derived_from=(ids[0], ids[150], ids[-1])))
    service.clock.advance()
    preview = service.forget(mode, selector=BySubject(MIRA), dry_run=True)
    report = service.forget(mode, selector=BySubject(MIRA))
    assert (preview.memories, preview.derived) == (report.memories, report.derived) == (270, 1)


# --- legal holds ---------------------------------------------------------------------------


def hold(service, *, held=True, **target):
    command = HoldCommand(held=held, reason_code="case-17", **target)
    return service.use_cases.holds.set(service.partition, command, service.patience)


@pytest.mark.parametrize("mode", [ForgetMode.EXPIRE, ForgetMode.RETRACT])
def test_what_is_held_is_not_forgotten_by_name_nor_by_a_sweep(service, mode):
    kept, free = service.one(add("kept")).id, service.one(add("free")).id
    service.write(add("of bob", subject=BOB), episode("of bob", subject=BOB))
    service.clock.advance()
    assert hold(service, record_id=kept) == 1
    assert hold(service, subject=BOB) == 3  # an episode, what recalls it, a memory
    assert hold(service, subject=BOB) == 3  # an episode, what recalls it, a memory
    for named in (ByIds((free, kept)), BySubject(BOB), BySubject(MIRA)):
        with service.refuses(Reason.SEALED):
            service.forget(mode, selector=named)
    wide = ByFilter(replace(EVERYTHING, importance_min=0.01))
    preview = service.forget(mode, selector=wide, dry_run=True)
    report = service.forget(mode, selector=wide)
    assert preview.exempt_ids == report.exempt_ids
    assert kept in report.exempt_ids
    assert standing(service).keys() >= {kept}
    assert {one.subject for one in standing(service).values()} == {MIRA, BOB}
    # What is recorded later of a held subject is held too.
    later = service.one(add("later", subject=BOB)).id
    with service.refuses(Reason.SEALED):
        service.forget(mode, selector=ByIds((later,)))
    assert hold(service, held=False, record_id=kept) == 0
    assert hold(service, held=False, subject=BOB) == 0
    assert hold(service, held=False, subject=BOB) == 0
    service.clock.advance()
    service.forget(mode, selector=ByIds((kept, later)))
    service.forget(mode, selector=BySubject(BOB))
    assert not standing(service)


def test_a_hold_spares_from_decay_and_expiry(service):
    faded = service.one(add("x", importance=0.1)).id
    past = service.one(add("y", expires_at=START + 1)).id
    hold(service, record_id=faded)
    hold(service, record_id=past)
    service.clock.advance(400 * DAY)
    for selector in (Decayed({MemoryKind.EPISODIC: 0.5}), Expired()):
        report = service.forget(selector=selector)
        assert report.memories == 0
        assert len(report.exempt_ids) == 1


def test_bad_holds_are_refused(service):
    service.write(add())
    for command, reason, field in (
        (HoldCommand(held=True, reason_code="x", record_id=uuid7(5)), Reason.NOT_FOUND, None),
        (HoldCommand(held=True, reason_code="", subject=MIRA), Reason.INVALID_FIELD, "reason_code"),
        (
            HoldCommand(held=True, reason_code="Mira said", subject=MIRA),
            Reason.INVALID_FIELD,
            "reason_code",
        ),
        (HoldCommand(held=True, reason_code="x"), Reason.INVALID_FIELD, "target"),
        (
            HoldCommand(held=True, reason_code="x", subject=Subject("user", "")),
            Reason.INVALID_FIELD,
            "subject.id",
        ),
    ):
        with service.refuses(reason, field):
            service.use_cases.holds.set(service.partition, command, service.patience)


def test_candidates_fade_too(service):
    guess = service.one(
        add(
            "guess",
            importance=0.1,
            status=MemoryStatus.CANDIDATE,
            source=Source(SourceKind.INFERENCE),
        )
    ).id
    service.clock.advance(200 * DAY)
    service.forget(selector=Decayed({MemoryKind.EPISODIC: 0.1}))
    assert out_of_recall(service.get(guess))


@pytest.mark.parametrize("name", [name for name in SELECTORS if name != "decayed"])
def test_who_acts_later_asks_again_and_gets_the_same_answer(full, name):
    """What a record says of itself is asked of it once more in the commit that forgets it."""
    selector, means = SELECTORS[name]
    still = full.use_cases.forgetter._selecting.still
    for one in everything(full):
        if not out_of_recall(one):
            assert still(selector, one, START, full.revision) == bool(means(one)), one.id
