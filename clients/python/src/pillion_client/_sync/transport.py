# Generated from _async/transport.py by scripts/gen_sync_client.py (`make gen`). Do not edit.
"""A channel with deadlines, retries and typed errors."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import grpc
from pillion_proto.memory.v1 import memory_service_pb2 as service

from pillion_client import _failures, _methods
from pillion_client._runtime import synchronous as runtime
from pillion_client._target import Target, Tls, call_metadata, channel_options
from pillion_client.limits import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from pillion_client._methods import Method, ResponseT
    from pillion_client._retry import RetryPolicy


class Transport:
    """Sends requests to one target. Connects on the first call, and again when it must.

    Requests are serialized here and not by gRPC: their size is then known before anything is
    sent, and sending again costs nothing.
    """

    def __init__(
        self,
        target: Target,
        *,
        token: str | None,
        tls: Tls | None,
        default_deadline_seconds: float,
        retry: RetryPolicy,
    ) -> None:
        self.target = target
        self._metadata = call_metadata(target, tls, token)
        self._default_deadline_seconds = default_deadline_seconds
        self._retry = retry
        self._options = channel_options(target, tls)
        self._credentials = tls and grpc.ssl_channel_credentials(
            tls.root_certificates, tls.private_key, tls.certificate_chain
        )
        self._channel = runtime.open_channel(target.address, self._options, self._credentials)
        self._callables: dict[str, Any] = {}

    def close(self) -> None:
        """Close the channel. Calls that are under way end as cancelled."""
        self._channel.close()

    def seconds(self, deadline_seconds: float | None) -> float:
        """Return a deadline, or that of calls that name none."""
        return self._default_deadline_seconds if deadline_seconds is None else deadline_seconds

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until a server answers.

        Raises:
            NoServer: None did within the time.
        """
        if not runtime.is_ready_within(self._channel, seconds):
            raise _failures.no_server(self.target.address, f"waited {seconds:g} s")

    def call(
        self, method: Method[ResponseT], request: Message, deadline_seconds: float | None = None
    ) -> ResponseT:
        """Send a request, again where that is safe and helps; the deadline spans all attempts.

        Raises:
            PillionError: The typed error of the last attempt.
        """
        data = request.SerializeToString()
        if len(data) > MESSAGE_BYTES_MAX:
            raise _failures.message_too_large("request")
        send = self._callable(method)
        ends_at = time.monotonic() + self.seconds(deadline_seconds)
        attempt = 1
        while True:
            left = max(0.0, ends_at - time.monotonic())
            cause: grpc.RpcError | None = None
            try:
                response: ResponseT | None = send(data, timeout=left, metadata=self._metadata)
            except grpc.RpcError as error:
                failure = _failures.from_rpc_error(error, self.target.address)
                cause = error
            else:
                if response is not None:
                    return response
                failure = _failures.answer_lost(self.target.address)
            pause = self._retry.pause_seconds(failure, attempt, random.random())  # noqa: S311  (spreads callers out)
            if pause is None or time.monotonic() + pause >= ends_at:
                raise failure from cause
            runtime.sleep(pause)
            attempt += 1

    def open_import(self, deadline_seconds: float | None) -> runtime.Duplex:
        """Open the stream of an import; None: without a deadline."""
        return runtime.Duplex(
            self.target.address,
            self._options,
            self._credentials,
            _methods.IMPORT_PATH,
            service.ImportResponse.FromString,
            timeout=deadline_seconds,
            metadata=self._metadata,
        )

    def open_watch(self, request: Message, deadline_seconds: float | None) -> runtime.Incoming:
        """Open the stream of a watch; None: without a deadline."""
        return runtime.Incoming(
            self._channel,
            _methods.WATCH_PATH,
            service.WatchResponse.FromString,
            request.SerializeToString(),
            timeout=deadline_seconds,
            metadata=self._metadata,
        )

    def _callable(self, method: Method[ResponseT]) -> Any:  # noqa: ANN401  (gRPC has no types)
        made = self._callables.get(method.path)
        if made is None:
            made = self._channel.unary_unary(
                method.path, response_deserializer=method.response.FromString
            )
            self._callables[method.path] = made
        return made
