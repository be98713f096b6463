"""How records become bytes and back: one owner of the stored shape.

A value is one envelope byte and a body. Envelope 1: the body is a MessagePack map from field
number to value, in plain. (Numbers are never reused; a reader skips those that it does not know;
a field that has its default is left out.) Other envelopes are refused as corrupt, so that a later
format, such as an encrypted one, cannot be read as this one by mistake.

Ids are 16 raw bytes, instants microseconds since the epoch, FOREVER is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from uuid import UUID

import msgpack
from pillion.domain.embedding import EmbedderIdentity
from pillion.domain.memory import (
    CONFIDENCE_DEFAULT,
    FOREVER,
    IMPORTANCE_DEFAULT,
    EndReason,
    Episode,
    Memory,
    MemoryKind,
    MemoryStatus,
    Recurrence,
    Source,
    SourceKind,
)
from pillion.domain.scope import Subject
from pillion.domain.segments import Entry, Shape, Sleep
from pillion.domain.values import Value, ValueKind

from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PLAIN: Final = b"\x01"
Fields = dict[int, Any]
# What reading a body of the wrong shape may raise; UUID asserts that it is given bytes.
_MISSHAPEN: Final = (
    KeyError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    AssertionError,
)


def pack(body: object) -> bytes:
    """Return a body in its envelope."""
    return PLAIN + cast("bytes", msgpack.packb(body, use_bin_type=True))


def unpack(data: bytes) -> Any:  # noqa: ANN401  (the caller knows the shape of its record)
    """Return the body of an envelope.

    Raises:
        Corrupt: The envelope is unknown or the body is not MessagePack.
    """
    if data[:1] != PLAIN:
        raise Corrupt("record envelope", f"unknown envelope byte {data[:1].hex() or 'none'}")
    try:
        return msgpack.unpackb(memoryview(data)[1:], strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise Corrupt("record body", type(error).__name__) from error


# --- parts -------------------------------------------------------------------------------------


def _source_fields(source: Source) -> list[Any]:
    episode = source.episode_id.bytes if source.episode_id is not None else None
    return [int(source.kind), episode, source.quote, source.author]


def _source_of(fields: Sequence[Any]) -> Source:
    kind, episode, quote, author = fields[:4]
    return Source(SourceKind(kind), UUID(bytes=episode) if episode else None, quote, author)


def _value_fields(value: Value) -> list[Any]:
    data = value.data
    if isinstance(data, Subject):
        return [int(value.kind), [data.type, data.id]]
    return [int(value.kind), data]


def _value_of(fields: Sequence[Any]) -> Value:
    kind, data = fields[:2]
    if kind == ValueKind.SUBJECT:
        return Value(ValueKind.SUBJECT, Subject(data[0], data[1]))
    return Value(ValueKind(kind), data)


def _uuid_or_none(data: bytes | None) -> UUID | None:
    return UUID(bytes=data) if data else None


# --- memories ----------------------------------------------------------------------------------
# One row a field: number, attribute, default, to stored, from stored. Required fields are 1-7.

_Field = tuple[int, str, Any, "Callable[[Any], Any] | None", "Callable[[Any], Any] | None"]


def _id_list(ids: Sequence[UUID]) -> list[bytes]:
    return [one.bytes for one in ids]


def _ids_of(data: Sequence[bytes]) -> tuple[UUID, ...]:
    return tuple(UUID(bytes=one) for one in data)


def _id_bytes(one: UUID) -> bytes:
    return one.bytes


def _id_from(data: bytes) -> UUID:
    return UUID(bytes=data)


_OPTIONAL: Final[tuple[_Field, ...]] = (
    (8, "context", "", None, None),
    (9, "attribute", "", None, None),
    (10, "value", None, _value_fields, _value_of),
    (11, "importance", IMPORTANCE_DEFAULT, None, None),
    (12, "confidence", CONFIDENCE_DEFAULT, None, None),
    (13, "status", MemoryStatus.STATED, int, MemoryStatus),
    (14, "pinned", False, None, None),
    (15, "pii_labels", (), list, tuple),
    (16, "labels", (), list, tuple),
    (17, "derived_from", (), _id_list, _ids_of),
    (18, "consolidated_into", None, _id_bytes, _id_from),
    (19, "valid_to", FOREVER, None, None),
    (20, "end_reason", EndReason.OPEN, int, EndReason),
    (21, "superseded_by", None, _id_bytes, _id_from),
    (22, "supersedes", None, _id_bytes, _id_from),
    (23, "last_used_at", 0, None, None),
    (24, "use_count", 0, None, None),
    (26, "expires_at", FOREVER, None, None),
    (27, "expired_at", FOREVER, None, None),
    (28, "retracted_at", FOREVER, None, None),
    (29, "closed_at", FOREVER, None, None),
    (30, "retention_class", "", None, None),
    (31, "schema_version", 0, None, None),
    (32, "session_id", "", None, None),
    (33, "confirmation", None, _source_fields, _source_of),
    (34, "in_set", False, None, None),
)
_BY_NUMBER: Final = {number: (name, read) for number, name, _, _, read in _OPTIONAL}
_STATUS: Final = 13
_RECURRENCE: Final = 25
_NO_RECURRENCE: Final = Recurrence()


def encode_memory(memory: Memory) -> bytes:
    """Return a memory as stored. ``version`` and ``fact_version`` are the store's, not its own."""
    fields: Fields = {
        1: [memory.subject.type, memory.subject.id],
        2: int(memory.kind),
        3: memory.text,
        4: _source_fields(memory.source),
        5: memory.valid_from,
        6: memory.created_at,
        7: memory.updated_at,
    }
    for number, name, default, write, _ in _OPTIONAL:
        value = getattr(memory, name)
        if value != default:
            fields[number] = write(value) if write is not None else value
    if memory.recurrence.count:
        fields[_RECURRENCE] = [memory.recurrence.count, _id_list(memory.recurrence.episode_ids)]
    return pack(fields)


