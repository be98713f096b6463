"""A search that walks: what is known of those connected with the hits follows them, with paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import Reason
from pillion.domain.graph import Expansion
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter, ReadAt
from pillion.domain.scope import Subject
from pillion.domain.values import Value, ValueKind
from pillion_testing.fakes import SECOND
from pillion_testing.service import MIRA, add, floats, lmdb_service, ram_service, retract

ACME, LEA = Subject("org", "acme"), Subject("user", "lea")
NEAR, FAR = floats(1, 0), floats(0, 1)
ABOUT_MIRA = Filter(subjects=frozenset({MIRA}))


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path, sealed=True)
    yield made
    made.close()


def refer(service, subject, attribute, target, **more):
    return service.put(
        Value(ValueKind.SUBJECT, target), attribute=attribute, subject=subject, **more
    )


def paths(answer):
    return {
        hit.memory.text: [(str(one.source), one.attribute, str(one.target)) for one in hit.path]
        for hit in answer.hits
        if hit.path
    }


def test_what_is_known_of_the_connected_follows_the_hits(service):
    service.one(add("Mira likes her work", vector=NEAR))
    edge = refer(service, MIRA, "works_at", ACME)
    refer(service, LEA, "leads", ACME)
    service.one(add("Acme moves to Berlin", subject=ACME, vector=NEAR))
    service.one(add("Lea is on leave", subject=LEA, vector=FAR))
    service.one(add("Nobody knows Tom", subject=Subject("user", "tom"), vector=NEAR))
    asked = {"vector": NEAR, "top_k": 5, "filter": ABOUT_MIRA}
    plain = service.search(**asked)
    found = service.search(expansion=Expansion(depth=2), **asked)
    assert found.hits[: len(plain.hits)] == plain.hits
    assert (found.exactness, found.admitted) == (plain.exactness, plain.admitted)
    assert paths(found) == {
        "Acme moves to Berlin": [("user:mira", "works_at", "org:acme")],
        "Lea is on leave": [
            ("user:mira", "works_at", "org:acme"),
            ("user:lea", "leads", "org:acme"),
        ],
        "lea leads: org:acme": [
            ("user:mira", "works_at", "org:acme"),
            ("user:lea", "leads", "org:acme"),
        ],
    }
    added = found.hits[len(plain.hits) :]
    assert added[0].memory.text == "Acme moves to Berlin"  # best first
    assert (added[0].path[0].memory_id, added[0].path[0].version) == (edge.id, edge.version)
    # Scored by the query's own formula: as if it had been asked about them in the first place.
    asked["filter"] = Filter(subjects=frozenset({ACME, LEA}))
    scores = {hit.memory.id: hit.score for hit in service.search(**asked).hits}
    assert {hit.memory.id: hit.score for hit in added} == scores
    near = service.search(expansion=Expansion(), **(asked | {"filter": ABOUT_MIRA}))
    assert list(paths(near)) == ["Acme moves to Berlin"]


def test_the_filter_holds_for_what_is_added_but_for_its_subjects(service):
    service.one(add("Mira likes her work", vector=NEAR))
    refer(service, MIRA, "works_at", ACME)
    service.one(add("how Acme does it", subject=ACME, vector=NEAR, kind=MemoryKind.PROCEDURAL))
    service.one(add("Acme at night", subject=ACME, vector=NEAR, context="secret"))
    service.one(add("Acme moves", subject=ACME, vector=NEAR))
    kinds = frozenset({MemoryKind.EPISODIC})
    only = Filter(subjects=frozenset({MIRA}), kinds=kinds)
    found = service.search(vector=NEAR, expansion=Expansion(), filter=only)
    assert list(paths(found)) == ["Acme moves"]
    along = Expansion(attributes=frozenset({"lives_in"}))
    assert paths(service.search(vector=NEAR, expansion=along, filter=only)) == {}


def test_contexts_are_walls_for_edges_too(service):
    service.one(add("Mira", vector=NEAR))
    refer(service, MIRA, "works_at", ACME, context="work")
    service.one(add("Acme moves", subject=ACME, vector=NEAR))
    both = Filter(contexts=frozenset({"", "work"}))
    everywhere = Filter(contexts=None)
    asked = {"vector": NEAR, "top_k": 1, "expansion": Expansion()}
    assert paths(service.search(**asked)) == {}
    assert list(paths(service.search(filter=both, **asked))) == ["Acme moves"]
    assert list(paths(service.search(filter=everywhere, **asked))) == ["Acme moves"]


def test_an_expansion_of_the_past(service):
    service.one(add("Mira", vector=NEAR))
    edge = refer(service, MIRA, "works_at", ACME)
    service.one(add("Acme moves", subject=ACME, vector=NEAR))
    known = service.revision
    service.clock.advance(SECOND)
    service.one(retract(edge.id))
    asked = {"vector": NEAR, "filter": ABOUT_MIRA, "expansion": Expansion()}
    assert paths(service.search(**asked)) == {}
    past = service.search(read=ReadAt(exact_revision=known), **asked)
    assert list(paths(past)) == ["Acme moves"]
    assert past.revision == known
    assert service.search(read=ReadAt(exact_revision=0), **asked).hits == ()


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 2), max_size=12), st.integers(1, 6))
def test_hits_stay_as_they_were_and_nothing_comes_twice(pairs, top_k):
    service = ram_service()
    subjects = [Subject("node", str(number)) for number in range(5)]
    for at, subject in enumerate(subjects):
        service.one(add(f"of {at}", subject=subject, vector=floats(1, at)))
    for at, (one, other) in enumerate(pairs):
        refer(service, subjects[one], f"a{at}", subjects[other])
    plain = service.search(vector=NEAR, top_k=top_k)
    found = service.search(vector=NEAR, top_k=top_k, expansion=Expansion(depth=2))
    assert found.hits[: len(plain.hits)] == plain.hits
    added = found.hits[len(plain.hits) :]
    assert len(added) <= top_k
    ids = [hit.memory.id for hit in found.hits]
    assert len(ids) == len(set(ids))
    assert all(hit.path for hit in added)
    assert list(added) == sorted(added, key=lambda hit: (-hit.score, hit.memory.id.bytes))
    service.close()


@pytest.mark.parametrize(
    ("expansion", "field"),
    [
        (Expansion(depth=0), "expansion.depth"),
        (Expansion(depth=4), "expansion.depth"),
        (Expansion(fan_out=101), "expansion.fan_out"),
    ],
)
def test_a_malformed_expansion_is_refused(expansion, field):
    service = ram_service()
    service.put()
    reason = Reason.INVALID_FIELD if expansion.depth == 0 else Reason.LIMIT_EXCEEDED
    with service.refuses(reason, field):
        service.search(expansion=expansion)
    service.close()


def test_a_filter_bounds_what_is_added_and_not_the_edges_that_are_walked(service):
    """An edge without the label leads on; what is said at its end needs the label."""
    red = {"labels": ("red",)}
    service.one(add("Mira likes her work", vector=NEAR, **red))
    refer(service, MIRA, "works_at", ACME)
    service.one(add("Acme moves to Berlin", subject=ACME, vector=NEAR, **red))
    service.one(add("Acme moves to Rome", subject=ACME, vector=NEAR))
    only_red = Filter(subjects=frozenset({MIRA}), labels_all=frozenset({"red"}))
    answer = service.search(vector=NEAR, top_k=5, filter=only_red, expansion=Expansion())
    assert list(paths(answer)) == ["Acme moves to Berlin"]
