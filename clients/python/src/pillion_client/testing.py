"""A scripted server for tests of code that uses the client: real gRPC over a real Unix socket.

    with ScriptedServer(tmp_path / "s.sock") as server:
        server.script("Search", failure("UNAVAILABLE", StatusCode.UNAVAILABLE), SearchResponse())
        ...
        assert len(server.calls("Search")) == 2

It keeps no memories: what a call answers is what the test said. For behaviour, use a real server.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status
from pillion_proto.memory.v1 import admin_service_pb2, memory_service_pb2, schema_service_pb2

from pillion_client._failures import DOMAIN
from pillion_client.limits import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from typing import Self

_SERVICES: Final = (
    memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"],
    admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"],
    schema_service_pb2.DESCRIPTOR.services_by_name["SchemaService"],
    health_pb2.DESCRIPTOR.services_by_name["Health"],
)
_THREADS: Final = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that the server answers with. Without a reason: as gRPC itself would make it."""

    code: grpc.StatusCode
    message: str = "scripted"
    reason: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    field_violations: tuple[tuple[str, str], ...] = ()
    retry_after_seconds: float | None = None
    domain: str = DOMAIN


def failure(
    reason: str,
    code: grpc.StatusCode,
    message: str = "scripted",
    *,
    metadata: Mapping[str, str] | None = None,
    field_violations: Mapping[str, str] | None = None,
    retry_after_seconds: float | None = None,
) -> Failure:
    """Return a failure as a Pillion server sends it."""
    return Failure(
        code,
        message,
        reason,
        tuple((metadata or {}).items()),
        tuple((field_violations or {}).items()),
        retry_after_seconds,
    )


@dataclass(frozen=True, slots=True)
class Call:
    """One call that arrived. ``seconds_left`` of its deadline; None: it brought none."""

    request: Any
    metadata: dict[str, str]
    seconds_left: float | None


Answer: TypeAlias = "Message | Failure | Callable[[Any, grpc.ServicerContext], Any]"


class ScriptedServer:
    """Answers each call with the next thing that was scripted for it; the last one stays.

    A script holds messages, failures, or functions of (request, context); for a stream of
    requests the first argument is the iterator and the function is a generator.
    """

    def __init__(self, socket: Path) -> None:
        self.target = f"unix:{socket}"
        self._lock = threading.Lock()
        self._scripts: dict[str, deque[Answer]] = {}
        self._calls: dict[str, list[Call]] = {}
        self._pool = ThreadPoolExecutor(_THREADS)
        self._server = grpc.server(
            self._pool,
            options=[
                ("grpc.max_send_message_length", 2 * MESSAGE_BYTES_MAX),
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ],
        )
        for service in _SERVICES:
            handlers = {method.name: self._handler(method) for method in service.methods}
            generic = grpc.method_handlers_generic_handler(service.full_name, handlers)
            self._server.add_generic_rpc_handlers((generic,))
        self._server.add_insecure_port(self.target)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(grace=None).wait()
        self._pool.shutdown(wait=True)

    def script(self, method: str, *answers: Answer) -> None:
        """Say what the calls of a method are answered with, one after another."""
        with self._lock:
            self._scripts[method] = deque(answers)

    def calls(self, method: str) -> list[Call]:
        """Return the calls of a method that arrived so far."""
        with self._lock:
            return list(self._calls.get(method, ()))

    def _next(self, method: str, request: object, context: grpc.ServicerContext) -> Answer:
        left = context.time_remaining()
        call = Call(
            request,
            {key: str(content) for key, content in context.invocation_metadata()},
            None if left is None or left > 1e9 else left,  # noqa: PLR2004  (gRPC's "never")
        )
        with self._lock:
            self._calls.setdefault(method, []).append(call)
            script = self._scripts.get(method)
            if not script:
                return Failure(grpc.StatusCode.UNIMPLEMENTED, f"{method} is not scripted")
            return script.popleft() if len(script) > 1 else script[0]

    def _handler(self, method: Any) -> grpc.RpcMethodHandler:  # noqa: ANN401  (a descriptor)
        name = method.name

        def unary(request: Message, context: grpc.ServicerContext) -> object:
            answer = self._next(name, request, context)
            if isinstance(answer, Failure):
                _abort(answer, context)
            return answer if isinstance(answer, Message) else answer(request, context)

        def stream(requests: Iterator[Message], context: grpc.ServicerContext) -> Iterator[Message]:
            answer = self._next(name, requests, context)
            if isinstance(answer, Failure):
                _abort(answer, context)
            if isinstance(answer, Message):
                yield answer
            else:
                yield from answer(requests, context)

        if method.server_streaming:
            make = (
                grpc.stream_stream_rpc_method_handler
                if method.client_streaming
                else grpc.unary_stream_rpc_method_handler
            )
            behaviour: Callable[..., object] = stream
        else:
            make, behaviour = grpc.unary_unary_rpc_method_handler, unary
        return make(
            behaviour,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=_serialized,
        )


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _abort(answer: Failure, context: grpc.ServicerContext) -> NoReturn:
    """End the call with the failure: gRPC raises."""
    if not answer.reason:
        context.abort(answer.code, answer.message)
        raise AssertionError
    details: list[Message] = [
        error_details_pb2.ErrorInfo(
            reason=answer.reason, domain=answer.domain, metadata=dict(answer.metadata)
        )
    ]
    if answer.field_violations:
        bad = error_details_pb2.BadRequest()
        for field, description in answer.field_violations:
            bad.field_violations.add(field=field, description=description)
        details.append(bad)
    if answer.retry_after_seconds is not None:
        delay = Duration()
        delay.FromNanoseconds(round(answer.retry_after_seconds * 1e9))
        details.append(error_details_pb2.RetryInfo(retry_delay=delay))
    packed: list[AnyMessage] = []
    for detail in details:
        item = AnyMessage()
        item.Pack(detail)
        packed.append(item)
    status = status_pb2.Status(code=answer.code.value[0], message=answer.message, details=packed)
    context.abort_with_status(rpc_status.to_status(status))
    raise AssertionError
