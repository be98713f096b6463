# ruff: noqa: S106
# A token counter is no secret.
"""Recall over a whole service: what enters, what stays out, and all of it of one revision."""

from __future__ import annotations

import pytest
from pillion.domain import limits
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.queries import ReadAt
from pillion.domain.recall import BUDGET, DUPLICATE, OLDER_STATEMENT, Purpose, Section
from pillion.domain.scope import Partition, Subject
from pillion.service import one_revision
from pillion.service import recaller as module
from pillion_testing.fakes import DAY, SECOND, START, FakeEmbedder
from pillion_testing.service import (
    MIRA,
    add,
    close_item,
    confirm,
    episode,
    floats,
    lmdb_service,
    put_fact,
    ram_service,
    retract,
)

JO = Subject("user", "jo")
GUESS = Source(SourceKind.INFERENCE)
ITEM, HOW, SESSION = MemoryKind.OPEN_ITEM, MemoryKind.PROCEDURAL, MemoryKind.SESSION


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path, sealed=True)
    yield made
    made.close()


@pytest.fixture
def ram():
    made = ram_service()
    yield made
    made.close()


def said(answer, section=None):
    """What the lines say, without when and of whom."""
    lines = answer.context.lines
    return [one.text.partition(": ")[2] for one in lines if section in (None, one.section)]


def omitted(answer):
    return {one.memory_id: one.reason for one in answer.context.omitted}


def test_every_section_in_its_order(service):
    service.put("Lisbon", attribute="city")
    service.put("Ana", attribute="boss", context="")
    service.one(add("call the bank", kind=ITEM))
    service.one(add("ask before you book", kind=HOW, vector=floats(1, 0)))
    service.one(add("we planned the trip", kind=SESSION, session_id="s1"))
    service.one(add("Mira missed a train", vector=floats(1, 0)))
    service.one(add("Mira has no vector in common", vector=floats(-1, 0)))
    answer = service.recall("", vector=floats(1, 0))
    assert [(one.section, one.text) for one in answer.context.lines] == [
        (Section.PROCEDURES, "- [since 2026-06-10] user:mira: ask before you book"),
        (Section.FACTS, "- [since 2026-06-10] user:mira boss: Ana"),
        (Section.FACTS, "- [since 2026-06-10] user:mira city: Lisbon"),
        (Section.OPEN_ITEMS, "- [since 2026-06-10] user:mira: call the bank"),
        (Section.SESSIONS, "- [2026-06-10] user:mira session s1: we planned the trip"),
        (Section.RELATED, "- [2026-06-10] user:mira: Mira missed a train"),
    ]
    assert answer.context.text.split("\n") == [
        "# How to do it",
        "- [since 2026-06-10] user:mira: ask before you book",
        "# What is so",
        "- [since 2026-06-10] user:mira boss: Ana",
        "- [since 2026-06-10] user:mira city: Lisbon",
        "# Open items",
        "- [since 2026-06-10] user:mira: call the bank",
        "# Recent sessions",
        "- [2026-06-10] user:mira session s1: we planned the trip",
        "# Related",
        "- [2026-06-10] user:mira: Mira missed a train",
    ]
    assert (answer.revision, answer.estimated) == (service.revision, True)
    assert answer == service.recall("", vector=floats(1, 0))


def test_without_a_query_there_is_only_what_stands(service):
    service.put("Lisbon", attribute="city")
    service.one(add("call the bank", kind=ITEM))
    service.one(add("how to", kind=HOW))
    service.one(add("we met"))
    service.one(add("the last one", kind=SESSION))
    assert said(service.recall()) == ["Lisbon", "call the bank", "the last one"]


