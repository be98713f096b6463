"""The command line, as a process of its own, against a real server."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from pillion.cli.private_server import private_server
from pillion_client import (
    AlreadyExists,
    AsyncClient,
    Client,
    FactKey,
    InvalidArgument,
    NotFound,
    Source,
    VersionMismatch,
    must_not_exist,
    unconditional,
    version_equals,
)

SAID = Source("user_statement")
README = Path(__file__).parents[2] / "clients/python/README.md"


@pytest.fixture(scope="module")
def target():
    with private_server() as running:
        yield running


@pytest.fixture
def tenant():
    return f"t-{uuid.uuid4()}"


@pytest.fixture
def pillion(target, tenant, tmp_path):
    """Run ``pillion`` in a tenant that nothing else uses."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PILLION_")}
    environment |= {"PILLION_TARGET": target, "PILLION_TENANT": tenant}

    def go(*arguments):
        command = [sys.executable, "-m", "pillion.cli", *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
        )

    return go


def documents(done):
    assert done.returncode in {0, 4}, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_was_written_is_found_by_every_reading_command(pillion):
    written = pillion("write", "fact", "user:mira", "city", "Bern", "--json")
    (result,) = documents(written)
    (identity,) = {one["id"] for one in result["results"]}
    (fact,) = documents(pillion("get", "user:mira", "city", "--json"))
    (memory,) = documents(pillion("get", identity, "--json"))
    (search,) = documents(pillion("search", "Bern", "--json"))
    (listed,) = documents(pillion("list", "--json"))
    (entry,) = documents(pillion("history", "user:mira", "city", "--json"))
    assert fact["value"] == memory["value"] == listed["value"] == entry["memory"]["value"] == "Bern"
    assert [hit["memory"]["id"] for hit in search["hits"]] == [identity]
    assert "Bern" in pillion("get", identity).stdout


def test_a_stale_write_is_refused_with_the_current_version(pillion):
    (first,) = documents(pillion("write", "fact", "user:mira", "city", "Bern", "--json"))
    version = first["results"][0]["fact_version"]
    (second,) = documents(
        pillion("write", "fact", "user:mira", "city", "Basel", "--if-version", version, "--json")
    )
    stale = pillion("write", "fact", "user:mira", "city", "Chur", "--if-version", version, "--json")
    assert stale.returncode == 1
    error = json.loads(stale.stdout)["error"]
    assert error["reason"] == "VERSION_MISMATCH"
    assert int(error["metadata"]["current_version"]) == second["results"][0]["fact_version"]
    assert pillion("write", "fact", "user:mira", "city", "Chur", "--if-new").returncode == 1


def test_forget_shows_then_forgets(pillion):
    documents(pillion("write", "fact", "user:mira", "city", "Bern", "--json"))
    (shown,) = documents(pillion("forget", "--subject", "user:mira", "--json"))
    assert shown["preview"]["report"]["memories"] == 1
    assert len(documents(pillion("list", "--json"))) == 1
    documents(pillion("forget", "--subject", "user:mira", "--yes", "--json"))
    assert documents(pillion("list", "--json")) == []


def test_another_tenant_sees_nothing(pillion):
    documents(pillion("write", "fact", "user:mira", "city", "Bern", "--json"))
    assert documents(pillion("list", "--tenant", "somebody-else", "--json")) == []
    assert pillion("get", "user:mira", "city", "--tenant", "somebody-else").returncode == 1


def test_info_and_stats_of_a_real_server(pillion, tenant):
    (info,) = documents(pillion("info", "--json"))
    assert info["healthy"]
    assert {"write", "search", "import"} <= set(info["capabilities"])
    documents(pillion("write", "memory", "user:mira", "likes tea", "--json"))
    (stats,) = documents(pillion("stats", "--json"))
    (partition,) = stats["partitions"]
    assert partition["partition"]["tenant"] == tenant
    assert partition["memories"] == 1


def note(number):
    return {
        "type": "memory",
        "subject": f"user:u{number % 7}",
        "text": f"note {number}",
        "source": {"kind": "document"},
        "vector": [1.0, *(((number * j) % 13) / 13 for j in range(1, 384))],
    }


