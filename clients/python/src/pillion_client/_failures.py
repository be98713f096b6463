"""The one place where gRPC's errors become ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode
from grpc_status import rpc_status

from pillion_client import errors
from pillion_client.errors import FieldViolation, PillionError
from pillion_client.limits import MESSAGE_BYTES_MAX

if TYPE_CHECKING:
    from google.protobuf.any_pb2 import Any as AnyMessage
    from google.protobuf.message import Message

DOMAIN: Final = "pillion.memory.v1"

BY_REASON: Final[dict[str, type[PillionError]]] = {
    "INVALID_FIELD": errors.InvalidArgument,
    "PRECONDITION_MISSING": errors.InvalidArgument,
    "REQUEST_ID_REUSED": errors.InvalidArgument,
    "DIMENSION_MISMATCH": errors.InvalidArgument,
    "NOT_FINITE": errors.InvalidArgument,
    "LIMIT_EXCEEDED": errors.InvalidArgument,
    "PAGE_TOKEN_INVALID": errors.InvalidArgument,
    "SCHEMA_VIOLATION": errors.InvalidArgument,
    "INTERVAL_EMPTY": errors.InvalidArgument,
    "VERSION_MISMATCH": errors.VersionMismatch,
    "ALREADY_RUNNING": errors.AlreadyRunning,
    "ALREADY_EXISTS": errors.AlreadyExists,
    "FACT_CONFLICT": errors.FactConflict,
    "NOT_FOUND": errors.NotFound,
    "EMBEDDER_MISMATCH": errors.FailedPrecondition,
    "SEALED": errors.FailedPrecondition,
    "ALREADY_ENDED": errors.FailedPrecondition,
    "ATTRIBUTE_UNREGISTERED": errors.FailedPrecondition,
    "FORCE_REQUIRED": errors.FailedPrecondition,
    "ERASURE_UNPROVEN": errors.FailedPrecondition,
    "HISTORY_GONE": errors.OutOfRange,
    "FUTURE_REVISION": errors.OutOfRange,
    "QUOTA_EXCEEDED": errors.QuotaExceeded,
    "STORE_FULL": errors.StoreFull,
    "OVERLOADED": errors.Overloaded,
    "UNAVAILABLE": errors.Unavailable,
    "PLUGIN_UNAVAILABLE": errors.Unavailable,
    "CORRUPT": errors.DataLoss,
    "UNAUTHENTICATED": errors.Unauthenticated,
    "PERMISSION_DENIED": errors.PermissionDenied,
    "DEADLINE_EXCEEDED": errors.DeadlineExceeded,
    "CANCELLED": errors.Cancelled,
    "NOT_SERVED": errors.NotServed,
    "INTERNAL": errors.Internal,
}
"""Every ``ErrorReason`` of the contract; a test holds the two lists equal."""

BY_CODE: Final[dict[StatusCode, type[PillionError]]] = {
    kind.default_code: kind
    for kind in (
        errors.InvalidArgument,
        errors.Aborted,
        errors.AlreadyExists,
        errors.NotFound,
        errors.FailedPrecondition,
        errors.OutOfRange,
        errors.ResourceExhausted,
        errors.Unavailable,
        errors.DataLoss,
        errors.Unauthenticated,
        errors.PermissionDenied,
        errors.DeadlineExceeded,
        errors.Cancelled,
        errors.NotServed,
        errors.Internal,
    )
}
"""For errors that name no reason, or one that is newer than this client."""


def no_server(target: str, detail: str) -> errors.NoServer:
    """Return the error for a target where nothing answers."""
    return errors.NoServer(
        f"no server at {target}; start one with `pillion serve` there, or name another: "
        "PILLION_TARGET=unix:///path/to/pillion.sock",
        metadata={"detail": detail},
    )


def answer_lost(target: str) -> errors.Unavailable:
    """Return the error for a call that gRPC calls a success but has no answer of.

    Seen once in many thousand calls beside a server that was killed again and again; whether the
    call took effect is as unknown as after a lost connection.
    """
    return errors.Unavailable(f"the answer of {target} was lost: send the same again")


def message_too_large(direction: str) -> errors.MessageTooLarge:
    """Return the error for a request or an answer that does not fit one message."""
    advice = {
        "request": "split it into several",
        "answer": "ask for less: a smaller top_k or page_size, or no vectors",
    }[direction]
    size = MESSAGE_BYTES_MAX // (1024 * 1024)
    return errors.MessageTooLarge(f"the {direction} is larger than {size} MiB: {advice}")


def from_rpc_error(error: grpc.RpcError, target: str) -> PillionError:
    """Return the typed error for what gRPC raised, blocking or in asyncio."""
    code: StatusCode = error.code()
    detail: str = error.details() or ""
    status = _status(error)
    if status is None:
        return _from_grpc_itself(code, detail, target)
    info = error_details_pb2.ErrorInfo()
    request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    has_retry = False
    for item in status.details:
        _unpack(item, info)
        _unpack(item, request)
        has_retry = _unpack(item, retry) or has_retry
    ours = info.domain == DOMAIN
    kind = BY_REASON.get(info.reason) if ours else None
    return (kind or BY_CODE.get(code, PillionError))(
        status.message or detail,
        code=code,
        reason=info.reason if ours else "",
        metadata=dict(info.metadata),
        field_violations=tuple(
            FieldViolation(violation.field, violation.description)
            for violation in request.field_violations
        ),
        retry_after_seconds=(
            retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9 if has_retry else None
        ),
    )


def _status(error: grpc.RpcError) -> status_pb2.Status | None:
    """Return the rich status, or None when there is none or it contradicts the plain one."""
    try:
        status: status_pb2.Status | None = rpc_status.from_call(cast("grpc.Call", error))
    except ValueError:
        return None
    return status


def _unpack(item: AnyMessage, into: Message) -> bool:
    """Fill the message when the item holds one of its type; say whether it did."""
    return bool(item.Unpack(into))


def _from_grpc_itself(code: StatusCode, detail: str, target: str) -> PillionError:
    """Errors that the transport made: they carry no ErrorInfo."""
    if code is StatusCode.UNAVAILABLE:
        return no_server(target, detail)
    if code is StatusCode.RESOURCE_EXHAUSTED and "larger than max" in detail:
        sent = detail.startswith(("Sent", "CLIENT: Sent", "SERVER: Received"))
        return message_too_large("request" if sent else "answer")
    if code is StatusCode.UNIMPLEMENTED:
        return errors.NotServed(f"this server does not serve it ({detail})")
    return BY_CODE.get(code, PillionError)(detail or code.name, code=code)