def test_nothing_stale_expired_guessed_retracted_or_out_of_scope_enters(service):
    since, soon = START - DAY, START + DAY
    service.put("old city", attribute="city", valid_from=since)
    service.put("new city", attribute="city", valid_from=START)
    service.put("not yet", attribute="job", valid_from=soon)
    service.put("past", attribute="team", valid_from=since, valid_to=START - SECOND)
    service.put("expired", attribute="pin", expires_at=START - SECOND)
    service.put("guessed", attribute="mood", source=GUESS, status=MemoryStatus.CANDIDATE)
    taken = service.put("taken back", attribute="pet", valid_from=since)
    service.one(retract(taken.id, valid_to=START - SECOND))
    service.put("at work", attribute="role", context="work")
    service.put("of another", attribute="city", subject=JO)
    service.write(put_fact("elsewhere", attribute="city"), partition=Partition("production", "b"))
    for kind in (MemoryKind.EPISODIC, ITEM, HOW, SESSION):
        kept = {"kind": kind, "vector": floats(1, 0), "valid_from": since}
        service.one(add(f"kept {kind}", **kept))
        service.one(add("expired", expires_at=START - SECOND, **kept))
        service.one(add("guessed", source=GUESS, **kept))
        service.one(add("over", valid_to=START - SECOND, **kept))
        service.one(add("at work", context="work", **kept))
        service.one(add("of another", subject=JO, **kept))
        gone = service.one(add("forgotten", **kept))
        service.forget(ForgetMode.EXPIRE, ids=frozenset({gone.id}))
        gone = service.one(add("retracted", **kept))
        service.one(retract(gone.id))
    answer = service.recall("", vector=floats(1, 0))
    assert said(answer) == ["kept 3", "new city", "kept 5", "kept 4", "kept 1"]
    assert answer.context.omitted == ()
    assert said(service.recall("", contexts=frozenset({"work"})), Section.FACTS) == ["at work"]
    assert said(service.recall("", JO), Section.FACTS) == ["of another"]
    both = service.recall("", JO, MIRA, contexts=frozenset({"", "work"}))
    assert said(both, Section.FACTS) == ["of another", "new city", "at work"]


def test_a_closed_item_is_gone_and_was_open_before(service):
    item = service.one(add("call the bank", kind=ITEM, valid_from=START - DAY))
    still = service.revision
    service.clock.advance(DAY)
    service.one(close_item(item.id, closed_at=START))
    assert said(service.recall()) == []
    assert said(service.recall(read=ReadAt(as_of=START - SECOND))) == ["call the bank"]
    assert said(service.recall(read=ReadAt(exact_revision=still))) == ["call the bank"]
    assert said(service.recall(read=ReadAt(exact_revision=still, as_of=START))) == ["call the bank"]


def test_both_clocks(service):
    """What is so by one clock, and what was known of it by the other."""
    service.put("Porto", attribute="city", valid_from=START - 9 * DAY)
    known = service.revision
    instant = service.store.head(service.partition).recorded_at
    service.clock.advance(DAY)
    service.put("Lisbon", attribute="city", valid_from=START - 3 * DAY)
    at = {
        ("now", "now"): ReadAt(),
        ("then", "now"): ReadAt(as_of=START - 5 * DAY),
        ("now", "then"): ReadAt(exact_revision=known),
        ("then", "then"): ReadAt(exact_revision=known, as_of=START - 2 * DAY),
        ("by instant", "then"): ReadAt(known_at=instant),
        ("before", "now"): ReadAt(as_of=START - 10 * DAY),
        ("nothing", "known"): ReadAt(exact_revision=0),
    }
    found = {name: said(service.recall(read=read)) for name, read in at.items()}
    assert found == {
        ("now", "now"): ["Lisbon"],
        ("then", "now"): ["Porto"],
        ("now", "then"): ["Porto"],
        ("then", "then"): ["Porto"],
        ("by instant", "then"): ["Porto"],
        ("before", "now"): [],
        ("nothing", "known"): [],
    }
    assert service.recall(read=ReadAt(exact_revision=known)).revision == known
    with service.refuses(Reason.FUTURE_REVISION):
        service.recall(read=ReadAt(exact_revision=service.revision + 1))


def test_the_start_of_a_session_has_the_profile_the_last_summaries_and_open_items(ram):
    ram.put("Lisbon", attribute="city")
    ram.one(add("Mira is kind", kind=MemoryKind.SEMANTIC, importance=0.9))
    ram.one(add("call the bank", kind=ITEM))
    for number in range(9):
        ram.one(add(f"session {number}", kind=SESSION, valid_from=START - number * DAY))
    start = ram.recall(purpose=Purpose.SESSION_START)
    assert said(start, Section.FACTS) == ["Lisbon", "Mira is kind"]
    assert said(start, Section.SESSIONS) == [f"session {number}" for number in range(5)]
    assert said(start, Section.OPEN_ITEMS) == ["call the bank"]
    turn = ram.recall()
    assert said(turn, Section.FACTS) == ["Lisbon"]
    assert said(turn, Section.SESSIONS) == [f"session {number}" for number in range(3)]