def test_an_import_with_bad_lines_run_twice(pillion, tmp_path):
    file, rejects = tmp_path / "notes.jsonl", tmp_path / "rejects.jsonl"
    lines = [json.dumps(note(number)) for number in range(250)]
    lines[100] = '{"type": "memory"}'
    lines[200] = json.dumps({**note(200), "valid_from": "2026-06-01T09:00:00"})
    # Good in form, and refused by the server: only it knows how long a text may be.
    lines.append(json.dumps({**note(999), "text": "x" * 40_000}))
    lines += [
        json.dumps(
            {
                "type": "fact",
                "subject": "user:mira",
                "attribute": "city",
                "value": "Bern",
                "valid_from": "2026-06-01T09:00:00Z",
                "source": {"kind": "document"},
            }
        ),
        json.dumps(
            {
                "type": "episode",
                "subject": "user:mira",
                "content": "I live in Bern",
                "source_kind": "user_statement",
                "external_ref": "m-1",
            }
        ),
    ]
    file.write_text("\n".join(lines) + "\n")
    first = pillion("import", file, "--rejects", rejects, "--json")
    assert first.returncode == 4
    (summary,) = documents(first)
    assert (summary["written"], summary["existing"], summary["rejected"]) == (250, 0, 3)
    refused = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert sorted(one["line"] for one in refused) == [101, 201, 251]
    (again,) = documents(pillion("import", file, "--json"))
    assert (again["written"], again["existing"], again["rejected"]) == (0, 250, 3)
    listed = documents(pillion("list", "--limit", "1000", "--json"))
    assert len(listed) == 250
    assert documents(pillion("get", "user:mira", "city", "--json"))[0]["value"] == "Bern"


def test_an_interrupted_import_goes_on_where_it_stopped(pillion, target, tenant, tmp_path):
    first, rest = (
        [json.dumps(note(n)) + "\n" for n in part] for part in (range(800), range(800, 900))
    )
    environment = {**os.environ, "PILLION_TARGET": target, "PILLION_TENANT": tenant}
    command = [sys.executable, "-m", "pillion.cli", "import", "-", "--json"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    process.stdin.writelines(first)
    process.stdin.flush()
    with Client(target, partition=("default", tenant)) as client:
        # The pipe stays open, so it cannot be done; once something is there it is at work.
        while not any(True for _ in client.list(page_size=1)):
            assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "again" in err
    assert json.loads(out)["complete"] is False
    file = tmp_path / "all.jsonl"
    file.write_text("".join(first + rest))
    (summary,) = documents(pillion("import", file, "--json"))
    assert summary["written"] + summary["existing"] == 900
    assert summary["existing"] > 0
    assert summary["complete"]


@pytest.fixture
def client(target, tenant):
    with Client(target, partition=("default", tenant)) as made:
        yield made


def test_the_client_threads_versions_through_an_update(client):
    def add_one(current):
        return 1 if current is None else current.value + 1

    for expected in (1, 2, 3):
        client.update_fact("user:mira", "visits", add_one, source=SAID)
        assert client.get_fact("user:mira", "visits").value == expected


def test_an_update_revives_a_key_whose_row_was_retracted(client):
    client.put_fact("user:mira", "city", "Bern", source=SAID, precondition=must_not_exist)
    key = FactKey(client.get_fact("user:mira", "city").subject, "city")
    client.retract(key, precondition=unconditional)
    with pytest.raises(NotFound):
        client.get_fact("user:mira", "city")
    client.update_fact("user:mira", "city", lambda _: "Basel", source=SAID)
    assert client.get_fact("user:mira", "city").value == "Basel"


def test_the_clients_errors_against_a_real_server(client):
    put = client.put_fact("user:mira", "city", "Bern", source=SAID, precondition=must_not_exist)
    with pytest.raises(AlreadyExists) as exists:
        client.put_fact("user:mira", "city", "Bern", source=SAID, precondition=must_not_exist)
    assert exists.value.current == put.only.fact_version
    with pytest.raises(VersionMismatch) as stale:
        client.put_fact("user:mira", "city", "x", source=SAID, precondition=version_equals(999))
    assert (stale.value.expected, stale.value.current) == (999, put.only.fact_version)
    with pytest.raises(InvalidArgument) as bad:
        client.add_memory("user:mira", "", source=SAID)
    assert bad.value.field_violations


def test_the_quick_start_of_the_clients_readme_runs(target, tmp_path):
    text = README.read_text(encoding="utf-8")
    (quick_start,) = re.findall(r"## Quick start.*?```python\n(.*?)```", text, re.DOTALL)
    environment = {**os.environ, "PILLION_TARGET": target}
    runs = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", quick_start],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        for _ in range(2)
    ]
    for done in runs:
        assert done.returncode == 0, done.stderr
        assert "passport" in done.stdout
    assert ["stated before" in done.stdout for done in runs] == [False, True]


