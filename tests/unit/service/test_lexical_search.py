"""Words are found as soon as they are written, as they are now, and without any vector."""

from __future__ import annotations

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.queries import Exactness, Filter, ReadAt, SearchPath
from pillion.domain.scope import Partition, Subject
from pillion_testing.service import (
    MIRA,
    add,
    floats,
    lmdb_service,
    patch,
    put_fact,
    ram_service,
)

OTHER = Partition("production", "other")
BEN = Subject("user", "ben")


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def test_a_memory_is_found_by_its_words_when_the_write_is_acknowledged(service):
    service.write(*(add(f"nothing of note happened on day {n}") for n in range(5)))
    order = service.one(add("Order ORD-12345 was shipped to Kraków"))
    for words in ("shipping orders", "ord-12345", "12345", "krakow"):
        answer = service.search(words)
        best = answer.hits[0]
        assert best.memory.id == order.id, words
        assert (answer.path, answer.exactness) == (SearchPath.NO_VECTOR, Exactness.EXACT)
        assert best.cosine is None
        assert best.lexical > 0
        assert best.relevance > 0
        others = answer.hits[1:]
        assert all((one.lexical, one.relevance) == (None, 0.0) for one in others), words


def test_words_follow_what_is_written(service):
    made = service.one(add("the passport expires in June"))
    service.write(patch(made.id, text="the driving licence expires in May"))
    (hit,) = service.search("passport").hits
    assert hit.lexical is None
    (hit,) = service.search("licence").hits
    assert hit.lexical > 0
    service.forget(ForgetMode.EXPIRE, ids=(made.id,))
    assert service.found("licence") == []
    # Erased or replaced, nothing of it is left to weigh another memory's words.
    made = service.one(add("licence, unlike anything"))
    before = service.search("licence").hits[0].lexical
    service.write(patch(made.id, text="of something else"))
    service.write(patch(made.id, text="licence, unlike anything"))
    assert service.search("licence").hits[0].lexical == before


def test_another_partition_weighs_nothing(service):
    service.write(add("a rare word"))
    alone = service.search("rare").hits[0].lexical
    service.write(*(add(f"rare {n}") for n in range(9)), partition=OTHER)
    assert service.search("rare").hits[0].lexical == alone
    assert len(service.found("rare")) == 1


def test_the_vectors_of_clients_do_not_stand_in_the_way_of_words(service):
    cat = service.one(add("the cat sleeps", vector=floats(1, 0)))
    dog = service.one(add("the dog barks", vector=floats(0, 1)))
    answer = service.search("barking")
    assert (answer.path, answer.hits[0].memory.id) == (SearchPath.NO_VECTOR, dog.id)
    # With both, both count.
    both = service.search("barking", vector=floats(1, 0))
    assert both.path is SearchPath.SCAN
    parts = {hit.memory.id: (hit.cosine, hit.lexical is not None) for hit in both.hits}
    assert parts == {cat.id: (1.0, False), dog.id: (0.0, True)}
    assert {hit.memory.id: round(hit.relevance, 6) for hit in both.hits}[cat.id] == 0.4


def test_words_of_a_fact_are_found_under_a_filter(service):
    mine = service.put("13 May", text="the passport expires on 13 May")
    service.write(put_fact("14 May", subject=BEN, text="the passport expires on 14 May"))
    (hit,) = service.search("passport", filter=Filter(subjects=frozenset({MIRA}))).hits
    assert hit.memory.id == mine.id
    assert hit.lexical > 0


def test_a_restart_finds_the_same_by_the_same_score(tmp_path):
    service = lmdb_service(tmp_path / "store", sealed=True)
    service.write(*(add(f"memory number {n} of cats and dogs") for n in range(20)))
    service.write(add("a single elephant"))
    before = [(hit.memory.id, hit.lexical, hit.score) for hit in service.search("elephants").hits]
    service.close()
    service = lmdb_service(tmp_path / "store", sealed=True, clock=service.clock)
    after = [(hit.memory.id, hit.lexical, hit.score) for hit in service.search("elephants").hits]
    assert after == before
    service.close()


def test_a_search_of_the_past_knows_the_words_of_then(service):
    made = service.one(add("the meeting is on Monday"))
    then = service.revision
    service.write(add("lunch"))
    service.write(patch(made.id, text="the meeting is on Friday"))
    found = service.search("monday", read=ReadAt(exact_revision=then)).hits
    assert [(hit.memory.text, hit.lexical is not None) for hit in found] == [
        ("the meeting is on Monday", True)
    ]
    assert all(hit.lexical is None for hit in service.search("monday").hits)
    present = service.search("meeting")
    past = service.search("meeting", read=ReadAt(exact_revision=service.revision))
    assert [(hit.memory.id, hit.lexical) for hit in past.hits] == [
        (hit.memory.id, hit.lexical) for hit in present.hits
    ]
