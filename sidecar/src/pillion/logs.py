"""Structured logs to stderr: one line a record, as JSON or as text. Never any content.

Code of this product logs a constant message and passes values as ``extra={"fields": {...}}``.
A record's exception text is not written: exceptions quote what they failed on. Its types and
frames are, which is enough to find the place.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import TextIO

_TEXT_BYTES_MAX: Final = 2000


class LogFormat(StrEnum):
    """How a line looks."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def configure_logs(level: LogLevel, style: LogFormat, stream: TextIO | None = None) -> None:
    """Send the process's logs to a stream (stderr), replacing what was there."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style is LogFormat.JSON else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("pillion").setLevel(level.name)
    logging.getLogger("pillion_storage").setLevel(level.name)
    # gRPC's own lines repeat an exception's text, and what it logs is answered and logged here.
    logging.getLogger("grpc").setLevel(logging.CRITICAL + 1)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    given = getattr(record, "fields", None)
    fields = dict(given) if isinstance(given, dict) else {}
    if record.exc_info and record.exc_info[0] is not None:
        frames = traceback.extract_tb(record.exc_info[2])
        fields["exception"] = record.exc_info[0].__qualname__
        fields["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return fields


def _time(record: logging.LogRecord) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{whole}.{int(record.msecs):03d}Z"


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, then the record's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_TEXT_BYTES_MAX],
            **_fields(record),
        }
        return json.dumps(line, default=str)


class TextFormatter(logging.Formatter):
    """Time, level, message, then the record's fields as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = record.getMessage()[:_TEXT_BYTES_MAX].replace("\n", " ")
        pairs = "".join(f" {name}={value}" for name, value in _fields(record).items())
        return f"{_time(record)} {record.levelname.lower():7} {message}{pairs}"
