"""Each method sends what it says and returns what came."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from grpc import StatusCode
from grpc_health.v1 import health_pb2
from pillion_client import (
    UNCHANGED,
    AlreadyExists,
    AsyncClient,
    Client,
    FactKey,
    NotFound,
    Partition,
    Source,
    Subject,
    Tls,
    VersionMismatch,
    version_equals,
)
from pillion_client._async import writing as _async_writing
from pillion_client._sync import writing as _sync_writing
from pillion_client._target import channel_options, parse_target
from pillion_client.limits import MESSAGE_BYTES_MAX
from pillion_client.testing import failure
from pillion_proto.memory.v1 import admin_service_pb2 as admin
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import types_pb2

SAID = Source("user_statement")
TOKEN = "of-letters-and-digits"  # noqa: S105  (not a secret)
MIRA = Subject("user", "mira")
CITY = FactKey(MIRA, "city")
ABSENT = failure("NOT_FOUND", StatusCode.NOT_FOUND)


def row(value, fact_version):
    return pb.GetResponse(
        record=pb.Record(
            memory=types_pb2.Memory(
                attribute="city", value={"string_value": value}, fact_version=fact_version
            )
        )
    )


def stale(current, reason="VERSION_MISMATCH", code=StatusCode.ABORTED):
    return failure(reason, code, metadata={"current_version": str(current)})


def test_partition_and_deadline_default_to_the_clients_and_token_travels(server, run):
    server.script("Search", pb.SearchResponse())

    async def body(client):
        await client.search("x")
        await client.search("x", partition=Partition("staging", "b"), deadline_seconds=2)

    run(body, partition=("production", "a"), token=TOKEN, default_deadline_seconds=7)
    first, second = server.calls("Search")
    assert (first.request.partition.namespace, first.request.partition.tenant) == (
        "production",
        "a",
    )
    assert (second.request.partition.namespace, second.request.partition.tenant) == ("staging", "b")
    assert first.metadata["authorization"] == f"Bearer {TOKEN}"
    assert 6 < first.seconds_left <= 7.1
    assert second.seconds_left <= 2.1  # gRPC rounds deadlines up on the wire


def test_a_search_says_when_and_what(server, run):
    server.script("Search", pb.SearchResponse())
    june = datetime(2026, 6, 2, tzinfo=UTC)

    async def body(client):
        return await client.search(
            "x",
            vector=[1.0, 0.0],
            top_k=3,
            subjects=[MIRA],
            kinds=["semantic"],
            as_of=june,
            at_least_revision=9,
            include_parts=True,
        )

    assert run(body).hits == ()
    (call,) = server.calls("Search")
    assert call.request.filter.subjects[0].id == "mira"
    assert call.request.read.as_of.seconds == june.timestamp()
    assert call.request.read.at_least_revision == 9
    assert (call.request.top_k, len(call.request.vector)) == (3, 8)


def test_lists_follow_the_pages(server, run):
    pages = [["a", "b"], ["c"]]
    server.script(
        "List",
        *(
            pb.ListResponse(
                records=[pb.Record(memory={"id": name}) for name in page],
                next_page_token=token,
            )
            for page, token in zip(pages, ["next", ""], strict=True)
        ),
    )

    async def body(client):
        return [memory.id async for memory in client.list(page_size=2)]

    assert run(body) == ["a", "b", "c"]
    first, second = (call.request for call in server.calls("List"))
    assert (first.page_token, second.page_token, second.page_size) == ("", "next", 2)


def test_a_history_is_of_a_key_or_of_a_memory(server, run):
    server.script("History", pb.HistoryResponse(entries=[pb.HistoryEntry(memory={"id": "a"})]))

    async def body(client):
        return [e async for e in client.history(CITY)] + [e async for e in client.history("id")]

    first, _ = run(body)
    assert first.recorded_to is first.recorded_to_revision is None
    requests = [call.request for call in server.calls("History")]
    assert [request.WhichOneof("target") for request in requests] == ["fact", "memory_id"]


def test_a_batch_get_has_none_where_nothing_is(server, run):
    found = pb.BatchGetItem(record=pb.Record(memory={"id": "a"}))
    server.script("BatchGet", pb.BatchGetResponse(items=[found, pb.BatchGetItem()]))

    async def body(client):
        return await client.batch_get(["a", CITY])

    there, absent = run(body)
    assert (there.id, absent) == ("a", None)


def test_info_stats_and_health(server, run):
    server.script(
        "GetServerInfo",
        pb.GetServerInfoResponse(server_version="1", capabilities=[1, 2, 9999]),
    )
    server.script("GetStats", admin.GetStatsResponse(partitions=[admin.PartitionStats(memories=3)]))
    server.script(
        "Check",
        health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING),
        health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.NOT_SERVING),
    )

    async def body(client):
        assert await client.health()
        assert not await client.health()
        await client.stats(every_partition=True)
        return await client.info(), await client.stats()

    info, stats = run(body, partition=("default", "a"))
    assert info.capabilities == {"write", "search"}
    assert info.embedder is None
    assert stats.partitions[0].memories == 3
    every, one = (call.request for call in server.calls("GetStats"))
    assert not every.HasField("partition")
    assert one.partition.tenant == "a"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (None, pb.FORGET_RUN_UNSPECIFIED),
        (True, pb.FORGET_RUN_DRY_RUN),
        (False, pb.FORGET_RUN_EXECUTE),
    ],
)
def test_forget_runs_as_asked(server, run, given, sent):
    server.script("Forget", pb.ForgetResponse(report={"memories": 2, "dry_run": True}))

    async def body(client):
        return await client.forget(subject=MIRA, mode="retract", dry_run=given)

    assert run(body).report.memories == 2
    (call,) = server.calls("Forget")
    assert (call.request.run, call.request.mode) == (sent, pb.FORGET_MODE_RETRACT)


def test_an_update_begins_anew_when_somebody_wrote_first(server, run, pauses):
    server.script("Get", row("Bern", 4), row("Basel", 6))
    server.script("Write", stale(6), pb.WriteResponse(results=[pb.MutationResult(fact_version=7)]))
    saw = []

    def exclaim(current):
        saw.append(current.value)
        return current.value + "!"

    async def body(client):
        return await client.update_fact(MIRA, "city", exclaim, source=SAID)

    assert run(body).only.fact_version == 7
    assert saw == ["Bern", "Basel"]
    first, second = (call.request.mutations[0].put_fact for call in server.calls("Write"))
    assert (first.precondition.version_equals, second.precondition.version_equals) == (4, 6)
    assert second.fact.value.string_value == "Basel!"
    ids = {call.request.request_id for call in server.calls("Write")}
    assert len(ids) == 2
    assert len(pauses) == 1


def test_an_update_of_a_new_key_must_not_find_it(server, run):
    server.script("Get", ABSENT)
    server.script("Write", pb.WriteResponse())

    async def body(client):
        await client.update_fact("user:mira", "city", lambda _: "Bern", source=SAID)

    run(body)
    (call,) = server.calls("Write")
    assert call.request.mutations[0].put_fact.precondition.must_not_exist


def test_an_update_of_a_key_whose_rows_are_ended_learns_its_version(server, run, pauses):
    server.script("Get", ABSENT)
    exists = stale(8, "ALREADY_EXISTS", StatusCode.ALREADY_EXISTS)
    server.script("Write", exists, pb.WriteResponse())

    async def body(client):
        await client.update_fact("user:mira", "city", lambda _: "Bern", source=SAID)

    run(body)
    second = server.calls("Write")[1].request.mutations[0].put_fact
    assert second.precondition.version_equals == 8


def test_an_update_gives_up_after_its_attempts(server, run, pauses):
    server.script("Get", row("Bern", 4))
    server.script("Write", stale(9))

    async def body(client):
        with pytest.raises(VersionMismatch):
            await client.update_fact(MIRA, "city", lambda _: "x", source=SAID, attempts_max=3)
        with pytest.raises(ValueError, match="request_id"):
            await client.update_fact(MIRA, "city", lambda _: "x", source=SAID, request_id="r")

    run(body)
    assert len(server.calls("Write")) == 3


def test_an_update_that_gave_up_says_how_often_it_began(server, run, pauses):
    server.script("Get", row("Bern", 4))
    server.script("Write", stale(9))

    async def body(client):
        with pytest.raises(VersionMismatch) as caught:
            await client.update_fact(MIRA, "city", lambda _: "x", source=SAID, attempts_max=4)
        assert (caught.value.attempts, caught.value.current) == (4, 9)
        with pytest.raises(ValueError, match="at least one attempt"):
            await client.update_fact(MIRA, "city", lambda _: "x", source=SAID, attempts_max=0)

    run(body)
    assert len(pauses) == 3
    assert len({call.request.request_id for call in server.calls("Write")}) == 4


def test_an_update_that_leaves_the_fact_as_it_is_writes_nothing(server, run):
    server.script("Get", row("Bern", 4))

    async def body(client):
        return await client.update_fact(MIRA, "city", lambda _: UNCHANGED, source=SAID)

    assert run(body) is None
    assert server.calls("Write") == []


@pytest.mark.parametrize(
    "refusal",
    [
        failure("FACT_CONFLICT", StatusCode.ALREADY_EXISTS, metadata={"existing_id": "x"}),
        failure("ALREADY_EXISTS", StatusCode.ALREADY_EXISTS, metadata={"id": "x"}),
        failure(
            "VERSION_MISMATCH",
            StatusCode.ABORTED,
            metadata={"current_version": "9", "guard_index": "0"},
        ),
    ],
)
def test_an_update_is_not_begun_anew_where_that_cannot_help(server, run, refusal):
    server.script("Get", row("Bern", 4))
    server.script("Write", refusal)

    async def body(client):
        with pytest.raises((VersionMismatch, AlreadyExists)) as caught:
            await client.update_fact(MIRA, "city", lambda _: "x", source=SAID)
        assert caught.value.attempts == 1

    run(body)
    assert len(server.calls("Write")) == 1


def test_the_deadline_of_an_update_spans_its_attempts(server, run, pauses, monkeypatch):
    server.script("Get", row("Bern", 4))
    server.script("Write", stale(9))
    clock = [1000.0]
    for module in (_async_writing, _sync_writing):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    def change(_):
        clock[0] += 300.0
        return "x"

    async def body(client):
        with pytest.raises(VersionMismatch):
            await client.update_fact(
                MIRA, "city", change, source=SAID, deadline_seconds=1000.0, attempts_max=3
            )

    run(body)
    left = [round(call.seconds_left, -2) for call in server.calls("Get")]
    assert left == [1000, 700, 400]
    assert [round(call.seconds_left, -2) for call in server.calls("Write")] == [700, 400, 100]


def test_a_lost_answer_of_an_update_is_settled_by_the_same_request(server, run, pauses):
    server.script("Get", row("Bern", 4))
    gone = failure("UNAVAILABLE", StatusCode.UNAVAILABLE)
    server.script("Write", gone, pb.WriteResponse(replayed=True))

    async def body(client):
        return await client.update_fact(MIRA, "city", lambda _: "x", source=SAID)

    assert run(body).replayed
    assert len({call.request.request_id for call in server.calls("Write")}) == 1
    assert len(server.calls("Get")) == 1


def test_an_update_may_wait_for_its_value(server):
    server.script("Get", row("Bern", 4))
    server.script("Write", pb.WriteResponse())

    async def think(current):
        return current.value.upper()

    async def main():
        async with AsyncClient(server.target) as client:
            await client.update_fact(MIRA, "city", think, source=SAID)

    asyncio.run(main())
    (call,) = server.calls("Write")
    assert call.request.mutations[0].put_fact.fact.value.string_value == "BERN"


def test_the_other_mutations_say_what_they_mean(server, run):
    server.script("Write", pb.WriteResponse())
    confirmed = Source("user_confirmation")

    async def body(client):
        await client.patch("m", {"pinned": True}, precondition=version_equals(3))
        await client.confirm("m", source=confirmed)
        await client.retract("m", precondition=version_equals(3))
        await client.retract(CITY, precondition=version_equals(3))
        await client.restore("m", precondition=version_equals(3))
        await client.close_open_item("m")
        await client.add_memory("user:mira", "x", source=SAID, labels=("a",))
        await client.capture_episode("user:mira", "x", source_kind="document", importance=0.9)

    run(body)
    changes = [call.request.mutations[0] for call in server.calls("Write")]
    assert [change.WhichOneof("kind") for change in changes] == [
        "patch_memory",
        "confirm_memory",
        "retract_memory",
        "retract_memory",
        "restore_memory",
        "close_open_item",
        "add_memory",
        "capture_episode",
    ]
    assert changes[3].retract_memory.fact.attribute == "city"
    assert changes[6].add_memory.precondition.must_not_exist


def test_connect_waits_for_a_server(server, run):
    server.script("Get", ABSENT)
    with Client.connect(server.target, wait_seconds=5) as client, pytest.raises(NotFound):
        client.get("a")


@pytest.mark.parametrize(
    ("text", "address", "local"),
    [
        ("unix:///run/p.sock", "unix:/run/p.sock", True),
        ("unix:/run/p.sock", "unix:/run/p.sock", True),
        ("localhost:7411", "localhost:7411", True),
        ("127.0.0.1:7411", "127.0.0.1:7411", True),
        ("[::1]:7411", "[::1]:7411", True),
        ("memory.example:443", "memory.example:443", False),
    ],
)
def test_targets(text, address, local):
    target = parse_target(text)
    assert (target.address, target.is_local) == (address, local)


@pytest.mark.parametrize(
    "text", ["unix:", "unix://relative", "host", "host:", ":1", "host:0", "h:70000"]
)
def test_what_is_no_target_is_refused(text):
    with pytest.raises(ValueError, match="write"):
        parse_target(text)


def test_the_default_target_is_the_servers_default(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PILLION_TARGET", raising=False)
    assert parse_target().address == f"unix:{tmp_path}/.pillion/pillion.sock"
    monkeypatch.setenv("PILLION_TARGET", "localhost:1")
    assert parse_target().address == "localhost:1"


def test_a_socket_path_has_a_limit():
    longest = "/" + "x" * 106
    assert parse_target(f"unix:{longest}").address == f"unix:{longest}"
    with pytest.raises(ValueError, match=r"108 bytes .* allows 107"):
        parse_target(f"unix:{longest}y")


def test_the_channel_has_one_message_limit_each_way_and_a_plain_authority():
    options = dict(channel_options(parse_target("unix:/a"), None))
    assert options["grpc.max_send_message_length"] == MESSAGE_BYTES_MAX == 16 * 1024 * 1024
    assert options["grpc.max_receive_message_length"] == MESSAGE_BYTES_MAX
    assert options["grpc.default_authority"] == "localhost"


def test_a_token_is_not_sent_in_clear():
    with pytest.raises(ValueError, match="in clear"):
        Client("memory.example:443", token=TOKEN)
    Client("memory.example:443", token=TOKEN, tls=Tls()).close()


@pytest.mark.parametrize("token", ["", "a\nb", " a", "ä"])
def test_a_token_that_is_no_header_is_refused(token):
    with pytest.raises(ValueError, match="printable"):
        Client("localhost:1", token=token)


def test_a_deadline_is_positive():
    with pytest.raises(ValueError, match="positive"):
        Client("localhost:1", default_deadline_seconds=0)
