"""Calls to a real server: limits, deadlines, bad input, tokens, logs without content."""

import hashlib
import json
import math
import struct
import time

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess, note, reason_of

MIB = 1024 * 1024
UNKNOWN_ID = "01890000-0000-7000-8000-000000000001"
ALWAYS = {"unconditional": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("server") / "d", "--log-level", "debug")
    yield running
    running.stop()


def fails(call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), reason_of(caught.value)


def write(server, *mutations, **fields):
    request = wire.WriteRequest(mutations=mutations, **fields)
    return server.stub.Write(request, timeout=SECONDS)


def vector(*numbers):
    return struct.pack(f"<{len(numbers)}f", *numbers)


def fact(**fields):
    memory = {
        "subject": {"type": "user", "id": "mira"},
        "attribute": "deadline",
        "value": {"string_value": "soon"},
        "source": {"kind": 1},
    } | fields
    return wire.Mutation(put_fact={"fact": memory, "precondition": ALWAYS})


def search(server, **fields):
    return server.stub.Search(wire.SearchRequest(**fields), timeout=SECONDS)


INVALID = grpc.StatusCode.INVALID_ARGUMENT
BAD_INPUT = {
    "empty text": (lambda server: write(server, note(text="")), "INVALID_FIELD"),
    "1 MiB text": (lambda server: write(server, note(text="x" * MIB)), "LIMIT_EXCEEDED"),
    "NaN in a vector": (
        lambda server: write(server, note(vector=vector(math.nan, 1.0))),
        "NOT_FINITE",
    ),
    "a vector of zeros": (lambda server: write(server, note(vector=vector(*[0.0] * 8))), None),
    "k = 0": (lambda server: search(server, top_k=0), None),
    "k = 10,000": (lambda server: search(server, top_k=10_000), "LIMIT_EXCEEDED"),
    "valid_to before valid_from": (
        lambda server: write(
            server, fact(valid_from=Timestamp(seconds=9), valid_to=Timestamp(seconds=8))
        ),
        "INTERVAL_EMPTY",
    ),
    "an instant of no year": (
        lambda server: write(server, fact(valid_from=Timestamp(seconds=2**60))),
        "INVALID_FIELD",
    ),
    "an unknown enum number": (lambda server: write(server, note(kind=99)), "INVALID_FIELD"),
    "no precondition": (
        lambda server: write(server, wire.Mutation(retract_memory={"memory_id": UNKNOWN_ID})),
        "PRECONDITION_MISSING",
    ),
    "a page token of nothing": (
        lambda server: server.stub.List(wire.ListRequest(page_token="x"), timeout=SECONDS),  # noqa: S106
        "PAGE_TOKEN_INVALID",
    ),
    "a filter by no session": (
        lambda server: search(server, top_k=1, filter={"session_ids": [""]}),
        "INVALID_FIELD",
    ),
    "a filter by no session in another": (
        lambda server: search(server, top_k=1, filter={"none_of": [{"session_ids": [""]}]}),
        "INVALID_FIELD",
    ),
    "101 mutations": (lambda server: write(server, *[note()] * 101), "LIMIT_EXCEEDED"),
    "a NaN importance": (lambda server: write(server, note(importance=math.nan)), None),
    "a subject without an id": (
        lambda server: write(server, note(subject="")),
        "INVALID_FIELD",
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_an_invalid_argument_with_a_reason(server, name):
    call, reason = BAD_INPUT[name]
    code, found = fails(lambda: call(server))
    assert code is INVALID
    assert found == reason or (reason is None and found is not None)


def test_a_vector_of_another_dimension_is_refused(server):
    here = {"tenant": "dimensions"}
    write(server, note(vector=vector(*[1.0] * 8)), partition=here)
    code, reason = fails(lambda: write(server, note(vector=vector(*[1.0] * 7)), partition=here))
    assert (code, reason) == (INVALID, "DIMENSION_MISMATCH")


def test_another_tenants_id_is_not_found(server):
    made = write(server, note(), partition={"tenant": "one"}).results[0].id
    request = wire.GetRequest(partition={"tenant": "two"}, target={"memory_id": made})
    code, reason = fails(lambda: server.stub.Get(request, timeout=SECONDS))
    assert (code, reason) == (grpc.StatusCode.NOT_FOUND, "NOT_FOUND")


def test_a_message_over_the_limit_is_refused_and_the_server_goes_on(server):
    code, reason = fails(lambda: search(server, top_k=1, vector=b"x" * (16 * MIB)))
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, None)
    write(server, note())


def test_a_message_at_the_limit_is_read(server):
    """It is refused for what it says, which shows that it arrived."""
    code, reason = fails(lambda: search(server, top_k=1, vector=b"x" * (16 * MIB - 100)))
    assert code is INVALID
    assert reason is not None


def waits_long(**fields):
    return wire.ListRequest(read={"at_least_revision": 5_000}, **fields)


def test_a_call_without_a_deadline_gets_the_servers(tmp_path):
    server = ServerProcess(tmp_path / "d", "--default-deadline-ms", "200")
    try:
        started = time.monotonic()
        code, reason = fails(lambda: server.stub.List(waits_long()))
        # It waited for the revision as long as it might, which is what is left to say.
        assert (code, reason) == (grpc.StatusCode.OUT_OF_RANGE, "FUTURE_REVISION")
        assert 0.14 < time.monotonic() - started < 5
        info = server.stub.GetServerInfo(wire.GetServerInfoRequest(), timeout=SECONDS)
        assert info.limits.default_deadline.ToMilliseconds() == 200
    finally:
        server.stop()


def test_a_cancelled_call_frees_its_thread(server):
    """More than there are threads for reads are cancelled, and a read still gets one."""
    calls = [server.stub.List.future(waits_long(), timeout=SECONDS) for _ in range(12)]
    write(server, note())
    for call in calls:
        call.cancel()
    server.stub.List(wire.ListRequest(), timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while '"CANCELLED"' not in server.log:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_full_map_refuses_writes_and_goes_on_reading(tmp_path):
    config = tmp_path / "c.toml"
    config.write_text(f"[store_options]\nsize_bytes_max = {MIB}\n")
    server = ServerProcess(tmp_path / "d", "--config", config)
    try:
        kept = []

        def fill():
            for number in range(200):
                made = write(server, note(f"{number} " + "x" * 20_000))
                kept.append(made.results[0].id)

        with pytest.raises(grpc.RpcError) as caught:
            fill()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason_of(caught.value) == "STORE_FULL"
        assert kept
        for memory_id in kept:
            request = wire.GetRequest(target={"memory_id": memory_id})
            assert server.stub.Get(request, timeout=SECONDS).record.memory.id == memory_id
    finally:
        assert server.stop() == 0


def test_tokens_bind_callers_to_their_tenants(tmp_path):
    tokens = tmp_path / "tokens.json"
    entry = {"namespaces": ["default"], "roles": ["reader", "writer"]}
    tokens.write_text(
        json.dumps(
            [
                entry
                | {
                    "name": tenant,
                    "tenants": [tenant],
                    "sha256": hashlib.sha256(f"token of {tenant}".encode()).hexdigest(),
                }
                for tenant in ("one", "two")
            ]
        )
    )
    tokens.chmod(0o600)
    server = ServerProcess(tmp_path / "d", "--token-file", tokens, "--tcp", "127.0.0.1:0")

    def as_(tenant):
        return {
            "metadata": [("authorization", f"Bearer token of {tenant}")],
            "timeout": SECONDS,
        }

    try:
        request = wire.WriteRequest(mutations=[note("of one")])
        made = server.stub.Write(request, **as_("one")).results[0].id
        get = wire.GetRequest(target={"memory_id": made})
        assert server.stub.Get(get, **as_("one")).record.memory.partition.tenant == "one"
        assert fails(lambda: server.stub.Get(get, **as_("two")))[1] == "NOT_FOUND"
        get.partition.tenant = "one"
        assert fails(lambda: server.stub.Get(get, **as_("two")))[1] == "PERMISSION_DENIED"
        assert fails(lambda: server.stub.Get(get, timeout=SECONDS))[1] == "UNAUTHENTICATED"
        log = server.log
    finally:
        server.stop()
    assert "token of" not in log


def test_nothing_that_was_said_is_in_the_logs(server):
    canary = "canary5e1d"
    here = {"tenant": canary}
    made = write(server, note(f"text {canary}", subject=canary, labels=[canary]), partition=here)
    search(server, top_k=1, text=canary, partition=here)
    fails(lambda: write(server, note(canary * 9000, subject=canary), partition=here))
    fails(lambda: write(server, note(canary, subject=canary * 90), partition=here))
    fails(lambda: search(server, top_k=0, text=canary, partition=here))
    key = {"subject": {"type": canary, "id": canary}, "attribute": canary}
    get = wire.GetRequest(partition=here, target={"fact": key})
    fails(lambda: server.stub.Get(get, timeout=SECONDS))
    forget = wire.ForgetRequest(
        partition=here, mode=1, selector={"ids": {"ids": [made.results[0].id]}}
    )
    server.stub.Forget(forget, timeout=SECONDS)
    lines = [json.loads(line) for line in server.log.splitlines()]
    calls = [line for line in lines if line["message"] == "call"]
    assert {line["method"] for line in calls} >= {"Write", "Search", "Get", "Forget"}
    assert canary not in server.log
    assert made.results[0].id not in server.log
