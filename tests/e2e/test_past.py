"""The past over the wire: every verb, by revision and by instant, before and after a restart."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from pillion_client import (
    Client,
    FactKey,
    NotFound,
    OutOfRange,
    Partition,
    Source,
    Subject,
    unconditional,
)
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess, environment

SAID = Source("user_statement")
KEY = FactKey(Subject("user", "mira"), "city")
JAN, MAY = datetime(2026, 1, 10, tzinfo=UTC), datetime(2026, 5, 3, tzinfo=UTC)
FACT = {"subject": {"type": "user", "id": "mira"}, "attribute": "city"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("past") / "d"


@pytest.fixture
def server(directory):
    running = ServerProcess(directory)
    yield running
    running.stop()


def put(client, value, since):
    return client.put_fact(
        "user:mira", "city", value, source=SAID, precondition=unconditional, valid_from=since
    )


def requests(read, memory_id):
    """One request of each verb, and its name."""
    about = {"subjects": [FACT["subject"]]}
    return [
        ("Get", wire.GetRequest(target={"fact": FACT}, read=read)),
        ("Get", wire.GetRequest(target={"memory_id": memory_id}, read=read, include_vector=True)),
        ("BatchGet", wire.BatchGetRequest(targets=[{"fact": FACT}], read=read)),
        ("List", wire.ListRequest(read=read)),
        ("List", wire.ListRequest(read=read, episodes=True)),
        ("History", wire.HistoryRequest(fact=FACT, read=read)),
        ("History", wire.HistoryRequest(memory_id=memory_id, read=read)),
        ("Search", wire.SearchRequest(text="tea", top_k=5, include_parts=True, read=read)),
        ("Search", wire.SearchRequest(top_k=5, filter={"subjects": [FACT["subject"]]}, read=read)),
        ("Recall", wire.RecallRequest(token_budget=60, query="tea", read=read, **about)),
        ("Neighbors", wire.NeighborsRequest(direction=3, read=read, **about)),
    ]


def answers(server, read, memory_id):
    """What each verb answers, as bytes."""
    return [
        getattr(server.stub, verb)(request, timeout=SECONDS).SerializeToString(deterministic=True)
        for verb, request in requests(read, memory_id)
    ]


def test_every_verb_answers_the_same_for_ever(tmp_path, request):
    server = ServerProcess(tmp_path / "d")
    request.addfinalizer(lambda: server.is_running and server.kill())
    with Client(f"unix:{server.ready['socket']}") as client:
        first = put(client, "Lisbon", JAN)
        noted = client.add_memory(
            "user:mira", "Mira likes tea", source=SAID, embedding="inline"
        ).only
        written = client.capture_episode(
            "user:mira", "I moved", source_kind="user_statement", embedding="inline"
        )
        episode, revision = written.only, written.revision
        instant = datetime.now(UTC)
        told = [{"exact_revision": revision}, {"known_at": instant}]
        then = [answers(server, read, noted.id) for read in told]

        put(client, "Berlin", MAY)
        put(client, "Porto", datetime(2025, 1, 1, tzinfo=UTC))
        client.forget(ids=[noted.id], mode="expire", dry_run=False)
        client.add_memory("user:mira", "Mira likes tea, and more tea", source=SAID)
        assert [answers(server, read, noted.id) for read in told] == then

        for read in ({"exact_revision": revision}, {"known_at": instant}):
            assert client.get_fact("user:mira", "city", **read).value == "Lisbon"
            assert client.get(noted.id, **read).expires_at is None
            assert client.get_episode(episode.id, **read).content == "I moved"
            (row,) = client.batch_get([KEY], **read)
            assert (row.value, row.valid_to, row.fact_version) == ("Lisbon", None, first.revision)
            values = [one.value for one in client.list(attributes=["city"], **read)]
            assert values == ["Lisbon"]
            assert [one.id for one in client.list_episodes(**read)] == [episode.id]
            (entry,) = client.history(KEY, **read)
            assert (entry.memory.value, entry.recorded_to) == ("Lisbon", None)
            found = client.search("tea", kinds=["episodic"], **read)
            assert noted.id in [hit.memory.id for hit in found.hits]
            assert (found.revision, found.exactness.value) == (revision, "exact")
            context = client.recall("user:mira", "tea", token_budget=500, **read)
            assert "user:mira city: Lisbon" in context.text
            assert noted.id in [line.citation.memory_id for line in context.lines]
            assert context.revision == revision
        assert client.get_fact("user:mira", "city").value == "Berlin"
        assert client.get(noted.id).expires_at is not None
        # The recorded times of a history are instants that can be asked about.
        for one in client.history(KEY):
            known = client.get_fact(
                "user:mira", "city", known_at=one.recorded_from, as_of=one.memory.valid_from
            )
            assert (known.value, known.version) == (one.memory.value, one.recorded_from_revision)
    server.kill()
    again = ServerProcess(tmp_path / "d")
    assert [answers(again, read, noted.id) for read in told] == then
    again.stop()


def test_what_is_not_known_yet_is_out_of_range(server):
    with Client(f"unix:{server.ready['socket']}") as client:
        newest = put(client, "Rome", MAY).revision
        for read in (
            {"exact_revision": newest + 1000},  # vectors are commits of their own
            {"known_at": datetime.now(UTC) + timedelta(hours=1)},
        ):
            for ask in (
                lambda r=read: client.get_fact("user:mira", "city", **r),
                lambda r=read: client.batch_get([KEY], **r),
                lambda r=read: list(client.list(**r)),
                lambda r=read: list(client.history(KEY, **r)),
                lambda r=read: client.search("tea", **r),
                lambda r=read: client.recall("user:mira", token_budget=9, **r),
                lambda r=read: client.neighbors("user:mira", **r),
            ):
                with pytest.raises(OutOfRange) as caught:
                    ask()
                assert caught.value.reason == "FUTURE_REVISION"
                assert newest <= int(caught.value.metadata["newest_revision"]) < newest + 9
        before = datetime(1, 1, 1, tzinfo=UTC)
        with pytest.raises(NotFound):
            client.get_fact("user:mira", "city", known_at=before)
        assert list(client.list(known_at=before)) == []
        # Another tenant has revisions of its own, and hears of no others.
        other = Partition("default", "other")
        with pytest.raises(OutOfRange) as caught:
            client.search("tea", exact_revision=1, partition=other)
        assert caught.value.metadata["newest_revision"] == "0"


def test_the_command_line_asks_about_both_clocks(server, tmp_path):
    def pillion(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "pillion.cli", *arguments],
            capture_output=True,
            text=True,
            env=environment()
            | {"PILLION_TARGET": f"unix:{server.ready['socket']}", "PILLION_TENANT": "cli"},
            cwd=tmp_path,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def write(value, since):
        code, out = pillion("write", "fact", "user:mira", "city", value, "--valid-from", since)
        assert code == 0, out

    write("Lisbon", "2026-01-10T00:00:00Z")
    then = datetime.now(UTC).isoformat()
    write("Berlin", "2026-05-03T00:00:00Z")
    for asked in (["--known-at", then], ["--at-revision", "1"]):
        assert "Lisbon" in pillion("get", "user:mira", "city", *asked)[1]
        for command in (
            ["get", "user:mira", "city"],
            ["list"],
            ["search", "city"],
            ["history", "user:mira", "city"],
            ["recall", "user:mira"],
        ):
            code, out = pillion(*command, *asked)
            assert code == 0, out
            assert "Lisbon" in out
            assert "Berlin" not in out
    code, out = pillion("history", "user:mira", "city", "--json", "--at-revision", "1")
    assert "recorded_to" not in json.loads(out)
    assert "Berlin" in pillion("get", "user:mira", "city", "--as-of", "2026-06-01T00:00:00Z")[1]
    code, out = pillion("get", "user:mira", "city", "--at-revision", "900")
    assert code != 0
    assert "the newest revision is" in out
