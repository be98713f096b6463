"""A Get as it came in. Agents ask for the same few facts all day: what is parsed is kept.

The same bytes are the same question, whoever asks and whatever is stored by then, so nothing that
depends on either is kept here: permission and the answer are found anew each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.service.kept import make_room
from pillion.transport.convert.queries import read_from_wire, target_from_wire

if TYPE_CHECKING:
    from pillion_proto.memory.v1 import types_pb2

    from pillion.domain.queries import ReadAt, Target

_KEPT_MAX: Final = 4096
# An ordinary fact key takes some 60 bytes; what is much longer is not worth its place.
_KEPT_BYTES_MAX: Final = 512


class AskedGet:
    """The parts of a GetRequest, converted when they are first asked for and then kept.

    Converting is left until then because a malformed request is only refused, in its words, once
    it is known that the caller may ask at all.
    """

    __slots__ = ("_converted", "_message", "include_vector", "partition")

    def __init__(self, message: wire.GetRequest) -> None:
        self._message = message
        self._converted: tuple[Target, ReadAt] | None = None
        self.include_vector: bool = message.include_vector
        self.partition: types_pb2.Partition | None = (
            message.partition if message.HasField("partition") else None
        )

    def converted(self) -> tuple[Target, ReadAt]:
        """Return what is asked for, and how it is to be read.

        Raises:
            PillionError: INVALID_FIELD and its like.
        """
        if self._converted is None:
            target = target_from_wire(self._message.target, "target")
            self._converted = target, read_from_wire(self._message)
        return self._converted


class AskedGets:
    """Parses the requests, and keeps those that may come again. Safe to share between threads."""

    def __init__(self, kept_max: int = _KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._kept: dict[bytes, AskedGet] = {}

    def parse(self, payload: bytes) -> AskedGet:
        """Return a request.

        Raises:
            DecodeError: It is none.
        """
        asked = self._kept.get(payload)
        if asked is None:
            asked = AskedGet(wire.GetRequest.FromString(payload))
            if len(payload) <= _KEPT_BYTES_MAX:
                make_room(self._kept, self._kept_max)
                self._kept[payload] = asked
        return asked
