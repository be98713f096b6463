"""Watching against a scripted server: when it goes on by itself, and when it gives up."""

from datetime import UTC, datetime

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from pillion_client import Filter, OutOfRange, PermissionDenied, RecordChange, Unavailable
from pillion_client.testing import failure
from pillion_proto.memory.v1 import memory_service_pb2 as wire

DOWN = failure("UNAVAILABLE", grpc.StatusCode.UNAVAILABLE)
CUT_OFF = failure("CANCELLED", grpc.StatusCode.CANCELLED)
BUSY = failure("OVERLOADED", grpc.StatusCode.RESOURCE_EXHAUSTED)


def stream(*revisions, resume=False, then=None):
    """A stream that tells these revisions and ends, or fails."""

    def answer(_request, context):
        for revision in revisions:
            yield wire.WatchResponse(
                revision=revision,
                recorded_at=Timestamp(seconds=revision),
                changes=[{"kind": 3, "id": f"r{revision}"}],
            )
        if resume:
            yield wire.WatchResponse(revision=revisions[-1], resume=True)
        if then is not None:
            context.abort(then, "scripted")

    return answer


def asked(server):
    """After which revisions the calls asked."""
    return [call.request.after_revision for call in server.calls("Watch")]


def told(events_max, **arguments):
    """A body that takes so many events."""

    async def body(client):
        events = []
        watching = client.watch(**({"after_revision": 0} | arguments))
        async for event in watching:
            events.append(event)
            if len(events) == events_max:
                break
        await watching.aclose()
        return events

    return body


def test_events_are_typed(server, run):
    server.script("Watch", stream(7))
    (event,) = run(told(1))
    assert event.revision == 7
    assert event.recorded_at == datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC)
    assert event.changes == (RecordChange("removed", "r7", None),)


def test_it_goes_on_where_it_was_asked_to_resume_and_where_the_server_was_gone(server, run, pauses):
    server.script(
        "Watch",
        stream(1, 2, resume=True),
        DOWN,
        BUSY,
        stream(3, then=grpc.StatusCode.UNAVAILABLE),
        CUT_OFF,
        stream(4),  # ends without a word
        stream(5, 6),
    )
    assert [event.revision for event in run(told(6))] == [1, 2, 3, 4, 5, 6]
    assert asked(server) == [0, 2, 2, 2, 3, 3, 4]
    assert len(pauses) == 6


def test_it_gives_up_in_the_end(server, run, pauses):
    server.script("Watch", stream(1, then=grpc.StatusCode.UNAVAILABLE), DOWN)
    with pytest.raises(Unavailable):
        run(told(9, give_up_seconds=0))
    assert pauses == []


@pytest.mark.parametrize(
    ("reason", "code", "kind"),
    [
        ("HISTORY_GONE", grpc.StatusCode.OUT_OF_RANGE, OutOfRange),
        ("PERMISSION_DENIED", grpc.StatusCode.PERMISSION_DENIED, PermissionDenied),
    ],
)
def test_a_refusal_is_not_tried_again(server, run, reason, code, kind):
    server.script("Watch", failure(reason, code, metadata={"oldest_revision": "5"}))
    with pytest.raises(kind) as caught:
        run(told(1))
    assert caught.value.metadata["oldest_revision"] == "5"
    assert len(asked(server)) == 1


def test_the_pauses_grow_and_are_bounded(server, run, pauses):
    server.script("Watch", *[DOWN] * 20, stream(1))
    run(told(1))
    assert pauses[0] <= 0.05
    assert 2.5 <= max(pauses) <= 5


def test_without_a_revision_it_begins_now(server, run):
    server.script("BatchGet", wire.BatchGetResponse(revision=41))
    server.script("Watch", stream(42))
    run(told(1, after_revision=None))
    assert asked(server) == [41]


def test_what_is_asked_for_is_sent(server, run):
    server.script("Watch", stream(1))
    run(told(1, subjects=["user:mira"], heartbeat_seconds=1.5))
    request = server.calls("Watch")[0].request
    assert request.filter.subjects[0].id == "mira"
    assert request.heartbeat.ToMilliseconds() == 1500
    assert server.calls("Watch")[0].seconds_left is None
    with pytest.raises(ValueError, match="not both"):
        run(told(1, subjects=["user:mira"], filter=Filter()))


def test_a_deadline_ends_it_well(server, run):
    server.script("Watch", stream(1, then=grpc.StatusCode.DEADLINE_EXCEEDED))
    assert [event.revision for event in run(told(9, deadline_seconds=30))] == [1]
    assert server.calls("Watch")[0].seconds_left < 31
    assert run(told(9, deadline_seconds=0)) == []
