"""The half-lives of registered attributes in ranking."""

from __future__ import annotations

import pytest
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import RankingProfile, ReadAt
from pillion.domain.schemas import ExistingValues
from pillion.domain.scope import Partition
from pillion.service import resident
from pillion_testing.fakes import DAY, START
from pillion_testing.service import (
    add,
    floats,
    lmdb_service,
    put_fact,
    ram_service,
    refusal,
)

YEAR = 365 * DAY
OTHER = Partition("production", "other")


@pytest.fixture(params=["ram", "lmdb"])
def service(request, tmp_path):
    made = ram_service() if request.param == "ram" else lmdb_service(tmp_path / "store")
    yield made
    made.close()


def told(service, *attributes, partition=None):
    """A fact of each attribute, thirty days old."""
    for attribute in attributes:
        service.write(
            put_fact("x", attribute=attribute, valid_from=START - 30 * DAY), partition=partition
        )


def recency(service, *, partition=None, **more):
    """The recency of each hit by its attribute, best first."""
    answer = service.search(partition=partition, **more)
    return {hit.memory.attribute: hit.recency for hit in answer.hits}


def halvings(service, days, half_life_days):
    """Recency after so many days (and what the clock went on)."""
    age = (service.clock.now - START) / DAY + days
    return pytest.approx(2.0 ** -(age / half_life_days), rel=1e-4)


def test_a_fact_with_a_half_life_of_a_day_ranks_below_one_of_a_year(service):
    service.register(attribute="mood", half_life=DAY)
    service.register(attribute="city", half_life=YEAR)
    told(service, "mood", "city")
    found = recency(service)
    assert list(found) == ["city", "mood"]
    assert found == {
        "city": halvings(service, 30, 365),
        "mood": halvings(service, 30, 1),
    }


def test_registering_and_registering_anew_rank_what_is_there(service):
    told(service, "mood", "city", "plan")
    semantic = halvings(service, 30, 365)
    assert recency(service) == dict.fromkeys(("mood", "city", "plan"), semantic)
    service.register(attribute="mood", half_life=DAY)
    assert recency(service)["mood"] == halvings(service, 30, 1)
    service.register(attribute="city", half_life=30 * DAY)
    assert recency(service)["city"] == halvings(service, 30, 30)
    service.register(attribute="mood", half_life=10 * YEAR)
    found = recency(service)
    assert list(found) == ["mood", "plan", "city"]
    assert found["mood"] == halvings(service, 30, 3650)
    service.register(attribute="mood")
    service.register(attribute="city")
    assert set(recency(service)) == {"mood", "city", "plan"}
    assert recency(service)["city"] == recency(service)["mood"] == halvings(service, 30, 365)


def test_a_request_that_names_the_kind_goes_before_it(service):
    service.register(attribute="mood", half_life=DAY)
    told(service, "mood")
    for asked, expected in (
        ({MemoryKind.SEMANTIC: 30 * DAY}, halvings(service, 30, 30)),
        ({MemoryKind.SEMANTIC: None}, 1.0),
        ({MemoryKind.EPISODIC: 30 * DAY}, halvings(service, 30, 1)),
    ):
        ranking = RankingProfile(half_lives=asked)
        assert recency(service, ranking=ranking) == {"mood": expected}
        read = ReadAt(exact_revision=service.revision)
        assert set(recency(service, ranking=ranking, read=read)) == {"mood"}
    weights = RankingProfile(recency_weight=1.0)
    assert recency(service, ranking=weights) == {"mood": halvings(service, 30, 1)}


def test_memories_without_an_attribute_decay_by_their_kind(service):
    service.register(attribute="mood", half_life=DAY)
    service.write(add("x", valid_from=START - 30 * DAY))
    assert recency(service) == {"": halvings(service, 30, 30)}


def test_searches_of_the_past_go_by_what_was_registered_then(service):
    told(service, "mood")
    before = ReadAt(exact_revision=service.revision)
    service.clock.advance()
    first = service.register(attribute="mood", half_life=DAY).revision
    service.clock.advance()
    service.register(attribute="mood", half_life=YEAR / 2)
    then = recency(service, read=before)
    assert then["mood"] == pytest.approx(2.0 ** -(30 / 365), rel=1e-4)
    middle = recency(service, read=ReadAt(exact_revision=first))
    assert middle["mood"] == pytest.approx(2.0**-30, rel=1e-3)
    service.clock.advance(DAY)
    service.register(attribute="mood", half_life=2 * DAY)
    assert recency(service, read=before) == then
    assert recency(service, read=ReadAt(exact_revision=first)) == middle


def test_the_past_and_the_present_agree(service):
    told(service, "mood", "city", "plan")
    service.register(attribute="mood", half_life=DAY)
    service.register(attribute="city", half_life=9 * DAY)
    now = recency(service)
    assert recency(service, read=ReadAt(exact_revision=service.revision)) == pytest.approx(
        now, rel=1e-4
    )


def test_a_proposal_or_a_refusal_changes_nothing(service):
    told(service, "mood")
    expected = recency(service)
    wrong = {"type": "integer"}
    assert refusal(lambda: service.register(wrong, attribute="mood", half_life=DAY))
    service.register(attribute="mood", half_life=DAY, validate_only=True)
    assert recency(service) == expected
    service.register(wrong, attribute="mood", half_life=DAY, existing=ExistingValues.MAY_DIFFER)
    assert recency(service)["mood"] == halvings(service, 30, 1)
    assert refusal(lambda: service.register({"type": "boolean"}, attribute="mood"))
    assert recency(service)["mood"] == halvings(service, 30, 1)


def test_another_partitions_registrations_do_not_count(service):
    service.register(attribute="mood", half_life=DAY)
    told(service, "mood", partition=OTHER)
    (found,) = recency(service, partition=OTHER).values()
    assert found == halvings(service, 30, 365)


def test_they_are_read_again_with_everything_else(tmp_path):
    service = lmdb_service(tmp_path / "store")
    told(service, "mood")
    service.register(attribute="mood", half_life=DAY)
    service.close()
    service = lmdb_service(tmp_path / "store", ids=service.ids)
    assert recency(service)["mood"] == halvings(service, 30, 1)
    # The first vector decides the space, which loads the partition anew.
    service.write(add("x", vector=floats(1, 0)))
    assert recency(service)["mood"] == halvings(service, 30, 1)
    service.close()


def test_with_meaning_they_count_too(service):
    service.register(attribute="mood", half_life=DAY)
    for attribute in ("mood", "city"):
        service.write(
            put_fact("x", attribute=attribute, valid_from=START - 30 * DAY, vector=floats(1.0, 0.0))
        )
    answer = service.search(vector=floats(1, 0))
    assert [hit.memory.attribute for hit in answer.hits] == ["city", "mood"]


def test_more_registrations_than_one_step_of_the_feed(service, monkeypatch):
    monkeypatch.setattr(resident, "FEED_STEP", 2)
    told(service, "a0")
    assert set(recency(service)) == {"a0"}
    for number in range(6):
        service.register(attribute=f"a{number}", half_life=(number + 1) * DAY)
    told(service, *(f"a{number}" for number in range(1, 6)))
    assert recency(service) == {
        f"a{number}": halvings(service, 30, number + 1) for number in range(6)
    }