def test_what_does_not_fit_is_named_and_facts_go_first(ram):
    facts = [ram.put(f"value {number}", attribute=f"a{number}").id for number in range(4)]
    item = ram.one(add("an item", kind=ITEM)).id
    whole = ram.recall(token_counter="characters")
    assert whole.context.tokens == len(whole.context.text)
    assert not whole.estimated
    line = len("- [since 2026-06-10] user:mira a0: value 0\n")
    tight = ram.recall(token_counter="characters", token_budget=len("# What is so\n") + 3 * line)
    assert [one.memory.id for one in tight.context.lines] == facts[:3]
    assert omitted(tight) == {facts[3]: BUDGET, item: BUDGET}


def test_what_was_said_twice_is_said_once(ram):
    first = ram.one(add("we met in May", vector=floats(1, 0))).id
    again = ram.one(add("We  met in may", vector=floats(1, 0))).id
    answer = ram.recall("", vector=floats(1, 0))
    (line,) = answer.context.lines
    assert {line.memory.id} | set(omitted(answer)) == {first, again}
    assert list(omitted(answer).values()) == [DUPLICATE]


def test_an_older_statement_of_the_same_thing_is_left_out_and_named(ram):
    asked = {"kind": MemoryKind.SEMANTIC, "vector": floats(1, 0)}
    plan = "The customer Lena is on the {} plan."
    old = ram.one(add(plan.format("Free"), valid_from=START - 90 * DAY, importance=0.9, **asked)).id
    ram.one(add(plan.format("Pro"), valid_from=START - 9 * DAY, importance=0.1, **asked))
    answer = ram.recall("", vector=floats(1, 0))
    assert said(answer) == [plan.format("Pro")]
    assert omitted(answer) == {old: OLDER_STATEMENT}


def test_a_line_cites_what_it_is_of(ram):
    source = ram.one(episode("I moved to Lisbon"))
    said_in = Source(SourceKind.USER_STATEMENT, source.id)
    row = ram.put("Lisbon", attribute="city", source=said_in, valid_to=START + DAY)
    cited = ram.recall().context.lines[0].memory
    assert (cited.id, cited.version, cited.source.episode_id) == (row.id, row.version, source.id)
    assert (cited.valid_from, cited.valid_to) == (START, START + DAY)


def test_a_promoted_guess_enters(ram):
    guess = ram.put("tea", attribute="likes", source=GUESS)
    assert said(ram.recall()) == []
    ram.one(confirm(guess.id))
    assert said(ram.recall()) == ["tea"]


def test_the_query_may_be_a_text():
    service = ram_service(embedder=FakeEmbedder())
    service.write(add("Mira met Jo"), mode=EmbeddingMode.INLINE)
    assert said(service.recall("Mira met Jo")) == ["Mira met Jo"]
    service.close()


def test_more_facts_than_a_search_returns_are_all_there(ram, monkeypatch):
    monkeypatch.setattr(module, "BEST_MAX", 3)
    for number in range(8):
        ram.put(str(number), attribute=f"a{number}", importance=number / 10)
    ram.put("elsewhere", attribute="a", context="work")
    ram.one(add("untyped", kind=MemoryKind.SEMANTIC))
    assert said(ram.recall()) == [str(number) for number in range(8)]
    monkeypatch.setattr(limits, "RECALL_STANDING_MAX", 7)
    with ram.refuses(Reason.LIMIT_EXCEEDED, "subjects"):
        ram.recall()


class Meddler:
    """A searcher before whose answers others write."""

    def __init__(self, searcher, meddle):
        self.searcher = searcher
        self.meddle = meddle
        self.searches = 0
        self.reads = []

    def search(self, partition, query, deadline):
        answer = self.searcher.search(partition, query, deadline)
        self.searches += 1
        self.reads.append(query.read)
        self.meddle(self.searches)
        return answer


