"""The asyncio side of what differs between the two clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar, cast

import grpc
import grpc.aio
from google.protobuf.message import Message

from pillion_client._runtime import synchronous

ItemT = TypeVar("ItemT")
MessageT = TypeVar("MessageT", bound=Message)

sleep = asyncio.sleep


def open_channel(
    address: str, options: list[tuple[str, str | int]], credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    """Return a channel; nothing connects yet."""
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=options)
    return grpc.aio.secure_channel(address, credentials, options=options)


async def is_ready_within(channel: grpc.aio.Channel, seconds: float) -> bool:
    """Wait until the channel is connected; False when the time is over before."""
    try:
        await asyncio.wait_for(channel.channel_ready(), seconds)
    except TimeoutError:
        return False
    return True


async def iterate(items: AsyncIterable[ItemT] | Iterable[ItemT]) -> AsyncIterator[ItemT]:
    """Yield the items of a plain or an asynchronous iterable."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def resolve(made: Awaitable[ItemT] | ItemT) -> ItemT:
    """Return what a callback made, waiting for it if it is to be waited for."""
    if isinstance(made, Awaitable):
        return await cast("Awaitable[ItemT]", made)
    return made


class Duplex:
    """A stream both ways, driven by one task: write, read, and at the end cancel.

    It is the blocking one with its reads in a worker thread. grpc.aio's own loses the status of a
    stream that the server ended while we wrote: the caller would see "Internal error from Core"
    where the server said, for example, that it does not serve imports.
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
        self._blocking = synchronous.Duplex(
            address, options, credentials, path, response, timeout=timeout, metadata=metadata
        )

    async def write(self, data: bytes) -> None:
        """Send a message. When the stream has ended, do nothing: the next read says why."""
        self._blocking.write(data)

    async def finish_writing(self) -> None:
        """Say that no more will be sent."""
        self._blocking.finish_writing()

    async def read(self, kind: type[MessageT]) -> MessageT | None:
        """Return the next message, or None after the last.

        Raises:
            grpc.RpcError: The stream failed.
        """
        return await asyncio.to_thread(self._blocking.read, kind)

    async def cancel(self) -> None:
        """End the stream at once, and with it a read that waits. After its end, do nothing."""
        self._blocking.cancel()


class Incoming:
    """A stream of answers to one request: read, and at the end cancel."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        path: str,
        response: Callable[[bytes], Message],
        request: bytes,
        *,
        timeout: float | None,
        metadata: tuple[tuple[str, str], ...],
    ) -> None:
        self._call = channel.unary_stream(path, response_deserializer=response)(
            request, timeout=timeout, metadata=metadata
        )

    async def read(self, kind: type[MessageT]) -> MessageT | None:
        """Return the next message, or None after the last.

        Raises:
            grpc.RpcError: The stream failed.
        """
        message = await self._call.read()
        return message if isinstance(message, kind) else None

    async def cancel(self) -> None:
        """End the stream at once. After its end, do nothing."""
        self._call.cancel()
