"""What GetServerInfo claims and what every method answers are the same: each is called.

The server is the real one over the RAM store, so a method that is claimed and not wired fails too.
"""

import itertools
import secrets
from contextlib import closing
from types import SimpleNamespace

import grpc
import pytest
from google.protobuf import message_factory
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from pillion.bootstrap import Uuid7Source
from pillion.clocks import SteadyClock
from pillion.schemas.json_schema import JsonSchemaCompiler
from pillion.service import ServiceSettings, assemble
from pillion.transport.capabilities import FEATURES, METHODS
from pillion.transport.identity import LocalAuthenticator
from pillion.transport.memory_servicer import ServerFacts
from pillion.transport.server import Server, ServerSettings
from pillion_proto.memory.v1 import admin_service_pb2, schema_service_pb2
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub
from pillion_storage.api import StoreSettings
from pillion_storage.ram import open_store

SECONDS = 20
HOUR_US = 3_600_000_000
ID = "01890000-0000-7000-8000-000000000001"
# Where an empty request asks for something that isn't served, the least that doesn't.
LEAST = {
    "Consolidate": wire.ConsolidateRequest(subject={"type": "user", "id": "mira"}),
    "Watch": wire.WatchRequest(heartbeat={"seconds": 1}),
}
# A watch goes on for ever; what it says at once is enough.
MESSAGES_MAX = 1
EPISODE = {"subject": {"type": "user", "id": "mira"}, "content": "c", "source_kind": 1}
MEMORY = {
    "subject": {"type": "user", "id": "mira"},
    "attribute": "a",
    "value": {"int_value": 1},
    "source": {"kind": 1},
}
# For every feature: a call that asks for it. None: it is a property of answers, not a request.
ASKS = {
    wire.CAPABILITY_FORGET_ERASE: (
        "Forget",
        wire.ForgetRequest(mode=3, selector={"subject": {"subject": {"type": "t", "id": "i"}}}),
    ),
    wire.CAPABILITY_FORGET_SELECTORS: (
        "Forget",
        wire.ForgetRequest(mode=1, selector={"expired": True}),
    ),
    wire.CAPABILITY_RECORDED_TIME: (
        "Search",
        wire.SearchRequest(top_k=1, read={"exact_revision": 0}),
    ),
    wire.CAPABILITY_CERTIFIED_SEARCH: ("Search", wire.SearchRequest(top_k=1, recall_target=0.9)),
    wire.CAPABILITY_LEXICAL_SEARCH: None,
    wire.CAPABILITY_SEARCH_TRACE: ("Search", wire.SearchRequest(top_k=1, include_trace=True)),
    wire.CAPABILITY_GRAPH_EXPANSION: ("Search", wire.SearchRequest(top_k=1, expansion={})),
    wire.CAPABILITY_STATEMENT_GROUPS: (
        "Search",
        wire.SearchRequest(top_k=1, older_statements=2),
    ),
    wire.CAPABILITY_DIVERSITY: (
        "Search",
        wire.SearchRequest(top_k=1, ranking={"diversity": 0.5}),
    ),
    wire.CAPABILITY_EXTRACTION: (
        "Write",
        wire.WriteRequest(mutations=[{"capture_episode": {"episode": EPISODE, "extraction": 2}}]),
    ),
    wire.CAPABILITY_BACKGROUND: ("Consolidate", wire.ConsolidateRequest(background=True)),
    wire.CAPABILITY_GUARDS: (
        "Write",
        wire.WriteRequest(
            mutations=[{"capture_episode": {"episode": EPISODE}}],
            guards=[{"memory_id": ID, "precondition": {"must_not_exist": True}}],
        ),
    ),
    wire.CAPABILITY_CONFLICT_POLICIES: (
        "Write",
        wire.WriteRequest(
            mutations=[
                {
                    "put_fact": {
                        "fact": MEMORY,
                        "precondition": {"unconditional": True},
                        "conflict_policy": 3,
                    }
                }
            ]
        ),
    ),
    wire.CAPABILITY_NESTED_FILTERS: (
        "Search",
        wire.SearchRequest(top_k=1, filter={"any_of": [{}]}),
    ),
    wire.CAPABILITY_ACCESS: (
        "Search",
        wire.SearchRequest(top_k=1, ranking={"recency_anchor": 2}, without_access=True),
    ),
    wire.CAPABILITY_FILTER_ALTERNATIVES: (
        "Search",
        wire.SearchRequest(top_k=1, filter={"valid_from": {"from": {"seconds": 1}}}),
    ),
}


