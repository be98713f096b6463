"""Attributes that are sets, over the wire: the client, bare requests and the command line."""

import json
from datetime import UTC, datetime

import grpc
import pytest
from pillion.cli.main import run
from pillion_client import (
    Client,
    FactKey,
    InvalidArgument,
    NotFound,
    PutFact,
    Retract,
    Source,
    Subject,
    VersionMismatch,
    must_not_exist,
    unconditional,
    version_equals,
)
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess

SAID = Source("user_statement")
MIRA = Subject("user", "mira")
JAN, FEB, MAR = (datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("sets") / "d")
    yield running
    running.stop()


@pytest.fixture
def client(server, request):
    """A client in a partition of the test's own, where ``speaks`` is a set."""
    with Client(f"unix:{server.ready['socket']}", partition=("test", request.node.name)) as made:
        made.register_attribute("speaks", True, precondition=must_not_exist, cardinality="set")
        yield made


def add(client, value, since=JAN, attribute="speaks", precondition=unconditional, **more):
    return client.put_fact(
        MIRA, attribute, value, source=SAID, precondition=precondition, valid_from=since, **more
    )


def member(value, attribute="speaks"):
    return FactKey(MIRA, attribute, member=value)


def spoken(client, **read):
    return sorted(str(one.value) for one in client.list(attributes=["speaks"], **read))


def test_members_are_read_listed_and_retracted_one_by_one(client):
    add(client, "de")
    revision = add(client, "fr", valid_to=MAR).revision
    add(client, "pt", FEB)
    assert spoken(client, as_of=FEB) == ["de", "fr", "pt"]
    assert spoken(client) == ["de", "pt"]
    assert client.get_fact(MIRA, "speaks", member="de").value == "de"
    assert client.get_fact(MIRA, "speaks", member="fr", as_of=FEB).value == "fr"
    for read in ({"as_of": JAN}, {"exact_revision": revision}):
        with pytest.raises(NotFound):
            client.get_fact(MIRA, "speaks", member="pt", **read)
    (row, none) = client.batch_get([member("pt"), member("xx")])
    assert (row.value, none) == ("pt", None)
    known = datetime.now(UTC)
    client.retract(member("de"), valid_to=FEB, precondition=unconditional)
    with pytest.raises(NotFound):
        client.get_fact(MIRA, "speaks", member="de")
    assert client.get_fact(MIRA, "speaks", member="de", known_at=known).value == "de"
    assert spoken(client) == ["pt"]
    assert spoken(client, known_at=known) == ["de", "pt"]
    client.restore(row_id(client, "de"), precondition=unconditional)
    assert spoken(client) == ["de", "pt"]
    assert [one.memory.value for one in client.history(member("de"))] == ["de"] * 3
    whole = [one.memory.value for one in client.history(FactKey(MIRA, "speaks"))]
    assert sorted(whole) == ["de", "de", "de", "fr", "pt"]
    client.forget(fact=member("pt"), dry_run=False)
    assert spoken(client) == ["de"]
    client.forget(fact=FactKey(MIRA, "speaks"), dry_run=False)
    assert spoken(client) == []


def row_id(client, value):
    return next(iter(client.history(member(value)))).memory.id


@pytest.mark.parametrize(
    "value", ["", 1, 1.5, -0.0, True, None, JAN, Subject("user", "ben"), {"a": [1, None]}]
)
def test_a_member_may_be_a_value_of_any_type(client, value):
    add(client, "another")
    add(client, value)
    found = client.get_fact(MIRA, "speaks", member=value)
    assert (found.value, type(found.value)) == (value, type(value))
    assert [one.memory.value for one in client.history(member(value))] == [value]
    client.retract(member(value), precondition=unconditional)
    assert spoken(client) == ["another"]


def test_the_version_is_of_the_whole_set(client):
    first = add(client, "de", precondition=must_not_exist)
    add(client, "fr", precondition=version_equals(first.revision))
    with pytest.raises(VersionMismatch):
        add(client, "pt", precondition=version_equals(first.revision))
    assert spoken(client) == ["de", "fr"]
    found = client.get_fact(MIRA, "speaks", member="de")
    client.write(
        PutFact(MIRA, "speaks", "pt", source=SAID, precondition=version_equals(found.fact_version)),
        Retract(member("fr"), unconditional),
    )
    assert spoken(client) == ["de", "pt"]


