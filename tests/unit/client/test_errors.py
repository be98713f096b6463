"""How failures of the wire become typed errors."""

import asyncio
import pickle
import re
import threading
from pathlib import Path

import grpc
import pillion_client
import pytest
from grpc import StatusCode
from pillion_client import AsyncClient, errors
from pillion_client._failures import BY_CODE, BY_REASON
from pillion_client.limits import MESSAGE_BYTES_MAX
from pillion_client.testing import Failure, failure
from pillion_proto.memory.v1 import errors_pb2
from pillion_proto.memory.v1 import memory_service_pb2 as pb

CONTRACT = Path(__file__).parents[3] / "proto/pillion/memory/v1/errors.proto"
DOCUMENTED = re.findall(
    r"// ([A-Z_]+)\. .*\n(?:  // .*\n)*  ERROR_REASON_(\w+) = \d+;", CONTRACT.read_text()
)


def raised(run, **options):
    async def body(client):
        with pytest.raises(errors.PillionError) as caught:
            await client.get("a", **options)
        return caught.value

    return run(body)


def test_every_reason_of_the_contract_has_a_class():
    names = {name.removeprefix("ERROR_REASON_") for name, _ in errors_pb2.ErrorReason.items()}
    assert set(BY_REASON) == names - {"UNSPECIFIED"}
    assert {reason for _, reason in DOCUMENTED} == set(BY_REASON)


@pytest.mark.parametrize(("code", "reason"), DOCUMENTED)
def test_a_class_has_the_status_code_that_the_contract_gives_its_reason(code, reason):
    assert BY_REASON[reason].default_code is StatusCode[code]


def test_every_error_class_is_public_and_in_the_drawn_tree():
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.PillionError)
    }
    assert kinds <= set(pillion_client.__all__)
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__)) | {"PillionError"}
    assert drawn == kinds


@pytest.mark.parametrize("reason", ["NOT_FOUND", "FACT_CONFLICT", "CORRUPT", "FORCE_REQUIRED"])
def test_the_reason_chooses_the_class(server, run, reason):
    kind = BY_REASON[reason]
    server.script("Get", failure(reason, kind.default_code, "why", metadata={"a": "b"}))
    error = raised(run)
    assert type(error) is kind
    assert (error.reason, error.message, error.metadata) == (reason, "why", {"a": "b"})
    assert error.code is kind.default_code


def test_field_violations_and_retry_info_arrive(server, run):
    server.script(
        "Get",
        failure(
            "INVALID_FIELD",
            StatusCode.INVALID_ARGUMENT,
            field_violations={"target.memory_id": "not a UUID"},
            retry_after_seconds=0.25,
        ),
    )
    error = raised(run)
    assert error.field_violations == (errors.FieldViolation("target.memory_id", "not a UUID"),)
    assert error.retry_after_seconds == 0.25


def test_a_reason_newer_than_the_client_falls_back_on_the_code(server, run):
    server.script("Get", failure("TOO_NEW", StatusCode.OUT_OF_RANGE))
    error = raised(run)
    assert type(error) is errors.OutOfRange
    assert error.reason == "TOO_NEW"


def test_a_reason_of_somebody_else_is_not_ours(server, run):
    server.script(
        "Get", Failure(StatusCode.ABORTED, reason="VERSION_MISMATCH", domain="example.org")
    )
    error = raised(run)
    assert type(error) is errors.Aborted
    assert error.reason == ""


@pytest.mark.parametrize("code", [code for code in StatusCode if code is not StatusCode.OK])
def test_every_status_code_without_details_becomes_an_error(server, run, code):
    server.script("Get", Failure(code))
    error = raised(run)
    assert error.code is code
    assert isinstance(error, BY_CODE.get(code, errors.PillionError))


def test_a_request_over_the_message_limit_is_not_sent(server, run):
    async def body(client):
        with pytest.raises(errors.MessageTooLarge, match="split"):
            await client.search("x" * (MESSAGE_BYTES_MAX + 1))

    run(body)
    assert server.calls("Search") == []


def test_an_answer_over_the_message_limit_says_to_ask_for_less(server, run):
    big = pb.Record(memory={"text": "x" * (MESSAGE_BYTES_MAX + 1)})
    server.script("Get", pb.GetResponse(record=big))
    error = raised(run)
    assert type(error) is errors.MessageTooLarge
    assert "smaller" in error.message


def test_a_message_of_the_limit_passes(server, run):
    room = MESSAGE_BYTES_MAX - 64
    server.script("Get", pb.GetResponse(record=pb.Record(memory={"text": "x" * room})))

    async def body(client):
        return len((await client.get("a")).text)

    assert run(body) == room


def test_the_deadline_ends_the_call_on_both_sides(server, run):
    ended = threading.Event()

    def hang(_request, context):
        context.add_callback(ended.set)
        ended.wait(30)
        return pb.GetResponse()

    server.script("Get", hang)
    assert type(raised(run, deadline_seconds=0.1)) is errors.DeadlineExceeded
    assert ended.wait(5)


def test_cancelling_the_task_cancels_the_call(server):
    arrived, ended = threading.Event(), threading.Event()

    def hang(_request, context):
        context.add_callback(ended.set)
        arrived.set()
        ended.wait(30)
        return pb.GetResponse()

    server.script("Get", hang)

    async def main():
        async with AsyncClient(server.target) as client:
            task = asyncio.create_task(client.get("a"))
            await asyncio.to_thread(arrived.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(ended.wait, 5)

    asyncio.run(main())
    assert len(server.calls("Get")) == 1


def test_errors_survive_pickling():
    error = errors.VersionMismatch(
        "stale", reason="VERSION_MISMATCH", metadata={"current_version": "9"}
    )
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), copy.current, copy.message) == (errors.VersionMismatch, 9, "stale")
    assert copy.code is grpc.StatusCode.ABORTED
