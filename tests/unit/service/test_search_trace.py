"""Traces: what was looked at, what dropped it, and no word of content."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.queries import (
    NESTED,
    Filter,
    OlderStatements,
    RankingProfile,
    ReadAt,
    SearchPath,
    Window,
)
from pillion.domain.scope import Subject
from pillion_testing.fakes import DAY, START
from pillion_testing.service import add, floats, lmdb_service, put_fact, ram_service, retract

TRACED = {"include_trace": True}
BY_IMPORTANCE = RankingProfile(relevance_weight=0.0, recency_weight=0.0, importance_weight=1.0)


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def dropped(service, **asked):
    """Why each memory is not in the answer, by its text; "" where it is."""
    answer = service.search(**asked, **TRACED)
    texts = {}
    for one in answer.trace.candidates:
        texts[service.get(one.memory_id).text] = one.dropped_by
    return texts


DROPS = [
    ("validity", {"valid_from": START - 9, "valid_to": START - 4}, {}),
    ("include_expired", {"expires_at": START - 1}, {}),
    ("kinds", {"kind": MemoryKind.SEMANTIC}, {"kinds": frozenset({MemoryKind.EPISODIC})}),
    ("statuses", {"source": Source(SourceKind.INFERENCE), "status": MemoryStatus.CANDIDATE}, {}),
    ("labels_all", {"labels": ("b",)}, {"labels_all": frozenset({"a"})}),
    ("labels_any", {"labels": ("b",)}, {"labels_any": frozenset({"a"})}),
    ("labels_none", {"labels": ("a", "b")}, {"labels_none": frozenset({"b"})}),
    ("importance_min", {"importance": 0.1}, {"importance_min": 0.5}),
    ("confidence_min", {"confidence": 0.1}, {"confidence_min": 0.5}),
    (
        "source_kinds",
        {"source": Source(SourceKind.TOOL_RESULT)},
        {"source_kinds": frozenset({SourceKind.USER_STATEMENT})},
    ),
    ("session_ids", {"session_id": "t"}, {"session_ids": frozenset({"s"})}),
    ("attributes", {}, {"attributes": frozenset({"city"})}),
    (
        "any_of",
        {"labels": ("b",)},
        {"any_of": (replace(NESTED, labels_all=frozenset({"a"})),)},
    ),
    (
        "none_of",
        {"labels": ("a", "b")},
        {"none_of": (replace(NESTED, labels_all=frozenset({"b"})),)},
    ),
    ("created", {}, {"created": Window(None, START)}),
]


@pytest.mark.parametrize(("name", "out", "wanted"), DROPS, ids=[one[0] for one in DROPS])
@pytest.mark.parametrize("past", [False, True])
def test_the_filter_that_dropped_a_memory_is_named(service, name, out, wanted, past):
    service.write(add("in", labels=("a",), importance=0.9, confidence=0.9, session_id="s"))
    service.write(add("out", vector=floats(1, 0), **out))
    read = {"read": ReadAt(exact_revision=service.revision)} if past else {}
    for query in ({}, {"vector": floats(1, 0)}):
        found = dropped(service, filter=Filter(**wanted), **read, **query)
        assert found["out"] == f"filter:{name}"


def test_a_memory_that_was_taken_back_is_named(service):
    made = service.one(add("out", valid_from=START - 9))
    service.write(retract(made.id, valid_to=START - 9))
    assert dropped(service) == {"out": "filter:include_retracted"}


def test_a_trace_looks_over_no_wall(service):
    service.write(
        add("mine"),
        add("theirs", subject=Subject("user", "bob")),
        add("elsewhere", context="work"),
    )
    wanted = Filter(subjects=frozenset({Subject("user", "mira")}))
    assert dropped(service, filter=wanted) == {"mine": ""}


@pytest.mark.parametrize("past", [False, True])
def test_what_was_good_but_not_good_enough_is_told(service, past):
    service.write(
        *(add(f"no {n}", importance=1 - n / 10) for n in range(4)), add("weak", importance=0.05)
    )
    read = {"read": ReadAt(exact_revision=service.revision)} if past else {}
    asked = {"ranking": BY_IMPORTANCE, "top_k": 2, "score_min": 0.1, **read}
    assert dropped(service, **asked) == {
        "no 0": "",
        "no 1": "",
        "no 2": "below_top_k",
        "no 3": "below_top_k",
        "weak": "score_min",
    }
    answer = service.search(**asked, **TRACED)
    trace = answer.trace
    assert (trace.path, trace.memories, trace.admitted) == (SearchPath.NO_VECTOR, 5, 5)
    assert [one.score for one in trace.candidates] == sorted(
        (one.score for one in trace.candidates), reverse=True
    )
    assert trace.candidates[0].proposed_by == ("prior",)
    assert trace.candidates[0].parts == pytest.approx((0.0, 1.0, 1.0), abs=1e-3)
    steps = dict(trace.timings)
    assert {"rank", "fetch", "trace"} <= steps.keys()
    assert all(taken >= 0 for taken in steps.values())
    assert replace(answer, trace=None) == service.search(**asked)


def test_folded_and_diversified_memories_are_told(service):
    service.write(
        add("The customer is on the Free plan.", valid_from=START - 9 * DAY, importance=0.9),
        add("The customer is on the Pro plan.", valid_from=START - DAY, importance=0.8),
        add("The cellar got wet.", valid_from=START - DAY, importance=0.7),
    )
    fold = {"ranking": BY_IMPORTANCE, "older_statements": OlderStatements.FOLD}
    assert dropped(service, **fold)["The customer is on the Free plan."] == "folded"
    service.write(
        *(add(f"twin {n}", importance=1 - n / 100, vector=floats(1, 0)) for n in range(2))
    )
    diverse = {"ranking": replace(BY_IMPORTANCE, diversity=0.5), "top_k": 2}
    assert dropped(service, **diverse)["twin 1"] == "diversity"


def test_a_scan_says_that_it_proposed():
    held = ram_service()
    try:
        held.write(add("near", vector=floats(1, 0)), add("far", vector=floats(-1, 0)), add("none"))
        trace = held.search(vector=floats(1, 0), **TRACED).trace
        assert trace.path is SearchPath.SCAN
        assert {one.proposed_by for one in trace.candidates} == {("scan",)}
        cosines = sorted(one.cosine for one in trace.candidates if one.cosine is not None)
        assert cosines == pytest.approx([-1.0, 1.0])
        assert sum(one.cosine is None for one in trace.candidates) == 1
    finally:
        held.close()


def test_a_trace_is_bounded(service):
    for start in range(0, 300, 100):
        service.write(*(add(f"no {start + n}") for n in range(100)))
    answer = service.search(top_k=250, **TRACED)
    assert len(answer.hits) == 250
    assert len(answer.trace.candidates) == 200


def test_an_empty_partition_has_an_empty_trace(service):
    answer = service.search("anything", **TRACED)
    assert answer.trace is not None
    assert answer.trace.candidates == ()


def test_without_being_asked_nothing_is_traced(service):
    service.write(add("one"))
    assert service.search().trace is None


filters = st.builds(
    Filter,
    subjects=st.sampled_from([frozenset(), frozenset({Subject("user", "mira")})]),
    contexts=st.sampled_from([None, frozenset({""}), frozenset({"work"})]),
    kinds=st.sampled_from([frozenset(), frozenset({MemoryKind.EPISODIC})]),
    statuses=st.sampled_from([frozenset(), frozenset({MemoryStatus.STATED})]),
    attributes=st.sampled_from([frozenset(), frozenset({"deadline"})]),
    labels_all=st.sampled_from([frozenset(), frozenset({"a"})]),
    labels_any=st.sampled_from([frozenset(), frozenset({"a", "b"})]),
    labels_none=st.sampled_from([frozenset(), frozenset({"b"})]),
    created=st.sampled_from([Window(), Window(START, None), Window(None, START)]),
    valid_from=st.sampled_from([Window(), Window(START - 5, None)]),
    importance_min=st.sampled_from([0.0, 0.6]),
    confidence_min=st.sampled_from([0.0, 0.6]),
    source_kinds=st.sampled_from([frozenset(), frozenset({SourceKind.TOOL_RESULT})]),
    session_ids=st.sampled_from([frozenset(), frozenset({"s"})]),
    facts=st.sampled_from([None, True, False]),
    edges=st.booleans(),
    any_of=st.sampled_from([(), (replace(NESTED, labels_any=frozenset({"b"})),)]),
    none_of=st.sampled_from([(), (replace(NESTED, importance_min=0.5),)]),
    include_retracted=st.booleans(),
    include_expired=st.booleans(),
    valid_only=st.booleans(),
)


@pytest.fixture(scope="module")
def memories():
    held = ram_service()
    held.write(
        add("a", labels=("a", "b"), importance=0.2, session_id="s", valid_from=START - 9),
        add("b", labels=("b",), confidence=0.3, context="work"),
        add("c", subject=Subject("user", "bob"), kind=MemoryKind.PROCEDURAL),
        add("d", source=Source(SourceKind.TOOL_RESULT)),
        add("f", expires_at=START - 1),
        add("g", valid_from=START - 9, valid_to=START - 4),
        put_fact("old", valid_from=START - 9),
        put_fact("new", valid_from=START - 5),
    )
    found = held.listed()
    held.close()
    return found


@given(wanted=filters, as_of=st.sampled_from([START, START - 5, START - 20]))
def test_a_refusal_is_named_exactly_where_a_memory_is_not_admitted(memories, wanted, as_of):
    for memory in memories:
        refusal = wanted.first_refusal(memory, as_of, START)
        assert (refusal is None) == wanted.admits(memory, as_of, START)
        assert refusal != "nested"
