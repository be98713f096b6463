"""Streams from callers do not stay open for nothing: each message must come within a time."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

import grpc

from pillion.domain.errors import PillionError, Reason

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

_NEXT: Final = True
_STOP: Final = False


def within(messages: Iterator[bytes], idle_seconds: float) -> Generator[bytes]:
    """Yield a stream's messages; only the time that is spent waiting for one counts.

    gRPC waits for a message for as long as the call lasts, so another thread waits in its place.
    It takes none that was not asked for here, which keeps the back-pressure, and it ends with
    this generator, or where it is still waiting then, with the call.

    Raises:
        PillionError: DEADLINE_EXCEEDED when none came in time.
        grpc.RpcError: The caller cancelled.
    """
    asked: SimpleQueue[bool] = SimpleQueue()
    came: SimpleQueue[bytes | grpc.RpcError | None] = SimpleQueue()
    threading.Thread(
        target=_take, args=(messages, asked, came), name="pillion-stream-next", daemon=True
    ).start()
    try:
        while True:
            asked.put(_NEXT)
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
    finally:
        asked.put(_STOP)


def _take(
    messages: Iterator[bytes],
    asked: SimpleQueue[bool],
    came: SimpleQueue[bytes | grpc.RpcError | None],
) -> None:
    while asked.get() is _NEXT:
        try:
            came.put(next(messages, None))
        except grpc.RpcError as error:
            came.put(error)
