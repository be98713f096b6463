"""Search: what is refused, what is admitted, and agreement with the reference of the filter."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from uuid import UUID

import pytest
from pillion.domain.errors import Reason
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.queries import (
    NESTED,
    Exactness,
    Filter,
    RankingProfile,
    ReadAt,
    RecencyAnchor,
    SearchPath,
    Window,
)
from pillion.domain.scope import Subject
from pillion.service import reading, resident
from pillion.service.ranked import Ranker
from pillion_testing.fakes import DAY, START, Patience
from pillion_testing.service import (
    ACME,
    MIRA,
    add,
    episode,
    floats,
    lmdb_service,
    patch,
    put_fact,
    retract,
    version_is,
)

FIELD = Reason.INVALID_FIELD
LIMIT = Reason.LIMIT_EXCEEDED
NOT_FINITE = Reason.NOT_FINITE
NAN = floats(math.nan, 1)


@pytest.mark.parametrize(
    ("query", "reason", "field"),
    [
        ({"top_k": 0}, FIELD, "top_k"),
        ({"top_k": -1}, FIELD, "top_k"),
        ({"top_k": 10_000}, LIMIT, "top_k"),
        ({"text": "x" * (1 << 20)}, LIMIT, "text"),
        ({"vector": b"123"}, FIELD, "vector"),
        ({"vector": NAN}, NOT_FINITE, "vector"),
        ({"vector": floats(math.inf, 0)}, NOT_FINITE, "vector"),
        ({"vector": floats(0, 0)}, NOT_FINITE, "vector"),
        ({"vector": floats(1, 2, 3)}, Reason.DIMENSION_MISMATCH, "vector"),
        ({"score_min": 1.5}, FIELD, "score_min"),
        ({"read": ReadAt(as_of=2**62)}, FIELD, "read.as_of"),
        (
            {"filter": Filter(subjects=frozenset(Subject("u", str(n)) for n in range(65)))},
            LIMIT,
            "filter.subjects",
        ),
        ({"filter": Filter(contexts=frozenset({"x" * 65}))}, LIMIT, "filter.contexts"),
        ({"filter": Filter(attributes=frozenset({"\ud800"}))}, FIELD, "filter.attributes"),
        ({"filter": Filter(session_ids=frozenset({"x" * 129}))}, LIMIT, "filter.session_ids"),
        ({"filter": Filter(labels_any=frozenset({""}))}, FIELD, "filter.labels_any"),
        ({"filter": Filter(importance_min=math.nan)}, NOT_FINITE, "filter.importance_min"),
        ({"filter": Filter(created=Window(2**63, None))}, FIELD, "filter.created.start"),
        (
            {"ranking": RankingProfile(relevance_weight=0, recency_weight=0, importance_weight=0)},
            FIELD,
            "ranking",
        ),
        (
            {
                "ranking": RankingProfile(
                    relevance_weight=1e-60, recency_weight=0, importance_weight=0
                )
            },
            FIELD,
            "ranking",
        ),
        ({"ranking": RankingProfile(recency_weight=-1)}, FIELD, "ranking.recency_weight"),
        (
            {"ranking": RankingProfile(consolidated_factor=1.5)},
            FIELD,
            "ranking.consolidated_factor",
        ),
        (
            {"ranking": RankingProfile(half_lives={MemoryKind.EPISODIC: 1})},
            FIELD,
            "ranking.half_lives",
        ),
    ],
)
def test_malformed_queries_are_refused(service, query, reason, field):
    service.write(add("x", vector=floats(1, 2)))
    with service.refuses(reason, field):
        service.search(**query)


@pytest.mark.parametrize("vector", [NAN, floats(0, 0)])
def test_a_bad_vector_is_refused_where_nothing_has_one_too(service, vector):
    with service.refuses(NOT_FINITE, "vector"):
        service.search(vector=vector)
    service.write(add("x"))
    with service.refuses(NOT_FINITE, "vector"):
        service.search(vector=vector)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1e20, 1e30])
def test_a_vectors_length_does_not_matter(service, scale):
    made = service.one(add("x", vector=floats(scale, 0)))
    service.write(add("y", vector=floats(0, scale)))
    (best, _) = service.search(vector=floats(scale, 0)).hits
    assert best.memory.id == made.id
    assert best.cosine == pytest.approx(1.0)


def test_an_empty_partition_answers_with_nothing(service):
    answer = service.search("anything")
    assert (answer.hits, answer.admitted, answer.path) == ((), 0, SearchPath.NO_VECTOR)
    assert answer.exactness is Exactness.EXACT


def of(**conditions):
    """A filter within another."""
    return replace(NESTED, **conditions)


PROCEDURAL = MemoryKind.PROCEDURAL
S = frozenset({"s"})


def test_filters_with_everything_in_them(service):
    """The ranker and ``Filter.admits`` agree, or the search would find no answer to give."""
    told = service.one(episode("told", session_id="s", labels=("a",))).id
    service.write(
        add("a", labels=("a", "b"), importance=0.2, session_id="s", valid_from=START - 9),
        add("b", labels=("b",), confidence=0.3, context="work"),
        add("c", subject=Subject("user", "bob"), kind=MemoryKind.PROCEDURAL),
        add("d", source=Source(SourceKind.TOOL_RESULT, told)),
        add("e", status=MemoryStatus.CANDIDATE),
        add("f", expires_at=START - 1),
        add("g", valid_from=START - 9, valid_to=START - 4),
        put_fact("old", valid_from=START - 9),
        put_fact("new", valid_from=START - 5),
    )
    never = service.one(add("never so", valid_from=START - 9))
    service.write(retract(never.id, valid_to=START - 9))
    gone = service.one(add("forgotten")).id
    service.forget(ids=(gone,))
    listed = service.listed()
    checked = 0
    for change in (
        {},
        {"contexts": None},
        {"contexts": frozenset()},
        {"contexts": frozenset({"work"})},
        {"subjects": frozenset({MIRA, Subject("user", "bob")})},
        {"kinds": frozenset({MemoryKind.PROCEDURAL})},
        {"statuses": frozenset()},
        {"statuses": frozenset({MemoryStatus.CANDIDATE})},
        {"attributes": frozenset({"deadline"})},
        {"labels_all": frozenset({"a", "b"})},
        {"labels_any": frozenset({"a", "b"})},
        {"labels_none": frozenset({"a"})},
        {"created": Window(START, START + 1)},
        {"created": Window(None, START)},
        {"importance_min": 0.4},
        {"confidence_min": 0.4},
        {"source_kinds": frozenset({SourceKind.TOOL_RESULT})},
        {"source_kinds": frozenset({SourceKind.TOOL_RESULT, SourceKind.DOCUMENT})},
        {"episode_ids": frozenset({told})},
        {"session_ids": frozenset({"s"})},
        {"include_retracted": True},
        {"include_retracted": True, "valid_only": False},
        {"include_expired": True},
        {"valid_only": False},
        {"valid_from": Window(START - 9, START - 5)},
        {"valid_from": Window(START - 8, None), "valid_only": False},
        {
            "labels_any": frozenset({"a", "b"}),
            "source_kinds": frozenset({SourceKind.USER_STATEMENT, SourceKind.TOOL_RESULT}),
            "session_ids": frozenset({"s", "t"}),
        },
        {"any_of": (of(labels_any=frozenset({"b"})), of(kinds=frozenset({PROCEDURAL})))},
        {"any_of": (of(attributes=frozenset({"deadline"})),), "valid_only": False},
        {"contexts": None, "none_of": (of(labels_all=frozenset({"b"})), of(importance_min=0.9))},
        {"none_of": (of(any_of=(of(labels_any=frozenset({"a"})), of(session_ids=S))),)},
        {"any_of": (of(none_of=(of(contexts=frozenset({"work"})),)),), "contexts": None},
        {"any_of": (of(valid_only=True), of(valid_from=Window(None, START - 8)))},
        {"none_of": (NESTED,)},
    ):
        for as_of in (None, START - 5, START - 6, START - 100):
            wanted = Filter(**change)
            instant = START if as_of is None else as_of
            expected = {one.id for one in listed if wanted.admits(one, instant, START)}
            answer = service.search(top_k=100, filter=wanted, read=ReadAt(as_of=as_of))
            assert {hit.memory.id for hit in answer.hits} == expected, (change, as_of)
            assert answer.admitted == len(expected)
            checked += len(expected)
    assert checked > 100


def test_a_retracted_memory_is_shown_on_request(service):
    never = service.one(add("never so", valid_from=START - 9)).id
    service.write(retract(never, valid_to=START - 9))
    assert service.found() == []
    assert service.found(filter=Filter(include_retracted=True)) == [never]


def test_filters_within_filters_have_limits(service):
    service.write(add("x"))
    nested = NESTED
    for _ in range(4):
        nested = replace(NESTED, any_of=(nested,))
    assert service.found(filter=Filter(any_of=(nested.any_of[0],))) == service.found()
    with service.refuses(LIMIT):
        service.search(filter=Filter(any_of=(nested,)))
    assert service.found(filter=Filter(any_of=(NESTED,) * 64)) == service.found()
    with service.refuses(LIMIT, "filter"):
        service.search(filter=Filter(any_of=(NESTED,) * 60, none_of=(NESTED,) * 5))
    wrong = replace(NESTED, labels_all=frozenset({""}))
    with service.refuses(FIELD, "filter.any_of[1].none_of[0].labels_all"):
        service.search(filter=Filter(any_of=(NESTED, replace(NESTED, none_of=(wrong,)))))
    derived = replace(NESTED, derived_from=frozenset({UUID(int=1)}))
    with service.refuses(FIELD, "filter.derived_from"):
        service.search(filter=Filter(none_of=(derived,)))


def test_scores_have_their_parts(service):
    service.write(
        add("recent", importance=0.1, vector=floats(1, 0)),
        add("old", importance=1.0, valid_from=START - 30 * DAY, vector=floats(0, 1)),
    )
    recent, old = service.search(vector=floats(1, 0)).hits
    assert (recent.relevance, recent.recency) == (1.0, 1.0)
    assert (old.relevance, old.recency) == (0.0, 0.5)
    assert old.score == pytest.approx(0.25 * 0.5 + 0.15 * 1.0)
    only_importance = RankingProfile(relevance_weight=0, recency_weight=0, importance_weight=1)
    assert service.search(vector=floats(1, 0), ranking=only_importance).hits[0].score == 1.0
    no_decay = RankingProfile(half_lives={MemoryKind.EPISODIC: None})
    assert {hit.recency for hit in service.search(ranking=no_decay).hits} == {1.0}
    by_use = RankingProfile(recency_anchor=RecencyAnchor.LAST_USED)
    assert len(service.search(ranking=by_use, score_min=0.27).hits) == 1


def test_ties_break_by_id(service):
    ids = [service.one(add("same")).id for _ in range(20)]
    assert service.found(top_k=20) == sorted(ids)
    assert service.found(top_k=7) == sorted(ids)[:7]


def test_a_right_angle_is_a_cosine_and_no_vector_is_none(service):
    across = service.one(add("across", vector=floats(0, 1))).id
    without = service.one(add("without")).id
    cosines = {hit.memory.id: hit.cosine for hit in service.search(vector=floats(1, 0)).hits}
    assert cosines == {across: 0.0, without: None}
    assert {hit.cosine for hit in service.search().hits} == {None}


def test_vectors_are_returned_on_request(service):
    service.write(add("x", vector=floats(3, 4)))
    (hit,) = service.search(include_vectors=True).hits
    assert hit.vector == floats(3, 4)
    (hit,) = service.search().hits
    assert hit.vector == b""


def test_a_search_sees_the_write_before_it(service):
    made = service.one(add("x", vector=floats(1, 2)))
    assert service.found(vector=floats(1, 2)) == [made.id]
    service.write(patch(made.id, importance=0.9))
    assert service.search().hits[0].importance == pytest.approx(0.9)
    service.forget(ids=(made.id,))
    assert service.found() == []


def test_the_first_vector_comes_after_memories_without(service):
    first = service.one(add("no vector")).id
    assert service.found() == [first]
    second = service.one(add("vector", vector=floats(1, 2))).id
    assert set(service.found(vector=floats(1, 2))) == {first, second}


def test_the_write_that_brings_the_first_vector_may_change_memories_too(service):
    """The partition is loaded anew then, and what was decoded before is no longer shown."""
    known = service.one(add("before")).id
    (hit,) = service.search().hits
    assert hit.memory.text == "before"
    service.write(patch(known, text="after"), add("other", vector=floats(1, 2)))
    (shown,) = (hit.memory for hit in service.search().hits if hit.memory.id == known)
    assert (shown.text, shown.version) == ("after", service.get(known).version)


def test_memories_from_before_a_gap_in_the_feed_are_not_shown(service):
    known = service.one(add("before")).id
    service.search()
    service.write(patch(known, text="after"))
    service.write(add("other"))
    revision = service.revision
    service.store.trim(ACME, history_before=revision, feed_before=revision, tokens_before_us=0)
    (shown,) = (hit.memory for hit in service.search().hits if hit.memory.id == known)
    assert (shown.text, shown.version) == ("after", service.get(known).version)


def test_as_of_reads_the_timeline(service):
    service.put("a", valid_from=START - 9)
    service.put("b", valid_from=START - 5)
    texts = [hit.memory.value.data for hit in service.search(read=ReadAt(as_of=START - 7)).hits]
    assert texts == ["a"]


def test_at_least_revision_waits_for_the_write_and_no_longer_than_asked(service):
    service.write(add("x"))
    with service.refuses(Reason.FUTURE_REVISION) as caught:
        service.patience = Patience(0)
        service.search(read=ReadAt(at_least_revision=2))
    assert caught.value.metadata["newest_revision"] == "1"
    service.patience = Patience()
    waiting = threading.Event()
    wait = service.store.wait

    def noticed(*arguments):
        waiting.set()
        return wait(*arguments)

    service.store.wait = noticed
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(service.search(read=ReadAt(at_least_revision=2)))
    )
    thread.start()
    assert waiting.wait(60)
    made = service.one(add("y"))
    thread.join(60)
    assert made.id in {hit.memory.id for hit in answers[0].hits}
    assert answers[0].revision >= 2
    service.patience = Patience(cancelled=True)
    with service.refuses(Reason.CANCELLED):
        service.search(read=ReadAt(at_least_revision=9))


@pytest.mark.parametrize(
    ("seconds", "ahead", "waited"),
    [
        (3600, 1, reading.WAIT_SECONDS_MAX),
        (1, 1, 1 - reading.ANSWER_SECONDS),
        (0.1, 1, 0.075),
        (0, 1, 0),
        (3600, reading.REVISIONS_AHEAD_MAX, reading.WAIT_SECONDS_MAX),
        (3600, reading.REVISIONS_AHEAD_MAX + 1, 0),
        (3600, 2**62, 0),
    ],
)
def test_a_wait_for_a_revision_holds_its_thread_for_a_short_time(service, seconds, ahead, waited):
    """It ends before the deadline, so that the caller hears why; by the steps it asks for."""
    service.write(add("x"))
    steps = []
    service.store.wait = lambda *arguments: steps.append(arguments[-1])
    service.patience = Patience(seconds)
    with service.refuses(Reason.FUTURE_REVISION) as caught:
        service.search(read=ReadAt(at_least_revision=service.revision + ahead))
    assert caught.value.metadata["newest_revision"] == "1"
    assert sum(steps) == pytest.approx(waited)


def test_a_poisonous_id_is_refused_at_the_door(service):
    with service.refuses(FIELD):
        service.write(add("x", id=UUID(int=0)))
    service.write(add("x", id=UUID(int=1)))
    assert service.found() == [UUID(int=1)]


def test_first_users_load_a_partition_once(tmp_path, monkeypatch):
    service = lmdb_service(tmp_path / "store")
    service.write(*[add(str(number)) for number in range(50)])
    loads = []
    load, gate = resident.Resident._load, threading.Barrier(8)

    def counted(self):
        loads.append(self)
        return load(self)

    monkeypatch.setattr(resident.Resident, "_load", counted)
    counts = []

    def first():
        gate.wait(60)
        counts.append(len(service.search(top_k=100).hits))

    threads = [threading.Thread(target=first) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [50] * 8
    assert len(loads) == 1
    service.close()


def test_a_load_that_fails_is_tried_again(service, monkeypatch):
    service.write(add("x"))
    load = resident.Resident._load
    monkeypatch.setattr(resident.Resident, "_load", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        service.search()
    monkeypatch.setattr(resident.Resident, "_load", load)
    assert len(service.search().hits) == 1


def test_who_waited_for_a_load_that_failed_tries_for_himself(service, monkeypatch):
    """And raises an exception of his own, if it fails again."""
    service.write(add("x"))
    entered, release, errors = threading.Event(), threading.Event(), []

    def failing(_):
        entered.set()
        assert release.wait(60)
        raise OSError

    def first():
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the fake's, without words
            service.search()
        errors.append(caught.value)

    monkeypatch.setattr(resident.Resident, "_load", failing)
    threads = [threading.Thread(target=first) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    release.set()
    for thread in threads:
        thread.join(60)
    assert len({id(one) for one in errors}) == 4


def test_a_search_survives_what_changes_under_it(service, monkeypatch):
    """A hit is forgotten between its ranking and its reading: it is ranked again without."""
    keep, go = (service.one(add(text)).id for text in ("keep", "go"))
    best, times = Ranker.best, []

    def disturbed(*arguments, **search):
        found = best(*arguments, **search)
        times.append(len(found.hits))
        if len(times) == 1:
            service.forget(ids=(go,))
        return found

    monkeypatch.setattr(Ranker, "best", disturbed)
    assert service.found() == [keep]
    assert times == [2, 1]


def test_a_hit_never_has_the_version_of_a_timeline_that_it_does_not_show(service, monkeypatch):
    """Who found a fact that was superseded that very moment must not overwrite it unseen."""
    service.put("Lisbon", attribute="home", valid_from=START - 9)
    service.search()
    best = Ranker.best

    def disturbed(*arguments, **search):
        found = best(*arguments, **search)
        service.put("Porto", attribute="home", valid_from=START - 5)
        return found

    monkeypatch.setattr(Ranker, "best", disturbed)
    (hit,) = service.search().hits
    assert hit.memory.value.data == "Lisbon"
    with service.refuses(Reason.VERSION_MISMATCH):
        service.put("Braga", attribute="home", when=version_is(hit.memory.fact_version))


def test_a_kept_fact_has_no_newer_version_than_its_row_beside_what_is_read(service, monkeypatch):
    """What is read for another hit is of a newer revision; what was kept may not pass for that."""
    service.put("Lisbon", attribute="home", valid_from=START - 9)
    service.search()
    service.put("baker", attribute="work", valid_from=START - 9)
    best = Ranker.best

    def disturbed(*arguments, **search):
        found = best(*arguments, **search)
        service.put("Porto", attribute="home", valid_from=START - 5)
        service.put("miller", attribute="work", valid_from=START - 99)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Ranker, "best", disturbed)
        hits = {hit.memory.attribute: hit.memory for hit in service.search().hits}
    assert (hits["home"].value.data, hits["work"].value.data) == ("Lisbon", "baker")
    with service.refuses(Reason.VERSION_MISMATCH):
        service.put("Braga", attribute="home", when=version_is(hits["home"].fact_version))
    service.put("writer", attribute="work", when=version_is(hits["work"].fact_version))
    assert {hit.memory.value.data for hit in service.search().hits} == {"Porto", "writer"}


def test_a_fact_that_is_found_again_is_the_same_object_until_its_timeline_changes(service):
    service.put("Lisbon", attribute="home", valid_from=START - 9)
    service.put("Porto", attribute="work", valid_from=START - 9)

    def found():
        return {hit.memory.attribute: hit.memory for hit in service.search("").hits}

    first, again = found(), found()
    assert again["home"] is first["home"]
    assert again["work"] is first["work"]
    newer = service.put("Braga", attribute="home", valid_from=START - 99)  # the past, corrected
    after = found()
    assert after["work"] is first["work"]
    assert after["home"].fact_version == newer.fact_version > first["home"].fact_version
    assert after["home"] == service.get(after["home"].id)