def decode_memory(
    memory_id: UUID, data: bytes, version: int, *, fact_version: int = 0, pending: bool = False
) -> Memory:
    """Return a stored memory, with what is not stored in it where the caller knows that already.

    Raises:
        Corrupt: It cannot be read as a memory.
    """
    fields: Fields = unpack(data)
    try:
        subject = fields.pop(1)
        recurrence = fields.pop(_RECURRENCE, None)
        required = {
            "id": memory_id,
            "subject": Subject(subject[0], subject[1]),
            "kind": MemoryKind(fields.pop(2)),
            "text": fields.pop(3),
            "source": _source_of(fields.pop(4)),
            "valid_from": fields.pop(5),
            "created_at": fields.pop(6),
            "updated_at": fields.pop(7),
            "version": version,
            "fact_version": fact_version,
            "vector_pending": pending,
        }
        for number, value in fields.items():
            known = _BY_NUMBER.get(number)
            if known is not None:
                name, read = known
                required[name] = read(value) if read is not None else value
        if recurrence is not None:
            required["recurrence"] = Recurrence(recurrence[0], _ids_of(recurrence[1]))
        return Memory(**required)
    except _MISSHAPEN as error:
        raise Corrupt(f"memory {memory_id}", type(error).__name__) from error


class MemoryGlimpse(NamedTuple):
    """What puts a version of a memory in its place among others."""

    valid_from: int
    updated_at: int
    status: MemoryStatus


def glimpse_memory(memory_id: UUID, data: bytes) -> MemoryGlimpse:
    """Return a little of a stored memory, several times sooner than all of it.

    Raises:
        Corrupt: It cannot be read as a memory.
    """
    fields: Fields = unpack(data)
    try:
        status = MemoryStatus(fields.get(_STATUS, MemoryStatus.STATED))
        return MemoryGlimpse(fields[5], fields[7], status)
    except _MISSHAPEN as error:
        raise Corrupt(f"memory {memory_id}", type(error).__name__) from error


_DERIVED_FROM: Final = 17
_POINTERS: Final = (18, 21, 22)
_CONFIRMATION: Final = 33


def cited_ids(data: bytes) -> list[bytes]:
    """Return the ids of all records that a stored memory names, several times sooner than it.

    Raises:
        Corrupt: It cannot be read as a memory.
    """
    fields: Fields = unpack(data)
    try:
        found: list[bytes] = [fields[4][1]] if fields[4][1] else []
        found += fields.get(_DERIVED_FROM, ())
        found += [fields[one] for one in _POINTERS if one in fields]
        if _RECURRENCE in fields:
            found += fields[_RECURRENCE][1]
        if _CONFIRMATION in fields and fields[_CONFIRMATION][1]:
            found.append(fields[_CONFIRMATION][1])
    except _MISSHAPEN as error:
        raise Corrupt("memory", type(error).__name__) from error
    return found


# --- episodes ----------------------------------------------------------------------------------


_MEDIA_TYPE: Final = 7


def encode_episode(episode: Episode) -> bytes:
    """Return an episode as stored."""
    fields: Fields = {
        1: [episode.subject.type, episode.subject.id],
        2: episode.content,
        3: int(episode.source_kind),
        4: episode.occurred_at,
        5: episode.recorded_at,
    }
    optional: Fields = {
        6: episode.context,
        _MEDIA_TYPE: episode.media_type if episode.media_type != "text/plain" else None,
        8: episode.author,
        9: episode.session_id,
        10: episode.external_ref,
        11: list(episode.labels),
        12: episode.retention_class,
        13: episode.expires_at if episode.expires_at != FOREVER else None,
        14: episode.expired_at if episode.expired_at != FOREVER else None,
        15: episode.memory_id.bytes if episode.memory_id is not None else None,
    }
    # An instant may be 0; only what is empty or absent is left out. An empty media type is not
    # the default one.
    fields.update(
        {
            k: v
            for k, v in optional.items()
            if v is not None and (k == _MEDIA_TYPE or v not in ("", []))
        }
    )
    return pack(fields)


