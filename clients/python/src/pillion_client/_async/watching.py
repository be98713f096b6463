"""Watching: a partition's changes as they are committed, across restarts of the server."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Unpack

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _failures, _from_wire, _methods, _requests
from pillion_client import _to_wire as wire
from pillion_client._async.caller import AsyncCaller
from pillion_client._runtime import asynchronous as runtime
from pillion_client.errors import Cancelled, DeadlineExceeded, Overloaded, Unavailable
from pillion_client.options import CallOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pillion_client.options import WatchOptions
    from pillion_client.results import WatchEvent
    from pillion_client.selection import Filter

_NO_MEMORY = "00000000-0000-0000-0000-000000000000"
_PAUSE_FIRST_SECONDS = 0.05
_PAUSE_MAX_SECONDS = 5.0
# A server ends a stream a little before its deadline; what is left is not worth another.
_ENDING_SECONDS = 0.3


class AsyncWatching(AsyncCaller):
    """The watching part of the client."""

    async def revision(self, **options: Unpack[CallOptions]) -> int:
        """Return the newest revision of the partition; 0: nothing was ever written."""
        request = service.BatchGetRequest(
            partition=wire.partition(self._where(options)),
            targets=[service.RecordTarget(memory_id=_NO_MEMORY)],
        )
        return (await self._call(_methods.BATCH_GET, request, options)).revision

    async def watch(
        self,
        after_revision: int | None = None,
        *,
        filter: Filter | None = None,  # noqa: A002  (the contract's name)
        heartbeat_seconds: float | None = None,
        give_up_seconds: float | None = 60.0,
        deadline_seconds: float | None = None,
        **options: Unpack[WatchOptions],
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield every commit after a revision, and heartbeats, which have no changes.

        It goes on by itself where the server asks for it, restarts or cuts the stream off, and
        tells nothing twice and leaves nothing out. Keep ``event.revision`` once an event is dealt
        with, to go on from there another time. To keep a copy of what there is, take
        ``revision()``, list with ``exact_revision`` and watch after it. Stop by closing the
        iterator.

        Args:
            after_revision: Where to begin; 0: the oldest commit kept; None: from now on.
            filter: Which records; or give single conditions of it by name. None: every record in
                every context, candidates aside.
            heartbeat_seconds: How often to hear that nothing happened, 1 to 300; None: 30.
            give_up_seconds: How long to try when the server is gone; None: for ever.
            deadline_seconds: When to end, well; None: never.
            **options: Where; conditions.

        Raises:
            OutOfRange: The changes after the revision are no longer kept (HISTORY_GONE), or there
                is no such revision yet.
            PillionError: The server refused, or was gone for ``give_up_seconds``.
        """
        ends_at = None if deadline_seconds is None else time.monotonic() + deadline_seconds
        where = self._where(options)
        if after_revision is None:
            here = CallOptions() if where is None else CallOptions(partition=where)
            after_revision = await self.revision(**here)
        request = service.WatchRequest(
            partition=wire.partition(where),
            after_revision=after_revision,
            filter=_requests.selected(filter, options),
        )
        if heartbeat_seconds is not None:
            request.heartbeat.CopyFrom(wire.duration(timedelta(seconds=heartbeat_seconds)))
        gone_since: float | None = None
        attempt = 0
        while True:
            left = None if ends_at is None else ends_at - time.monotonic()
            if left is not None and left <= _ENDING_SECONDS:
                return
            stream = self._transport.open_watch(request, left)
            try:
                while (message := await stream.read(service.WatchResponse)) is not None:
                    gone_since = None
                    request.after_revision = message.revision
                    if message.resume:
                        break
                    attempt = 0
                    yield _from_wire.watch_event(message)
            except grpc.RpcError as error:
                failure = _failures.from_rpc_error(error, self.target)
                if isinstance(failure, DeadlineExceeded) and ends_at is not None:
                    return
                if not isinstance(failure, (Unavailable, Overloaded, Cancelled)):
                    raise failure from error
                now = time.monotonic()
                gone_since = now if gone_since is None else gone_since
                if give_up_seconds is not None and now - gone_since >= give_up_seconds:
                    raise failure from error
            finally:
                await stream.cancel()
            # Also where the server asked to resume: one that goes down asks again and again.
            await runtime.sleep(_pause_seconds(attempt, random.random()))  # noqa: S311  (spreads callers out)
            attempt += 1


def _pause_seconds(attempt: int, draw: float) -> float:
    ceiling = min(_PAUSE_MAX_SECONDS, _PAUSE_FIRST_SECONDS * 2.0 ** min(attempt, 16))
    return ceiling * (0.5 + draw / 2)
