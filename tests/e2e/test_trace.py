"""Following provenance through a real server, by the client and the command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import uuid

import pytest
from pillion.cli.private_server import private_server
from pillion_client import AsyncClient, Client, NotFound, Source, TraceLink, unconditional


@pytest.fixture(scope="module")
def target():
    with private_server() as running:
        yield running


@pytest.fixture
def tenant():
    return f"t-{uuid.uuid4()}"


@pytest.fixture
def client(target, tenant):
    with Client(target, partition=("default", tenant)) as made:
        yield made


@pytest.fixture
def pillion(target, tenant):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PILLION_")}
    environment |= {"PILLION_TARGET": target, "PILLION_TENANT": tenant}

    def go(*arguments):
        command = [sys.executable, "-m", "pillion.cli", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    return go


def captured(client, words):
    done = client.capture_episode(
        "user:mira", words, source_kind="user_statement", indexing="source_only", author="Mira"
    )
    return done.only.id


def noted(client, text, *, said=None, derived_from=(), **more):
    source = said or Source("tool_result")
    done = client.add_memory("user:mira", text, source=source, derived_from=derived_from, **more)
    return done.only.id


@pytest.fixture
def family(client):
    """Two episodes, a fact of both, a guess, and two generations made of them."""
    first, second = captured(client, "I moved to Bern."), captured(client, "Bern is nice.")
    put = {"precondition": unconditional}
    fact = client.put_fact(
        "user:mira", "city", "Bern", source=Source("user_statement", first, "to Bern"), **put
    ).only.id
    client.put_fact("user:mira", "city", "Bern", source=Source("user_statement", second), **put)
    guess = noted(client, "likes Bern", said=Source("inference", second), context="work")
    child = noted(client, "lives in Bern", derived_from=(fact, guess))
    grandchild = noted(client, "a Bernese", derived_from=(child, fact))
    return first, second, fact, guess, child, grandchild


def test_a_memory_is_followed_both_ways(client, family):
    first, second, fact, guess, child, grandchild = family
    trace = client.trace(child)
    assert trace.complete
    assert set(trace.records) == {first, second, fact, guess, child, grandchild}
    assert set(trace.links) == {
        TraceLink(fact, child, "derived"),
        TraceLink(guess, child, "derived"),
        TraceLink(first, fact, "stated"),
        TraceLink(second, fact, "supported"),
        TraceLink(second, guess, "stated"),
        TraceLink(child, grandchild, "derived"),
    }
    assert {one.how for one in trace.sources_of(fact)} == {"stated", "supported"}
    assert [one.derived_id for one in trace.derived_of(child)] == [grandchild]


def test_an_episode_is_followed_to_all_that_came_from_it(client, family):
    _, second, fact, guess, child, grandchild = family
    trace = client.trace(second)
    assert set(trace.records) == {second, fact, guess, child, grandchild}
    assert {one.derived_id for one in trace.derived_of(second)} == {fact, guess}
    assert {one.how for one in trace.derived_of(second)} == {"supported", "stated"}


def test_a_trace_names_who_confirmed(client, pillion, family):
    first, second, fact = family[:3]
    third = captured(client, "Yes, in Bern.")
    client.confirm(fact, source=Source("user_confirmation", third, "Yes", "Ada"))
    assert client.get(fact).confirmation == Source("user_confirmation", third, "Yes", "Ada")
    assert client.trace(fact).sources_of(fact) == (
        TraceLink(first, fact, "stated"),
        TraceLink(third, fact, "confirmed"),
        TraceLink(second, fact, "supported"),
    )
    assert [one.how for one in client.trace(third).derived_of(third)] == ["confirmed"]
    lines = pillion("trace", fact).stdout.splitlines()
    assert lines[0].endswith('city = Bern "to Bern", confirmed by Ada "Yes"')
    assert any(one.startswith(f"  confirmed by episode by Mira {third}") for one in lines)
    assert f"  confirms memory (confirmed) {fact}" in pillion("trace", third).stdout
    # Confirmed again: the former one stays among those that support it.
    client.confirm(fact, source=Source("user_confirmation", first))
    assert {(one.source_id, one.how) for one in client.trace(fact).sources_of(fact)} == {
        (first, "stated"),
        (first, "confirmed"),
        (second, "supported"),
        (third, "supported"),
    }


@pytest.mark.parametrize("room", [0, 1, 3, 4, 5])
def test_a_trace_ends_where_it_is_told_to(client, family, room):
    trace = client.trace(family[4], records_max=room)
    assert len(trace.records) == room + 1
    assert trace.complete == (room == 5)


def test_the_asyncio_client_traces_alike(target, tenant, client, family):
    async def main():
        async with AsyncClient(target, partition=("default", tenant)) as other:
            return await other.trace(family[4])

    assert set(asyncio.run(main()).links) == set(client.trace(family[4]).links)


def test_what_is_not_there_cannot_be_traced(target, client, family):
    with pytest.raises(NotFound):
        client.trace(str(uuid.uuid4()))
    with (
        Client(target, partition=("default", f"t-{uuid.uuid4()}")) as other,
        pytest.raises(NotFound),
    ):
        other.trace(family[0])


def test_the_command_shows_a_tree_and_json(pillion, family):
    first, second, fact, _, child, grandchild = family
    done = pillion("trace", fact)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"memory (stated) {fact}")
    assert f"  stated by episode by Mira {first}" in done.stdout
    assert f"  supported by episode by Mira {second}" in done.stdout
    assert f"  led to memory (stated) {child}" in done.stdout
    assert f"    led to memory (stated) {grandchild}" in done.stdout
    assert f"  led to {grandchild} (see above)" in lines
    (tree,) = [json.loads(line) for line in pillion("trace", fact, "--json").stdout.splitlines()]
    assert (tree["root"], tree["complete"]) == (fact, True)
    assert {"source": first, "derived": fact, "how": "stated"} in tree["links"]
    assert {one["id"] for one in tree["records"]} >= {first, second, fact, child, grandchild}
    assert "the first 1" in pillion("trace", fact, "--limit", "1").stdout
    assert pillion("trace", uuid.uuid4()).returncode == 1


def test_history_says_who_in_which_episode_and_what_came_after(pillion, client, family):
    first, second, fact, *_ = family
    later = client.put_fact(
        "user:mira", "city", "Basel", source=Source("document", author="a letter"),
        precondition=unconditional,
    ).only.id  # fmt: skip
    shown = " ".join(pillion("history", "user:mira", "city").stdout.split())
    assert f"superseded by {later}" in shown
    assert f"user_statement in {first}, {second}" in shown
    assert "document by a letter" in shown
    assert "stated again" in shown
    assert fact in shown
