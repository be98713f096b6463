"""Where memories come from: sources are checked, and followed in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import Reason
from pillion.domain.limits import RECURRENCE_EPISODES_MAX
from pillion.domain.memory import MemoryStatus, Source, SourceKind
from pillion.domain.mutations import ConfirmMemory, Outcome
from pillion.domain.queries import Filter
from pillion.domain.scope import Partition, Subject
from pillion_testing.fakes import START, uuid7
from pillion_testing.service import (
    EVERYTHING,
    EXISTS,
    add,
    confirm,
    episode,
    key_of,
    put_fact,
    ram_service,
    retract,
)

WORDS = "It was due on Monday. It is now due on Tuesday — Käse!"
USER = SourceKind.USER_STATEMENT


def quoting(episode_id, quote, kind=USER):
    return Source(kind, episode_id, quote)


def everything(**more):
    return Filter(
        contexts=None,
        statuses=frozenset(),
        include_retracted=True,
        include_expired=True,
        valid_only=False,
        **more,
    )


# --- what a source may say ------------------------------------------------------------------


@pytest.fixture
def told(service):
    return service.one(episode(WORDS, indexed=False)).id


@pytest.mark.parametrize("quote", ["", "now due on Tuesday", WORDS, "— Käse!"])
def test_a_quote_of_its_episode_is_taken(service, told, quote):
    row = service.put("Tuesday", source=quoting(told, quote))
    assert service.get(row.id).source.quote == quote


@pytest.mark.parametrize(
    "quote",
    [
        "It is due on Tuesday",
        "now Due",  # case counts
        "Ka\N{COMBINING DIAERESIS}se",  # and so does Unicode form
        "Monday.  It",
        WORDS + " ",
    ],
)
def test_a_quote_that_is_not_in_its_episode_is_refused(service, told, quote):
    made = service.one(add())
    source = quoting(told, quote)
    for mutation, field in (
        (put_fact(source=source), "put_fact.fact"),
        (add(source=source), "add_memory.memory"),
        (
            ConfirmMemory(made.id, quoting(told, quote, SourceKind.USER_CONFIRMATION), EXISTS),
            "confirm_memory",
        ),
    ):
        with service.refuses(Reason.INVALID_FIELD, f"mutations[1].{field}.source.quote") as caught:
            service.write(add("good"), mutation)
        assert quote not in str(caught.value)
        assert WORDS not in str(caught.value)
    ack = service.import_(add("good"), put_fact(source=source))
    assert (ack.written, [one.index for one in ack.rejections]) == (1, [1])


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=30), st.data())
def test_every_part_of_an_episode_can_be_quoted(words, data):
    service = ram_service()
    if words.strip():
        told = service.one(episode(words, indexed=False)).id
        start = data.draw(st.integers(0, len(words)))
        end = data.draw(st.integers(start, len(words)))
        service.put(source=quoting(told, words[start:end]))
        with service.refuses(Reason.INVALID_FIELD):
            service.put(source=quoting(told, words + "!"))
    service.close()


def test_a_quote_without_an_episode_is_the_callers_word(service):
    row = service.put(source=quoting(None, "never captured"))
    assert service.get(row.id).source.quote == "never captured"


def test_an_episode_of_the_same_write_can_be_quoted(service):
    told = uuid7(600)
    service.write(episode(WORDS, id=told), put_fact(source=quoting(told, "Tuesday")))
    with service.refuses(Reason.NOT_FOUND):  # in this order it is not there yet
        service.write(put_fact(source=quoting(uuid7(601), "x")), episode("x", id=uuid7(601)))


def test_another_tenants_episode_is_not_there(service, told):
    mine = service.partition
    service.partition = Partition("production", "umbrella")
    for quote in ("Tuesday", "not in it"):
        with service.refuses(Reason.NOT_FOUND):
            service.put(source=quoting(told, quote))
    service.partition = mine


def test_an_episode_may_tell_of_another_subject(service, told):
    ada = Subject("user", "ada")
    row = service.put("Tuesday", subject=ada, source=quoting(told, "Tuesday"))
    assert [one.id for one in service.listed(everything(episode_ids=frozenset({told})))] == [row.id]


@pytest.mark.parametrize("kind", [SourceKind.USER_STATEMENT, SourceKind.USER_CONFIRMATION])
def test_a_models_words_are_no_users_statement(service, kind):
    told = service.one(episode(WORDS, source_kind=SourceKind.INFERENCE, indexed=False)).id
    made = service.one(add())
    with service.refuses(Reason.INVALID_FIELD, "mutations[0].put_fact.fact.source.kind"):
        service.put(source=quoting(told, "Tuesday", kind))
    with service.refuses(Reason.INVALID_FIELD, "mutations[0].confirm_memory.source.kind"):
        service.write(confirm(made.id, episode_id=told))
    service.put(source=quoting(told, "Tuesday", SourceKind.INFERENCE))


# --- who confirmed ------------------------------------------------------------------------------


def by(author, told=None, quote=""):
    return Source(SourceKind.USER_CONFIRMATION, told, quote, author)


def test_a_confirmation_is_kept_with_its_author_and_words(service, told):
    made = service.one(add())
    assert service.get(made.id).confirmation is None
    service.write(ConfirmMemory(made.id, by("ada", told, "due on Tuesday"), EXISTS))
    assert service.get(made.id).confirmation == by("ada", told, "due on Tuesday")
    service.write(ConfirmMemory(made.id, by("mira"), EXISTS))
    assert service.get(made.id).confirmation == by("mira")
    versions = [one.memory.confirmation for one in service.history(memory_id=made.id)[0]]
    assert versions == [None, by("ada", told, "due on Tuesday"), by("mira")]
    assert [one.confirmation for one in service.listed(Filter())] == [by("mira")]
    assert [hit.memory.confirmation for hit in service.search().hits] == [by("mira")]


def test_a_confirmation_that_is_refused_leaves_the_last_one(service, told):
    made = service.one(add())
    service.write(ConfirmMemory(made.id, by("ada"), EXISTS))
    with service.refuses(Reason.INVALID_FIELD):
        service.write(ConfirmMemory(made.id, by("eve", told, "not in it"), EXISTS))
    service.write(retract(made.id, valid_to=START - 1))
    with service.refuses(Reason.ALREADY_ENDED):
        service.write(ConfirmMemory(made.id, by("eve"), EXISTS))
    assert service.get(made.id).confirmation == by("ada")


def test_a_guess_joins_its_timeline_with_who_confirmed_it(service, told):
    service.put("stated", valid_from=START - 9)
    guess = service.put("guess", valid_from=START - 5, source=Source(SourceKind.INFERENCE))
    service.write(ConfirmMemory(guess.id, by("mira", told), EXISTS))
    row = service.current()
    assert (row.id, row.source.kind, row.confirmation) == (
        guess.id,
        SourceKind.INFERENCE,
        by("mira", told),
    )
    # A late arrival inside it ends: the row that goes on behind was confirmed too.
    service.put("visit", valid_from=START - 4, valid_to=START - 3)
    assert service.current().id != guess.id
    assert service.current().confirmation == by("mira", told)


def test_what_is_known_already_is_confirmed_by_the_guess(service, told):
    row = service.put("v", valid_from=START - 9)
    service.write(ConfirmMemory(row.id, by("ada"), EXISTS))
    guess = service.put("v", valid_from=START - 5, source=Source(SourceKind.INFERENCE))
    service.write(ConfirmMemory(guess.id, by("mira", told), EXISTS))
    assert service.get(row.id).confirmation == by("mira", told)
    assert service.get(guess.id).confirmation is None  # nobody confirmed it as a row
    # One more statement of it says nothing about who confirmed it.
    service.put("v", valid_from=START - 4)
    assert service.get(row.id).confirmation == by("mira", told)
    # Where a late arrival makes the evidence a row, it was confirmed by the same.
    service.put("other", valid_from=START - 7)
    assert service.value_at(START - 5) == "v"
    assert service.current().confirmation == by("mira", told)


def test_enough_episodes_confirm_without_anybody(service):
    for number in range(3):
        told = service.one(episode(f"e{number}", indexed=False)).id
        result = service.put("v", source=Source(SourceKind.INFERENCE, told), valid_from=START - 5)
    row = service.get(result.id)
    assert (row.status, row.confirmation) == (MemoryStatus.CONFIRMED, None)


def test_the_last_confirmation_is_found_beyond_the_bound_of_a_recurrence(service):
    made = service.one(add())
    for _ in range(RECURRENCE_EPISODES_MAX + 1):
        told = service.one(episode("yes", indexed=False)).id
        service.write(confirm(made.id, episode_id=told))
    wanted = Filter(episode_ids=frozenset({told}))
    assert told not in service.get(made.id).recurrence.episode_ids
    assert [one.id for one in service.listed(wanted)] == service.found(filter=wanted) == [made.id]


# --- following --------------------------------------------------------------------------------


def test_an_episode_leads_to_all_that_it_stated_or_supported(service):
    one, two, three = (service.one(episode(f"e{n}", indexed=False)).id for n in range(3))
    row = service.put("a", valid_from=START - 9, source=Source(USER, one))
    evidence = service.put("a", valid_from=START - 5, source=Source(USER, two))
    assert (evidence.id, evidence.outcome) == (row.id, Outcome.EVIDENCE)
    text = service.one(add("b", source=Source(USER, two))).id
    other = service.one(add("c", source=Source(USER, one))).id
    service.write(confirm(other, episode_id=three))
    expected = {one: [row.id, other], two: [row.id, text], three: [other]}
    for told, ids in expected.items():
        wanted = Filter(episode_ids=frozenset({told}))
        assert [found.id for found in service.listed(wanted)] == ids
        assert set(service.found(filter=wanted)) == set(ids)
    both = Filter(episode_ids=frozenset({one, three}))
    assert [found.id for found in service.listed(both)] == [row.id, other]
    assert service.listed(Filter(episode_ids=frozenset({uuid7(9)}))) == []


def test_evidence_that_became_a_row_is_found_by_its_episode(service):
    told = service.one(episode("still a", indexed=False)).id
    service.put("a", valid_from=START - 9)
    service.put("a", valid_from=START - 5, source=Source(USER, told))
    service.put("b", valid_from=START - 7)
    found = service.listed(everything(episode_ids=frozenset({told})))
    assert [one.valid_from for one in found if one.source.episode_id == told] == [START - 5]


def test_a_memory_leads_to_all_that_was_derived_from_it(service):
    a, b = (service.one(add(text)).id for text in "ab")
    ab = service.one(add("ab", derived_from=(a, b))).id
    abb = service.one(add("abb", derived_from=(ab, b, b))).id
    fact = service.put("v", derived_from=(ab,), context="work").id

    def derived(*ids, **more):
        wanted = Filter(derived_from=frozenset(ids), **more)
        return [one.id for one in service.listed(wanted)]

    assert derived(a) == [ab]
    assert derived(b) == derived(a, b) == [ab, abb]
    assert derived(ab) == [abb]
    assert derived(ab, contexts=None) == [abb, fact]
    assert derived(a, ab, contexts=None) == [ab, abb, fact]
    assert derived(abb) == derived(uuid7(9)) == []
    assert derived(b, subjects=frozenset({Subject("user", "ada")})) == []
    told = service.one(episode("e", indexed=False)).id
    from_both = service.one(add("x", derived_from=(a,), source=Source(USER, told))).id
    assert derived(a, episode_ids=frozenset({told})) == [from_both]
    with service.refuses(Reason.INVALID_FIELD, "filter.derived_from"):
        service.search(filter=Filter(derived_from=frozenset({a})))
    with service.refuses(Reason.LIMIT_EXCEEDED, "filter.derived_from"):
        derived(*[uuid7(n) for n in range(1, 66)])


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_pages_of_what_is_derived_are_those_of_a_scan(service, size):
    """Oldest first, equal times by id; what comes later is on no page."""
    sources = [service.one(add(str(n))).id for n in range(3)]
    made = []
    for number in range(20):
        if number % 3 == 0:
            service.clock.advance()
        # Ids in falling order, so that the order of the index is not that of the answer.
        chosen = tuple(sources[place] for place in range(3) if number % (place + 2) == 0)
        made.append(service.one(add(f"d{number}", id=uuid7(5000 - number), derived_from=chosen)).id)
    wanted = everything(derived_from=frozenset(sources[:2]))
    scanned = [one for one in service.listed(EVERYTHING) if wanted.admits(one, 0, 0)]
    assert len(scanned) > 10
    pages = []
    token = ""
    while True:
        page = service.list(wanted, page_size=size, page_token=token)
        pages += [found.memory for found in page.records]
        token = page.next_token
        if not token:
            break
        service.one(add("late", derived_from=(sources[0],)))
    assert [one.id for one in pages] == [one.id for one in scanned]


def test_a_page_token_of_another_listing_is_refused(service):
    a = service.one(add("a")).id
    for text in "bc":
        service.one(add(text, derived_from=(a,)))
    token = service.list(everything(derived_from=frozenset({a})), page_size=1).next_token
    for other in (EVERYTHING, everything(derived_from=frozenset({uuid7(3)}))):
        with service.refuses(Reason.PAGE_TOKEN_INVALID):
            service.list(other, page_token=token)


# --- who, when, from where, what replaced what --------------------------------------------------


def test_history_names_source_author_and_successor(service):
    told = [
        service.one(episode(f"words {n}", author=f"user:{n}", indexed=False)).id for n in (0, 1)
    ]

    def said(number, quote=""):
        return Source(USER, told[number], quote, f"user:{number}")

    first = service.put("a", valid_from=START - 9, source=said(0, "words 0"))
    service.clock.advance()
    second = service.put("b", valid_from=START - 5, source=said(1))
    service.clock.advance()
    late = service.put("c", valid_from=START - 7, source=said(0))
    entries, _, _ = service.history(key_of())
    latest = {one.memory.id: one for one in entries if not one.to_revision}
    assert latest[first.id].memory.superseded_by == late.id
    assert latest[late.id].memory.supersedes == first.id
    assert latest[late.id].memory.superseded_by == second.id
    assert latest[first.id].memory.source == said(0, "words 0")
    assert [latest[one.id].memory.source.author for one in (late, second)] == ["user:0", "user:1"]
    for one in entries:
        assert one.recorded_from <= START + 2_000_000
        assert (one.to_revision == 0) == (one.recorded_to is None)
