"""Search by words over what is indexed: turns with the turns before them, behind their walls."""

from __future__ import annotations

import pytest
from pillion.domain.commands import ForgetMode
from pillion.domain.indexed_text import EpisodeIndexing
from pillion.domain.queries import ReadAt
from pillion.domain.scope import Subject
from pillion.service import ServiceSettings
from pillion_storage.api import Batch
from pillion_storage.keys import memory_key
from pillion_testing.fakes import SECOND, START
from pillion_testing.service import ACME, Service, episode, patch, put_fact, ram_service

ASKED, ANSWERED = "Did you like the marmalade?", "Yes, with toast."


@pytest.fixture
def service():
    made = ram_service()
    yield made
    made.close()


def say(service, *texts, **more):
    """Capture turns one second apart; return the ids of their memories."""
    more = {"session_id": "monday", **more}
    turns = [
        episode(text, occurred_at=START + (place - 60) * SECOND, **more)
        for place, text in enumerate(texts)
    ]
    return [one.memory_id for one in service.write(*turns).results]


def found(service, text, **more):
    """The BM25 of each memory that has a word of a text."""
    hits = service.search(text, **more).hits
    return {hit.memory.id: hit.lexical for hit in hits if hit.lexical is not None}


def erase(service, *ids) -> None:
    service.store.commit(ACME, Batch(deletes=[memory_key(one) for one in ids]))


def test_a_turn_is_found_by_the_words_of_the_turn_before_it_and_below_that(service):
    asked, answered = say(service, ASKED, ANSWERED)
    scores = found(service, "marmalade")
    assert scores.keys() == {asked, answered}
    assert scores[asked] > scores[answered]
    assert service.get(answered).text == ANSWERED  # what is shown stays as it was said


def test_a_turn_is_found_by_its_speaker_and_its_date(service):
    (one,) = say(service, "I went there.", author="Melanie")
    (other,) = say(service, "So did I.", author="Caroline", context="", session_id="tuesday")
    assert found(service, "Melanie").keys() == {one}
    day = service.get(one).valid_from
    assert day == START - 60 * SECOND
    assert found(service, "Caroline").keys() == {other}
    assert found(service, "2026").keys() == {one, other}


@pytest.mark.parametrize(
    "beyond",
    [{"session_id": "tuesday"}, {"context": "work"}, {"subject": Subject("user", "noor")}],
)
def test_nothing_is_borrowed_across_a_wall(service, beyond):
    (asked,) = say(service, ASKED)
    say(service, "Monday.", ANSWERED, **beyond)
    everywhere = service.search("marmalade", top_k=10).hits
    assert [hit.memory.id for hit in everywhere if hit.lexical is not None] == [asked]


def test_no_word_of_an_erased_turn_finds_its_followers(service):
    asked, *followers = say(service, ASKED, ANSWERED, "And tea.", "And milk.", "Enough.")
    assert found(service, "marmalade").keys() == {asked, *followers[:3]}
    erase(service, asked)
    assert found(service, "marmalade") == {}
    assert found(service, "toast").keys() == set(followers)


def test_a_forgotten_turn_and_a_changed_one_lend_their_words_no_longer(service):
    first, second = say(service, ASKED, ANSWERED)
    (third,) = say(service, "And tea.", session_id="tuesday")
    assert found(service, "marmalade").keys() == {first, second}
    service.write(patch(first, text="Did you like the honey?"))
    assert found(service, "marmalade") == {}
    assert found(service, "honey").keys() == {first, second}
    service.forget(ForgetMode.EXPIRE, ids=(first,))
    assert found(service, "honey") == {}
    assert third not in found(service, "toast")


def test_a_turn_that_arrives_late_lends_to_those_that_follow_it(service):
    (late,) = say(service, ANSWERED)
    assert found(service, "marmalade") == {}
    early = (
        service.write(episode(ASKED, session_id="monday", occurred_at=START - 90 * SECOND))
        .results[0]
        .memory_id
    )
    assert found(service, "marmalade").keys() == {early, late}


def test_a_fact_is_found_by_its_attribute_whatever_words_stated_it(service):
    fact = service.one(put_fact("2026-07-15", attribute="passport_deadline", text="It ends soon."))
    assert found(service, "passport").keys() == {fact.id}


def test_an_operator_may_index_the_bare_text():
    service = ram_service(settings=ServiceSettings(episode_indexing=EpisodeIndexing.PLAIN))
    asked, _ = say(service, ASKED, ANSWERED, author="Melanie")
    assert found(service, "marmalade").keys() == {asked}
    assert found(service, "Melanie") == {}
    service.close()


def test_a_partition_that_follows_the_feed_answers_as_one_that_was_loaded(service):
    first, second, third = say(service, ASKED, ANSWERED, "And tea.")
    assert found(service, "marmalade")  # from here on its texts follow the feed
    say(service, "Who baked it?", "My sister.", session_id="")
    service.write(patch(second, text="With butter."))
    erase(service, first)
    say(service, "A late word about plums.", context="")
    questions = ("marmalade", "butter", "tea", "plums", "sister baked")
    followed = [found(service, one) for one in questions]
    fresh = Service(service.store, clock=service.clock, ids=service.ids)
    assert [found(fresh, one) for one in questions] == followed
    assert followed[1].keys() >= {second, third}


def test_a_search_of_the_past_finds_by_the_words_of_then(service):
    asked, answered = say(service, ASKED, ANSWERED)
    then = service.revision
    was = found(service, "marmalade")
    service.write(patch(asked, text="Did you like the honey?"))
    assert found(service, "marmalade") == {}
    read = ReadAt(exact_revision=then)
    assert found(service, "marmalade", read=read) == was
    assert was.keys() == {asked, answered}
