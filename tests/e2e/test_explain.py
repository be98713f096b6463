"""``pillion explain`` against a real server: what dropped a memory, and where one was lost."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from pillion.cli.main import run
from pillion_client import Client, Partition, Source
from pillion_testing.servers import ServerProcess

SAID = Source("user_statement")
MIRA = "user:mira"
SAYING = "The vault opens with the word xylophone."


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    # Without an embedder: every answer is there as soon as what it is about.
    running = ServerProcess(tmp_path_factory.mktemp("explained"), "--embedder", "none")
    yield f"unix:{running.ready['socket']}"
    running.stop()


@pytest.fixture
def partition():
    return Partition("explained", f"t-{uuid.uuid4()}")


@pytest.fixture
def client(target, partition):
    with Client(target, partition=partition) as made:
        yield made


@pytest.fixture
def explain(target, partition, capsys):
    """Run ``pillion explain`` and return what it wrote; with --json, the document."""

    def go(*arguments, as_json=True):
        where = ["--target", target, "--namespace", partition.namespace]
        where += ["--tenant", partition.tenant]
        capsys.readouterr()
        code = run(["explain", *map(str, arguments), *where, *(["--json"] if as_json else [])])
        written = capsys.readouterr()
        assert code == 0, written.err
        return json.loads(written.out) if as_json else written.out

    return go


def added(client, text, **more):
    return client.add_memory(MIRA, text, source=SAID, **more).results[0].id


def layers(document):
    return {one["layer"]: one["verdict"] for one in document["layers"]}


def test_every_near_candidate_is_told_and_nothing_that_was_said(client, explain):
    kept = added(client, SAYING)
    guess = added(client, "A guess.", labels=("draft",))
    document = explain("xylophone", "--label", "draft")
    told = {one["memory_id"]: one["dropped_by"] for one in document["candidates"]}
    assert told == {guess: "", kept: "filter:labels_all"}
    assert document["memories"] == 2
    assert document["timings_us"].keys() >= {"rank", "fetch"}
    table = explain("xylophone", "--label", "draft", as_json=False)
    assert "filter:labels_all" in table
    for written in (json.dumps(document), table):
        assert "vault" not in written
        assert "mira" not in written


def test_a_memory_that_is_found_passes_every_layer(client, explain):
    found = added(client, SAYING)
    document = explain("xylophone", "--memory", found, "--subject", MIRA)
    assert document["lost_at"] is None, document
    passed = layers(document)
    assert list(passed)[:4] == ["stored", "committed", "indexed", "scope"]
    assert passed["filters"] == passed["ranked"] == "ok"


def test_each_layer_that_loses_a_memory_is_named(client, explain):
    now = datetime.now(UTC)
    work = added(client, "At work.", context="work")
    ended = added(
        client, "It was so.", valid_from=now - timedelta(days=9), valid_to=now - timedelta(days=1)
    )
    weak = added(client, "Of no weight.", importance=0.0, valid_from=now - timedelta(days=900))
    for number in range(3):
        added(client, f"Of weight {number}.", importance=1.0)
    gone = uuid.uuid4()
    for memory, more, layer, says in (
        (gone, (), "stored", "no record"),
        (work, (), "scope", "context"),
        (ended, (), "filters", "validity"),
        (weak, ("-k", 1), "ranked", "below_top_k"),
        (weak, ("--subject", "user:bob"), "scope", "user:mira"),
    ):
        document = explain("--memory", memory, *more)
        assert document["lost_at"] == layer
        last = document["layers"][-1]
        assert says in last["detail"]
        assert last["advice"]
    assert "filters" in explain("--memory", ended, as_json=False)
    assert explain("--memory", ended, "--superseded")["lost_at"] != "filters"


def test_a_memory_that_was_not_there_yet_is_lost_at_the_first_layer(client, explain):
    added(client, "Before.")
    revision = client.search().revision
    later = added(client, "Later.")
    document = explain("--memory", later, "--at-revision", revision)
    assert document["lost_at"] == "stored"
    assert "recorded state" in document["layers"][0]["detail"]


def test_to_explain_an_answer_uses_no_memory(tmp_path, request, capsys):
    """Else the question why something ranks low would raise what it is compared with."""
    server = ServerProcess(tmp_path / "d", "--embedder", "none")
    request.addfinalizer(lambda: server.kill() if server.is_running else None)
    where = ["--target", f"unix:{server.ready['socket']}"]
    with Client(where[1]) as client:
        ids = [added(client, f"Of weight {n}.", importance=n / 2) for n in range(3)]
    assert run(["explain", "weight", *where]) == 0
    assert run(["explain", "--memory", ids[0], "-k", "1", *where]) == 0
    assert "below_top_k" in capsys.readouterr().out
    server.stop()  # uses are written down now, at the latest
    server = ServerProcess(tmp_path / "d", "--embedder", "none")
    with Client(f"unix:{server.ready['socket']}") as client:
        assert [client.get(one).use_count for one in ids] == [0, 0, 0]
    server.stop()
