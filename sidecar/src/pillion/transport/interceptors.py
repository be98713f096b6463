"""The one wrapper that every call goes through, whatever its kind.

In this order: whatever goes wrong becomes a published error; who calls is established; the role
is checked; admission; the message is read; the partition is checked; the deadline is set; the
servicer runs; one line is logged. Admission is decided on gRPC's own thread, before a call takes
a place in a queue, but a refused call is told so only after its identity is known.

Messages are parsed and serialised here and not by gRPC, which answers a broken one with INTERNAL
and an answer over the limit with an error that names no reason. The health service is let through
untouched: probes carry no credential and must be answered when everything else is full.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc_status import rpc_status

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import MESSAGE_BYTES_MAX
from pillion.transport.call import Call, authorise, enter_of_request
from pillion.transport.call_log import log_call
from pillion.transport.capabilities import GET, METHODS, Method, Work, not_served
from pillion.transport.convert.asked import AskedGets
from pillion.transport.idle import within
from pillion.transport.status import error_of, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pillion.transport.admission import BoundedPool, Pools
    from pillion.transport.identity import Authenticator

HEALTH_PREFIX: Final = "/grpc.health.v1.Health/"
_REFLECTION_PREFIX: Final = "/grpc.reflection."
_REFLECTION: Final = Method(None, Work.REFLECTION, served=True, capability=None)
_UNKNOWN: Final = Method(None, Work.CONTROL, served=False, capability=None)


class Edge(grpc.ServerInterceptor):  # type: ignore[misc]
    """Wraps every method once, and picks the wrapper or its refusing twin for each call."""

    def __init__(
        self,
        authenticator: Authenticator,
        pools: Pools,
        *,
        default_deadline_seconds: float,
        idle_seconds: float,
    ) -> None:
        self.idle_seconds = idle_seconds
        self._authenticator = authenticator
        self._pools = pools
        self._default_deadline_seconds = default_deadline_seconds
        self._wrapped: dict[
            str, tuple[BoundedPool, grpc.RpcMethodHandler, grpc.RpcMethodHandler]
        ] = {}
        # Where it is worth it, requests are parsed by something better than the generated code.
        self._parsers: dict[str, Callable[[bytes], object]] = {GET: AskedGets().parse}

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler | None:
        """Return the handler for a call. Runs on gRPC's thread, so it must not block."""
        path = handler_call_details.method
        known = self._wrapped.get(path)
        if known is None:
            handler = continuation(handler_call_details)
            if path.startswith(HEALTH_PREFIX):
                return handler
            if handler is None:
                # Not remembered: callers choose these names, and they would pile up.
                return self._wrap(path, _UNKNOWN, _unknown_handler())
            method = _REFLECTION if path.startswith(_REFLECTION_PREFIX) else METHODS[path]
            known = (
                self._pools[method.work],
                self._wrap(path, method, handler),
                self._wrap(path, method, handler, refuse=True),
            )
            self._wrapped[path] = known
        pool, accepting, refusing = known
        return refusing if pool.is_full else accepting

    def _wrap(
        self, path: str, method: Method, handler: grpc.RpcMethodHandler, *, refuse: bool = False
    ) -> grpc.RpcMethodHandler:
        # A method's name is logged; one that a caller made up is not.
        name = path.rpartition("/")[2] if method is not _UNKNOWN else "unknown"
        parse = self._parsers.get(path)
        steps = _Steps(self, name, method, handler, refuse=refuse, parse=parse)
        behaviour: Any
        if handler.response_streaming:
            wrap = (
                grpc.stream_stream_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            behaviour = steps.streaming
        else:
            wrap = (
                grpc.stream_unary_rpc_method_handler
                if handler.request_streaming
                else grpc.unary_unary_rpc_method_handler
            )
            behaviour = steps.unary

        def in_pool(argument: object, context: grpc.ServicerContext) -> object:
            return behaviour(argument, context)

        # gRPC looks for this attribute and runs the method in that pool.
        pool = self._pools[Work.CONTROL if refuse else method.work]
        in_pool.experimental_thread_pool = pool  # type: ignore[attr-defined]
        return wrap(in_pool)

    def begin(self, method: Method, context: grpc.ServicerContext, *, refuse: bool) -> Call:
        """Establish who calls, and let the call in or refuse it."""
        identity = self._authenticator.identify(context.invocation_metadata())
        authorise(identity, method)
        if refuse:
            raise PillionError(Reason.OVERLOADED, "too much work is waiting; try again")
        return Call(identity, context, self._default_deadline_seconds)


class _Steps:
    """The steps around one method's servicer, for answers of one message and of many."""

    def __init__(
        self,
        edge: Edge,
        name: str,
        method: Method,
        handler: grpc.RpcMethodHandler,
        *,
        refuse: bool,
        parse: Callable[[bytes], object] | None,
    ) -> None:
        self._edge = edge
        self._name = name
        self._method = method
        self._refuse = refuse
        self._parse: Any = parse or handler.request_deserializer
        self._serialise: Any = handler.response_serializer
        self._request_streaming = handler.request_streaming
        self._servicer: Any = (
            handler.unary_unary
            or handler.unary_stream
            or handler.stream_unary
            or handler.stream_stream
        )

    def unary(self, argument: Any, context: grpc.ServicerContext) -> bytes | None:  # noqa: ANN401
        """Answer with one message."""
        started = time.perf_counter()
        call: Call | None = None
        try:
            call = self._edge.begin(self._method, context, refuse=self._refuse)
            payload = self._to_bytes(self._servicer(self._requests(argument, call), call))
        except Exception as exception:  # noqa: BLE001 - the one place; see status.error_of
            self._fail(exception, call, context, started)
            return None
        log_call(self._name, call, None, None, started)
        return payload

    def streaming(self, argument: Any, context: grpc.ServicerContext) -> Iterator[bytes]:  # noqa: ANN401
        """Answer with a stream of messages."""
        started = time.perf_counter()
        call: Call | None = None
        messages = within(argument, self._edge.idle_seconds) if self._request_streaming else None
        try:
            call = self._edge.begin(self._method, context, refuse=self._refuse)
            requests = self._requests(argument if messages is None else messages, call)
            for response in self._servicer(requests, call):
                yield self._to_bytes(response)
        except Exception as exception:  # noqa: BLE001 - the one place; see status.error_of
            self._fail(exception, call, context, started)
            return
        finally:
            if messages is not None:
                messages.close()  # an error that is kept somewhere would keep its thread
        log_call(self._name, call, None, None, started)

    def _requests(self, argument: Any, call: Call) -> Any:  # noqa: ANN401
        """Parse what came in. A unary call enters its partition; a stream's servicer does it."""
        if self._request_streaming:
            return map(self._from_bytes, argument)
        request = self._from_bytes(argument)
        enter_of_request(call, self._method, request)
        return request

    def _fail(
        self,
        exception: Exception,
        call: Call | None,
        context: grpc.ServicerContext,
        started: float,
    ) -> None:
        error = error_of(exception)
        log_call(self._name, call, error, exception, started)
        # Raises, so that gRPC ends the call; nothing may come after it.
        context.abort_with_status(rpc_status.to_status(status_of(error)))

    def _from_bytes(self, payload: bytes) -> Any:  # noqa: ANN401
        try:
            return self._parse(payload)
        except DecodeError:
            raise PillionError(
                Reason.INVALID_FIELD, "the message is not of this method, or its text not UTF-8"
            ) from None

    def _to_bytes(self, response: object) -> bytes:
        # Where it is worth it, a servicer answers in bytes.
        payload: bytes = response if type(response) is bytes else self._serialise(response)
        if len(payload) > MESSAGE_BYTES_MAX:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                f"the answer has {len(payload)} bytes and {MESSAGE_BYTES_MAX} fit; ask for less",
            )
        return payload


def _unknown_handler() -> grpc.RpcMethodHandler:
    """A handler for a method that is none: it fails whatever the kind the caller believes in."""

    def refuse(_requests: object, _call: Call) -> Iterator[bytes]:
        raise not_served("unknown method", "no such method; see GetServerInfo's capabilities")

    def as_is(message: bytes) -> bytes:
        return message

    return grpc.stream_stream_rpc_method_handler(refuse, as_is, as_is)
