"""Fakes of the ports: a clock that tests move, ids that count, an embedder that can fail."""

from __future__ import annotations

import threading
import zlib
from uuid import UUID

import numpy as np
from pillion.domain.embedding import EmbedderIdentity
from pillion.domain.errors import PillionError, Reason
from pillion.embedders.errors import EmbedderInputRejected, EmbedderUnavailable

SECOND = 1_000_000
DAY = 86_400 * SECOND
# 2026-06-10T00:00:00Z
START = 1_781_049_600 * SECOND


class FakeClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: int = START) -> None:
        self.now = now

    def now_us(self) -> int:
        return self.now

    def advance(self, microseconds: int = SECOND) -> int:
        self.now += microseconds
        return self.now


class CountingIds:
    """Ids that count up in the shape of UUIDv7, beyond those that tests choose themselves."""

    def __init__(self, first: int = 1_000_000) -> None:
        self._lock = threading.Lock()
        self._next = first

    def new_id(self) -> UUID:
        with self._lock:
            number, self._next = self._next, self._next + 1
        return uuid7(number)


def uuid7(number: int) -> UUID:
    """The number-th id of a test: version 7, ascending."""
    high, low = divmod(number, 1 << 48)
    return UUID(int=(1 << 80) | (7 << 76) | (high << 64) | (2 << 62) | low)


class Patience:
    """A deadline: ``seconds`` are left, for ever; 0 means that it has passed."""

    def __init__(self, seconds: float = 60.0, *, cancelled: bool = False) -> None:
        self.seconds = seconds
        self.cancelled = cancelled

    def remaining_seconds(self) -> float:
        return self.seconds

    def check(self) -> None:
        if self.cancelled:
            raise PillionError(Reason.CANCELLED, "the caller is gone")
        if self.seconds <= 0:
            raise PillionError(Reason.DEADLINE_EXCEEDED, "too late")


class FakeEmbedder:
    """Eight numbers from a text's bytes. Tests make it unavailable, picky or slow.

    Attributes:
        available: False: every call raises EmbedderUnavailable.
        refused: Texts that raise EmbedderInputRejected when they are in a batch.
        gate: Calls wait until it is set.
        entered: Set when a call has begun.
        calls: The texts of every call, in order.
    """

    def __init__(self, name: str = "fake", version: str = "1", dimension: int = 8) -> None:
        self.identity = EmbedderIdentity(name, version, dimension, "f00d", 0.0)
        self.available = True
        self.refused: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.calls: list[list[str]] = []
        self.closed = False

    def embed_passages(self, texts):
        self.calls.append(list(texts))
        self.entered.set()
        assert self.gate.wait(60)
        if not self.available:
            raise EmbedderUnavailable("down")
        if self.refused & set(texts):
            raise EmbedderInputRejected("refused")
        return np.stack([self.vector(text) for text in texts])

    def embed_queries(self, texts):
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text: str):
        """The unit vector of a text."""
        random = np.random.default_rng(zlib.crc32(text.encode()))
        made = random.normal(size=self.identity.dimension)
        return (made / np.linalg.norm(made)).astype(np.float32)

    def close(self) -> None:
        self.closed = True
