# Generated from _async/tracing.py by scripts/gen_sync_client.py (`make gen`). Do not edit.
"""Following a record to its sources, and to everything that came from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _from_wire, _methods, traces
from pillion_client import _to_wire as wire
from pillion_client._sync.reading import Reading
from pillion_client.errors import NotFound
from pillion_client.traces import TRACE_RECORDS_MAX, Trace, TraceLink, Walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_client.models import Record
    from pillion_client.options import CallOptions


class Tracing(Reading):
    """The part of the client that follows provenance."""

    def trace(
        self,
        record_id: str,
        *,
        records_max: int = TRACE_RECORDS_MAX,
        **options: Unpack[CallOptions],
    ) -> Trace:
        """Return what a memory or episode came from, and all that came from it, step by step.

        Candidates, retracted and forgotten memories are among them. Each step reads the newest
        state, so what is written meanwhile may be there or not.

        Args:
            record_id: The id of a memory or an episode.
            records_max: Read at most so many further records; then ``complete`` is False.
            **options: The deadline holds for each step.

        Raises:
            NotFound: There is no such record.
        """
        root = (self._records([_memory(record_id), _episode(record_id)], options))[:1]
        if not root:
            message = f"there is no memory or episode {record_id}"
            raise NotFound(message, reason="NOT_FOUND")
        walk = Walk(root[0], records_max)
        self._trace_up(walk, options)
        self._trace_down(walk, options)
        return walk.result()

    def _trace_up(self, walk: Walk, options: CallOptions) -> None:
        level = [walk.root]
        while level:
            steps = walk.wanted([link for one in level for link in traces.links_to(one)])
            targets = [_source_of(step) for step in steps]
            level = []
            for begin in range(0, len(targets), traces.TARGETS_AT_ONCE):
                chunk = targets[begin : begin + traces.TARGETS_AT_ONCE]
                found = self._records(chunk, options)
                level += [one for one in found if walk.add(one)]

    def _trace_down(self, walk: Walk, options: CallOptions) -> None:
        level = [walk.root]
        while level:
            found: list[Record] = []
            for begin in range(0, len(level), traces.SOURCES_AT_ONCE):
                chunk = level[begin : begin + traces.SOURCES_AT_ONCE]
                found += self._derived(walk, chunk, options)
            level = found

    def _derived(self, walk: Walk, sources: Sequence[Record], options: CallOptions) -> list[Record]:
        new: list[Record] = []
        for memory in self.list(filter=traces.derived_filter(sources), **options):
            if walk.add(memory):
                new.append(memory)
            elif memory.id not in walk.records:
                break  # there is no room for it
            walk.lead_on(sources, memory)
        return new

    def _records(
        self, targets: Sequence[service.RecordTarget], options: CallOptions
    ) -> list[Record]:
        """Return those of some records that are there."""
        request = service.BatchGetRequest(
            partition=wire.partition(self._where(options)), targets=targets
        )
        response = self._call(_methods.BATCH_GET, request, options)
        found = [
            _from_wire.record(item.record) for item in response.items if item.HasField("record")
        ]
        return [one for one in found if one is not None]


def _memory(record_id: str) -> service.RecordTarget:
    return service.RecordTarget(memory_id=record_id)


def _episode(record_id: str) -> service.RecordTarget:
    return service.RecordTarget(episode_id=record_id)


def _source_of(link: TraceLink) -> service.RecordTarget:
    return _memory(link.source_id) if link.how == "derived" else _episode(link.source_id)
