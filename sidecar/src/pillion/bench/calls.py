"""The requests of a load, serialised beforehand: sending one costs a concatenation.

A serialised message followed by another of the same type parses as both merged, so a request is
the bytes of its partition followed by those of everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import types_pb2 as types

from pillion.bench.data import NAMESPACE, QUERIES, TOP_K, VALUES, queries, subject_of, tenant_name
from pillion.bench.schedule import Verb

if TYPE_CHECKING:
    from pillion.bench.data import Data
    from pillion.bench.schedule import Due

METHODS: Final = {
    Verb.SEARCH: "/pillion.memory.v1.MemoryService/Search",
    Verb.GET: "/pillion.memory.v1.MemoryService/Get",
    Verb.WRITE: "/pillion.memory.v1.MemoryService/Write",
}


class Calls:
    """Prepared requests over some data."""

    def __init__(self, data: Data) -> None:
        self._data = data
        self._partitions = [_partition(tenant) for tenant in range(data.tenants)]
        self._searches = [
            service.SearchRequest(vector=query.tobytes(), top_k=TOP_K).SerializeToString()
            for query in queries()
        ]
        self._gets = [_get(key) for key in range(data.keys)]
        self._writes = [[_write(key, value) for value in range(2)] for key in range(data.keys)]

    def request(self, due: Due) -> bytes:
        """Return the bytes of the request that is due."""
        partition = self._partitions[due.tenant]
        if due.verb is Verb.SEARCH:
            return partition + self._searches[due.number % QUERIES]
        key = due.number % self._data.keys_of(due.tenant)
        if due.verb is Verb.GET:
            return partition + self._gets[key]
        return partition + self._writes[key][(due.number // self._data.keys) % 2]

    def is_right(self, due: Due, response: bytes) -> bool:
        """Return whether an answer is what the data lets it be; parses it, so ask of a few."""
        if due.verb is Verb.SEARCH:
            hits = service.SearchResponse.FromString(response).hits
            return len(hits) == min(TOP_K, self._data.memories_of(due.tenant))
        if due.verb is Verb.GET:
            record = service.GetResponse.FromString(response).record
            return record.memory.value.string_value.startswith("City ")
        return service.WriteResponse.FromString(response).revision > 0


def _partition(tenant: int) -> bytes:
    partition = types.Partition(namespace=NAMESPACE, tenant=tenant_name(tenant))
    # Field 1 of every request; the types of the messages do not matter to the bytes.
    return service.GetRequest(partition=partition).SerializeToString()


def _get(key: int) -> bytes:
    request = service.GetRequest()
    kind, _, name = subject_of(key).partition(":")
    request.target.fact.subject.type, request.target.fact.subject.id = kind, name
    request.target.fact.attribute = "home city"
    return request.SerializeToString()


def _write(key: int, turn: int) -> bytes:
    """State a fact anew: of two values in turn, so that most writes change it."""
    request = service.WriteRequest()
    put = request.mutations.add().put_fact
    put.precondition.unconditional = True
    kind, _, name = subject_of(key).partition(":")
    put.fact.subject.type, put.fact.subject.id = kind, name
    put.fact.attribute = "home city"
    put.fact.value.string_value = f"City {(key + turn * 31) % VALUES}"
    put.fact.source.kind = types.SourceKind.SOURCE_KIND_TOOL_RESULT
    return request.SerializeToString()
