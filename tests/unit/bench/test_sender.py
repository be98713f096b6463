"""The sender is an open loop: what became of a call changes neither what is sent nor when."""

import threading
from concurrent import futures

import grpc
import pytest
from pillion.bench.data import Data
from pillion.bench.histograms import Latencies
from pillion.bench.schedule import MIXES, Verb, poisson
from pillion.bench.sender import Job, Sender, Tally

DATA = Data(memories=10, keys=5)


class Handler(grpc.GenericRpcHandler):
    def __init__(self, answer):
        self._handler = grpc.unary_unary_rpc_method_handler(answer)

    def service(self, details):
        return self._handler


@pytest.fixture
def listen(tmp_path):
    """Return a function that serves a handler and returns the target."""
    servers = []

    def listening(answer, workers):
        server = grpc.server(futures.ThreadPoolExecutor(workers))
        server.add_generic_rpc_handlers((Handler(answer),))
        server.add_insecure_port(f"unix:{tmp_path / 's'}")
        server.start()
        servers.append(server)
        return f"unix:{tmp_path / 's'}"

    yield listening
    for server in servers:
        server.stop(0).wait()


def job(target, **changed):
    told = {"mix": "search", "rate": 200.0, "warm_up": 0.0, "seconds": 0.2, "seed": 1}
    return Job(target=target, **(told | {"check": False} | changed))


def due_of(one):
    return list(poisson(MIXES[one.mix], one.rate, one.warm_up + one.seconds, one.seed))


def test_calls_are_sent_though_none_is_answered(listen):
    """A closed loop would wait for the first answer, which here waits for the last request."""
    everything = len(due_of(job("")))
    arrived = threading.Semaphore(0)
    all_there = threading.Event()

    def answer(request, context):
        arrived.release()
        if arrived._value >= everything:
            all_there.set()
        assert all_there.wait(10)
        return b""

    sender = Sender(job(listen(answer, everything)), DATA)
    sender.connect()
    tally = sender.send()
    sender.close()
    assert everything > 20
    assert tally.due == everything
    assert tally.of_all().count == everything
    # Nobody was answered before the last call was due, so the first waited for most of the round.
    assert tally.of_all().seconds_at(100) >= due_of(job(""))[-1].at - due_of(job(""))[0].at


def test_refusals_are_counted_and_are_no_latencies(listen):
    def answer(request, context):
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full")

    one = job(listen(answer, 4))
    sender = Sender(one, DATA)
    sender.connect()
    tally = sender.send()
    sender.close()
    assert dict(tally.errors) == {"RESOURCE_EXHAUSTED": len(due_of(one))}
    assert tally.of_all().count == 0


def test_what_is_due_in_the_warm_up_does_not_count(listen):
    one = job(listen(lambda *_: b"", 4), warm_up=0.1, seconds=0.1)
    sender = Sender(one, DATA)
    sender.connect()
    tally = sender.send()
    sender.close()
    counted = [due for due in due_of(one) if due.at >= 0.1]
    assert tally.due == tally.of_all().count == len(counted)
    assert tally.answered_in_all == len(due_of(one)) > len(counted)


def test_wrong_answers_are_found(listen):
    one = job(listen(lambda *_: b"", 4), rate=2000.0, check=True)
    sender = Sender(one, DATA)
    sender.connect()
    tally = sender.send()
    sender.close()
    assert tally.wrong == sum(due.number % 64 == 0 for due in due_of(one)) > 0


def test_tallies_of_processes_add_up():
    first, second = Tally(), Tally()
    for tally, seconds in ((first, 0.001), (second, 0.1)):
        tally.due = 2
        tally.latencies[Verb.GET].record(seconds)
        tally.errors["DROPPED"] += 1
    merged = Tally.merged([first.as_dict(), second.as_dict()])
    assert merged.due == 4
    assert merged.errors == {"DROPPED": 2}
    assert merged.of_all().count == 2
    assert merged.of_all().seconds_at(100) == pytest.approx(0.1, rel=0.01)


def test_a_histogram_survives_its_text_and_bounds_what_is_out_of_range():
    found = Latencies()
    for seconds in (0.0, 1e-9, 0.5, 1e9):
        found.record(seconds)
    read = Latencies.decoded(found.encoded())
    assert read.count == 4
    assert read.milliseconds() == found.milliseconds()
    assert read.seconds_at(100) == pytest.approx(600, rel=0.01)