def test_the_asyncio_client_does_the_same(target, tenant):
    async def main():
        async with AsyncClient(target, partition=("default", tenant)) as client:
            await client.put_fact(
                "user:mira", "city", "Bern", source=SAID, precondition=unconditional
            )
            return (await client.get_fact("user:mira", "city")).value

    assert asyncio.run(main()) == "Bern"


def test_a_demo_without_a_server_says_that_nothing_was_kept(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PILLION_")}
    done = subprocess.run(
        [sys.executable, "-m", "pillion.cli", "demo"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "(played on a private server; nothing was kept)"


def test_a_forgotten_memory_says_so(pillion):
    (written,) = documents(pillion("write", "memory", "user:mira", "likes tea", "--json"))
    identity = written["results"][0]["id"]
    assert pillion("forget", identity).returncode == 0
    assert "(forgotten/expired)" in pillion("get", identity).stdout
    changes = [line.split("\t")[1] for line in pillion("history", identity).stdout.splitlines()]
    assert changes[0] == "stated"
    assert changes[1].startswith("forgotten 2")


def test_the_history_of_a_fact_tells_its_versions_apart(pillion):
    for value, since in (("Bern", "2026-01-01"), ("Bern", "2026-01-01"), ("Chur", "2026-05-01")):
        written = pillion(
            *("write", "fact", "user:mira", "city", value),
            *("--valid-from", f"{since}T00:00:00Z"),
        )
        assert written.returncode == 0, written.stderr
    assert pillion("forget", "--subject", "user:mira", "--mode", "retract", "--yes").returncode == 0
    shown = pillion("history", "user:mira", "city").stdout
    cells = [line.split("\t") for line in shown.splitlines()]
    changes = {(what, change.partition(" by ")[0]) for what, change, *_ in cells}
    assert {
        ("city = Bern", "stated"),
        ("city = Bern", "stated again"),
        ("city = Bern", "superseded"),
        ("city = Chur", "stated"),
        ("city = Chur", "retracted"),
    } <= changes


def test_the_last_hour_a_topic_and_a_held_subject(pillion):
    for text in ("the blue bicycle is in the cellar", "tea is at four"):
        documents(pillion("write", "memory", "user:mira", text, "--json"))
    documents(pillion("write", "fact", "user:mira", "city", "Bern", "--json"))
    documents(pillion("write", "fact", "user:mira", "city", "Basel", "--json"))
    topic = ("forget", "--topic", "blue bicycle cellar", "--score-min", "0.2", "--json")
    (shown,) = documents(pillion(*topic))
    assert shown["preview"]["report"]["memories"] == 1
    (done,) = documents(pillion(*topic, "--yes"))
    assert done["result"]["report"]["unpreviewed"] == 0
    left = [one["text"] for one in documents(pillion("list", "--json"))]
    assert len(left) == 2
    assert not any("bicycle" in text for text in left)
    (held,) = documents(pillion("hold", "user:mira", "--reason-code", "case-1", "--json"))
    assert held["held"] == 4
    refused = pillion("forget", "--subject", "user:mira", "--yes", "--json")
    assert json.loads(refused.stdout)["error"]["reason"] == "SEALED"
    (spared,) = documents(pillion("forget", "--last", "1h", "--yes", "--json"))
    assert spared["result"]["report"]["memories"] == 0
    assert len(spared["result"]["report"]["exempt_ids"]) == 4
    documents(pillion("hold", "user:mira", "--reason-code", "case-1", "--lift", "--json"))
    pillion("forget", "--last", "1h", "--yes")
    assert documents(pillion("list", "--json")) == []


def test_a_subject_is_told_everything_that_is_remembered(pillion):
    documents(pillion("write", "fact", "user:mira", "city", "Bern", "--json"))
    documents(pillion("write", "fact", "user:mira", "city", "Basel", "--json"))
    documents(pillion("write", "memory", "user:mira", "likes tea", "--context", "work", "--json"))
    documents(pillion("write", "memory", "user:bob", "not hers", "--json"))
    documents(pillion("write", "episode", "user:mira", "I moved to Basel", "--json"))
    (told,) = documents(pillion("subject", "export", "user:mira", "--json"))
    (city,) = told["facts"]
    assert {entry["memory"]["value"] for entry in city["history"]} == {"Bern", "Basel"}
    assert "likes tea" in {one["text"] for one in told["memories"]}
    assert [one["content"] for one in told["episodes"]] == ["I moved to Basel"]
    shown = pillion("subject", "export", "user:mira").stdout
    for text in ("Bern", "Basel", "likes tea", "I moved to Basel"):
        assert text in shown
    assert "not hers" not in shown
    assert "nothing" in pillion("subject", "export", "user:nobody").stdout
