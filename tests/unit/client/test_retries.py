"""What is sent again, with what, and what never is."""

import uuid

import pytest
from grpc import StatusCode
from pillion_client import (
    NoServer,
    Overloaded,
    QuotaExceeded,
    RetryPolicy,
    Source,
    Unavailable,
    VersionMismatch,
    errors,
    unconditional,
)
from pillion_client._async.transport import AsyncTransport
from pillion_client._sync.transport import Transport
from pillion_client.testing import failure
from pillion_proto.memory.v1 import memory_service_pb2 as pb

DOWN = failure("UNAVAILABLE", StatusCode.UNAVAILABLE)
SAID = Source("user_statement")
ASYNC = AsyncTransport._callable


def put(client, **more):
    return client.put_fact(
        "user:mira", "city", "Bern", source=SAID, precondition=unconditional, **more
    )


def test_a_read_is_sent_again_until_it_is_answered(server, run):
    server.script("Search", DOWN, DOWN, pb.SearchResponse(revision=7))

    async def body(client):
        return (await client.search("x")).revision

    assert run(body) == 7
    assert len(server.calls("Search")) == 3


@pytest.mark.parametrize("times", [1, 4])
def test_a_success_without_a_message_counts_as_a_lost_answer(server, run, monkeypatch, times):
    """gRPC has been seen to call an attempt OK and have no answer of it."""
    server.script("Write", pb.WriteResponse(revision=3))
    lost = []

    def losing(of):
        def callable_(self, method):
            send = of(self, method)

            def call(*args, **kwargs):
                if len(lost) == times:
                    return send(*args, **kwargs)
                lost.append(args)
                return nothing() if of is ASYNC else None

            return call

        return callable_

    async def nothing():
        return None

    monkeypatch.setattr(AsyncTransport, "_callable", losing(ASYNC))
    monkeypatch.setattr(Transport, "_callable", losing(Transport._callable))

    async def body(client):
        return (await put(client)).revision

    if times == 1:
        assert run(body) == 3
        (request,) = server.calls("Write")
        assert lost[0] == (request.request.SerializeToString(),)
    else:
        with pytest.raises(Unavailable, match="was lost"):
            run(body)


@pytest.mark.parametrize("given", [None, "mine"])
def test_a_write_is_sent_again_with_the_same_request_id(server, run, given):
    server.script("Write", DOWN, pb.WriteResponse(revision=3, replayed=True))

    async def body(client):
        return await put(client, **({"request_id": given} if given else {}))

    result = run(body)
    first, second = (call.request for call in server.calls("Write"))
    assert first == second
    assert result.request_id == first.request_id
    assert result.replayed
    assert first.request_id == given if given else uuid.UUID(first.request_id).version == 4


def test_two_writes_have_two_request_ids(server, run):
    server.script("Write", pb.WriteResponse())

    async def body(client):
        await put(client)
        await put(client)

    run(body)
    first, second = (call.request.request_id for call in server.calls("Write"))
    assert first != second


@pytest.mark.parametrize("verb", ["Forget", "Consolidate"])
def test_every_mutation_carries_a_request_id(server, run, verb):
    answers = {"Forget": pb.ForgetResponse(), "Consolidate": pb.ConsolidateResponse()}
    server.script(verb, DOWN, answers[verb])

    async def body(client):
        if verb == "Forget":
            await client.forget(ids=["a"])
        else:
            await client.consolidate("user:mira")

    run(body)
    first, second = (call.request for call in server.calls(verb))
    assert first.request_id
    assert first == second


def test_attempts_are_bounded(server, run, pauses):
    server.script("Get", DOWN)

    async def body(client):
        with pytest.raises(Unavailable):
            await client.get("a")

    run(body, retry=RetryPolicy(attempts_max=3, backoff_first_seconds=0.1))
    assert len(server.calls("Get")) == 3
    first, second = pauses
    assert 0.05 <= first <= 0.1 <= second <= 0.2


def test_a_stale_write_is_never_sent_again(server, run):
    stale = failure(
        "VERSION_MISMATCH",
        StatusCode.ABORTED,
        metadata={"key": "user:mira//city", "expected_version": "4", "current_version": "9"},
    )
    server.script("Write", stale)

    async def body(client):
        with pytest.raises(VersionMismatch) as caught:
            await put(client)
        return caught.value

    refusal = run(body)
    assert (refusal.key, refusal.expected, refusal.current) == ("user:mira//city", 4, 9)
    assert len(server.calls("Write")) == 1


def test_an_overload_is_retried_when_the_server_says(server, run, pauses):
    busy = failure("OVERLOADED", StatusCode.RESOURCE_EXHAUSTED, retry_after_seconds=1.5)
    server.script("Write", busy, pb.WriteResponse())

    async def body(client):
        await put(client)

    run(body)
    (pause,) = pauses
    assert 1.5 <= pause < 1.6


def test_a_used_up_quota_is_not_retried(server, run):
    server.script("Write", failure("QUOTA_EXCEEDED", StatusCode.RESOURCE_EXHAUSTED))

    async def body(client):
        with pytest.raises(QuotaExceeded):
            await put(client)

    run(body)
    assert len(server.calls("Write")) == 1


def test_no_pause_reaches_beyond_the_deadline(server, run, pauses):
    busy = failure("OVERLOADED", StatusCode.RESOURCE_EXHAUSTED, retry_after_seconds=60)
    server.script("Get", busy)

    async def body(client):
        with pytest.raises(Overloaded) as caught:
            await client.get("a", deadline_seconds=5)
        assert caught.value.retry_after_seconds == 60

    run(body)
    assert pauses == []


def test_one_deadline_spans_all_attempts(server, run):
    server.script("Get", DOWN, pb.GetResponse(record=pb.Record(memory={"id": "a"})))

    async def body(client):
        await client.get("a", deadline_seconds=0.9)

    # gRPC rounds a deadline up on the wire, so only the difference is exact.
    run(body, retry=RetryPolicy(backoff_first_seconds=0.1))
    first, second = (call.seconds_left for call in server.calls("Get"))
    assert second < first - 0.04  # the pause was at least 0.05 s
    assert first <= 1.0


def test_without_a_server_the_error_says_what_to_do(socket, run):
    async def body(client):
        with pytest.raises(NoServer, match="pillion serve") as caught:
            await client.info()
        assert str(socket) in caught.value.message
        with pytest.raises(NoServer):
            await client.wait_until_ready(0.05)

    run(body, retry=RetryPolicy(attempts_max=2, backoff_first_seconds=0.001))


def test_only_unavailability_and_overload_are_retried():
    policy = RetryPolicy(attempts_max=9)
    again = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.PillionError)
        and policy.pause_seconds(kind("x"), 1, 0.5) is not None
    }
    assert again == {errors.Unavailable, errors.NoServer, errors.Overloaded}


@pytest.mark.parametrize("bad", [{"attempts_max": 0}, {"backoff_first_seconds": -1.0}])
def test_a_senseless_policy_is_refused(bad):
    with pytest.raises(ValueError, match="retry policy"):
        RetryPolicy(**bad)
