"""How often a memory was used, and when last: a record of its own beside the memory.

It is of its own so that a use changes no memory: neither its version nor its history does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pillion_storage import codec
from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from pillion.domain.memory import Memory


class Access(NamedTuple):
    """The uses of one memory; ``last_used_at`` in microseconds since the Unix epoch."""

    use_count: int = 0
    last_used_at: int = 0

    def and_(self, other: Access) -> Access:
        """Return both together."""
        return Access(self.use_count + other.use_count, max(self.last_used_at, other.last_used_at))


NO_ACCESS = Access()


def encode_access(access: Access) -> bytes:
    """Return uses as stored."""
    return codec.pack([access.use_count, access.last_used_at])


def decode_access(data: bytes | None) -> Access:
    """Return stored uses; None: there are none.

    Raises:
        Corrupt: They cannot be read as that.
    """
    if data is None:
        return NO_ACCESS
    body = codec.unpack(data)
    try:
        use_count, last_used_at = body[:2]
    except (TypeError, ValueError) as error:
        raise Corrupt("an access", type(error).__name__) from error
    if type(use_count) is not int or type(last_used_at) is not int:
        raise Corrupt("an access", "not whole numbers")
    return Access(use_count, last_used_at)


def with_access(memory: Memory, data: bytes | None) -> Memory:
    """Return a memory with the uses stored beside it; None: there are none.

    The memory's record has room for uses of its own, which no version of Pillion ever wrote.
    """
    if data is None:
        return memory
    own = Access(memory.use_count, memory.last_used_at)
    use_count, last_used_at = own.and_(decode_access(data))
    return replace(memory, use_count=use_count, last_used_at=last_used_at)
