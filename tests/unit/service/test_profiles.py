"""What a profile's numbers do to a ranking: half-lives, source kinds, consolidation."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pillion.domain.errors import Reason
from pillion.domain.memory import MemoryKind, MemoryStatus, Source, SourceKind
from pillion.domain.queries import PLAIN_RANKING, Filter, RankingProfile, ReadAt
from pillion_testing.fakes import DAY, START
from pillion_testing.service import add, lmdb_service, put_fact, ram_service

INFERRED = Source(SourceKind.INFERENCE)
TOLD = Source(SourceKind.USER_STATEMENT)
TOOL = Source(SourceKind.TOOL_RESULT)


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def scores(service, ranking, **more):
    answer = service.search(ranking=ranking, **more)
    return {hit.memory.text: hit.score for hit in answer.hits}


def test_a_source_kind_scores_by_its_factor_now_and_in_the_past(service):
    service.write(
        add("tool", source=TOOL, importance=1.0),
        add("told", source=TOLD, importance=1.0),
    )
    then = ReadAt(exact_revision=service.revision)
    plain = scores(service, PLAIN_RANKING)
    assert plain["tool"] == plain["told"]
    doubted = RankingProfile(source_confidence={SourceKind.TOOL_RESULT: 0.5})
    for read in ({}, {"read": then}):
        now = scores(service, PLAIN_RANKING, **read)
        found = scores(service, doubted, **read)
        assert list(found) == ["told", "tool"]
        assert found["told"] == now["told"]
        assert found["tool"] == pytest.approx(now["tool"] * 0.5)


def test_a_kind_of_source_that_counts_for_nothing_is_last_and_still_there(service):
    service.write(*(add(f"told {n}") for n in range(5)), add("tool", source=TOOL))
    nothing = RankingProfile(source_confidence={SourceKind.TOOL_RESULT: 0.0})
    found = scores(service, nothing)
    assert list(found)[-1] == "tool"
    assert found["tool"] == 0.0


def test_half_lives_of_a_request_go_before_attributes_and_those_of_a_profile_after(service):
    service.register(attribute="mood", half_life=DAY)
    service.write(
        put_fact("x", attribute="mood", valid_from=START - 10 * DAY),
        put_fact("x", attribute="city", valid_from=START - 10 * DAY),
    )

    def recency(ranking):
        hits = service.search(ranking=ranking).hits
        return {hit.memory.attribute: hit.recency for hit in hits}

    profile = RankingProfile(usual_half_lives={MemoryKind.SEMANTIC: 10 * DAY})
    found = recency(profile)
    assert found["city"] == pytest.approx(0.5, rel=1e-3)
    assert found["mood"] == pytest.approx(2.0**-10, rel=1e-2)
    asked = replace(profile, half_lives={MemoryKind.SEMANTIC: 5 * DAY})
    assert recency(asked)["mood"] == recency(asked)["city"] == pytest.approx(0.25, rel=1e-3)
    forever = RankingProfile(usual_half_lives={MemoryKind.SEMANTIC: None})
    assert recency(forever)["city"] == 1.0


@pytest.mark.parametrize(
    ("factor", "reason"),
    [
        (-0.1, Reason.INVALID_FIELD),
        (1.5, Reason.INVALID_FIELD),
        (float("nan"), Reason.NOT_FINITE),
    ],
)
def test_a_factor_out_of_bounds_is_refused(service, factor, reason):
    ranking = RankingProfile(source_confidence={SourceKind.INFERENCE: factor})
    with service.refuses(reason, "ranking.source_confidence"):
        service.search(ranking=ranking)


def test_a_candidate_of_a_doubted_kind_is_doubted_too(service):
    service.write(
        add("guess", source=INFERRED, status=MemoryStatus.CANDIDATE),
        add("told", source=TOLD),
    )
    wanted = Filter(statuses=frozenset(MemoryStatus))
    doubted = RankingProfile(source_confidence={SourceKind.INFERENCE: 0.5})
    found = scores(service, doubted, filter=wanted)
    assert found["guess"] == pytest.approx(found["told"] * 0.5)
