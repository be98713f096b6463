"""One log line for each call: what, how it ended, how long it took. Never what it was about.

Calls that went well are logged at DEBUG, those that the caller can mend at INFO, those that an
operator must look at as WARNING or ERROR. A partition is logged as a hash that whoever knows its
names can compute; subjects, ids, texts and vectors never appear, nor do texts of exceptions,
which quote what they failed on: an INTERNAL error's line has the places of its frames instead.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import time
import traceback
from typing import TYPE_CHECKING, Final

from pillion.domain.errors import PillionError, Reason
from pillion.transport.status import code_name

if TYPE_CHECKING:
    from pillion.domain.scope import Partition
    from pillion.transport.call import Call

_log = logging.getLogger("pillion.calls")

_FRAMES_MAX: Final = 40
_OPERATORS: Final[dict[Reason, int]] = {
    Reason.INTERNAL: logging.ERROR,
    Reason.CORRUPT: logging.ERROR,
    Reason.STORE_FULL: logging.ERROR,
    Reason.UNAVAILABLE: logging.WARNING,
    Reason.PLUGIN_UNAVAILABLE: logging.WARNING,
    Reason.OVERLOADED: logging.WARNING,
    Reason.UNAUTHENTICATED: logging.WARNING,
    Reason.PERMISSION_DENIED: logging.WARNING,
}


def log_call(
    method: str,
    call: Call | None,
    error: PillionError | None,
    exception: Exception | None,
    started: float,
) -> None:
    """Log how a call ended. ``started`` is `time.perf_counter` at its start."""
    level = logging.DEBUG if error is None else _OPERATORS.get(error.reason, logging.INFO)
    if not _log.isEnabledFor(level):
        return
    fields: dict[str, object] = {
        "method": method,
        "code": code_name(error),
        "ms": round((time.perf_counter() - started) * 1000, 3),
    }
    if call is not None:
        fields["identity"] = call.identity.name
        if call.partition_or_none is not None:
            fields["partition"] = partition_hash(call.partition_or_none)
    if error is not None:
        fields["reason"] = error.reason.value
        if "error_id" in error.metadata:
            fields["error_id"] = error.metadata["error_id"]
    if exception is not None and level >= logging.WARNING and exception is not error:
        fields["exception"] = describe(exception)
    _log.log(level, "call", extra={"fields": fields})


@functools.lru_cache(maxsize=1024)
def partition_hash(partition: Partition) -> str:
    """Return 16 hex digits that stand for a partition in logs."""
    names = f"{partition.namespace}\0{partition.tenant}".encode("utf-8", "replace")
    return hashlib.blake2b(names, digest_size=8, person=b"pillion.log").hexdigest()


def describe(exception: BaseException) -> str:
    """Return an exception's types and frames, causes included, without any of its texts."""
    parts = []
    seen: set[int] = set()
    current: BaseException | None = exception
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)[-_FRAMES_MAX:]
        places = " > ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames)
        parts.append(f"{type(current).__module__}.{type(current).__qualname__} at {places}")
        current = current.__cause__ or current.__context__
    return " | from | ".join(parts)
