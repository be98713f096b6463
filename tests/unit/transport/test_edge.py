"""The wrapper around every call, seen from a client on a real socket."""

import hashlib
import threading
import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import MESSAGE_BYTES_MAX
from pillion.domain.queries import Found
from pillion.domain.scope import Partition
from pillion.transport import admission
from pillion.transport.identity import TokenAuthenticator, TokenEntry
from pillion_proto.memory.v1 import admin_service_pb2, admin_service_pb2_grpc, types_pb2
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

SECONDS = 20
GET = wire.GetRequest(target={"memory_id": "01890000-0000-7000-8000-000000000001"})
WRITE = wire.WriteRequest(
    mutations=[
        wire.Mutation(
            add_memory={
                "memory": {
                    "subject": {"type": "user", "id": "mira"},
                    "kind": 1,
                    "text": "t",
                    "source": {"kind": 1},
                }
            }
        )
    ]
)


def info_of(error):
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return info


def fails(call):
    """Return a failed call's code, its reason and its error."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), info_of(caught.value).reason, caught.value


def get(channel, **options):
    return MemoryServiceStub(channel).Get(GET, timeout=SECONDS, **options)


def test_a_published_error_arrives_whole(channel, use_cases):
    use_cases.fail = PillionError(
        Reason.VERSION_MISMATCH, "read again", metadata={"current_version": "8"}
    )
    code, reason, error = fails(lambda: get(channel))
    assert (code, reason) == (grpc.StatusCode.ABORTED, "VERSION_MISMATCH")
    assert error.details() == "read again"
    assert dict(info_of(error).metadata) == {"current_version": "8"}


def test_a_bug_is_internal_and_leaks_nothing(channel, use_cases):
    use_cases.fail = KeyError("the secret text")
    code, reason, error = fails(lambda: get(channel))
    assert (code, reason) == (grpc.StatusCode.INTERNAL, "INTERNAL")
    assert "secret" not in error.details() + str(error.trailing_metadata())
    assert info_of(error).metadata["error_id"] in error.details()


def test_a_message_that_is_none_is_a_bad_field(channel):
    broken = channel.unary_unary("/pillion.memory.v1.MemoryService/Get")
    # Field 2 as text that is not UTF-8, and bytes that are no message at all.
    for payload in (b"\x0a\x04\x0a\x02\xff\xfe", b"\xff\xff\xff"):
        code, reason, _ = fails(lambda payload=payload: broken(payload, timeout=SECONDS))
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")


def test_an_unknown_method_has_a_reason_too(channel):
    for path in ("/pillion.memory.v1.MemoryService/Nothing", "/other.Service/Get"):
        call = channel.unary_unary(path)
        code, reason, _ = fails(lambda call=call: call(b"", timeout=SECONDS))
        assert (code, reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SERVED")


def test_an_answer_over_the_limit_says_so(channel, use_cases):
    found = Found(memory=use_cases.reader.get()[0].memory, vector=b"x" * MESSAGE_BYTES_MAX)
    use_cases.reader.get = lambda *_, **__: (found, 1)
    code, reason, _ = fails(lambda: get(channel))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "LIMIT_EXCEEDED")


def test_a_request_over_the_limit_is_refused_by_grpc(channel, use_cases):
    request = wire.SearchRequest(vector=b"x" * (MESSAGE_BYTES_MAX + 1))
    with pytest.raises(grpc.RpcError) as caught:
        MemoryServiceStub(channel).Search(request, timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert use_cases.calls == []


# Partitions and roles.


def token(name, roles, namespaces=("production",), tenants=("acme",)):
    return TokenEntry(
        name=name,
        sha256=hashlib.sha256(name.encode()).hexdigest(),
        namespaces=namespaces,
        tenants=tenants,
        roles=roles,
    )


TOKENS = TokenAuthenticator(
    [
        token("reader", ["reader"]),
        token("writer", ["writer"]),
        token("curator", ["curator"]),
        token("admin", ["admin"]),
        token("operator", ["admin"], ["*"], ["*"]),
        token("several", ["reader"], ["production"], ["acme", "other"]),
        token("any", ["reader"], ["*"], ["*"]),
    ]
)


def as_(name):
    return {"metadata": [("authorization", f"Bearer {name}")], "timeout": SECONDS}


@pytest.fixture
def guarded(serve):
    return serve(TOKENS)


def test_a_call_without_a_token_is_unauthenticated(guarded, use_cases):
    stub = MemoryServiceStub(guarded)
    for options in ({"timeout": SECONDS}, as_("stranger")):
        code, reason, _ = fails(lambda options=options: stub.Get(GET, **options))
        assert (code, reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
        code, _, _ = fails(lambda options=options: stub.GetServerInfo(
            wire.GetServerInfoRequest(), **options
        ))  # fmt: skip
        assert code is grpc.StatusCode.UNAUTHENTICATED
    assert use_cases.calls == []


def test_an_absent_partition_is_the_credentials_only_one(guarded, use_cases):
    MemoryServiceStub(guarded).Get(GET, **as_("reader"))
    assert use_cases.last_partition == Partition("production", "acme")


def test_an_absent_partition_of_several_must_be_named(guarded, use_cases):
    code, reason, _ = fails(lambda: MemoryServiceStub(guarded).Get(GET, **as_("several")))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    MemoryServiceStub(guarded).Get(GET, **as_("any"))
    assert use_cases.last_partition == Partition("default", "default")


def test_without_tokens_an_absent_partition_is_the_default(channel, use_cases):
    get(channel)
    assert use_cases.last_partition == Partition("default", "default")


@pytest.mark.parametrize(
    "partition",
    [
        {"namespace": "production", "tenant": "other"},
        {"namespace": "staging", "tenant": "acme"},
        {"tenant": "acme"},
        {},
    ],
)
def test_another_partition_is_denied_before_anything_is_looked_up(guarded, use_cases, partition):
    stub = MemoryServiceStub(guarded)
    here = types_pb2.Partition(**partition)
    requests = [
        (stub.Get, wire.GetRequest(partition=here), "reader"),
        (stub.Search, wire.SearchRequest(partition=here), "reader"),
        (stub.List, wire.ListRequest(partition=here), "reader"),
        (stub.History, wire.HistoryRequest(partition=here), "reader"),
        (stub.BatchGet, wire.BatchGetRequest(partition=here), "reader"),
        (stub.Recall, wire.RecallRequest(partition=here), "reader"),
        (stub.Write, wire.WriteRequest(partition=here), "writer"),
        (stub.Forget, wire.ForgetRequest(partition=here), "curator"),
        (stub.Consolidate, wire.ConsolidateRequest(partition=here), "curator"),
        (
            lambda request, **options: list(stub.Import(iter([request]), **options)),
            wire.ImportRequest(start=wire.ImportStart(partition=here)),
            "writer",
        ),
    ]
    for call, request, who in requests:
        code, reason, _ = fails(lambda c=call, r=request, w=who: c(r, **as_(w)))
        assert (code, reason) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    assert use_cases.calls == []


def test_a_role_reaches_its_own_verbs_only(guarded, use_cases):
    stub = MemoryServiceStub(guarded)
    admin = admin_service_pb2_grpc.AdminServiceStub(guarded)
    here = admin_service_pb2.GetStatsRequest(
        partition={"namespace": "production", "tenant": "acme"}
    )
    verbs = {
        "reader": [
            lambda **o: stub.Get(GET, **o),
            lambda **o: stub.Search(wire.SearchRequest(), **o),
        ],
        "writer": [
            lambda **o: stub.Write(WRITE, **o),
            lambda **o: list(stub.Import(iter([]), **o)),
        ],
        "curator": [
            lambda **o: stub.Forget(
                wire.ForgetRequest(
                    mode=1, selector={"subject": {"subject": {"type": "a", "id": "b"}}}
                ),
                **o,
            )
        ],
        "admin": [lambda **o: admin.GetStats(here, **o)],
    }
    for who in verbs:
        stub.GetServerInfo(wire.GetServerInfoRequest(), **as_(who))
        for role, calls in verbs.items():
            for call in calls:
                if role == who:
                    call(**as_(who))
                else:
                    code, _, _ = fails(lambda call=call, who=who: call(**as_(who)))
                    assert code is grpc.StatusCode.PERMISSION_DENIED


def test_the_whole_servers_statistics_need_reach_over_everything(guarded, use_cases):
    stub = admin_service_pb2_grpc.AdminServiceStub(guarded)
    code, _, _ = fails(lambda: stub.GetStats(admin_service_pb2.GetStatsRequest(), **as_("admin")))
    assert code is grpc.StatusCode.PERMISSION_DENIED
    stats = stub.GetStats(admin_service_pb2.GetStatsRequest(), **as_("operator"))
    assert use_cases.calls[-1][1] == (None,)
    assert (stats.store.kind, stats.store.queue_depth, stats.resident_bytes) == ("ram", 5, 8)


def test_health_needs_no_token_and_reflection_does(guarded):
    stub = health_pb2_grpc.HealthStub(guarded)
    answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflect = reflection_pb2_grpc.ServerReflectionStub(guarded).ServerReflectionInfo
    ask = [reflection_pb2.ServerReflectionRequest(list_services="")]
    code, _, _ = fails(lambda: list(reflect(iter(ask), timeout=SECONDS)))
    assert code is grpc.StatusCode.UNAUTHENTICATED
    (listed,) = reflect(iter(ask), **as_("reader"))
    names = {one.name for one in listed.list_services_response.service}
    assert "pillion.memory.v1.MemoryService" in names


def test_a_name_too_long_for_a_partition_is_refused(channel, use_cases):
    request = wire.GetRequest(partition={"tenant": "ä" * 65})
    code, reason, error = fails(lambda: MemoryServiceStub(channel).Get(request, timeout=SECONDS))
    assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    assert "partition.tenant" in error.details()


# Deadlines.


def test_a_call_without_a_deadline_gets_the_default(serve, use_cases):
    seen = []
    use_cases.hook = lambda _verb, _args, kwargs: seen.append(
        kwargs["deadline"].remaining_seconds()
    )
    stub = MemoryServiceStub(serve(default_deadline_ms=7_000))
    stub.Get(GET)
    stub.Get(GET, timeout=3)
    assert 6 < seen[0] <= 7
    assert 0 < seen[1] < 4  # gRPC converts between two clocks


def test_work_past_the_deadline_stops(serve, use_cases):
    def work(_verb, _args, kwargs):
        while True:
            kwargs["deadline"].check()
            time.sleep(0.001)

    use_cases.hook = work
    stub = MemoryServiceStub(serve(default_deadline_ms=50))
    code, reason, _ = fails(lambda: stub.Get(GET))
    assert (code, reason) == (grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED")


def test_work_for_a_cancelled_call_stops(channel, use_cases):
    inside, ended = threading.Event(), threading.Event()
    reasons = []

    def work(_verb, _args, kwargs):
        inside.set()
        try:
            while True:
                kwargs["deadline"].check()
                time.sleep(0.001)
        except PillionError as error:
            reasons.append(error.reason)
            raise
        finally:
            ended.set()

    use_cases.hook = work
    call = MemoryServiceStub(channel).Get.future(GET, timeout=SECONDS)
    assert inside.wait(SECONDS)
    call.cancel()
    assert ended.wait(SECONDS)
    assert reasons == [Reason.CANCELLED]


# Admission.


def test_overload_is_refused_at_once_and_reads_leave_writes_alone(
    serve, use_cases, gate, monkeypatch
):
    monkeypatch.setattr(admission, "_READS_WAITING_MAX", 2)
    use_cases.hook = lambda verb, *_: gate() if verb == "get" else None
    stub = MemoryServiceStub(serve(read_workers=2))
    waiting = [stub.Get.future(GET, timeout=SECONDS) for _ in range(4)]
    gate.wait_for(2)  # two at work; the other two queue, for calls arrive in order
    code, reason, error = fails(lambda: stub.Get(GET, timeout=SECONDS))
    assert not any(call.done() for call in waiting)  # it waited for nobody
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    retry = error_details_pb2.RetryInfo()
    assert rpc_status.from_call(error).details[1].Unpack(retry)
    stub.Write(WRITE, timeout=SECONDS)
    stub.GetServerInfo(wire.GetServerInfoRequest(), timeout=SECONDS)
    gate.open()
    for call in waiting:
        call.result(SECONDS)
    stub.Get(GET, timeout=SECONDS)


def test_a_call_that_gave_up_waiting_gives_its_place_back(serve, use_cases, gate, monkeypatch):
    monkeypatch.setattr(admission, "_READS_WAITING_MAX", 1)
    use_cases.hook = gate
    stub = MemoryServiceStub(serve(read_workers=1))
    working = stub.Get.future(GET, timeout=SECONDS)
    gate.wait_for(1)
    queued = stub.Get.future(GET, timeout=SECONDS)
    code, _, _ = fails(lambda: stub.Get(GET, timeout=SECONDS))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    queued.cancel()
    gate.open()
    working.result(SECONDS)
    for _ in range(5):
        stub.Get(GET, timeout=SECONDS)


def test_streams_over_the_cap_are_refused_and_leave_reads_alone(serve, use_cases):
    stub = MemoryServiceStub(serve(streams_max=2))
    release = threading.Event()

    def requests():
        yield wire.ImportRequest(start={})
        yield wire.ImportRequest(batch={"sequence": 1, "items": WRITE.mutations})
        release.wait(SECONDS)

    open_ = [stub.Import(requests(), timeout=SECONDS) for _ in range(2)]
    for stream in open_:
        assert next(stream).ack.sequence == 1
    code, reason, _ = fails(lambda: list(stub.Import(iter([]), timeout=SECONDS)))
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    stub.Get(GET, timeout=SECONDS)
    release.set()
    for stream in open_:
        assert list(stream) == []
