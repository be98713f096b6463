"""A bounded memory of query vectors: the same question is often asked again within seconds.

Invariants, all guarded by one lock that is never held while embedding:
- `_vectors` has at most `entries_max` entries, least recently used first.
- A key is in `_vectors` or in `_pending` or in neither, never in both.
- The task that embeds a key takes it out of `_pending` again, whether it succeeds or fails.
- Whoever waits for the embedder waits in `pool.outcome`, as long as he has time left.

Keys are digests: a cache must not keep the words of a query for longer than the request.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pillion.domain.errors import PillionError, Reason
from pillion.embedders.pool import EmbedderPool, outcome
from pillion.embedders.usable import usable_rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.scope import Partition
    from pillion.ports import Embedder

    Vector = NDArray[np.float32]

DIGEST_BYTES = 16
# Two of each: one long call does not hold up the next, and an embedder in this process computes
# on every core in one call already.
THREADS_MAX = 2
# Queries are short, and few wait at once: the server's threads for reads.
QUERIES_QUEUED_MAX = 64
QUERY_STALL_SECONDS = 5.0
# A write's passages may be a hundred long texts.
PASSAGES_QUEUED_MAX = 16
PASSAGE_STALL_SECONDS = 15.0
# How long the embedder may take to close; it may be stuck in a call.
CLOSE_SECONDS = 5.0


class QueryCache:
    """An embedder in front of another one, which remembers queries and passes passages through.

    Concurrent calls for one text embed it once (single flight); the others wait for that result,
    and for its error, which is not remembered. Memory is about
    ``entries_max * (4 * dimension + 300)`` bytes.
    """

    def __init__(self, embedder: Embedder, *, entries_max: int) -> None:
        if entries_max < 1:
            raise ValueError("entries_max must be at least 1")
        self._embedder = embedder
        self._entries_max = entries_max
        self._lock = threading.Lock()
        self._vectors: OrderedDict[bytes, Vector] = OrderedDict()
        self._pending: dict[bytes, Future[dict[bytes, Vector]]] = {}
        self._hits = 0
        self._misses = 0
        self._queries: EmbedderPool[dict[bytes, Vector]] = EmbedderPool(
            "pillion-queries",
            threads_max=THREADS_MAX,
            queue_max=QUERIES_QUEUED_MAX,
            stall_seconds=QUERY_STALL_SECONDS,
        )
        self._passages: EmbedderPool[NDArray[np.float32]] = EmbedderPool(
            "pillion-passages",
            threads_max=THREADS_MAX,
            queue_max=PASSAGES_QUEUED_MAX,
            stall_seconds=PASSAGE_STALL_SECONDS,
        )

    @property
    def identity(self) -> EmbedderIdentity:
        """The wrapped embedder's: caching does not change a vector."""
        return self._embedder.identity

    @property
    def hits(self) -> int:
        """Texts answered from memory or from another call's work, since the start."""
        return self._hits

    @property
    def misses(self) -> int:
        """Texts that had to be embedded, since the start."""
        return self._misses

    def __len__(self) -> int:
        return len(self._vectors)

    def embed_passages(
        self, texts: Sequence[str], *, within_seconds: float | None = None
    ) -> NDArray[np.float32]:
        """What the wrapped embedder says: a passage is embedded once in its life.

        Without a limit it is called in the caller's thread.

        Raises:
            PillionError: DEADLINE_EXCEEDED when it takes longer than ``within_seconds``;
                OVERLOADED when too many wait for it.
            EmbedderError: As the wrapped embedder fails.
        """
        if within_seconds is None:
            return self._embedder.embed_passages(texts)
        future = self._passages.submit(partial(self._embedder.embed_passages, texts))
        try:
            return outcome(future, within_seconds)
        finally:
            future.cancel()  # nobody waits for it any more, if it has not begun

    def embed_queries(
        self, texts: Sequence[str], *, within_seconds: float | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors (n, dimension), a fresh array that the caller may change.

        Args:
            texts: Queries, which may repeat.
            within_seconds: How long the caller waits for those that are not here; None: for ever.

        Raises:
            PillionError: DEADLINE_EXCEEDED when it takes longer; OVERLOADED when too many wait
                for the embedder; PLUGIN_UNAVAILABLE when it returns what is no vector.
            EmbedderError: As the wrapped embedder fails.
        """
        ends = None if within_seconds is None else time.monotonic() + within_seconds
        keys = [_key(text) for text in texts]
        ready: dict[bytes, Vector] = {}
        waiting: dict[Future[dict[bytes, Vector]], None] = {}
        mine: dict[bytes, str] = {}
        with self._lock:
            for key, text in zip(keys, texts, strict=True):
                if key in self._vectors:
                    self._vectors.move_to_end(key)
                    ready[key] = self._vectors[key]
                elif key in self._pending:
                    waiting[self._pending[key]] = None
                else:
                    mine[key] = text
            if mine:
                # The task asks for this lock before it is done, so it finds its keys pending.
                future = self._queries.submit(partial(self._embed, mine))
                self._pending.update(dict.fromkeys(mine, future))
                waiting[future] = None
            self._misses += len(mine)
            self._hits += len(keys) - len(mine)
        for future in waiting:
            left = None if ends is None else ends - time.monotonic()
            landed = outcome(future, left)
            ready.update(landed)
        result = np.empty((len(keys), self.identity.dimension), np.float32)
        for row, key in enumerate(keys):
            result[row] = ready[key]
        return result

    def let_go(self, _partition: Partition) -> None:
        """Keep nothing: whose queries these were isn't known."""
        self.clear()

    def clear(self) -> None:
        """Forget every vector. Calls under way still finish, and may remember theirs."""
        with self._lock:
            self._vectors.clear()

    def close(self) -> None:
        """Forget everything and close the wrapped embedder, but do not wait for it long."""
        self._queries.close()
        self._passages.close()
        with self._lock:
            self._vectors.clear()
            self._pending.clear()
        closing = threading.Thread(
            target=self._embedder.close, name="pillion-embedder-close", daemon=True
        )
        closing.start()
        closing.join(CLOSE_SECONDS)

    def _embed(self, mine: dict[bytes, str]) -> dict[bytes, Vector]:
        """Embed some texts, in a thread of the pool."""
        try:
            vectors = dict(zip(mine, self._rows(list(mine.values())), strict=True))
        except BaseException:
            with self._lock:
                for key in mine:
                    self._pending.pop(key, None)
            raise
        with self._lock:
            for key, vector in vectors.items():
                if self._pending.pop(key, None) is not None:  # None: closed meanwhile
                    self._vectors[key] = vector
            while len(self._vectors) > self._entries_max:
                self._vectors.popitem(last=False)
        return vectors

    def _rows(self, texts: list[str]) -> list[Vector]:
        made = self._embedder.embed_queries(texts)
        rows = []
        for row in usable_rows(made, len(texts), self.identity.dimension):
            if row is None:
                raise PillionError(
                    Reason.PLUGIN_UNAVAILABLE,
                    f"the embedder {self.identity.name} made no usable vector of the query",
                )
            rows.append(row.copy())
            rows[-1].flags.writeable = False
        return rows


def _key(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest()
