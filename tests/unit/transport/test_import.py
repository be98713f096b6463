"""The Import stream: acknowledgements in order, waits passed on, and what ends a stream."""

import contextlib
import threading
import time

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from pillion.domain.commands import ImportAck, ImportRejection
from pillion.domain.errors import PillionError, Reason
from pillion.domain.mutations import AddMemory, EmbeddingMode
from pillion.domain.scope import Partition
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

SECONDS = 20
ITEM = wire.Mutation(
    add_memory={
        "memory": {
            "subject": {"type": "user", "id": "mira"},
            "kind": 1,
            "text": "t",
            "source": {"kind": 1},
        }
    }
)


def start(**fields):
    return wire.ImportRequest(start=wire.ImportStart(**fields))


def batch(sequence, *items):
    return wire.ImportRequest(batch=wire.ImportBatch(sequence=sequence, items=items or (ITEM,)))


def run(channel, *requests):
    return list(MemoryServiceStub(channel).Import(iter(requests), timeout=SECONDS))


def ack(**fields):
    given = {"revision": 1, "written": 1, "existing": 0, "rejections": (), "vectors_pending": 0}
    return ImportAck(**(given | fields))


def test_every_batch_is_acknowledged_in_order(channel, use_cases):
    here = {"namespace": "n", "tenant": "t"}
    answers = run(channel, start(partition=here, embedding_mode=2), batch(3), batch(9))
    assert [answer.ack.sequence for answer in answers] == [3, 9]
    partition, items, mode, _deadline = use_cases.calls[0][1]
    assert partition == Partition("n", "t")
    assert mode is EmbeddingMode.INLINE
    assert isinstance(items[0], AddMemory)


def test_a_wait_becomes_a_backoff_after_the_acknowledgement(channel, use_cases):
    use_cases.import_acks = [ack(wait_ms=1500), ack()]
    first, backoff, second = run(channel, start(), batch(1), batch(2))
    assert (first.ack.sequence, second.ack.sequence) == (1, 2)
    assert backoff.backoff.wait.ToMilliseconds() == 1500
    assert backoff.backoff.batch_size == 100


def test_a_bad_item_does_not_end_the_stream(channel, use_cases):
    error = PillionError.of_field("kind", "one kind of mutation must be set")
    use_cases.import_acks = [ack(rejections=(ImportRejection(1, error),))]
    answers = run(channel, start(), batch(1, ITEM, wire.Mutation()), batch(2))
    assert isinstance(use_cases.calls[0][1][1][1], PillionError)
    assert [answer.ack.sequence for answer in answers] == [1, 2]
    assert answers[0].ack.rejections[0].index == 1


def test_a_stream_of_nothing_ends_well(channel):
    assert run(channel) == []
    assert run(channel, start()) == []


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([batch(1)], "INVALID_FIELD"),
        ([wire.ImportRequest()], "INVALID_FIELD"),
        ([start(embedding_mode=9)], "INVALID_FIELD"),
        ([start(), start()], "INVALID_FIELD"),
        ([start(), wire.ImportRequest()], "INVALID_FIELD"),
        ([start(), batch(0)], "INVALID_FIELD"),
        ([start(), batch(2), batch(2)], "INVALID_FIELD"),
        ([start(), batch(2), batch(1)], "INVALID_FIELD"),
        ([start(), wire.ImportRequest(batch={"sequence": 1})], "INVALID_FIELD"),
        ([start(), batch(1, *[ITEM] * 101)], "LIMIT_EXCEEDED"),
    ],
)
def test_breaking_the_protocol_ends_the_stream(channel, requests, reason):
    with pytest.raises(grpc.RpcError) as caught:
        run(channel, *requests)
    info = error_details_pb2.ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.reason == reason


def test_a_failing_batch_ends_the_stream_and_keeps_what_was_acknowledged(channel, use_cases):
    def fail_second(*_):
        if len(use_cases.calls) == 2:
            raise PillionError(Reason.STORE_FULL, "full")

    use_cases.hook = fail_second
    stream = MemoryServiceStub(channel).Import(
        iter([start(), batch(1), batch(2), batch(3)]), timeout=SECONDS
    )
    assert next(stream).ack.sequence == 1
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert len(use_cases.calls) == 2


def test_each_batch_has_a_deadline_of_its_own(serve, use_cases):
    deadlines = []
    use_cases.hook = lambda _verb, args, _: deadlines.append(args[3])
    channel = serve(default_deadline_ms=5_000)
    list(MemoryServiceStub(channel).Import(iter([start(), batch(1), batch(2)])))
    first, second = (one.remaining_seconds() for one in deadlines)
    assert 0 < first < second <= 5


def stalled(*requests):
    """Requests after which the caller neither sends nor closes, until the test ends."""
    yield from requests
    threading.Event().wait(SECONDS)


@pytest.mark.parametrize(
    "requests", [[start(), batch(1)], [start(), batch(0)], [start(), start()], []]
)
def test_no_thread_is_left_of_a_stream_that_ended(channel, requests):
    with contextlib.suppress(grpc.RpcError):
        run(channel, *requests)
    deadline = time.monotonic() + SECONDS
    while any(thread.name == "pillion-stream-next" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("sent", [[], [start()], [start(), batch(1)]])
def test_a_stream_on_which_nothing_comes_ends_and_gives_its_thread_back(serve, sent):
    channel = serve(streams_max=1, stream_idle_seconds=0.1)
    stream = MemoryServiceStub(channel).Import(stalled(*sent), timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "open another" in caught.value.details()
    assert [answer.ack.sequence for answer in run(channel, start(), batch(1))] == [1]


def test_the_time_that_a_batch_takes_is_not_idle(serve, use_cases):
    wait = threading.Event()
    use_cases.hook = lambda *_: wait.wait(0.3)
    channel = serve(stream_idle_seconds=0.1)
    assert len(run(channel, start(), batch(1), batch(2))) == 2


def test_a_cancelled_stream_gives_its_thread_back(serve):
    channel = serve(streams_max=1)
    stream = MemoryServiceStub(channel).Import(stalled(start(), batch(1)), timeout=SECONDS)
    assert next(stream).ack.sequence == 1
    stream.cancel()
    deadline = time.monotonic() + SECONDS
    while True:
        again = MemoryServiceStub(channel).Import(iter([start()]), timeout=SECONDS)
        if again.code() is grpc.StatusCode.OK:
            break
        assert again.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert time.monotonic() < deadline


def test_reflection_needs_none_of_the_threads_for_streams(serve):
    channel = serve(streams_max=1)
    stream = MemoryServiceStub(channel).Import(stalled(start(), batch(1)), timeout=SECONDS)
    assert next(stream).ack.sequence == 1
    ask = reflection_pb2.ServerReflectionRequest(list_services="")
    reflect = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    (answer,) = reflect(iter([ask]), timeout=SECONDS)
    assert answer.list_services_response.service
    stream.cancel()
