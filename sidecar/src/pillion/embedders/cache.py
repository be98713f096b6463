"""A bounded memory of query vectors: the same question is often asked again within seconds.

Invariants, all guarded by one lock that is never held while embedding:
- `_vectors` has at most `entries_max` entries, least recently used first.
- A key is in `_vectors` or in `_pending` or in neither, never in both.
- Whoever puts a key into `_pending` takes it out again, whether embedding succeeds or fails.

Keys are digests: a cache must not keep the words of a query for longer than the request.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.ports import Embedder

    Vector = NDArray[np.float32]

DIGEST_BYTES = 16


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
        self._pending: dict[bytes, Future[Vector]] = {}
        self._hits = 0
        self._misses = 0

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

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Straight to the wrapped embedder: a passage is embedded once in its life."""
        return self._embedder.embed_passages(texts)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, dimension), a fresh array that the caller may change."""
        keys = [_key(text) for text in texts]
        ready: dict[bytes, Vector] = {}
        waiting: dict[bytes, Future[Vector]] = {}
        mine: dict[bytes, str] = {}
        with self._lock:
            for key, text in zip(keys, texts, strict=True):
                if key in self._vectors:
                    self._vectors.move_to_end(key)
                    ready[key] = self._vectors[key]
                elif key in self._pending:  # somebody's, or this call's when a text is repeated
                    waiting[key] = self._pending[key]
                else:
                    self._pending[key] = Future()
                    mine[key] = text
            self._misses += len(mine)
            self._hits += len(keys) - len(mine)
        # One's own work comes first: two calls that wait for each other's texts cannot deadlock.
        if mine:
            ready.update(self._embed(mine))
        for key, future in waiting.items():
            ready[key] = future.result()
        result = np.empty((len(keys), self.identity.dimension), np.float32)
        for row, key in enumerate(keys):
            result[row] = ready[key]
        return result

    def clear(self) -> None:
        """Forget every vector. Calls under way still finish, and may remember theirs."""
        with self._lock:
            self._vectors.clear()

    def close(self) -> None:
        """Forget everything and close the wrapped embedder."""
        self.clear()
        self._embedder.close()

    def _embed(self, mine: dict[bytes, str]) -> dict[bytes, Vector]:
        try:
            rows = self._embedder.embed_queries(list(mine.values()))
            vectors = {key: rows[i].copy() for i, key in enumerate(mine)}
        except BaseException as error:
            with self._lock:
                failed = [self._pending.pop(key) for key in mine]
            for future in failed:
                future.set_exception(error)
            raise
        with self._lock:
            done = {key: self._pending.pop(key) for key in mine}
            for key, vector in vectors.items():
                vector.flags.writeable = False
                self._vectors[key] = vector
            while len(self._vectors) > self._entries_max:
                self._vectors.popitem(last=False)
        for key, future in done.items():
            future.set_result(vectors[key])
        return vectors


def _key(text: str) -> bytes:
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(encoded, digest_size=DIGEST_BYTES).digest()