def meddled(service, meddle):
    recaller = service.use_cases.recaller
    meddler = Meddler(recaller._searcher, meddle)
    recaller._searcher = meddler
    return meddler


def test_a_context_is_of_one_revision_while_others_write(service):
    """Facts that always change together are never seen apart, however often they change."""

    def pair(number):
        service.clock.advance()
        service.write(
            put_fact(f"{number}", attribute="left"),
            add(f"{number}", kind=ITEM),
            *([close_item(items[-1])] if items else []),
        )
        found = service.listed()
        items.append(next(m.id for m in found if m.kind is ITEM and m.text == f"{number}"))

    items = []
    pair(0)
    meddler = meddled(service, pair)
    answer = service.recall()
    fact, item = said(answer)
    assert fact == item
    # It gave up on the present, and read a past.
    assert meddler.searches > 3 * one_revision.TRIES_MAX
    assert meddler.reads[-1].exact_revision == answer.revision < service.revision


def test_where_a_search_gives_up_the_state_is_read_as_a_past_one(service):
    def give_up(at):
        if at == 2:
            raise PillionError(Reason.OVERLOADED, "changed all the time")

    service.put("Lisbon", attribute="city")
    meddler = meddled(service, give_up)
    answer = service.recall()
    assert said(answer) == ["Lisbon"]
    assert meddler.reads[-1].exact_revision == answer.revision


def test_what_others_write_about_others_disturbs_nothing(service):
    service.put("Lisbon", attribute="city")
    meddler = meddled(service, lambda at: service.put("x", attribute=f"a{at}", subject=JO))
    assert said(service.recall()) == ["Lisbon"]
    assert meddler.searches == 3


def test_one_that_is_used_is_told_once(ram):
    told = []
    ram.use_cases.recaller._used = lambda partition, ids: told.append((partition, ids))
    row = ram.put("Lisbon", attribute="city")
    ram.put("too long for this" * 9, attribute="other")
    ram.recall(token_budget=40)
    assert told == [(ram.partition, [row.id])]


@pytest.mark.parametrize(
    ("asked", "reason", "field"),
    [
        ({"token_budget": 0}, Reason.INVALID_FIELD, "token_budget"),
        ({"token_budget": 1_000_001}, Reason.LIMIT_EXCEEDED, "token_budget"),
        ({"token_counter": "nosuch"}, Reason.INVALID_FIELD, "token_counter"),
        (
            {"section_budgets": {Section.FACTS: -1}},
            Reason.INVALID_FIELD,
            "section_budgets[0].tokens",
        ),
        (
            {"token_budget": 9, "section_budgets": {Section.FACTS: 5, Section.RELATED: 5}},
            Reason.INVALID_FIELD,
            "section_budgets",
        ),
        ({"contexts": frozenset({"c" * 65})}, Reason.LIMIT_EXCEEDED, "contexts"),
        ({"contexts": frozenset(map(str, range(17)))}, Reason.LIMIT_EXCEEDED, "contexts"),
        ({"vector": b"abc"}, Reason.INVALID_FIELD, "query_vector"),
        ({"text": "q" * 8193}, Reason.LIMIT_EXCEEDED, "query"),
        ({"read": ReadAt(as_of=2**62)}, Reason.INVALID_FIELD, "read.as_of"),
    ],
)
def test_what_is_malformed_is_refused_at_its_field(ram, asked, reason, field):
    ram.put()
    with ram.refuses(reason, field):
        ram.recall(**asked)


@pytest.mark.parametrize(
    ("subjects", "reason", "field"),
    [
        ([MIRA] * 2, Reason.INVALID_FIELD, "subjects[1]"),
        ([Subject("user", str(one)) for one in range(17)], Reason.LIMIT_EXCEEDED, "subjects"),
        ([MIRA, Subject("", "x")], Reason.INVALID_FIELD, "subjects[1].type"),
    ],
)
def test_subjects_are_one_to_sixteen(ram, subjects, reason, field):
    ram.put()
    with ram.refuses(reason, field):
        ram.recall("", *subjects)


def test_a_partition_that_holds_nothing(ram):
    answer = ram.recall("anything", partition=Partition("production", "nobody"))
    assert (answer.context.text, answer.context.tokens, answer.revision) == ("", 0, 0)
