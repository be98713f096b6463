"""Embeddings from any server that speaks the OpenAI embeddings API: a cloud, or one's own.

Only the standard library is used: one POST with a JSON body needs no client (docs/adr/0005).
What the server says is not trusted: the answer is bounded in size and time, and its count, order,
dimension and finiteness are checked. Neither the key nor a text ever reaches a message.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import random
import time
from pathlib import Path  # noqa: TC003 - pydantic reads the annotation
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
from pydantic import Field, model_validator

from pillion.domain.embedding import EmbedderIdentity
from pillion.embedders.errors import (
    EmbedderInputRejected,
    EmbedderMisconfigured,
    EmbedderUnavailable,
)
from pillion.embedders.http import Answer, TransportError, post_json, retry_after_ms
from pillion.embedders.options import EmbedderOptions, parse_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

VERSION = "1"
_ANSWER_BYTES_PER_NUMBER = 32
_ANSWER_BYTES_EXTRA = 1 << 16
_KEY_BYTES_MAX = 8_192
_INPUT_STATUSES = frozenset({413, 422})
_RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class Options(EmbedderOptions):
    """Options of embedder `openai`."""

    base_url: str = "https://api.openai.com/v1"
    """The API's root; `/embeddings` is appended."""

    model: str = Field(min_length=1, max_length=256)
    dimension: int = Field(ge=1, le=16_384)
    """What the model answers with. A different answer is an error, never stored."""

    send_dimension: bool = False
    """Ask for `dimension` components: models that can shorten their vectors understand it."""

    api_key_env: str | None = None
    """Name of the environment variable that holds the key."""

    api_key_file: Path | None = None
    """File that holds the key; read again for every call, so that a rotated key is picked up."""

    allow_key_over_http: bool = False
    """Send the key without TLS to a host other than this one."""

    query_prefix: str = ""
    passage_prefix: str = ""
    """For models that want to know the side, such as `query: ` and `passage: ` of E5."""

    unrelated_cosine: float = Field(default=0.0, ge=-1.0, le=1.0)
    """Floor for ranking; `pillion.embedders.testing.measure_unrelated_cosine` measures it."""

    batch_max: int = Field(default=64, ge=1, le=2_048)
    timeout_ms: int = Field(default=10_000, ge=1, le=600_000)
    """For one attempt, from connecting to the last byte."""

    attempts_max: int = Field(default=4, ge=1, le=10)
    backoff_ms: int = Field(default=250, ge=1, le=60_000)
    """Bound of the first wait; it doubles with each attempt, and the wait is drawn below it."""

    backoff_max_ms: int = Field(default=20_000, ge=1, le=600_000)
    """Longest wait. A server that asks for more gets no retry: the caller is told to come back."""

    @model_validator(mode="after")
    def _check(self) -> Options:
        url = urlsplit(self.base_url)
        if url.scheme not in {"http", "https"} or not url.hostname or url.query or url.username:
            raise ValueError("base_url must be http(s)://host[:port][/path], without credentials")
        if self.api_key_env and self.api_key_file:
            raise ValueError("give api_key_env or api_key_file, not both")
        has_key = bool(self.api_key_env or self.api_key_file)
        exposed = url.scheme == "http" and not _is_loopback(url.hostname)
        if has_key and exposed and not self.allow_key_over_http:
            raise ValueError("the key would travel unencrypted: use https or allow_key_over_http")
        return self


