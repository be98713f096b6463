"""Errors meet the wire: reason to status code, exception to reason, error to google.rpc.Status.

`CODES` is the one map of reasons, `STORE_REASONS` the one of the store's errors; tests hold both
total. Trailers are capped near 8 KiB on their way, and gRPC sends the message twice, so a status
is cut to size here: a longer one would reach the caller as another error.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2
from pillion_storage import errors as store_errors

from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.embedders.errors import EmbedderError, EmbedderInputRejected, EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

DOMAIN: Final = "pillion.memory.v1"
MESSAGE_BYTES_MAX: Final = 1024
VIOLATIONS_MAX: Final = 20
STATUS_BYTES_MAX: Final = 3584
_VIOLATION_BYTES_MAX: Final = 256
_METADATA_MAX: Final = 16
_METADATA_BYTES_MAX: Final = 128
_RETRY_DEFAULT_MS: Final = 100

_Code = grpc.StatusCode

CODES: Final[Mapping[Reason, grpc.StatusCode]] = {
    Reason.INVALID_FIELD: _Code.INVALID_ARGUMENT,
    Reason.PRECONDITION_MISSING: _Code.INVALID_ARGUMENT,
    Reason.REQUEST_ID_REUSED: _Code.INVALID_ARGUMENT,
    Reason.DIMENSION_MISMATCH: _Code.INVALID_ARGUMENT,
    Reason.NOT_FINITE: _Code.INVALID_ARGUMENT,
    Reason.LIMIT_EXCEEDED: _Code.INVALID_ARGUMENT,
    Reason.PAGE_TOKEN_INVALID: _Code.INVALID_ARGUMENT,
    Reason.SCHEMA_VIOLATION: _Code.INVALID_ARGUMENT,
    Reason.INTERVAL_EMPTY: _Code.INVALID_ARGUMENT,
    Reason.VERSION_MISMATCH: _Code.ABORTED,
    Reason.ALREADY_RUNNING: _Code.ABORTED,
    Reason.ALREADY_EXISTS: _Code.ALREADY_EXISTS,
    Reason.FACT_CONFLICT: _Code.ALREADY_EXISTS,
    Reason.NOT_FOUND: _Code.NOT_FOUND,
    Reason.EMBEDDER_MISMATCH: _Code.FAILED_PRECONDITION,
    Reason.SEALED: _Code.FAILED_PRECONDITION,
    Reason.ALREADY_ENDED: _Code.FAILED_PRECONDITION,
    Reason.ATTRIBUTE_UNREGISTERED: _Code.FAILED_PRECONDITION,
    Reason.FORCE_REQUIRED: _Code.FAILED_PRECONDITION,
    Reason.ERASURE_UNPROVEN: _Code.FAILED_PRECONDITION,
    Reason.HISTORY_GONE: _Code.OUT_OF_RANGE,
    Reason.FUTURE_REVISION: _Code.OUT_OF_RANGE,
    Reason.QUOTA_EXCEEDED: _Code.RESOURCE_EXHAUSTED,
    Reason.STORE_FULL: _Code.RESOURCE_EXHAUSTED,
    Reason.OVERLOADED: _Code.RESOURCE_EXHAUSTED,
    Reason.UNAVAILABLE: _Code.UNAVAILABLE,
    Reason.PLUGIN_UNAVAILABLE: _Code.UNAVAILABLE,
    Reason.CORRUPT: _Code.DATA_LOSS,
    Reason.UNAUTHENTICATED: _Code.UNAUTHENTICATED,
    Reason.PERMISSION_DENIED: _Code.PERMISSION_DENIED,
    Reason.DEADLINE_EXCEEDED: _Code.DEADLINE_EXCEEDED,
    Reason.CANCELLED: _Code.CANCELLED,
    Reason.NOT_SERVED: _Code.UNIMPLEMENTED,
    Reason.INTERNAL: _Code.INTERNAL,
}

# The store's own texts may name keys, so none of them is passed on.
STORE_REASONS: Final[Mapping[type[store_errors.StoreError], tuple[Reason, str]]] = {
    store_errors.HistoryGone: (Reason.HISTORY_GONE, "the revision is older than what is kept"),
    store_errors.FutureRevision: (Reason.FUTURE_REVISION, "the revision is not reached yet"),
    store_errors.NotSupported: (Reason.NOT_SERVED, "the configured store does not offer this"),
    store_errors.StoreBusy: (Reason.OVERLOADED, "too many writes are waiting; try again"),
    store_errors.StoreFull: (
        Reason.STORE_FULL,
        "the disk or the configured size of the store is full; reads go on",
    ),
    store_errors.Corrupt: (
        Reason.CORRUPT,
        "a stored record failed its checksum; run `pillion verify` and restore from a backup",
    ),
    store_errors.StoreFailed: (
        Reason.UNAVAILABLE,
        "the store gave up and must be reopened; retry a write with its request_id",
    ),
    store_errors.StoreClosed: (Reason.UNAVAILABLE, "the store is closed"),
    store_errors.StoreForked: (Reason.UNAVAILABLE, "the store is not open in this process"),
    store_errors.StoreLocked: (Reason.UNAVAILABLE, "the store is in use by another process"),
    store_errors.StoreUnusable: (Reason.UNAVAILABLE, "the store cannot be used"),
    store_errors.NewerFormat: (Reason.UNAVAILABLE, "the store was written by a newer version"),
}


def error_of(exception: Exception) -> PillionError:  # noqa: PLR0911 - one for each family
    """Return the published error for whatever went wrong. An unknown exception is INTERNAL.

    An INTERNAL error carries a random ``error_id`` and nothing of the exception; whoever maps it
    logs the two together.
    """
    match exception:
        case PillionError():
            return exception
        case store_errors.StoreError():
            return _store_error(exception)
        case EmbedderInputRejected():
            return PillionError.of_field("text", "the embedder refuses this text")
        case EmbedderUnavailable():
            return PillionError(
                Reason.PLUGIN_UNAVAILABLE,
                "the embedder does not answer; retry",
                retry_after_ms=exception.retry_after_ms,
            )
        case EmbedderError():
            return PillionError(
                Reason.PLUGIN_UNAVAILABLE, "the embedder is misconfigured; see the server's log"
            )
        case grpc.RpcError():
            # What gRPC raises where a handler reads from a caller that has gone.
            return PillionError(Reason.CANCELLED, "the caller cancelled")
        case _:
            return _internal()


def _store_error(exception: store_errors.StoreError) -> PillionError:
    for kind in type(exception).__mro__:
        if kind in STORE_REASONS:
            reason, message = STORE_REASONS[kind]
            break
    else:
        return _internal()  # InvalidBatch and its like: the use case built a wrong batch
    metadata = {}
    if isinstance(exception, store_errors.HistoryGone):
        metadata["oldest_revision"] = str(exception.oldest)
    if isinstance(exception, store_errors.FutureRevision):
        metadata["newest_revision"] = str(exception.head)
    return PillionError(reason, message, metadata=metadata)


def _internal() -> PillionError:
    error_id = secrets.token_hex(8)
    return PillionError(
        Reason.INTERNAL,
        f"internal error {error_id}; the server's log has the same id",
        metadata={"error_id": error_id},
    )


def status_of(error: PillionError) -> status_pb2.Status:
    """Return an error as google.rpc.Status, within `STATUS_BYTES_MAX`.

    Details, in order: ErrorInfo always; RetryInfo when the error says when to try again (an
    OVERLOADED one always does); BadRequest when fields are at fault, as far as they fit.
    """
    code = CODES[error.reason].value[0]
    status = status_pb2.Status(code=code, message=_cut(error.message, MESSAGE_BYTES_MAX))
    _attach(
        status,
        error_details_pb2.ErrorInfo(
            domain=DOMAIN, reason=error.reason.value, metadata=_metadata(error.metadata)
        ),
    )
    retry_ms = error.retry_after_ms
    if retry_ms is None and error.reason is Reason.OVERLOADED:
        retry_ms = _RETRY_DEFAULT_MS
    if retry_ms is not None:
        delay = Duration()
        delay.FromMilliseconds(retry_ms)
        _attach(status, error_details_pb2.RetryInfo(retry_delay=delay))
    if error.violations:
        room = STATUS_BYTES_MAX - status.ByteSize() - _ANY_BYTES
        _attach(status, _bad_request(error.violations, room))
    return status


# What wrapping a BadRequest in Any and in the list of details adds, at most.
_ANY_BYTES: Final = 64


def _bad_request(violations: tuple[FieldViolation, ...], room: int) -> error_details_pb2.BadRequest:
    made = error_details_pb2.BadRequest()
    for at, violation in enumerate(violations[:VIOLATIONS_MAX]):
        made.field_violations.add(
            field=_cut(violation.field, _VIOLATION_BYTES_MAX),
            description=_cut(violation.description, _VIOLATION_BYTES_MAX),
        )
        if made.ByteSize() > room:
            del made.field_violations[at:]
            break
    left = len(violations) - len(made.field_violations)
    if left:
        # The note takes the place of the last one when there is no room for both.
        note = error_details_pb2.BadRequest.FieldViolation(description=f"and {left} more")
        if made.ByteSize() + note.ByteSize() + 2 > room and made.field_violations:
            del made.field_violations[-1]
            note.description = f"and {left + 1} more"
        made.field_violations.append(note)
    return made


def _metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    pairs = list(metadata.items())[:_METADATA_MAX]
    return {_cut(key, 64): _cut(value, _METADATA_BYTES_MAX) for key, value in pairs}


def _cut(text: str, bytes_max: int) -> str:
    """Return text within so many bytes of UTF-8, an ellipsis at its end when it was longer."""
    data = text.encode("utf-8", "replace")
    if len(data) <= bytes_max:
        return data.decode()
    return data[: bytes_max - 3].decode("utf-8", "ignore") + "…"


def _attach(status: status_pb2.Status, detail: object) -> None:
    packed = Any()
    packed.Pack(detail)  # type: ignore[arg-type]
    status.details.append(packed)


def code_name(error: PillionError | None) -> str:
    """Return the status code's name for a log line; OK for None."""
    return "OK" if error is None else str(code_pb2.Code.Name(CODES[error.reason].value[0]))
