"""Where memories come from: sources are checked, and followed in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import Reason
from pillion.domain.memory import Source, SourceKind
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
