"""The blocking side of what differs between the two clients."""

from __future__ import annotations

import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
from google.protobuf.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ItemT = TypeVar("ItemT")
MessageT = TypeVar("MessageT", bound=Message)

sleep = time.sleep


def open_channel(
    address: str, options: list[tuple[str, str | int]], credentials: grpc.ChannelCredentials | None
) -> grpc.Channel:
    """Return a channel; nothing connects yet."""
    if credentials is None:
        return grpc.insecure_channel(address, options=options)
    return grpc.secure_channel(address, credentials, options=options)


def is_ready_within(channel: grpc.Channel, seconds: float) -> bool:
    """Wait until the channel is connected; False when the time is over before."""
    ready = grpc.channel_ready_future(channel)
    try:
        ready.result(timeout=seconds)
    except grpc.FutureTimeoutError:
        ready.cancel()
        return False
    return True


def iterate(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield the items."""
    yield from items


def resolve(made: ItemT) -> ItemT:
    """Return what a callback made."""
    return made


class Duplex:
    """A stream both ways, driven by one thread: write, read, and at the end cancel.

    It has a connection of its own, so that bulk does not delay the client's other calls.
    gRPC takes requests from an iterator in a thread of its own; a queue feeds that iterator.
    The queue needs no bound: who writes reads acknowledgements before it writes more.
    """

    def __init__(
        self,
        address: str,
        options: list[tuple[str, str | int]],
        credentials: grpc.ChannelCredentials | None,
        path: str,
        response: Callable[[bytes], Message],
        *,
        timeout: float | None,
        metadata: tuple[tuple[str, str], ...],
    ) -> None:
        own = [*options, ("grpc.use_local_subchannel_pool", 1)]
        self._channel = open_channel(address, own, credentials)
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._call: Any = self._channel.stream_stream(path, response_deserializer=response)(
            iter(self._requests.get, None), timeout=timeout, metadata=metadata
        )

    def write(self, data: bytes) -> None:
        """Send a message. When the stream has ended, do nothing: the next read says why."""
        self._requests.put(data)

    def finish_writing(self) -> None:
        """Say that no more will be sent."""
        self._requests.put(None)

    def read(self, kind: type[MessageT]) -> MessageT | None:
        """Return the next message, or None after the last.

        Raises:
            grpc.RpcError: The stream failed.
        """
        message = next(self._call, None)
        return message if isinstance(message, kind) else None

    def cancel(self) -> None:
        """End the stream at once. After its end, do nothing."""
        self._call.cancel()
        self._requests.put(None)  # so that gRPC's thread stops waiting for a request
        self._channel.close()


class Incoming:
    """A stream of answers to one request: read, and at the end cancel."""

    def __init__(
        self,
        channel: grpc.Channel,
        path: str,
        response: Callable[[bytes], Message],
        request: bytes,
        *,
        timeout: float | None,
        metadata: tuple[tuple[str, str], ...],
    ) -> None:
        self._call: Any = channel.unary_stream(path, response_deserializer=response)(
            request, timeout=timeout, metadata=metadata
        )

    def read(self, kind: type[MessageT]) -> MessageT | None:
        """Return the next message, or None after the last.

        Raises:
            grpc.RpcError: The stream failed.
        """
        message = next(self._call, None)
        return message if isinstance(message, kind) else None

    def cancel(self) -> None:
        """End the stream at once. After its end, do nothing."""
        self._call.cancel()
