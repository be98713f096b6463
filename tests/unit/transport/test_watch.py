"""The Watch stream on a real socket: bounds, back-pressure, deadlines, and how it ends."""

import contextlib
import threading
import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryStatus
from pillion.domain.queries import Filter, Found
from pillion.domain.scope import Partition
from pillion.domain.watching import ChangeKind, RecordChange, WatchEvent
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

from .conftest import MEMORY_ID, a_memory

SECONDS = 20


def watch(channel, timeout=None, **fields):
    return MemoryServiceStub(channel).Watch(wire.WatchRequest(**fields), timeout=timeout)


def reason_of(error):
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(error).details[0].Unpack(info)
    return info.reason


def until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Endless:
    """Events for ever, counted; each waits until the one before was taken."""

    def __init__(self, text="t"):
        self.made = 0
        self.deadlines = []
        self.cut_offs = []
        self.ended = threading.Semaphore(0)
        self._found = Found(memory=a_memory(text=text))

    def __call__(self, _partition, _query, deadline, cut_off):
        self.deadlines.append(deadline)
        self.cut_offs.append(cut_off)
        try:
            while True:
                deadline.check()
                self.made += 1
                change = RecordChange(ChangeKind.CREATED, MEMORY_ID, self._found)
                yield WatchEvent(self.made, 7, (change,))
        finally:
            self.ended.release()


class Silent(Endless):
    """One heartbeat, then nothing until the consumer is gone."""

    def __call__(self, _partition, _query, deadline, cut_off):
        self.deadlines.append(deadline)
        try:
            yield WatchEvent(1)
            while True:
                deadline.check()
                threading.Event().wait(0.01)
        finally:
            self.ended.release()


def test_events_arrive_as_they_are(channel, use_cases):
    found = Found(memory=a_memory())
    use_cases.watch_events = [
        WatchEvent(
            4,
            1_000_002,
            (
                RecordChange(ChangeKind.UPDATED, MEMORY_ID, found),
                RecordChange(ChangeKind.REMOVED, MEMORY_ID, None),
            ),
        ),
        WatchEvent(6),
        WatchEvent(6, resume=True),
    ]
    told, beat, resume = watch(channel, SECONDS)
    assert (told.revision, told.recorded_at.ToMicroseconds(), told.resume) == (4, 1_000_002, False)
    assert [(one.kind, one.id) for one in told.changes] == [
        (2, str(MEMORY_ID)),
        (3, str(MEMORY_ID)),
    ]
    assert told.changes[0].record.memory.text == "a text"
    assert not told.changes[1].HasField("record")
    assert beat == wire.WatchResponse(revision=6)
    assert resume == wire.WatchResponse(revision=6, resume=True)


def test_the_request_arrives_as_it_is(channel, use_cases):
    list(
        watch(
            channel,
            SECONDS,
            partition={"namespace": "n", "tenant": "t"},
            after_revision=9,
            filter={"statuses": [1], "all_contexts": True, "validity": 2},
            heartbeat={"seconds": 2, "nanos": 500_000_000},
        )
    )
    partition, query, *_ = use_cases.calls[0][1]
    assert partition == Partition("n", "t")
    assert (query.after_revision, query.heartbeat_seconds) == (9, 2.5)
    assert query.filter == Filter(
        contexts=None, statuses=frozenset({MemoryStatus.CANDIDATE}), valid_only=False
    )
    list(watch(channel, SECONDS))
    _, query, *_ = use_cases.calls[1][1]
    assert (query.after_revision, query.heartbeat_seconds, query.filter) == (0, 30.0, None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"filter": {"validity": 1}}, "INVALID_FIELD"),
        ({"filter": {"validity": 9}}, "INVALID_FIELD"),
        ({"heartbeat": {"seconds": 1, "nanos": -5}}, "INVALID_FIELD"),
        ({"filter": {"any_of": [{"none_of": [{"validity": 1}]}]}}, "INVALID_FIELD"),
    ],
)
def test_what_cannot_be_is_refused(channel, fields, reason):
    with pytest.raises(grpc.RpcError) as caught:
        list(watch(channel, SECONDS, **fields))
    assert reason_of(caught.value) == reason


def test_an_error_ends_the_stream_with_its_status(channel, use_cases):
    use_cases.fail = PillionError(Reason.HISTORY_GONE, "gone", metadata={"oldest_revision": "5"})
    with pytest.raises(grpc.RpcError) as caught:
        list(watch(channel, SECONDS))
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE
    assert reason_of(caught.value) == "HISTORY_GONE"


def test_only_the_callers_own_deadline_holds(serve, use_cases):
    use_cases.watch_events = silent = Silent()
    channel = serve(default_deadline_ms=1)
    stream = watch(channel)
    assert next(stream).revision == 1
    assert silent.deadlines[0].remaining_seconds() == float("inf")
    bounded = watch(channel, 3000)
    assert next(bounded).revision == 1
    # The wire rounds deadlines.
    assert 2000 < silent.deadlines[1].remaining_seconds() < 4000
    for one in (stream, bounded):
        one.cancel()


def test_no_more_watches_than_configured_and_imports_are_not_kept_out(serve, use_cases):
    use_cases.watch_events = silent = Silent()
    channel = serve(watchers_max=2, streams_max=1)
    open_ = [watch(channel) for _ in range(2)]
    for one in open_:
        next(one)
    with pytest.raises(grpc.RpcError) as caught:
        next(watch(channel, SECONDS))
    assert reason_of(caught.value) == "OVERLOADED"
    start = wire.ImportRequest(start=wire.ImportStart())
    assert list(MemoryServiceStub(channel).Import(iter([start]), timeout=SECONDS)) == []
    open_[0].cancel()
    assert silent.ended.acquire(timeout=SECONDS)

    def is_free():
        again = watch(channel, SECONDS)
        with contextlib.suppress(grpc.RpcError):
            return next(again).revision == 1
        return False

    until(is_free)
    open_[1].cancel()


def test_nothing_is_made_that_the_consumer_does_not_take(channel, use_cases):
    use_cases.watch_events = endless = Endless("x" * 30_000)
    stream = watch(channel)
    next(stream)
    seen = -1
    while seen != endless.made:  # until flow control holds it
        seen = endless.made
        threading.Event().wait(0.3)
    assert endless.made < 2_000
    for _ in range(endless.made):
        next(stream)
    until(lambda: endless.made > seen)
    stream.cancel()
    assert endless.ended.acquire(timeout=SECONDS)


def test_a_consumer_that_takes_nothing_can_be_cut_off(channel, use_cases):
    use_cases.watch_events = endless = Endless("x" * 30_000)
    stream = watch(channel)
    next(stream)
    seen = -1
    while seen != endless.made:
        seen = endless.made
        threading.Event().wait(0.3)
    endless.cut_offs[0]()
    assert endless.ended.acquire(timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.CANCELLED


def test_the_streams_are_told_when_the_server_goes_down(serve, use_cases):
    def events(*_):
        yield WatchEvent(1)
        assert use_cases.watches_end.wait(SECONDS)
        yield WatchEvent(1, resume=True)

    use_cases.watch_events = events
    stream = watch(serve())
    next(stream)
    stopping = threading.Thread(target=serve.server.stop, args=(SECONDS,))
    stopping.start()
    assert [one.resume for one in stream] == [True]
    stopping.join(SECONDS / 2)
    assert not stopping.is_alive()