def refusals(server, partition):
    """Requests that name a member, or none, against what the attribute is; and the field."""
    about = {"subject": {"type": "user", "id": "mira"}}
    whole = {**about, "attribute": "speaks"}
    one = {**about, "attribute": "city", "member": {"string_value": "Lisbon"}}
    unknown = {**one, "attribute": "unheard_of"}
    stub, place = server.stub, {"namespace": "test", "tenant": partition}
    anyhow = {"unconditional": True}
    for fact in (whole, one, unknown):
        for read in (None, {"as_of": {"seconds": 1}}, {"exact_revision": 3}):
            yield stub.Get, wire.GetRequest(partition=place, target={"fact": fact}, read=read)
            yield (
                stub.BatchGet,
                wire.BatchGetRequest(partition=place, targets=[{"fact": fact}], read=read),
            )
        retract = {"fact": fact, "precondition": anyhow}
        yield (
            stub.Write,
            wire.WriteRequest(partition=place, mutations=[{"retract_memory": retract}]),
        )
    for fact in (one, unknown):
        yield stub.History, wire.HistoryRequest(partition=place, fact=fact)
        forget = wire.ForgetRequest(
            partition=place,
            selector={"fact": fact},
            mode=wire.FORGET_MODE_EXPIRE,
            run=wire.FORGET_RUN_DRY_RUN,
        )
        yield stub.Forget, forget
    guard = {"fact": {**one, "attribute": "speaks"}, "precondition": {"must_exist": True}}
    retract = {"fact": {**one, "attribute": "speaks"}, "precondition": anyhow}
    guarded = wire.WriteRequest(
        partition=place, mutations=[{"retract_memory": retract}], guards=[guard]
    )
    yield stub.Write, guarded
    for bad in ({}, {"double_value": float("nan")}, {"json_value": "{"}):
        fact = {**whole, "member": bad}
        yield stub.Get, wire.GetRequest(partition=place, target={"fact": fact})


def test_a_member_is_named_exactly_where_there_is_a_set(client, server, request):
    add(client, "Lisbon")
    add(client, "Lisbon", attribute="city")
    revision = client.get_fact(MIRA, "city").version
    for call, asked in refusals(server, request.node.name):
        with pytest.raises(grpc.RpcError) as caught:
            call(asked, timeout=SECONDS)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT, asked
        assert "member" in caught.value.details(), asked
        assert "Lisbon" not in caught.value.details()
    assert client.get_fact(MIRA, "speaks", member="Lisbon").fact_version < revision
    with pytest.raises(InvalidArgument, match="name the member"):
        client.get_fact(MIRA, "speaks")


def test_the_command_line_names_members(client, server, request, capsys):
    add(client, "de")
    add(client, 7)
    address = f"unix:{server.ready['socket']}"
    where = ["--target", address, "--namespace", "test", "--tenant", request.node.name]

    def told(*words):
        assert run([*words, *where, "--json"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    (row,) = told("get", "user:mira", "speaks", "--member", "de")
    assert row["value"] == "de"
    (row,) = told("get", "user:mira", "speaks", "--member", "7", "--member-type", "int")
    assert row["value"] == 7
    assert len(told("history", "user:mira", "speaks")) == 2
    assert len(told("history", "user:mira", "speaks", "--member", "de")) == 1
    fact = ("--subject", "user:mira", "--attribute", "speaks")
    told("forget", *fact, "--member", "de", "--yes")
    assert spoken(client) == ["7"]
    for words in (
        ("get", row["id"], "--member", "de"),
        ("forget", "--subject", "user:mira", "--member", "de"),
        ("get", "user:mira", "speaks", "--member", "x", "--member-type", "int"),
    ):
        assert run([*words, *where]) == 2
        assert "member" in capsys.readouterr().err
    assert run(["get", "user:mira", "speaks", *where]) != 0
    assert "name the member" in capsys.readouterr().err


def test_a_member_is_updated_in_one_write(client):
    add(client, "de")
    add(client, "fr")
    seen = []

    def corrected(row):
        seen.append(row and row.value)
        if len(seen) == 1:  # somebody else is faster, with another member
            add(client, "pt")
        return "de-CH"

    done = client.update_fact(MIRA, "speaks", corrected, source=SAID, member="de")
    assert seen == ["de", "de"]
    assert spoken(client) == ["de-CH", "fr", "pt"]
    new = client.get_fact(MIRA, "speaks", member="de-CH")
    assert client.get(row_id(client, "de")).valid_to == new.valid_from
    assert {one.version for one in done.results} == {done.revision}


def test_a_member_that_is_not_there_is_added_and_the_same_value_changes_nothing_else(client):
    add(client, "fr")
    client.update_fact(MIRA, "speaks", lambda row: row or "it", source=SAID, member="it")
    assert spoken(client) == ["fr", "it"]
    client.update_fact(MIRA, "speaks", lambda row: row.value, source=SAID, member="it")
    assert spoken(client) == ["fr", "it"]
    assert len(list(client.history(member("it")))) == 2  # the row, and that it was said again
    with pytest.raises(InvalidArgument):
        client.update_fact(MIRA, "speaks", lambda _row: "x", source=SAID)
