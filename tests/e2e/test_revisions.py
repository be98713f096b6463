"""Every answer says which revision it is of, so that a caller can read its own writes."""

from __future__ import annotations

import pytest
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess, note

MIRA = {"type": "user", "id": "mira"}
KEY = {"subject": MIRA, "attribute": "city"}


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    # Without an embedder, whose vectors are commits of their own.
    server = ServerProcess(tmp_path_factory.mktemp("revisions") / "d", "--embedder", "none")
    yield server.stub
    server.stop()


def test_every_answer_carries_the_revision(stub):
    fact = KEY | {"value": {"string_value": "Bern"}, "source": {"kind": 1}}
    put = wire.Mutation(put_fact={"fact": fact, "precondition": {"unconditional": True}})
    written = stub.Write(wire.WriteRequest(mutations=[put, note()]), timeout=SECONDS)
    memory_id = written.results[1].id
    read = {"at_least_revision": written.revision}
    start = wire.ImportRequest(start={})
    batch = wire.ImportRequest(batch={"sequence": 1, "items": [note("imported")]})

    def dry(selector):
        return wire.ForgetRequest(selector=selector, mode=1, run=wire.FORGET_RUN_DRY_RUN)

    target = {"fact": KEY}
    reads = [
        stub.Search(wire.SearchRequest(top_k=1, read=read), timeout=SECONDS),
        stub.Get(wire.GetRequest(target=target, read=read), timeout=SECONDS),
        stub.BatchGet(wire.BatchGetRequest(targets=[target], read=read), timeout=SECONDS),
        stub.List(wire.ListRequest(read=read), timeout=SECONDS),
        stub.History(wire.HistoryRequest(fact=KEY, read=read), timeout=SECONDS),
        stub.Forget(dry({"ids": {"ids": [memory_id]}}), timeout=SECONDS),
        stub.Consolidate(wire.ConsolidateRequest(subject=MIRA, dry_run=True), timeout=SECONDS),
    ]
    assert {answer.revision for answer in reads} == {written.revision}
    (ack,) = [one.ack for one in stub.Import(iter([start, batch]), timeout=SECONDS)]
    assert ack.revision == written.revision + 1
    forgotten = stub.Forget(
        wire.ForgetRequest(selector={"ids": {"ids": [memory_id]}}, mode=1), timeout=SECONDS
    )
    assert forgotten.revision == ack.revision + 1
    assert stub.List(wire.ListRequest(), timeout=SECONDS).revision == forgotten.revision
