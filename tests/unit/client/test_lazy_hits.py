"""A search result converts what is asked of it, once."""

from pillion_client.searching import search_result
from pillion_proto.memory.v1 import memory_service_pb2 as pb
from pillion_proto.memory.v1 import search_pb2, types_pb2


def ten_hits():
    instant = {"seconds": 1_780_000_000, "nanos": 123_456_000}
    memory = types_pb2.Memory(
        id="0190a0a0-0000-7000-8000-000000000000",
        partition={"namespace": "default", "tenant": "acme"},
        subject={"type": "user", "id": "mira"},
        kind=types_pb2.MEMORY_KIND_EPISODIC,
        text="Her passport deadline is 2026-07-15. " * 4,
        importance=0.5,
        confidence=1.0,
        status=types_pb2.MEMORY_STATUS_STATED,
        labels=["travel", "urgent"],
        source={"kind": 1, "episode_id": "0190a0a0-0000-7000-8000-000000000001"},
        valid_from=instant,
        recorded_at=instant,
        created_at=instant,
        updated_at=instant,
        version=7,
        use_count=3,
    )
    hits = [search_pb2.SearchHit(memory=memory, score=0.5) for _ in range(10)]
    return pb.SearchResponse(hits=hits, revision=9, exactness=1, path=1).SerializeToString()


def test_a_hit_converts_its_memory_once():
    (hit, *_) = search_result(pb.SearchResponse.FromString(ten_hits())).hits
    assert hit.memory is hit.memory
    assert (hit.memory.id, hit.memory.text) == (hit.id, hit.text)
    assert hit.parts is None
    assert hit.path == ()