def decode_episode(episode_id: UUID, data: bytes, version: int) -> Episode:
    """Return a stored episode.

    Raises:
        Corrupt: It cannot be read as an episode.
    """
    fields: Fields = unpack(data)
    try:
        return Episode(
            id=episode_id,
            subject=Subject(fields[1][0], fields[1][1]),
            content=fields[2],
            source_kind=SourceKind(fields[3]),
            occurred_at=fields[4],
            recorded_at=fields[5],
            context=fields.get(6, ""),
            media_type=fields.get(7, "text/plain"),
            author=fields.get(8, ""),
            session_id=fields.get(9, ""),
            external_ref=fields.get(10, ""),
            labels=tuple(fields.get(11, ())),
            retention_class=fields.get(12, ""),
            expires_at=fields.get(13, FOREVER),
            expired_at=fields.get(14, FOREVER),
            memory_id=_uuid_or_none(fields.get(15)),
            version=version,
        )
    except _MISSHAPEN as error:
        raise Corrupt(f"episode {episode_id}", type(error).__name__) from error


# --- timeline entries --------------------------------------------------------------------------


_ROW: Final = int(Shape.ROW)
_NOBODY: Final = UUID(int=0)
_EVIDENCE_VECTOR: Final = 5  # its place in the body
# Entries of format 1 are shorter: what they lack is read as they meant it.
_SEGMENT_PARTS: Final = 9
_EVIDENCE_PARTS: Final = 8
_HEAD_EPOCH: Final = 1
FIRST_EPOCH: Final = 1  # of a timeline that has seen no retraction; 0 is that of format 1


def _open(instant: int | None) -> int | None:
    return None if instant == FOREVER else instant


def _end(stored: int | None) -> int:
    return FOREVER if stored is None else stored


def encode_segment(entry: Entry) -> bytes:
    """Return a ROW or NOTHING entry as stored; its instant is in the key."""
    nothing_to = entry.nothing_to
    return pack(
        [
            int(entry.shape),
            entry.memory_id.bytes,
            entry.fingerprint,
            int(entry.source_kind),
            _open(entry.valid_to),
            _open(entry.stated_to),
            entry.continues,
            entry.epoch,
            nothing_to if nothing_to is None else [_open(nothing_to)],
        ]
    )


def encode_evidence(entry: Entry, statement: Memory, vector: bytes = b"") -> bytes:
    """Return an EVIDENCE entry as stored, with all that it needs to become a row one day."""
    stated_to = entry.stated_to
    return pack(
        [
            int(Shape.EVIDENCE),
            entry.memory_id.bytes,
            entry.fingerprint,
            int(entry.source_kind),
            encode_memory(statement),
            vector,
            stated_to if stated_to is None else [_open(stated_to)],
            entry.epoch,
        ]
    )


def decode_entry(valid_from: int, data: bytes) -> Entry:
    """Return a stored entry.

    Raises:
        Corrupt: It cannot be read as an entry.
    """
    body = unpack(data)
    try:
        shape, memory_id, fingerprint, source_kind, rest = body[:5]
        entry = Entry(
            valid_from, UUID(bytes=memory_id), fingerprint, SourceKind(source_kind), Shape(shape)
        )
        if entry.is_evidence:
            if len(body) < _EVIDENCE_PARTS:
                return replace(entry, stated_to=None)
            stated, epoch = body[6:_EVIDENCE_PARTS]
            return replace(entry, stated_to=stated and _end(stated[0]), epoch=epoch)
        if len(body) < _SEGMENT_PARTS:
            return replace(entry, valid_to=_end(rest), stated_to=_end(rest))
        stated_to, continues, epoch, nothing = body[5:_SEGMENT_PARTS]
        return replace(
            entry,
            valid_to=_end(rest),
            stated_to=_end(stated_to),
            continues=continues,
            epoch=epoch,
            nothing_to=nothing and _end(nothing[0]),
        )
    except _MISSHAPEN as error:
        raise Corrupt("timeline entry", type(error).__name__) from error


class EntryGlimpse(NamedTuple):
    """What a look at who holds needs of an entry."""

    is_row: bool
    memory_id: UUID
    valid_to: int


