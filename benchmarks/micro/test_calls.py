"""What a call costs in the server beside gRPC: the whole handler, from bytes to bytes.

The edge (identity, role, partition, deadline, log), parsing, the use case over a real LMDB store,
and the encoded answer; in this process, without a socket. An echo RPC takes some 350 µs. Aims:
a current fact within 30 µs, one of 10,000 versions as of its past within 80 µs.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import pytest
from pillion.bootstrap import Uuid7Source
from pillion.clocks import SteadyClock
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.mutations import (
    AddMemory,
    EmbeddingMode,
    MemoryDraft,
    Precondition,
    PreconditionKind,
    PutFact,
)
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion.schemas.json_schema import JsonSchemaCompiler
from pillion.service import ServiceSettings, assemble
from pillion.summarizers.details import lost_details
from pillion.transport.admission import Pools
from pillion.transport.identity import LocalAuthenticator
from pillion.transport.interceptors import Edge
from pillion.transport.memory_servicer import MemoryServicer, ServerFacts
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import add_MemoryServiceServicer_to_server
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store

from benchmarks import harness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_benchmark.fixture import BenchmarkFixture

    Method = Callable[[str, bytes], bytes]

HERE = Partition("bench", "calls")
MIRA = Subject("user", "mira")
BEGIN_US = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
VERSIONS = 10_000
MEMORIES = 10_000
DIMENSION = 384
BATCH = 100
METHODS = "/pillion.memory.v1.MemoryService/"
ANY = Precondition(PreconditionKind.UNCONDITIONAL)
SAID = Source(SourceKind.TOOL_RESULT)


class Patience:
    """A caller who waits."""

    def remaining_seconds(self) -> float:
        """Return a minute."""
        return 60.0

    def check(self) -> None:
        """Do nothing."""


class Handlers:
    """Takes what generated code registers with a server."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """Do nothing: the other way takes them all."""

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Keep them by path."""
        self.found |= {f"/{service}/{name}": handler for name, handler in handlers.items()}


class Details(NamedTuple):
    """What an interceptor is told of a call."""

    method: str
    invocation_metadata: tuple[()] = ()


class Context:
    """A call that is going on."""

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """Return what a client sends."""
        return (("user-agent", "bench"),)

    def time_remaining(self) -> float:
        """Return years."""
        return max(2e9 - time.time(), 0)

    def is_active(self) -> bool:
        """Return that it is."""
        return True


def facts() -> Iterator[PutFact]:
    for number in range(VERSIONS):
        yield PutFact(
            MemoryDraft(
                subject=MIRA,
                source=SAID,
                kind=MemoryKind.SEMANTIC,
                attribute="home city",
                value=Value(ValueKind.TEXT, f"City {number}"),
                valid_from=BEGIN_US + number * HOUR_US,
            ),
            ANY,
        )


def memories() -> Iterator[AddMemory]:
    vectors = harness.clustered(MEMORIES, DIMENSION, seed=1)
    for number in range(MEMORIES):
        yield AddMemory(
            MemoryDraft(
                subject=MIRA,
                source=SAID,
                kind=MemoryKind.EPISODIC,
                text=f"Mira said on day {number} that the report for account {number} is due.",
                vector=vectors[number].tobytes(),
            ),
            Precondition(PreconditionKind.MUST_NOT_EXIST),
        )


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Method]:
    """Calls a method with bytes, as gRPC's thread does."""
    clock = SteadyClock()
    use_cases = assemble(
        store=open_store(StoreSettings(directory=tmp_path_factory.mktemp("calls") / "store")),
        store_kind="lmdb",
        embedder=None,
        summarizers={},
        token_counters={},
        lost_details=lost_details,
        schemas=JsonSchemaCompiler(),
        clock=clock,
        ids=Uuid7Source(),
        settings=ServiceSettings(),
    )
    pools = Pools(reads=1, writes=1, streams=1, watchers=1)
    items = itertools.chain(facts(), memories())
    while batch := tuple(itertools.islice(items, BATCH)):
        ack = use_cases.importer.import_batch(HERE, batch, EmbeddingMode.QUEUED, Patience())
        assert not ack.rejections
    handlers = Handlers()
    servicer = MemoryServicer(
        use_cases,
        ServerFacts(
            version="bench", store_kind="lmdb", default_deadline_ms=30_000, request_ids_max=1
        ),
        clock,
    )
    add_MemoryServiceServicer_to_server(servicer, handlers)
    edge = Edge(LocalAuthenticator(), pools, default_deadline_seconds=30, idle_seconds=60)
    context = Context()

    def call_method(name: str, payload: bytes) -> bytes:
        handler = edge.intercept_service(
            lambda details: handlers.found[details.method], Details(METHODS + name)
        )
        assert handler is not None
        answer: bytes = handler.unary_unary(payload, context)
        return answer

    yield call_method
    pools.close()
    use_cases.close()


def get(as_of_us: int | None = None, memory_id: str = "") -> bytes:
    request = wire.GetRequest()
    request.partition.namespace, request.partition.tenant = HERE.namespace, HERE.tenant
    if memory_id:
        request.target.memory_id = memory_id
    else:
        key = request.target.fact
        key.subject.type, key.subject.id, key.attribute = MIRA.type, MIRA.id, "home city"
    if as_of_us is not None:
        request.read.as_of.FromMicroseconds(as_of_us)
    return request.SerializeToString()


def test_get_of_a_current_fact(benchmark: BenchmarkFixture, call: Method) -> None:
    payload = get()
    answer = wire.GetResponse.FromString(benchmark(call, "Get", payload))
    assert answer.record.memory.value.string_value == f"City {VERSIONS - 1}"


def test_get_by_id(benchmark: BenchmarkFixture, call: Method) -> None:
    memory = wire.GetResponse.FromString(call("Get", get())).record.memory
    assert UUID(memory.id)
    benchmark(call, "Get", get(memory_id=memory.id))


def test_get_as_of_the_past_of_many_versions(benchmark: BenchmarkFixture, call: Method) -> None:
    payloads = itertools.cycle(
        get(BEGIN_US + (number * 7919 % VERSIONS) * HOUR_US + 1) for number in range(2000)
    )
    benchmark(lambda: call("Get", next(payloads)))


def test_search_of_ten_thousand(benchmark: BenchmarkFixture, call: Method) -> None:
    requests = []
    for query in harness.clustered(256, DIMENSION, seed=2):
        request = wire.SearchRequest(vector=query.tobytes(), top_k=10)
        request.partition.namespace, request.partition.tenant = HERE.namespace, HERE.tenant
        requests.append(request.SerializeToString())
    payloads = itertools.cycle(requests)
    answer = wire.SearchResponse.FromString(benchmark(lambda: call("Search", next(payloads))))
    assert len(answer.hits) == 10
