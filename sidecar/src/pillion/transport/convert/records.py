"""Memories and episodes to the wire.

Messages are filled in place: handing a finished child
message to its parent's constructor copies it, which more than doubles the cost of a memory.
Enums are assigned as they are: the domain's have the contract's numbers, and a test holds them so.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final
from uuid import UUID

from pillion.domain.memory import FOREVER
from pillion.domain.scope import Subject
from pillion.domain.values import ValueKind
from pillion.transport.convert.instants import put_instant

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import memory_service_pb2, types_pb2

    from pillion.domain.memory import Episode, Memory, Source
    from pillion.domain.queries import Found
    from pillion.domain.scope import Partition
    from pillion.domain.values import Value

_US: Final = 1_000_000
_NANOS_PER_US: Final = 1000


@functools.lru_cache(maxsize=16_384)
def id_text(number: int) -> str:
    """Return an id, given as its integer, in canonical text.

    Rendering a UUID costs as much as all the numbers of a memory together, and what is searched
    for comes up again. The key is the integer, since hashing a UUID runs Python code.
    """
    return str(UUID(int=number))


def fill_record(target: memory_service_pb2.Record, found: Found, partition: Partition) -> None:
    """Write what was found into a record."""
    if found.memory is not None:
        fill_memory(target.memory, found.memory, partition, found.vector)
    elif found.episode is not None:
        fill_episode(target.episode, found.episode, partition)


def fill_memory(
    target: types_pb2.Memory, memory: Memory, partition: Partition, vector: bytes = b""
) -> None:
    """Write a memory into a message. Open ends and absent values stay absent."""
    target.id = id_text(memory.id.int)
    target.text = memory.text
    target.kind = memory.kind  # type: ignore[assignment]
    target.status = memory.status  # type: ignore[assignment]
    target.importance = memory.importance
    target.confidence = memory.confidence
    target.version = memory.version
    place = target.partition
    place.namespace = partition.namespace
    place.tenant = partition.tenant
    subject, to = memory.subject, target.subject
    to.type = subject.type
    to.id = subject.id
    _fill_source(target.source, memory.source)
    _fill_instants(target, memory)
    if memory.attribute:
        target.attribute = memory.attribute
        target.fact_version = memory.fact_version
    if memory.value is not None:
        fill_value(target.value, memory.value)
    if vector:
        target.vector = vector
    if memory.context:
        target.context = memory.context
    if memory.session_id:
        target.session_id = memory.session_id
    if memory.labels:
        target.labels.extend(memory.labels)
    if memory.vector_pending:
        target.vector_pending = True
    if memory.pinned:
        target.pinned = True
    _fill_rare(target, memory)


def _fill_instants(target: types_pb2.Memory, memory: Memory) -> None:
    put_instant(target.valid_from, memory.valid_from)
    # A version is recorded when the record changes, so two of these are always one instant, and
    # in a memory that was never changed all three are.
    seconds, rest = divmod(memory.updated_at, _US)
    nanos = rest * _NANOS_PER_US
    stamp = target.updated_at
    stamp.seconds = seconds
    stamp.nanos = nanos
    stamp = target.recorded_at
    stamp.seconds = seconds
    stamp.nanos = nanos
    stamp = target.created_at
    if memory.created_at != memory.updated_at:
        put_instant(stamp, memory.created_at)
    else:
        stamp.seconds = seconds
        stamp.nanos = nanos
    if memory.valid_to != FOREVER:
        put_instant(target.valid_to, memory.valid_to)
    # The wire has one end of recall: the caller's own, or the Forget that came before it.
    if memory.expires_at != FOREVER or memory.expired_at != FOREVER:
        put_instant(target.expires_at, min(memory.expires_at, memory.expired_at))
    if memory.retracted_at != FOREVER:
        put_instant(target.retracted_at, memory.retracted_at)
    if memory.closed_at != FOREVER:
        put_instant(target.closed_at, memory.closed_at)
    if memory.last_used_at:
        put_instant(target.last_used_at, memory.last_used_at)
        target.use_count = memory.use_count


def _fill_rare(target: types_pb2.Memory, memory: Memory) -> None:
    """Write the links and labels that most memories do not have."""
    if memory.superseded_by is not None:
        target.superseded_by = str(memory.superseded_by)
    if memory.supersedes is not None:
        target.supersedes = str(memory.supersedes)
    if memory.consolidated_into is not None:
        target.consolidated_into = str(memory.consolidated_into)
    if memory.derived_from:
        target.derived_from.extend(map(str, memory.derived_from))
    if memory.pii_labels:
        target.pii_labels.extend(memory.pii_labels)
    if memory.recurrence.count:
        target.recurrence.count = memory.recurrence.count
        target.recurrence.episode_ids.extend(map(str, memory.recurrence.episode_ids))
    if memory.confirmation is not None:
        _fill_source(target.confirmation, memory.confirmation)
    if memory.retention_class:
        target.retention_class = memory.retention_class
    if memory.schema_version:
        target.schema_version = memory.schema_version


def _fill_source(target: types_pb2.Source, source: Source) -> None:
    target.kind = source.kind  # type: ignore[assignment]
    if source.episode_id is not None:
        target.episode_id = id_text(source.episode_id.int)
    if source.quote:
        target.quote = source.quote
    if source.author:
        target.author = source.author


def fill_value(target: types_pb2.Value, value: Value) -> None:
    """Write a fact's value into a message."""
    data = value.data
    match value.kind:
        case ValueKind.INSTANT if isinstance(data, int):
            put_instant(target.time_value, data)
        case ValueKind.SUBJECT if isinstance(data, Subject):
            target.subject_value.type = data.type
            target.subject_value.id = data.id
        case kind:
            setattr(target, _VALUE_FIELDS[kind], data)


_VALUE_FIELDS: Final = {
    ValueKind.TEXT: "string_value",
    ValueKind.INTEGER: "int_value",
    ValueKind.DOUBLE: "double_value",
    ValueKind.BOOLEAN: "bool_value",
    ValueKind.JSON: "json_value",
}


def fill_episode(target: types_pb2.Episode, episode: Episode, partition: Partition) -> None:
    """Write an episode into a message."""
    target.id = str(episode.id)
    target.partition.namespace = partition.namespace
    target.partition.tenant = partition.tenant
    target.subject.type = episode.subject.type
    target.subject.id = episode.subject.id
    target.context = episode.context
    target.content = episode.content
    target.media_type = episode.media_type
    target.source_kind = episode.source_kind  # type: ignore[assignment]
    target.author = episode.author
    target.session_id = episode.session_id
    target.external_ref = episode.external_ref
    target.retention_class = episode.retention_class
    target.labels.extend(episode.labels)
    target.version = episode.version
    put_instant(target.occurred_at, episode.occurred_at)
    put_instant(target.recorded_at, episode.recorded_at)
    expires_at = min(episode.expires_at, episode.expired_at)
    if expires_at != FOREVER:
        put_instant(target.expires_at, expires_at)
    if episode.memory_id is not None:
        target.memory_id = str(episode.memory_id)