def glimpse_entry(data: bytes) -> EntryGlimpse:
    """Return a little of a stored entry, several times sooner than all of it.

    Raises:
        Corrupt: It cannot be read as an entry.
    """
    body = unpack(data)
    try:
        if body[0] != _ROW:
            return EntryGlimpse(is_row=False, memory_id=_NOBODY, valid_to=FOREVER)
        return EntryGlimpse(True, UUID(bytes=body[1]), _end(body[4]))
    except _MISSHAPEN as error:
        raise Corrupt("timeline entry", type(error).__name__) from error


def encode_head(epoch: int) -> bytes:
    """Return the head of a timeline as stored: how many retractions it has seen."""
    return pack({_HEAD_EPOCH: epoch})


def decode_head(data: bytes | None) -> int:
    """Return how many retractions a timeline has seen, by its stored head; None: it has none.

    Raises:
        Corrupt: It cannot be read as one.
    """
    if data is None:
        return FIRST_EPOCH
    fields: Fields = unpack(data)
    try:
        return int(fields.get(_HEAD_EPOCH, FIRST_EPOCH))
    except _MISSHAPEN as error:
        raise Corrupt("timeline head", type(error).__name__) from error


@dataclass(frozen=True, slots=True)
class TakenRecord:
    """What a retraction took from a row, for it to be put back one day.

    Attributes:
        row: The row's entry as it was.
        instant: From where it was taken.
        to: Until where it was taken.
        epoch: How many retractions the timeline had seen before.
        recorded_at: When.
    """

    row: Entry
    instant: int
    to: int
    epoch: int
    recorded_at: int


def encode_taken(taken: TakenRecord) -> bytes:
    """Return what a retraction took from a row, as stored."""
    return pack(
        {
            1: taken.row.valid_from,
            2: encode_segment(taken.row),
            3: taken.instant,
            4: _open(taken.to),
            5: taken.epoch,
            6: taken.recorded_at,
        }
    )


def decode_taken(data: bytes) -> TakenRecord:
    """Return what a retraction took from a row.

    Raises:
        Corrupt: It cannot be read as that.
    """
    fields: Fields = unpack(data)
    try:
        row = decode_entry(fields[1], fields[2])
        return TakenRecord(row, fields[3], _end(fields[4]), fields[5], fields[6])
    except _MISSHAPEN as error:
        raise Corrupt("what a retraction took", type(error).__name__) from error


def encode_sleep(sleep: Sleep) -> bytes:
    """Return which evidence a retraction took, as stored; its last epoch is in the key."""
    return pack([sleep.fingerprint, sleep.start, _open(sleep.end), sleep.since])


def decode_sleep(until: int, data: bytes) -> Sleep:
    """Return which evidence a retraction took.

    Raises:
        Corrupt: It cannot be read as that.
    """
    body = unpack(data)
    try:
        fingerprint, start, end, since = body[:4]
        return Sleep(fingerprint, start, _end(end), since, until)
    except _MISSHAPEN as error:
        raise Corrupt("evidence asleep", type(error).__name__) from error


def encode_ending(memory: Memory) -> bytes:
    """Return how a memory outside timelines ended before it was retracted, as stored."""
    return pack({1: _open(memory.valid_to), 2: int(memory.end_reason)})


def decode_ending(data: bytes) -> tuple[int, EndReason]:
    """Return where a memory ended before it was retracted, and why.

    Raises:
        Corrupt: It cannot be read as that.
    """
    fields: Fields = unpack(data)
    try:
        return _end(fields[1]), EndReason(fields[2])
    except _MISSHAPEN as error:
        raise Corrupt("what a retraction took", type(error).__name__) from error


def decode_evidence_statement(memory_id: UUID, data: bytes) -> tuple[Memory, bytes]:
    """Return the statement kept in an EVIDENCE entry, as a memory with the given id.

    With it comes the caller's own vector; empty: there was none.
    """
    body = unpack(data)
    try:
        statement = decode_memory(memory_id, body[4], 0)
        return statement, bytes(body[_EVIDENCE_VECTOR]) if len(body) > _EVIDENCE_VECTOR else b""
    except _MISSHAPEN as error:
        raise Corrupt("timeline evidence", type(error).__name__) from error


# --- settings ----------------------------------------------------------------------------------


def encode_embedder(identity: EmbedderIdentity) -> bytes:
    """Return an embedder's identity as stored."""
    return pack(
        {
            1: identity.name,
            2: identity.version,
            3: identity.dimension,
            4: identity.fingerprint,
            5: identity.unrelated_cosine,
        }
    )


def decode_embedder(data: bytes) -> EmbedderIdentity:
    """Return a stored embedder's identity.

    Raises:
        Corrupt: It cannot be read as one.
    """
    fields: Fields = unpack(data)
    try:
        return EmbedderIdentity(fields[1], fields[2], fields[3], fields[4], fields.get(5, 0.0))
    except _MISSHAPEN as error:
        raise Corrupt("embedder identity", type(error).__name__) from error