class OpenAIEmbedder:
    """One attempt after the other, never two at once for a call; safe to share between threads.

    `sleep` takes seconds and `draw` gives a number in [0, 1): tests pass their own.
    """

    def __init__(
        self,
        options: Options,
        *,
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._sleep = sleep
        self._draw = draw
        self._read_key()  # a missing key is found when the server starts, not at the first write

    @property
    def identity(self) -> EmbedderIdentity:
        """The fingerprint covers what changes vectors (model, prefixes), not the host."""
        o = self._options
        configuration = json.dumps([o.model, o.send_dimension, o.query_prefix, o.passage_prefix])
        return EmbedderIdentity(
            name=f"openai:{o.model}",
            version=VERSION,
            dimension=o.dimension,
            fingerprint=hashlib.sha256(configuration.encode()).hexdigest(),
            unrelated_cosine=o.unrelated_cosine,
        )

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension).

        Raises:
            EmbedderUnavailable: No good answer within the attempts.
            EmbedderMisconfigured: Key, address, model or dimension is wrong.
            EmbedderInputRejected: The server will not embed one of these texts.
        """
        return self._embed([self._options.passage_prefix + text for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension); raises like `embed_passages`."""
        return self._embed([self._options.query_prefix + text for text in texts])

    def close(self) -> None:
        """Nothing to release: no connection outlives a call."""

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self._options.dimension), np.float32)
        for start in range(0, len(texts), self._options.batch_max):
            batch = texts[start : start + self._options.batch_max]
            vectors[start : start + len(batch)] = self._embed_batch(batch)
        return vectors

    def _embed_batch(self, batch: list[str]) -> NDArray[np.float32]:
        o = self._options
        request: dict[str, object] = {"model": o.model, "input": batch, "encoding_format": "float"}
        if o.send_dimension:
            request["dimensions"] = o.dimension
        # ASCII escapes: a lone surrogate, which is not UTF-8, must not break a whole batch here.
        body = json.dumps(request).encode("ascii")
        limit = len(batch) * o.dimension * _ANSWER_BYTES_PER_NUMBER + _ANSWER_BYTES_EXTRA
        attempt = 1
        while True:
            try:
                answer = self._post(body, limit)
            except EmbedderUnavailable as error:
                wait_ms = self._wait_ms(attempt, error.retry_after_ms)
                if wait_ms is None:
                    raise
            else:
                return parse_answer(answer.body, count=len(batch), dimension=o.dimension)
            self._sleep(wait_ms / 1000)
            attempt += 1

    def _wait_ms(self, attempt: int, asked_ms: int | None) -> float | None:
        """How long to wait before the next attempt; None when there must be none.

        Full jitter below an exponential bound, but never shorter than the server asked for.
        """
        o = self._options
        if attempt >= o.attempts_max or (asked_ms or 0) > o.backoff_max_ms:
            return None
        bound_ms = min(o.backoff_max_ms, o.backoff_ms * (1 << (attempt - 1)))
        return max(self._draw() * bound_ms, asked_ms or 0)

    def _post(self, body: bytes, answer_bytes_max: int) -> Answer:
        """One attempt. Raises `EmbedderUnavailable` exactly when another may help."""
        o = self._options
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        key = self._read_key()
        if key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            answer = post_json(
                f"{o.base_url.rstrip('/')}/embeddings",
                body,
                headers=headers,
                timeout_ms=o.timeout_ms,
                answer_bytes_max=answer_bytes_max,
            )
        except TransportError as error:
            raise EmbedderUnavailable(f"embedder 'openai': {error}") from error
        if answer.status == 200:  # noqa: PLR2004 - the one status that carries vectors
            return answer
        told = f"embedder 'openai': HTTP {answer.status}{_error_code(answer.body)}"
        if answer.status in _RETRIED_STATUSES:
            asked = retry_after_ms(answer.headers.get("Retry-After"), now_s=time.time())
            raise EmbedderUnavailable(told, retry_after_ms=asked)
        if answer.status in _INPUT_STATUSES:
            raise EmbedderInputRejected(told)
        raise EmbedderMisconfigured(told)

    def _read_key(self) -> str:
        """The key, or ``""`` when the options name none."""
        o = self._options
        if o.api_key_env is not None:
            key, source = os.environ.get(o.api_key_env, ""), f"environment variable {o.api_key_env}"
        elif o.api_key_file is not None:
            source = f"file {o.api_key_file}"
            try:
                with o.api_key_file.open("rb") as file:
                    key = file.read(_KEY_BYTES_MAX).decode("ascii", "replace")
            except OSError as error:
                reason = error.strerror
                raise EmbedderMisconfigured(f"embedder 'openai': {source}: {reason}") from error
        else:
            return ""
        key = key.strip()
        if not key or not key.isascii() or not key.isprintable():
            raise EmbedderMisconfigured(f"embedder 'openai': no usable key in {source}")
        return key


def parse_answer(body: bytes, *, count: int, dimension: int) -> NDArray[np.float32]:
    """Unit vectors (count, dimension) in the order of the request, whatever the answer's order.

    Raises:
        EmbedderUnavailable: The answer is not what the API promises.
        EmbedderMisconfigured: The vectors have another dimension than the options say.
    """
    try:
        items = json.loads(body)["data"]
        by_index = {int(item["index"]): item["embedding"] for item in items}
        rows = [np.asarray(by_index[i], np.float64) for i in range(count)]
    except (ValueError, TypeError, KeyError, LookupError, RecursionError, OverflowError) as error:
        what = type(error).__name__
        raise EmbedderUnavailable(f"embedder 'openai': malformed answer ({what})") from None
    if len(items) != count:
        raise EmbedderUnavailable(f"embedder 'openai': {len(items)} vectors for {count} texts")
    for row in rows:
        if row.shape != (dimension,):
            raise EmbedderMisconfigured(
                f"embedder 'openai': vectors of shape {row.shape}, option dimension is {dimension}"
            )
    vectors = np.stack(rows)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths == 0).any():
        raise EmbedderUnavailable("embedder 'openai': a vector is zero or not finite")
    unit: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
    return unit


def _error_code(body: bytes) -> str:
    """The machine-readable part of an error answer. The prose may quote the text: left out."""
    try:
        error = json.loads(body)["error"]
        code = error.get("code") or error.get("type")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""
    is_name = isinstance(code, str) and code.isascii() and code.replace("_", "").isalnum()
    return f" ({code[:64]})" if is_name else ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def create(options: Mapping[str, object]) -> OpenAIEmbedder:
    """Entry point `openai` of group `pillion.embedders`. Checks that the key can be read."""
    return OpenAIEmbedder(parse_options(Options, options, embedder="openai"))
