"""One JSON POST over the standard library, bounded in time, in size, and in where it goes."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message

_CHUNK_BYTES = 1 << 16


class TransportError(Exception):
    """No complete answer came: refused, cut off, too slow or too big."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete HTTP answer, whatever its status."""

    status: int
    headers: Message
    body: bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the Authorization header to a host that nobody configured."""

    def redirect_request(  # noqa: PLR0917 - the base class has as many
        self,
        req: urllib.request.Request,  # noqa: ARG002 - the base class's names
        fp: object,  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: Message,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        """Follow nothing: the 3xx answer itself is returned."""
        return


def post_json(
    url: str,
    body: bytes,
    *,
    headers: Mapping[str, str],
    timeout_ms: int,
    answer_bytes_max: int,
) -> Answer:
    """POST `body` and read the answer to its end. `url` must be http or https.

    `timeout_ms` bounds the whole exchange to within a factor of two: the socket's own time-out
    restarts with every packet, so the reading loop watches a deadline as well.

    Raises:
        TransportError: There is no complete answer within the bounds.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError("only http and https")
    deadline = time.monotonic() + timeout_ms / 1000
    request = urllib.request.Request(url, data=body, headers=dict(headers), method="POST")  # noqa: S310 - checked above
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=timeout_ms / 1000) as response:
            content = _read(response, answer_bytes_max, deadline)
            return Answer(response.status, response.headers, content)
    except urllib.error.HTTPError as error:
        with error:
            content = _read(error, answer_bytes_max, deadline)
            return Answer(error.code, error.headers, content)
    except TimeoutError as error:
        raise TransportError("timed out") from error
    except urllib.error.URLError as error:
        reason = (
            "timed out" if isinstance(error.reason, TimeoutError) else type(error.reason).__name__
        )
        raise TransportError(f"cannot connect: {reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise TransportError(f"connection broke: {type(error).__name__}") from error


def _read(
    response: http.client.HTTPResponse | urllib.error.HTTPError, bytes_max: int, deadline: float
) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            part = response.read1(_CHUNK_BYTES)
        except TimeoutError as error:
            raise TransportError("timed out") from error
        except (OSError, http.client.HTTPException) as error:
            raise TransportError(f"connection broke: {type(error).__name__}") from error
        if not part:
            break
        parts.append(part)
        size += len(part)
        if size > bytes_max:
            raise TransportError(f"answer is larger than {bytes_max} bytes")
        if time.monotonic() > deadline:
            raise TransportError("timed out")
    expected = response.headers.get("Content-Length")
    if expected is not None and expected.isdigit() and int(expected) > size:
        raise TransportError("answer was cut off")
    return b"".join(parts)


def retry_after_ms(value: str | None, *, now_s: float) -> int | None:
    """What a Retry-After header asks for (RFC 9110, 10.2.3); None when absent or nonsense."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return int(value[:9]) * 1000
    try:
        then = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0, round((then.timestamp() - now_s) * 1000))
