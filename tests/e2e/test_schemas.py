"""The type registry of a real server, through the client and the command line."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pillion.cli.main import run
from pillion_client import (
    Client,
    ConvertValue,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OperationState,
    PutFact,
    Source,
    must_not_exist,
    schema_of,
    unconditional,
    version_equals,
)
from pillion_testing.servers import ServerProcess
from pydantic import BaseModel, ConfigDict, Field

SAID = Source("user_statement")


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")
    street: str = Field(max_length=40)
    zip: str = Field(pattern=r"^[0-9]{4,6}$")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("schemas") / "d")
    yield running
    running.stop()


@pytest.fixture
def client(server, request):
    """A client in a partition of the test's own."""
    with Client(f"unix:{server.ready['socket']}", partition=("test", request.node.name)) as made:
        yield made


def put(client, value, attribute="address"):
    return client.put_fact("user:mira", attribute, value, source=SAID, precondition=unconditional)


def test_a_model_is_registered_and_facts_must_fit_it(client):
    made = client.register_attribute(
        "address", Address, precondition=must_not_exist, subject_types=["user"], pii_labels=["home"]
    )
    assert made.schema.schema_version == 1
    assert json.loads(made.schema.json_schema) == json.loads(schema_of(Address))
    put(client, {"street": "Main Street 1", "zip": "8001"})
    fact = client.get_fact("user:mira", "address")
    assert (fact.schema_version, fact.pii_labels) == (1, ("home",))
    with pytest.raises(InvalidArgument) as caught:
        put(client, {"street": "Main Street 1", "zip": "80-01", "door": "secret"})
    assert caught.value.reason == "SCHEMA_VIOLATION"
    assert {one.field for one in caught.value.field_violations} == {
        "mutations[0].put_fact.fact.value"
    }
    assert "secret" not in str(caught.value)
    assert "80-01" not in str(caught.value)


def test_versions_and_pages(client):
    first = client.register_attribute("a", True, precondition=must_not_exist).schema
    client.register_attribute("b", {"type": "string"}, precondition=unconditional)
    second = client.register_attribute(
        "a", '{"type": "string"}', precondition=version_equals(first.version)
    ).schema
    assert client.get_attribute("a") == second
    assert client.get_attribute("a", schema_version=1) == first
    assert [one.attribute for one in client.list_attributes(page_size=1)] == ["a", "b"]
    with pytest.raises(NotFound):
        client.get_attribute("c")


def test_a_tenant_sees_nothing_of_anothers(server, client):
    client.register_attribute("a", True, precondition=must_not_exist)
    with Client(f"unix:{server.ready['socket']}", partition=("test", "neighbour")) as other:
        assert list(other.list_attributes()) == []
        with pytest.raises(NotFound):
            other.get_attribute("a")


def test_an_attributes_half_life_ranks_its_facts(server):
    where = f"unix:{server.ready['socket']}"
    month_ago = datetime.now(UTC) - timedelta(days=30)
    with Client(where, partition=("test", "decay")) as client:
        for attribute in ("mood", "city"):
            put = {"source": SAID, "precondition": unconditional, "valid_from": month_ago}
            client.put_fact("user:mira", attribute, "x", **put)
        made = client.register_attribute(
            "mood", True, precondition=must_not_exist, half_life=timedelta(days=1)
        )
        assert client.get_attribute("mood") == made.schema
        assert made.schema.half_life == timedelta(days=1)
        hits = client.search(include_parts=True).hits
        recency = {one.memory.attribute: one.parts.recency for one in hits}
        assert recency["mood"] < 0.01
        assert recency["city"] > 0.9
        client.register_attribute("mood", True, precondition=unconditional)
        assert client.get_attribute("mood").half_life is None
        for span in (timedelta(0), timedelta(seconds=-60), timedelta(seconds=59)):
            with pytest.raises(InvalidArgument, match="half_life: must be"):
                client.register_attribute("b", True, precondition=unconditional, half_life=span)


def test_the_command_line_registers_shows_and_lists(server, capsys, tmp_path):
    where = ("--target", f"unix:{server.ready['socket']}", "--tenant", "cli")
    file = tmp_path / "age.json"
    file.write_text('{"type": "integer", "minimum": 0}')

    def pillion(*arguments):
        code = run(["schema", *arguments, *where])
        return code, capsys.readouterr().out

    code, out = pillion("register", "age", str(file), "--new", "--pii", "age", "--half-life", "36h")
    assert (code, out) == (0, "age: schema version 1\n")
    assert pillion("register", "age", str(file), "--new")[0] == 1
    code, out = pillion("show", "age")
    assert code == 0
    assert '{"minimum":0,"type":"integer"}' in out
    assert "1 day, 12:00:00" in out
    for span in ("36", "-1d", "1.5d", "nan", "999999999d"):
        assert pillion("register", "age", str(file), "--half-life", span)[0] == 2
    assert pillion("register", "age", str(file), "--half-life", "99999999d")[0] == 1
    code, out = pillion("list", "--json")
    assert [json.loads(line)["attribute"] for line in out.splitlines()] == ["age"]
    code, out = pillion("list")
    assert out.split("\t")[:2] == ["age", "1"]
    assert pillion("register", "age", str(file), "--new", "--existing")[0] == 2
    file.write_text("{")
    assert pillion("register", "age", str(file))[0] == 1


