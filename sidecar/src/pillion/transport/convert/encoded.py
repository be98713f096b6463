"""The answers to Get and Search as bytes, put together from memories that are encoded already.

A memory that is sent again is most of such an answer, and an encoded message is the encodings of
its fields one after the other: so what is kept are the bytes of whole memories, and the rest is a
few numbers around them. `answers` has the same answers as messages, and a test holds both equal,
byte for byte.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from pillion_proto.memory.v1 import types_pb2

from pillion.service.kept import make_room
from pillion.transport.convert.records import fill_memory

if TYPE_CHECKING:
    from pillion.domain.memory import Memory
    from pillion.domain.queries import Hit, SearchAnswer
    from pillion.domain.scope import Partition

# What comes before a field: its number, shifted by 3, and how its value is written.
_VARINT, _BYTES, _FIXED32 = 0, 2, 5
_HITS = _RECORD = _MEMORY = bytes([1 << 3 | _BYTES])
_SCORE: Final = bytes([2 << 3 | _FIXED32])
_PARTS: Final = bytes([3 << 3 | _BYTES])
_PART_TAGS: Final = tuple(bytes([number << 3 | _FIXED32]) for number in (1, 2, 3, 4, 5))
# A bool that is true, and an id, which has 36 characters.
_OLDER: Final = bytes([4 << 3 | _VARINT, 1])
_FOLDED: Final = bytes([5 << 3 | _BYTES, 36])
_REVISION: Final = bytes([2 << 3 | _VARINT])
_EXACTNESS: Final = bytes([3 << 3 | _VARINT])
_PATH: Final = bytes([4 << 3 | _VARINT])
_BOUND: Final = bytes([5 << 3 | _FIXED32])
_ADMITTED: Final = bytes([6 << 3 | _VARINT])
_PENDING: Final = bytes([7 << 3 | _VARINT])

_float: Final = struct.Struct("<f").pack
_ZERO: Final = _float(0.0)
_MORE: Final = 0x80  # the bit that says that another byte follows
_SHORT: Final = tuple(bytes([number]) for number in range(_MORE))


def varint(number: int) -> bytes:
    """Return a number of 0 or more as protobuf writes it: 7 bits a byte, the low ones first."""
    if number < _MORE:
        return _SHORT[number]
    parts = bytearray()
    while number >= _MORE:
        parts.append(number % _MORE | _MORE)
        number >>= 7
    parts.append(number)
    return bytes(parts)


class EncodedMemories:
    """The encodings of memories that were sent lately, for those that are sent again.

    They are kept by the object: the caches below hand out the same memory, as the same object,
    for as long as nothing about it has changed. What is kept holds on to its memory, so no other
    can take its place.
    """

    def __init__(self, entries_max: int = 8192) -> None:
        self._entries_max = entries_max
        self._kept: dict[int, tuple[Memory, Partition, bytes]] = {}

    def let_go(self, partition: Partition) -> None:
        """Keep nothing of a partition."""
        for key, (_, where, _) in list(self._kept.items()):
            if where == partition:
                self._kept.pop(key, None)

    def field(self, memory: Memory, partition: Partition) -> bytes:
        """Return a memory as field 1 of a message: of a Record, and of a SearchHit."""
        kept = self._kept.get(id(memory))
        if kept is not None and kept[0] is memory and kept[1] == partition:
            return kept[2]
        message = types_pb2.Memory()
        fill_memory(message, memory, partition)
        encoded = message.SerializeToString()
        made = _MEMORY + varint(len(encoded)) + encoded
        if self._entries_max:
            make_room(self._kept, self._entries_max)
            self._kept[id(memory)] = (memory, partition, made)
        return made


def encode_get(
    memory: Memory, revision: int, partition: Partition, encoded: EncodedMemories
) -> bytes:
    """Return the answer to a Get that found a memory and was not asked for its vector."""
    record = encoded.field(memory, partition)
    return _RECORD + varint(len(record)) + record + _number(_REVISION, revision)


def encode_search(
    answer: SearchAnswer, partition: Partition, encoded: EncodedMemories, *, include_parts: bool
) -> bytes:
    """Return the answer to a Search that was not asked for vectors."""
    pieces: list[bytes] = []
    field, add = encoded.field, pieces.append
    for hit in answer.hits:
        memory = field(hit.memory, partition)
        score = _float(hit.score)
        rest = _SCORE + score if score != _ZERO else b""
        if include_parts:
            rest += _parts(hit)
        if hit.older:
            rest += _OLDER
        for one in hit.folded:
            rest += _FOLDED + str(one).encode()
        add(_HITS)
        add(varint(len(memory) + len(rest)))
        add(memory)
        add(rest)
    add(_number(_REVISION, answer.revision))
    add(_number(_EXACTNESS, answer.exactness))
    add(_number(_PATH, answer.path))
    if answer.bound is not None:
        add(_BOUND + _float(answer.bound))
    add(_number(_ADMITTED, answer.admitted))
    add(_number(_PENDING, answer.vectors_pending))
    return b"".join(pieces)


def _number(tag: bytes, number: int) -> bytes:
    """Return a number's field; as with every one that has no presence, 0 is left out."""
    return tag + varint(number) if number else b""


def _parts(hit: Hit) -> bytes:
    found = b""
    for tag, value in zip(_PART_TAGS, (hit.relevance, hit.recency, hit.importance), strict=False):
        data = _float(value)
        if data != _ZERO:
            found += tag + data
    if hit.cosine is not None:  # it has presence: a cosine of 0 is one
        found += _PART_TAGS[3] + _float(hit.cosine)
    if hit.lexical is not None:
        found += _PART_TAGS[4] + _float(hit.lexical)
    return _PARTS + varint(len(found)) + found
