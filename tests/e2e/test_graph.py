"""The graph against a real server: what a walk answers that no similarity could."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from pillion_client import Client, GraphExpansion, InvalidArgument, Source, Subject, unconditional
from pillion_testing.servers import SECONDS, ServerProcess, environment

SAID = Source("user_statement")
JANUARY, MAY = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
MIRA, ACME, ZETA = Subject("user", "mira"), Subject("org", "acme"), Subject("project", "z")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("graph") / "d")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def client(server):
    with Client(f"unix:{server.ready['socket']}", partition=("graph", "a")) as made:
        for who, attribute, whom, since in [
            ("user:mira", "works_at", ACME, JANUARY),
            ("user:jo", "works_at", ACME, JANUARY),
            ("user:ana", "works_at", ACME, JANUARY),
            ("user:tom", "works_at", Subject("org", "other"), JANUARY),
            ("user:jo", "worked_on", ZETA, JANUARY),
            ("user:tom", "worked_on", ZETA, JANUARY),
            ("user:ana", "worked_on", Subject("project", "y"), JANUARY),
            ("user:ana", "works_at", Subject("org", "other"), MAY),
        ]:
            made.put_fact(
                who, attribute, whom, source=SAID, precondition=unconditional, valid_from=since
            )
        yield made


def reached(result, kind):
    return {one.subject.id for one in result.neighbors if one.subject.type == kind}


def colleagues(client, **read):
    at_work = GraphExpansion(depth=2, attributes=("works_at",))
    return reached(client.neighbors(MIRA, direction="both", expansion=at_work, **read), "user")


def test_which_colleagues_of_mira_worked_on_project_z(client):
    on_z = client.neighbors(
        ZETA, direction="in", expansion=GraphExpansion(attributes=("worked_on",))
    )
    assert reached(on_z, "user") == {"jo", "tom"}
    assert colleagues(client) & reached(on_z, "user") == {"jo"}
    # One walk shows it too: the path to the project leads over the colleague.
    way = client.neighbors(
        MIRA,
        direction="both",
        expansion=GraphExpansion(depth=3, attributes=("works_at", "worked_on")),
    )
    (path,) = [one.path for one in way.neighbors if one.subject == ZETA]
    assert [(str(edge.from_subject), edge.attribute, str(edge.to_subject)) for edge in path] == [
        ("user:mira", "works_at", "org:acme"),
        ("user:jo", "works_at", "org:acme"),
        ("user:jo", "worked_on", "project:z"),
    ]
    assert client.get(path[2].memory_id).version == path[2].version


def test_a_walk_is_as_of_an_instant_and_of_what_was_known(client):
    assert colleagues(client) == {"jo"}
    assert colleagues(client, as_of=JANUARY) == {"jo", "ana"}
    known = client.get_fact("user:jo", "works_at").version
    assert colleagues(client, exact_revision=known) == {"jo"}
    assert colleagues(client, exact_revision=known - 1) == set()


def test_bounds_are_said_and_refused(client):
    cut = client.neighbors(ACME, direction="in", edges_max=1)
    assert (len(cut.neighbors), cut.truncated) == (1, True)
    for wrong, field in [
        (GraphExpansion(depth=4), "expansion.depth"),
        (GraphExpansion(fan_out=101), "expansion.fan_out"),
        (GraphExpansion(attributes=tuple(map(str, range(33)))), "expansion.attributes"),
    ]:
        with pytest.raises(InvalidArgument) as caught:
            client.neighbors(MIRA, expansion=wrong)
        assert [one.field for one in caught.value.field_violations] == [field]
    with pytest.raises(InvalidArgument):
        client.neighbors([MIRA, MIRA])
    with pytest.raises(InvalidArgument):
        client.neighbors(MIRA, edges_max=1001)


def test_the_command_line(server, client):
    def pillion(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "pillion.cli", *arguments],
            env=environment()
            | {
                "PILLION_TARGET": f"unix:{server.ready['socket']}",
                "PILLION_NAMESPACE": "graph",
                "PILLION_TENANT": "a",
            },
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )

    told = json.loads(pillion("--json", "neighbors", "user:jo").stdout)
    assert [one["subject"] for one in told["neighbors"]] == [
        {"type": "project", "id": "z"},
        {"type": "org", "id": "acme"},
    ]
    people = pillion("neighbors", "org:acme", "--direction", "in", "--edges", "1")
    assert people.stdout.split("\t")[:2] == ["user:jo", "user:jo works_at org:acme"]
    assert "there is more" in people.stderr