def test_the_registry_survives_a_kill(tmp_path):
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}", partition=("test", "kill")) as client:
        made = client.register_attribute("a", {"type": "string"}, precondition=must_not_exist)
    running.kill()
    running = ServerProcess(tmp_path / "d", "--unregistered-attributes", "refuse")
    with Client(f"unix:{running.ready['socket']}", partition=("test", "kill")) as client:
        assert client.get_attribute("a") == made.schema
        put(client, "x", "a")
        with pytest.raises(InvalidArgument):
            put(client, 5, "a")
        with pytest.raises(Exception, match="nobody registered it"):
            put(client, 5, "b")
    running.stop()


# --- migrations --------------------------------------------------------------------------------

PEOPLE = 1500


def ages(client, count=PEOPLE):
    """Facts of text under the first version; numbers are asked for from the second on."""
    client.register_attribute("age", {"type": "string"}, precondition=must_not_exist)
    for start in range(0, count, 100):
        batch = range(start, start + 100)
        client.write(
            *(
                PutFact(f"user:{n}", "age", str(n), source=SAID, precondition=unconditional)
                for n in batch
            )
        )
    client.put_fact("user:x", "age", "unknown", source=SAID, precondition=unconditional)
    client.register_attribute(
        "age", {"type": "integer"}, precondition=unconditional, existing_values="may_differ"
    )


def values(client):
    return {one.subject.id: one.value for one in client.list(page_size=1000)}


def ended(client, operation):
    while operation.state is OperationState.RUNNING:
        operation = client.wait_operation(operation.name, deadline_seconds=5)
    return operation


TO_INT = [ConvertValue("int")]


def test_a_migration_goes_on_after_a_kill_and_ends_right(tmp_path):
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        ages(client)
        plan = client.migrate_attribute("age", 2, steps=TO_INT, dry_run=True)
        assert (plan.operation, plan.values, len(plan.misfit_ids)) == (None, PEOPLE, 1)
        begun = client.migrate_attribute("age", 2, steps=TO_INT).operation
        seen = begun
        while seen.done_units == 0:
            seen = client.get_operation(begun.name)
        assert seen.total_units == PEOPLE + 1
    running.kill()
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        done = ended(client, client.get_operation(begun.name))
        assert done.state is OperationState.SUCCEEDED
        assert done.progress == 1.0
        assert (done.migration.migrated, done.migration.misfits) == (PEOPLE, 1)
        assert values(client) == {str(n): n for n in range(PEOPLE)} | {"x": "unknown"}
        assert [one.name for one in client.list_operations()] == [begun.name]
        with pytest.raises(FailedPrecondition):
            client.roll_back_migration(begun.name)
    running.stop()


def test_a_migration_is_taken_back_across_a_kill(tmp_path):
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        ages(client)
        before = values(client)
        begun = client.migrate_attribute("age", 2, steps=TO_INT).operation
        while client.get_operation(begun.name).done_units == 0:
            pass
        stopped = client.cancel_operation(begun.name)
        assert stopped.state is OperationState.CANCELLED
        assert values(client) != before
        undo = client.roll_back_migration(begun.name)
    running.kill()
    running = ServerProcess(tmp_path / "d")
    with Client(f"unix:{running.ready['socket']}") as client:
        done = ended(client, client.get_operation(undo.name))
        assert done.state is OperationState.SUCCEEDED
        assert (done.migration.migrated, done.migration.misfits) == (stopped.done_units, 0)
        assert values(client) == before
    running.stop()


def test_the_command_line_migrates(server, capsys, tmp_path):
    where = ("--target", f"unix:{server.ready['socket']}", "--tenant", "migrating")
    with Client(f"unix:{server.ready['socket']}", partition=("default", "migrating")) as client:
        ages(client, 100)
        file = tmp_path / "steps.json"
        file.write_text('[{"convert": "int"}]')

        def pillion(*arguments):
            code = run(["schema", *arguments, *where])
            return code, capsys.readouterr().out

        code, out = pillion("migrate", "age", "2", "--steps", str(file))
        assert code == 0
        assert "100 values would be migrated" in out
        assert values(client)["7"] == "7"
        code, out = pillion("migrate", "age", "2", "--steps", str(file), "--yes")
        assert code == 0
        assert "100 values done, 1 left as they are" in out
        assert values(client)["7"] == 7
        (operation,) = client.list_operations()
        assert pillion("rollback", operation.name)[0] == 1
        for bad in ("{", "{}", '[{"convert": 5}]', '[{"wrap": "a", "unwrap": "b"}]'):
            file.write_text(bad)
            assert pillion("migrate", "age", "2", "--steps", str(file))[0] == 2