@pytest.fixture(scope="module")
def channel(tmp_path_factory):
    socket = tmp_path_factory.mktemp("s") / "s"
    clock = SteadyClock()
    store = open_store(StoreSettings(random_bytes=secrets.token_bytes))
    use_cases = assemble(
        store=store,
        store_kind="ram",
        embedder=None,
        summarizers={"extractive": SimpleNamespace(summarize=lambda *_, **__: [])},
        token_counters={},
        lost_details=lambda *_: [],
        schemas=JsonSchemaCompiler(),
        clock=clock,
        ids=Uuid7Source(),
        settings=ServiceSettings(
            erases=False,
        ),
    )
    settings = ServerSettings(
        socket=socket,
        tcp=None,
        read_workers=1,
        write_workers=1,
        streams_max=1,
        default_deadline_ms=5000,
    )
    facts = ServerFacts(
        version="9",
        store_kind="ram",
        default_deadline_ms=5000,
        request_ids_max=77,
        request_id_window_us=24 * HOUR_US,
        history_window_us=25 * HOUR_US,
    )
    server = Server(use_cases, settings, facts, LocalAuthenticator(), clock)
    server.start()
    with grpc.insecure_channel(f"unix:{socket}") as made:
        yield made
    server.stop(0)
    use_cases.close()


@pytest.fixture(scope="module")
def info(channel):
    return MemoryServiceStub(channel).GetServerInfo(wire.GetServerInfoRequest(), timeout=SECONDS)


def _methods():
    for file, name in (
        (wire.DESCRIPTOR, "MemoryService"),
        (admin_service_pb2.DESCRIPTOR, "AdminService"),
        (schema_service_pb2.DESCRIPTOR, "SchemaService"),
    ):
        yield from file.services_by_name[name].methods


def outcome(channel, method, request):
    """Call a method; return (status code, reason), or (OK, "")."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    payload = request.SerializeToString()
    try:
        if method.client_streaming:
            list(channel.stream_stream(path)(iter([payload]), timeout=SECONDS))
        elif method.server_streaming:
            stream = channel.unary_stream(path)(payload, timeout=SECONDS)
            list(itertools.islice(stream, MESSAGES_MAX))
            stream.cancel()
        else:
            channel.unary_unary(path)(payload, timeout=SECONDS)
    except grpc.RpcError as error:
        failed = error
    else:
        return grpc.StatusCode.OK, error_details_pb2.ErrorInfo()
    found = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(failed).details[0].Unpack(found)
    return failed.code(), found


@pytest.mark.parametrize("method", list(_methods()), ids=lambda method: method.name)
def test_a_method_answers_unimplemented_exactly_when_its_capability_is_not_claimed(
    channel, info, method
):
    empty = message_factory.GetMessageClass(method.input_type)()
    code, found = outcome(channel, method, LEAST.get(method.name, empty))
    capability = METHODS[f"/{method.containing_service.full_name}/{method.name}"].capability
    claimed = capability is None or capability in info.capabilities
    assert (code is not grpc.StatusCode.UNIMPLEMENTED) == claimed
    assert code is not grpc.StatusCode.INTERNAL
    if not claimed:
        assert found.reason == "NOT_SERVED"
        assert found.metadata["capability"] == wire.Capability.Name(capability)


def test_every_feature_is_asked_for():
    assert set(ASKS) == set(FEATURES)


@pytest.mark.parametrize("capability", [one for one in ASKS if ASKS[one]], ids=wire.Capability.Name)
def test_a_feature_is_refused_exactly_when_it_is_not_claimed(channel, info, capability):
    name, request = ASKS[capability]
    method = wire.DESCRIPTOR.services_by_name["MemoryService"].methods_by_name[name]
    code, found = outcome(channel, method, request)
    if capability in info.capabilities:
        assert code is grpc.StatusCode.OK, found
    else:
        assert (code, found.reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SERVED")
        assert found.metadata["capability"] == wire.Capability.Name(capability)


def test_server_info_says_what_it_is(info):
    assert (info.contract, info.server_version, info.store) == ("pillion.memory.v1", "9", "ram")
    assert not info.HasField("embedder")
    assert info.limits.message_bytes_max == 16 * 1024 * 1024
    assert info.limits.default_deadline.ToMilliseconds() == 5000
    assert info.limits.request_id_window.ToMicroseconds() == 24 * HOUR_US
    assert info.limits.history_window.ToMicroseconds() == 25 * HOUR_US
    assert info.limits.request_id_count == 77
    with closing(open_store(StoreSettings(random_bytes=secrets.token_bytes))) as store:
        assert info.limits.write_bytes_max == store.features.batch_bytes_max
    assert 0 < info.started_at.ToMicroseconds() <= info.server_time.ToMicroseconds()
    assert all(value for _, value in info.limits.ListFields())
    assert len(info.limits.ListFields()) == len(wire.ServerLimits.DESCRIPTOR.fields)
