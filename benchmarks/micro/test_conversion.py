"""What a search costs beside the search: its answer made on the server and read by the client.

Aims: ten hits made of kept encodings within 10 µs, parsed and read within 60 µs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind
from pillion.domain.queries import Exactness, Hit, SearchAnswer, SearchPath
from pillion.domain.scope import Partition, Subject
from pillion.transport.convert.answers import search_to_wire
from pillion.transport.convert.encoded import EncodedMemories, encode_search
from pillion_client.searching import search_result
from pillion_proto.memory.v1 import memory_service_pb2 as wire

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

HERE = Partition("production", "acme")
INSTANT_US = 1_780_000_000_123_456


def ten_hits() -> SearchAnswer:
    memories = [
        Memory(
            id=UUID(int=number + 1),
            subject=Subject("user", "mira"),
            kind=MemoryKind.EPISODIC,
            text="Her passport deadline is 2026-07-15. " * 4,
            source=Source(SourceKind.USER_STATEMENT, UUID(int=99)),
            labels=("travel", "urgent"),
            valid_from=INSTANT_US,
            created_at=INSTANT_US,
            updated_at=INSTANT_US,
            version=7,
        )
        for number in range(10)
    ]
    return SearchAnswer(
        hits=tuple(Hit(memory, 0.5, 0.4, 0.3, 0.2, 0.9) for memory in memories),
        revision=9,
        exactness=Exactness.EXACT,
        path=SearchPath.SCAN,
        admitted=10,
        vectors_pending=0,
    )


def test_answer_made_as_messages(benchmark: BenchmarkFixture) -> None:
    answer = ten_hits()
    benchmark(lambda: search_to_wire(answer, HERE, include_parts=False).SerializeToString())


def test_answer_made_fresh(benchmark: BenchmarkFixture) -> None:
    answer = ten_hits()
    nothing_kept = EncodedMemories(entries_max=0)
    benchmark(encode_search, answer, HERE, nothing_kept, include_parts=False)


def test_answer_made_of_kept_encodings(benchmark: BenchmarkFixture) -> None:
    answer, kept = ten_hits(), EncodedMemories()
    benchmark(encode_search, answer, HERE, kept, include_parts=False)


def test_answer_parsed_and_read(benchmark: BenchmarkFixture) -> None:
    data = encode_search(ten_hits(), HERE, EncodedMemories(), include_parts=False)

    def read() -> list[tuple[str, str, float]]:
        result = search_result(wire.SearchResponse.FromString(data))
        return [(hit.id, hit.text, hit.score) for hit in result.hits]

    assert len(benchmark(read)) == 10
