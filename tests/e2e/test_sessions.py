"""The main job, as an agent lives it: three sessions with restarts between, and a second tenant."""

from datetime import UTC, datetime

import pytest
from pillion_client import Client, FactKey, NotFound, Source, must_not_exist, version_equals
from pillion_testing.servers import ServerProcess

MIRA = "user:mira"
SAID = Source("user_statement")


def at(month, day):
    return datetime(2026, month, day, 9, tzinfo=UTC)


def client_of(server, tenant):
    return Client(f"unix:{server.ready['socket']}", partition=("agents", tenant))


def test_three_sessions_find_the_right_facts_and_another_tenant_finds_none(tmp_path):
    directory = tmp_path / "data"

    first = ServerProcess(directory)
    with client_of(first, "acme") as memory:
        memory.put_fact(
            MIRA, "city", "Lisbon", source=SAID, precondition=must_not_exist, valid_from=at(1, 10)
        )
        memory.put_fact(
            MIRA, "diet", "no peanuts", source=SAID, precondition=must_not_exist, importance=0.9
        )
        memory.capture_episode(
            MIRA,
            "I start my new job at Siemens on Monday.",
            source_kind="user_statement",
            session_id="s1",
            occurred_at=at(1, 12),
        )
    assert first.stop() == 0

    second = ServerProcess(directory)
    with client_of(second, "acme") as memory:
        city = memory.get_fact(MIRA, "city")
        assert city.value == "Lisbon"
        moved = memory.put_fact(
            MIRA,
            "city",
            "Berlin",
            source=SAID,
            precondition=version_equals(city.fact_version),
            valid_from=at(5, 3),
        ).only
        assert moved.superseded_id == city.id
    second.kill()  # the pod is gone without a word: what was acknowledged must be there

    third = ServerProcess(directory)
    try:
        with client_of(third, "acme") as memory:
            assert memory.get_fact(MIRA, "city").value == "Berlin"
            assert memory.get_fact(MIRA, "city", as_of=at(2, 1)).value == "Lisbon"
            assert [e.memory.value for e in memory.history(FactKey(MIRA, "city"))] == [
                "Lisbon",
                "Lisbon",
                "Berlin",
            ]
            found = memory.search("Which city does mira live in?", top_k=10)
            texts = [hit.memory.text for hit in found.hits]
            assert any("Berlin" in text for text in texts)
            assert not any("Lisbon" in text for text in texts), "a superseded row competes"
            assert any("Siemens" in text for text in texts)
            assert found.exactness.name == "EXACT"
        with client_of(third, "umbrella") as stranger:
            assert stranger.search("Which city does mira live in?", top_k=10).hits == ()
            assert list(stranger.list(subjects=[MIRA], all_contexts=True)) == []
            with pytest.raises(NotFound):
                stranger.get(moved.id)
            with pytest.raises(NotFound):
                stranger.get_fact(MIRA, "city")
    finally:
        third.stop()
