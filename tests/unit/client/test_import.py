"""Import: bounded, obedient to the server, and exact about which item an answer is about."""

import contextlib
import threading

import pytest
from grpc import StatusCode
from pillion_client import AddMemory, MessageTooLarge, NotServed, Source, Unavailable, errors
from pillion_client._importing import ImportWindow
from pillion_client._runtime import synchronous
from pillion_client.testing import failure
from pillion_proto.memory.v1 import memory_service_pb2 as pb

SAID = Source("document")


def items(count):
    for number in range(count):
        yield AddMemory("user:mira", f"note {number}", source=SAID, id=f"id-{number}")


def acknowledge(batch, **more):
    more.setdefault("written", len(batch.items))
    return pb.ImportResponse(ack=pb.ImportAck(sequence=batch.sequence, revision=1, **more))


def prompt(requests, _context):
    """Acknowledge each batch at once."""
    for request in requests:
        if request.HasField("batch"):
            yield acknowledge(request.batch)


async def drain(client, count, **options):
    return [ack async for ack in client.import_(items(count), **options)]


def test_every_item_arrives_once_in_order(server, run):
    seen = []

    def handler(requests, _context):
        first = next(requests)
        seen.append((first.start.partition.tenant, first.start.embedding_mode))
        for request in requests:
            seen.extend(item.add_memory.memory.id for item in request.batch.items)
            yield acknowledge(request.batch)

    server.script("Import", handler)

    async def body(client):
        return await drain(client, 250, embedding="inline")

    acks = run(body, partition=("default", "acme"))
    assert seen == [("acme", pb.EMBEDDING_MODE_INLINE), *(f"id-{n}" for n in range(250))]
    assert [(ack.first_position, ack.items) for ack in acks] == [(0, 100), (100, 100), (200, 50)]
    assert sum(ack.written for ack in acks) == 250


def test_an_empty_import_ends_well(server, run):
    server.script("Import", prompt)

    async def body(client):
        return await drain(client, 0)

    assert run(body) == []


def test_a_slow_server_slows_the_items_down(server, run):
    """The server withholds acknowledgements until the window must be full."""
    taken = 0
    on_their_way = []

    def slow(requests, _context):
        held = []
        next(requests)
        for request in requests:
            held.append(request.batch)
            on_their_way.append(len(held))
            if len(held) == 3:
                yield acknowledge(held.pop(0))
        while held:
            yield acknowledge(held.pop(0))

    def counted():
        nonlocal taken
        for item in items(200):
            taken += 1
            yield item

    server.script("Import", slow)
    ahead = []

    async def body(client):
        done = 0
        acks = client.import_(counted(), batch_items_max=10, unacknowledged_max=3)
        async for ack in acks:
            done += ack.items
            ahead.append(taken - done)
        return done

    assert run(body) == 200
    assert max(on_their_way) == 3  # it fills the window, and no more
    assert max(ahead) <= 3 * 10


def test_rejections_name_the_item_by_its_place_in_the_whole_import(server, run):
    def refuse_second(requests, _context):
        next(requests)
        for request in requests:
            refusal = pb.ImportRejection(
                index=1, reason="INVALID_FIELD", field="memory.text", message="empty"
            )
            written = len(request.batch.items) - 1
            yield acknowledge(request.batch, written=written, rejections=[refusal])

    server.script("Import", refuse_second)

    async def body(client):
        return await drain(client, 20, batch_items_max=10)

    acks = run(body)
    assert [r.position for ack in acks for r in ack.rejections] == [1, 11]
    assert acks[0].rejections[0].field == "memory.text"


def test_a_backoff_makes_batches_smaller_and_waits(server, run, pauses):
    sizes = []

    def weary(requests, _context):
        next(requests)
        for request in requests:
            sizes.append(len(request.batch.items))
            if len(sizes) == 1:
                backoff = pb.ImportBackoff(batch_size=3)
                backoff.wait.FromMilliseconds(250)
                yield pb.ImportResponse(backoff=backoff)
            yield acknowledge(request.batch)

    server.script("Import", weary)

    async def body(client):
        return sum(ack.items for ack in await drain(client, 100, batch_items_max=10))

    assert run(body) == 100
    assert 0.25 in pauses
    assert sizes[0] == 10
    assert sizes[-2] == 3
    assert sorted(sizes, reverse=True) == sizes


def test_stopping_early_cancels_the_stream(server, run, monkeypatch):
    ended = threading.Event()
    kept = []

    class Kept(synchronous.Duplex):
        """Stays referenced, so that it is our cancel that ends it and not its collection."""

        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            kept.append(self)

    monkeypatch.setattr(synchronous, "Duplex", Kept)

    def handler(requests, context):
        context.add_callback(ended.set)
        next(requests)
        yield acknowledge(next(requests).batch)
        ended.wait(30)  # only a cancelled call ends while its handler still runs

    server.script("Import", handler)

    async def body(client):
        async with contextlib.aclosing(client.import_(items(1000), batch_items_max=1)) as acks:
            async for ack in acks:
                assert ack.first_position == 0
                break

    run(body)
    assert len(kept) == 1
    assert ended.wait(5)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, NotServed),
        (failure("UNAVAILABLE", StatusCode.UNAVAILABLE), Unavailable),
        (lambda _, __: iter([acknowledge(pb.ImportBatch(sequence=99))]), errors.Internal),
        (lambda _, __: iter([]), errors.Internal),
    ],
)
def test_a_stream_that_fails_says_why(server, run, answer, error):
    if answer is not None:
        server.script("Import", answer)

    async def body(client):
        with pytest.raises(error):
            await drain(client, 1000)

    run(body)


def test_an_item_that_cannot_be_sent_ends_the_import(server, run):
    server.script("Import", prompt)
    bad = AddMemory("user:mira", "x", source=SAID, vector=[float("nan")])

    async def body(client):
        with pytest.raises(ValueError, match="component 0"):
            [ack async for ack in client.import_([bad])]

    run(body)


def item(size):
    return pb.Mutation(add_memory={"memory": {"text": "x" * size}})


def test_batches_stay_under_their_bytes_but_for_one_large_item():
    window = ImportWindow(items_max=10, bytes_max=1000, unacknowledged_max=99)
    for size in (400, 400, 400, 5000, 10):
        window.add(item(size))
    window.end()
    sizes = []
    while window.has_batch:
        sizes.append([len(i.add_memory.memory.text) for i in window.take().batch.items])
    assert sizes == [[400, 400], [400], [5000], [10]]


def test_an_item_over_the_message_limit_is_refused():
    with pytest.raises(MessageTooLarge):
        ImportWindow().add(item(16 * 1024 * 1024))


@pytest.mark.parametrize("bad", [{"items_max": 0}, {"items_max": 101}, {"unacknowledged_max": 0}])
def test_a_senseless_window_is_refused(bad):
    with pytest.raises(ValueError, match="1 to 100"):
        ImportWindow(**bad)
