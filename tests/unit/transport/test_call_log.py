"""Logs say how calls went and never what they were about: canaries go in, none comes out."""

import contextlib
import io
import json
import logging

import grpc
import pytest
from google.protobuf import json_format, message_factory
from pillion.domain.errors import PillionError, Reason
from pillion.domain.scope import Partition
from pillion.logs import LogFormat, LogLevel, configure_logs
from pillion.transport.call_log import describe, partition_hash
from pillion_proto.memory.v1 import admin_service_pb2, memory_service_pb2, schema_service_pb2
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

SECONDS = 20
CANARY = "canary7f3a"
PACKAGE = "pillion.memory.v1"
wire = memory_service_pb2


@pytest.fixture(params=list(LogFormat))
def logs(request):
    """Everything that is logged, at the finest level, as the server would write it."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logs(LogLevel.DEBUG, request.param, stream)
    yield stream
    root.handlers[:], root.level = before


def _filled(descriptor, depth=0):
    """A message of the type with canaries in every text, id and bytes field it has."""
    values = {}
    for field in descriptor.fields:
        if field.containing_oneof is not None and field.containing_oneof.fields[0] is not field:
            continue
        if field.type == field.TYPE_STRING:
            value = CANARY
        elif field.type == field.TYPE_BYTES:
            value = "Y2FuYXJ5N2YzYQ=="  # the same canary in base64
        elif field.type == field.TYPE_MESSAGE and field.message_type.full_name.startswith(
            "pillion"
        ):
            if depth > 4:
                continue
            value = _filled(field.message_type, depth + 1)
        else:
            continue
        values[field.name] = [value] if field.is_repeated else value
    return values


SERVICES = [
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
    schema_service_pb2.DESCRIPTOR.services_by_name["SchemaService"],
]


def _call(channel, method, message):
    path = f"/{method.containing_service.full_name}/{method.name}"
    payload = message.SerializeToString()
    if method.client_streaming:
        return list(channel.stream_stream(path)(iter([payload]), timeout=SECONDS))
    if method.server_streaming:
        return list(channel.unary_stream(path)(payload, timeout=SECONDS))
    return channel.unary_unary(path)(payload, timeout=SECONDS)


def _messages():
    for service in SERVICES:
        for method in service.methods:
            message = message_factory.GetMessageClass(method.input_type)()
            json_format.ParseDict(_filled(method.input_type), message)
            yield method, message


def good_requests(stub):
    """A good request of every served verb, with a canary in everything that is free text."""
    subject = {"type": CANARY, "id": CANARY}
    key = {"subject": subject, "attribute": CANARY, "context": CANARY}
    source = {"kind": 1, "quote": CANARY, "author": CANARY}
    memory = {"subject": subject, "kind": 1, "text": CANARY, "source": source, "labels": [CANARY]}
    item = {"add_memory": {"memory": memory}}
    here = {"namespace": CANARY, "tenant": CANARY}
    options = {"timeout": SECONDS}
    yield lambda: stub.Write(
        wire.WriteRequest(partition=here, mutations=[item], request_id=CANARY), **options
    )
    yield lambda: stub.Search(
        wire.SearchRequest(
            partition=here, text=CANARY, vector=CANARY.encode(), filter={"subjects": [subject]}
        ),
        **options,
    )
    yield lambda: stub.Get(wire.GetRequest(partition=here, target={"fact": key}), **options)
    yield lambda: stub.BatchGet(
        wire.BatchGetRequest(partition=here, targets=[{"fact": key}]), **options
    )
    yield lambda: stub.List(wire.ListRequest(partition=here, page_token=CANARY), **options)
    yield lambda: stub.History(wire.HistoryRequest(partition=here, fact=key), **options)
    yield lambda: stub.Forget(
        wire.ForgetRequest(partition=here, mode=1, selector={"fact": key}), **options
    )
    yield lambda: stub.Consolidate(
        wire.ConsolidateRequest(partition=here, subject=subject, context=CANARY), **options
    )
    yield lambda: list(
        stub.Import(
            iter(
                [
                    wire.ImportRequest(start={"partition": here}),
                    wire.ImportRequest(batch={"sequence": 1, "items": [item]}),
                ]
            ),
            **options,
        )
    )


def test_no_call_leaves_content_in_the_logs(channel, use_cases, logs):
    stub = MemoryServiceStub(channel)
    failures = [
        None,
        PillionError(Reason.NOT_FOUND, f"no {CANARY}"),
        PillionError(Reason.STORE_FULL, CANARY, metadata={"subject": CANARY}),
        PillionError.of_field(CANARY, CANARY),
        KeyError(CANARY),
        ValueError(f"could not convert {CANARY!r}"),
    ]
    called = 0
    for failure in failures:
        use_cases.fail = failure
        for call in good_requests(stub):
            called += 1
            if failure is None:
                call()
            else:
                with pytest.raises(grpc.RpcError):
                    call()
    for method, message in _messages():
        called += 1
        with contextlib.suppress(grpc.RpcError):
            _call(channel, method, message)
    with pytest.raises(grpc.RpcError):
        channel.unary_unary(f"/{CANARY}/{CANARY}")(CANARY.encode(), timeout=SECONDS)
    written = logs.getvalue()
    assert written.count("\n") > called  # one line for each call, whatever became of it
    assert CANARY not in written
    assert CANARY.encode().hex() not in written


def test_a_line_says_what_how_and_how_long(channel, use_cases, logs):
    use_cases.fail = PillionError(Reason.VERSION_MISMATCH, "m")
    with pytest.raises(grpc.RpcError):
        MemoryServiceStub(channel).Write(
            wire.WriteRequest(
                mutations=[{"retract_memory": {
                    "memory_id": "01890000-0000-7000-8000-000000000001",
                    "precondition": {"unconditional": True},
                }}]
            ),
            timeout=SECONDS,
        )  # fmt: skip
    line = next(one for one in logs.getvalue().splitlines() if "VERSION_MISMATCH" in one)
    assert partition_hash(Partition("default", "default")) in line
    for part in ("Write", "ABORTED", "info", "ms", "local"):
        assert part in line
    if line.startswith("{"):
        fields = json.loads(line)
        assert fields["message"] == "call"
        assert 0 < fields["ms"] < 20_000


def test_a_bug_is_logged_with_its_id_and_place(channel, use_cases, logs):
    use_cases.fail = KeyError(CANARY)
    with pytest.raises(grpc.RpcError) as caught:
        MemoryServiceStub(channel).Get(
            wire.GetRequest(target={"memory_id": "01890000-0000-7000-8000-000000000001"}),
            timeout=SECONDS,
        )
    error_id = caught.value.details().split()[2].rstrip(";")
    line = next(one for one in logs.getvalue().splitlines() if error_id in one)
    for part in ("INTERNAL", "KeyError", "memory_servicer.py", "error"):
        assert part in line


def test_causes_are_described_without_their_texts():
    def fail():
        try:
            {}[CANARY]
        except KeyError as error:
            raise ValueError(CANARY) from error

    with pytest.raises(ValueError, match=CANARY) as caught:
        fail()
    described = describe(caught.value)
    assert "builtins.ValueError" in described
    assert "builtins.KeyError" in described
    assert CANARY not in described


def test_an_exception_in_a_record_is_written_without_its_text(logs):
    try:
        {}[CANARY]
    except KeyError:
        logging.getLogger("pillion.test").exception("it failed")
    assert "it failed" in logs.getvalue()
    assert "KeyError" in logs.getvalue()
    assert CANARY not in logs.getvalue()
