"""How an import is cut into batches and which of them are on their way. Pure: no I/O, no clock.

Invariants:
  - a batch has 1 to ``items_max`` items, and no more bytes than allowed unless it is one item;
  - at most ``unacknowledged_max`` batches are on their way: ``take`` is only asked when not full;
  - sequences increase by one, and positions count items from 0 over the whole import.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _failures, limits
from pillion_client.errors import Internal
from pillion_client.results import ImportAck, ImportRejection

# Of the batch and its sequence number around the items.
_BATCH_OVERHEAD_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class _Sent:
    first_position: int
    items: int


class ImportWindow:
    """Collects items into batches, and remembers the batches until they are acknowledged."""

    def __init__(
        self,
        *,
        items_max: int = limits.IMPORT_BATCH_ITEMS_MAX,
        bytes_max: int = limits.IMPORT_BATCH_BYTES_MAX,
        unacknowledged_max: int = limits.IMPORT_UNACKNOWLEDGED_MAX,
    ) -> None:
        if not 1 <= items_max <= limits.IMPORT_BATCH_ITEMS_MAX or unacknowledged_max < 1:
            message = (
                f"an import batch has 1 to {limits.IMPORT_BATCH_ITEMS_MAX} items, "
                "and at least one may be on its way"
            )
            raise ValueError(message)
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._unacknowledged_max = unacknowledged_max
        self._waiting: deque[tuple[service.Mutation, int]] = deque()
        self._waiting_bytes = 0
        self._ended = False
        self._sequence = 0
        self._position = 0
        self._sent: dict[int, _Sent] = {}

    @property
    def is_full(self) -> bool:
        """True when no further batch may be sent before an acknowledgement."""
        return len(self._sent) >= self._unacknowledged_max

    @property
    def is_idle(self) -> bool:
        """True when every batch that was sent is acknowledged."""
        return not self._sent

    @property
    def has_batch(self) -> bool:
        """True when what waits fills a batch, or nothing more will come."""
        filled = len(self._waiting) >= self._items_max or self._waiting_bytes >= self._bytes_max
        return filled or (self._ended and bool(self._waiting))

    def add(self, item: service.Mutation) -> None:
        """Take an item.

        Raises:
            MessageTooLarge: The item alone does not fit one message.
        """
        size = item.ByteSize()
        if size > limits.MESSAGE_BYTES_MAX - _BATCH_OVERHEAD_BYTES:
            raise _failures.message_too_large("request")
        self._waiting.append((item, size))
        self._waiting_bytes += size

    def end(self) -> None:
        """Say that nothing more will come."""
        self._ended = True

    def take(self) -> service.ImportRequest:
        """Return the next batch, which is on its way from now on."""
        items: list[service.Mutation] = []
        taken_bytes = 0
        while self._waiting and len(items) < self._items_max:
            item, size = self._waiting[0]
            if items and taken_bytes + size > self._bytes_max:
                break
            self._waiting.popleft()
            items.append(item)
            taken_bytes += size
        self._waiting_bytes -= taken_bytes
        self._sequence += 1
        self._sent[self._sequence] = _Sent(self._position, len(items))
        self._position += len(items)
        return service.ImportRequest(
            batch=service.ImportBatch(sequence=self._sequence, items=items)
        )

    def shrink(self, items: int) -> None:
        """Make later batches as small as the server asks, never larger than they were set."""
        self._items_max = max(1, min(items, self._items_max))

    def acknowledge(self, ack: service.ImportAck) -> ImportAck:
        """Take a batch off the way.

        Raises:
            Internal: The server acknowledged a batch that is not on its way.
        """
        sent = self._sent.pop(ack.sequence, None)
        if sent is None:
            message = f"the server acknowledged batch {ack.sequence}, which is not on its way"
            raise Internal(message)
        return ImportAck(
            first_position=sent.first_position,
            items=sent.items,
            revision=ack.revision,
            written=ack.written,
            existing=ack.existing,
            rejections=tuple(
                ImportRejection(
                    position=sent.first_position + rejection.index,
                    reason=rejection.reason,
                    field=rejection.field or None,
                    message=rejection.message,
                )
                for rejection in ack.rejections
            ),
            vectors_pending=ack.vectors_pending,
        )
