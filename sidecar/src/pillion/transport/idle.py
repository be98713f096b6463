"""Streams from callers do not stay open for nothing: each message must come within a time."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import grpc

from pillion.domain.errors import PillionError, Reason

if TYPE_CHECKING:
    from collections.abc import Iterator


def within(messages: Iterator[bytes], idle_seconds: float) -> Iterator[bytes]:
    """Yield a stream's messages; only the time that is spent waiting for one counts.

    gRPC waits for a message for as long as the call lasts, so another thread waits in its place.
    It asks for no message that was not asked for here, which keeps the back-pressure, and it
    ends at the latest with the call.

    Raises:
        PillionError: DEADLINE_EXCEEDED when none came in time.
        grpc.RpcError: The caller cancelled.
    """
    while True:
        came: SimpleQueue[bytes | grpc.RpcError | None] = SimpleQueue()
        threading.Thread(
            target=_take, args=(messages, came), name="pillion-stream-next", daemon=True
        ).start()
        try:
            message = came.get(timeout=idle_seconds)
        except Empty:
            raise PillionError(
                Reason.DEADLINE_EXCEEDED,
                f"nothing came for {idle_seconds:g} seconds, so the stream ends; what was "
                "acknowledged is kept: open another stream to go on",
            ) from None
        if message is None:
            return
        if isinstance(message, grpc.RpcError):
            raise message
        yield message


def _take(messages: Iterator[bytes], came: SimpleQueue[bytes | grpc.RpcError | None]) -> None:
    try:
        came.put(next(messages, None))
    except grpc.RpcError as error:
        came.put(error)
