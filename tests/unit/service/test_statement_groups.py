"""Groups of statements in Search: the latest leads, the others follow or are folded."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pillion.domain.grouping import SERIES_MAX
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.queries import (
    Filter,
    OlderStatements,
    RankingProfile,
    ReadAt,
    SearchQuery,
)
from pillion.domain.scope import Subject
from pillion.service import arranging
from pillion_testing.fakes import DAY, START
from pillion_testing.service import (
    EVERYTHING,
    add,
    floats,
    lmdb_service,
    put_fact,
    ram_service,
    retract,
)

PLAIN = RankingProfile(recency_weight=0.0)
ONLY_IMPORTANCE = RankingProfile(relevance_weight=0.0, recency_weight=0.0, importance_weight=1.0)


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def said(text, days_ago, **more):
    return add(text, valid_from=START - days_ago * DAY, **more)


def texts(answer):
    return [hit.memory.text for hit in answer.hits]


FREE = "The customer is on the Free plan."
PRO = "The customer is on the Pro plan."


def half_a_year_of_free(service):
    """Frequent mentions of the old plan, each a little different, and one of the new."""
    service.write(
        *(
            said(f"The customer is on the Free plan, as of call {n}.", 200 - 3 * n, importance=0.9)
            for n in range(60)
        ),
        *(said(f"The weather was fine on day {n}.", n + 1, importance=0.1) for n in range(20)),
        said(PRO, 2, importance=0.1),
    )


@pytest.mark.parametrize("ranking", [RankingProfile(), PLAIN, ONLY_IMPORTANCE])
def test_one_recent_pro_goes_before_half_a_year_of_free(service, ranking):
    """Typed: only the row that holds competes. Untyped: the latest of its group leads."""
    for n in range(60):
        service.write(
            put_fact("Free", attribute="plan", valid_from=START - (200 - 3 * n) * DAY, text=FREE)
        )
    service.write(
        put_fact("Pro", attribute="plan", valid_from=START - 2 * DAY, text=PRO, importance=0.1)
    )
    typed = service.search("Which plan is the customer on?", ranking=ranking)
    assert texts(typed) == [PRO]


@pytest.mark.parametrize("ranking", [RankingProfile(), PLAIN, ONLY_IMPORTANCE])
def test_an_untyped_pro_goes_before_half_a_year_of_free(service, ranking):
    """With decay and without, though the old mentions fill every list of candidates."""
    half_a_year_of_free(service)
    for top_k in (1, 5, 10, 100):
        asked = {"top_k": top_k, "ranking": ranking}
        answer = service.search("Which plan is the customer on?", **asked)
        assert texts(answer)[0] == PRO
        assert not answer.hits[0].older
        assert all(hit.older for hit in answer.hits if "Free" in hit.memory.text)


def test_the_group_keeps_its_places_and_nothing_else_moves(service):
    service.write(
        said("We watched a film about bees.", 5, importance=0.8),
        said(FREE, 90, importance=0.9),
        said("Lena plays the piano.", 3, importance=0.7),
        said(PRO, 9, importance=0.6),
        said("The cellar got wet.", 1, importance=0.5),
    )
    answer = service.search(ranking=ONLY_IMPORTANCE)
    by_score = sorted(answer.hits, key=lambda hit: -hit.score)
    assert [hit.memory.text for hit in by_score][::2] == [
        FREE, "Lena plays the piano.", "The cellar got wet.",
    ]  # fmt: skip
    assert texts(answer) == [
        PRO,
        "We watched a film about bees.",
        "Lena plays the piano.",
        FREE,
        "The cellar got wet.",
    ]
    assert [hit.older for hit in answer.hits] == [False, False, False, True, False]
    assert answer.hits[0].score == pytest.approx(0.6), "scores stay what they are"


def test_the_latest_leads_even_from_beyond_the_answer(service):
    service.write(said(FREE, 90, importance=0.9), said(PRO, 9, importance=0.1))
    service.write(*(said(f"Lena plays piece {n} {'x' * n}.", 3, importance=0.5) for n in range(9)))
    answer = service.search(ranking=ONLY_IMPORTANCE, top_k=1)
    assert texts(answer) == [PRO]


def test_older_statements_are_folded_on_request_and_make_room(service):
    old = [service.one(said(FREE.replace("Free", name), 90 - n, importance=0.9)).id
           for n, name in enumerate(("Free", "Solo", "Team"))]  # fmt: skip
    service.write(said(PRO, 9, importance=0.1), said("The cellar got wet.", 1, importance=0.05))
    fold = {"ranking": ONLY_IMPORTANCE, "older_statements": OlderStatements.FOLD, "top_k": 2}
    answer = service.search(**fold)
    assert texts(answer) == [PRO, "The cellar got wet."]
    assert answer.hits[0].folded == tuple(reversed(old))
    assert answer.hits[1].folded == ()
    assert not any(hit.older for hit in answer.hits)
    assert answer.admitted == 5


@pytest.mark.parametrize(
    "other",
    [
        {"subject": Subject("user", "bob")},
        {"context": "work"},
        {"kind": MemoryKind.SEMANTIC},
    ],
)
def test_groups_cross_no_wall(service, other):
    service.write(said(FREE, 90, importance=0.9), said(PRO, 9, importance=0.1, **other))
    answer = service.search(ranking=ONLY_IMPORTANCE, filter=Filter(contexts=None))
    assert texts(answer) == [FREE, PRO]
    assert not any(hit.older for hit in answer.hits)


def test_open_items_and_sessions_are_left_alone(service):
    for kind in (MemoryKind.OPEN_ITEM, MemoryKind.SESSION):
        service.write(
            said("Call the customer about the plan.", 90, importance=0.9, kind=kind),
            said("Call the customer about the plan!", 9, importance=0.1, kind=kind),
        )
    answer = service.search(ranking=ONLY_IMPORTANCE)
    assert not any(hit.older for hit in answer.hits)


def test_statements_of_one_instant_are_not_older_than_each_other(service):
    service.write(said(FREE, 9, importance=0.9), said(PRO, 9, importance=0.1))
    answer = service.search(ranking=ONLY_IMPORTANCE)
    assert texts(answer) == [FREE, PRO]
    assert not any(hit.older for hit in answer.hits)


def test_a_statement_that_no_longer_holds_leads_nothing(service):
    service.write(said(FREE, 90, importance=0.9))
    ended = service.one(said(PRO, 9, importance=0.1, valid_to=START - 4 * DAY))
    taken_back = service.one(said(PRO.replace("Pro", "Team"), 8, importance=0.1))
    service.write(retract(taken_back.id))
    service.write(said(PRO.replace("Pro", "Solo"), 7, expires_at=START - 1))
    answer = service.search(ranking=ONLY_IMPORTANCE)
    assert texts(answer) == [FREE]
    assert not answer.hits[0].older
    then = ReadAt(as_of=START - 5 * DAY)
    answer = service.search(ranking=ONLY_IMPORTANCE, read=then)
    assert [hit.memory.id for hit in answer.hits][:2] == [taken_back.id, ended.id]
    assert [hit.older for hit in answer.hits] == [False, True, True]


@pytest.mark.parametrize("over", ["retracted", "expired", "ended", "to come", "guessed"])
def test_what_is_not_so_leads_nothing_even_where_it_is_asked_for(service, over):
    """Else a search for everything would fold what is so into what was taken back."""
    service.write(said(FREE, 9))
    times = {"ended": {"valid_to": START - DAY}}.get(over, {})
    source = Source(SourceKind.INFERENCE if over == "guessed" else SourceKind.USER_STATEMENT)
    days_ago = -1 if over == "to come" else 2
    later = service.one(said(PRO, days_ago, source=source, **times)).id
    if over == "retracted":
        service.write(retract(later))
    elif over == "expired":
        service.forget(ids=(later,))
    for older in OlderStatements:
        answer = service.search(PRO, filter=EVERYTHING, older_statements=older)
        assert sorted(texts(answer)) == [FREE, PRO]
        assert not any(hit.older or hit.folded for hit in answer.hits)


def test_superseded_rows_of_a_fact_never_compete(service):
    for n in range(5):
        service.write(put_fact(f"v{n}", valid_from=START - (50 - n) * DAY, text=f"It is v{n} now."))
    assert texts(service.search("What is it now?")) == ["It is v4 now."]
    everything = service.search("What is it now?", filter=Filter(valid_only=False))
    assert len(everything.hits) == 5
    assert not any(hit.older for hit in everything.hits), "facts have their timelines"


def test_a_search_of_the_past_has_the_groups_of_then(service):
    service.write(said(FREE, 90, importance=0.9))
    service.write(said(PRO, 9, importance=0.1))
    then = ReadAt(exact_revision=service.revision)
    before = service.search(ranking=ONLY_IMPORTANCE, read=then)
    assert texts(before) == [PRO, FREE]
    service.write(said(PRO.replace("Pro", "Team"), 1, importance=0.2))
    assert texts(service.search(ranking=ONLY_IMPORTANCE))[0] == PRO.replace("Pro", "Team")
    assert service.search(ranking=ONLY_IMPORTANCE, read=then) == before


def test_vectors_group_where_their_cosines_were_measured(service, monkeypatch):
    service.write(
        said("My flat is in Oslo.", 90, importance=0.9, vector=floats(1, 0.1)),
        said("I have moved to Ghent.", 9, importance=0.1, vector=floats(1, 0.3)),
    )
    asked = {"ranking": ONLY_IMPORTANCE}
    assert not any(hit.older for hit in service.search(**asked).hits)
    bars = arranging.COSINE_BARS["multilingual-e5-small-q4"]
    monkeypatch.setitem(arranging.COSINE_BARS, "client", bars)
    for read in ({}, {"read": ReadAt(exact_revision=service.revision)}):
        answer = service.search(**asked, **read)
        assert texts(answer) == ["I have moved to Ghent.", "My flat is in Oslo."]
        assert [hit.older for hit in answer.hits] == [False, True]


def test_a_diverse_answer_has_what_the_plain_one_repeats(service):
    service.write(
        *(add(f"twin {n}", importance=0.9 - n / 100, vector=floats(1, 0.01 * n)) for n in range(4)),
        add("other", importance=0.5, vector=floats(0, 1)),
    )
    plain = service.search(ranking=ONLY_IMPORTANCE, top_k=2)
    assert texts(plain) == ["twin 0", "twin 1"]
    diverse = replace(ONLY_IMPORTANCE, diversity=0.5)
    for read in ({}, {"read": ReadAt(exact_revision=service.revision)}):
        answer = service.search(ranking=diverse, top_k=2, **read)
        assert texts(answer) == ["twin 0", "other"]
        assert answer.hits[0].score == plain.hits[0].score
    everything = service.search(ranking=diverse, top_k=10)
    assert sorted(texts(everything)) == sorted(texts(service.search(top_k=10)))


def test_without_vectors_diversity_goes_by_words(service):
    service.write(
        add("the red house by the lake", importance=0.9),
        add("the red house at the lake", importance=0.8),
        add("a concert in spring", importance=0.6),
    )
    diverse = replace(ONLY_IMPORTANCE, diversity=0.5)
    assert texts(service.search(ranking=diverse, top_k=2)) == [
        "the red house by the lake",
        "a concert in spring",
    ]


def test_of_two_memories_vectors_say_how_alike_they_are_only_where_both_have_one(service):
    """To the first the second is 0 by vectors and 1 by words, the third 1/5 and the last 0."""
    service.write(
        add("red house lake", importance=0.9, vector=floats(1, 0)),
        add("Red house, lake!", importance=0.5, vector=floats(0, 1)),
        add("red concert spring", importance=0.65),
        add("green", importance=0.5),
    )
    diverse = replace(ONLY_IMPORTANCE, diversity=0.5)
    answer = service.search(ranking=diverse, top_k=4)
    # 0.5 x 0.5 - 0.5 x 0 is more than 0.5 x 0.65 - 0.5 x 1/5.
    assert texts(answer) == [
        "red house lake",
        "Red house, lake!",
        "green",
        "red concert spring",
    ]


def test_no_diversity_is_the_plain_answer(service):
    service.write(*(add(f"one {n}", importance=n / 9, vector=floats(n, 1)) for n in range(9)))
    plain = service.search(vector=floats(1, 0))
    assert service.search(vector=floats(1, 0), ranking=RankingProfile(diversity=0.0)) == plain


def test_a_window_has_bounds():
    assert arranging.window_of(SearchQuery(top_k=1)) == 11
    assert arranging.window_of(SearchQuery(top_k=100)) == 200
    assert arranging.window_of(SearchQuery(top_k=1000)) == 1000
    diverse = RankingProfile(diversity=0.1)
    assert arranging.window_of(SearchQuery(top_k=1, ranking=diverse)) == 64
    assert arranging.window_of(SearchQuery(top_k=100, ranking=diverse)) == 400


@pytest.mark.parametrize("count", [SERIES_MAX + 1, SERIES_MAX + 2, 60])
def test_records_of_a_series_are_not_older_statements_of_the_last(service, count):
    """They differ in numbers alone. A few may be one thing that changed; many are many things."""
    service.write(
        *(
            said(f"The report for account {n} is due on Friday.", 90 - n, importance=1 - n / 100)
            for n in range(count)
        )
    )
    answer = service.search(ranking=ONLY_IMPORTANCE, top_k=count)
    scores = [hit.score for hit in answer.hits]
    in_order = count > SERIES_MAX + 1
    assert (scores == sorted(scores, reverse=True)) is in_order
    assert any(hit.older for hit in answer.hits) is not in_order
