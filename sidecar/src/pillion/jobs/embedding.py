"""Makes the vectors that writes queued, in small batches, until none is left.

The queue is in the store (``q`` records), so a crash loses nothing and memory stays bounded. A
batch commits only if its memories are as they were read; otherwise it is read again. Partitions
take turns. The newest texts go first, so that what is said now does not wait for what was said long
ago to be embedded again; a Reindex makes the oldest, in turns with this job. While the embedder
does not answer, the job waits longer and longer; a text that it refuses, or makes no usable vector
of, is set aside (an ``x`` record) so that it cannot hold up the others.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import numpy as np
from pillion_storage import codec
from pillion_storage.api import Batch, Committed, StoreClosed
from pillion_storage.keys import EMBEDDER_KEY, id_of, memory_key, prefix_end, vector_key

from pillion.domain.indexed_text import embedded_text
from pillion.embedders.errors import EmbedderInputRejected
from pillion.embedders.usable import usable_rows
from pillion.service.vectors import PENDING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.ports import Embedder
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors

BATCH_TEXTS = 32
IDLE_SECONDS = 30.0
BACKOFF_FIRST_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 60.0
# How long a stop waits for the batch at hand; the embedder may never answer.
STOP_SECONDS = 5.0
REFUSED = b"x"

_log = logging.getLogger(__name__)


class EmbeddingJob:
    """One thread that makes vectors. ``start`` once, ``stop`` once."""

    def __init__(
        self, store: Store, keys: KeySpaces, embedder: Embedder, pending: PendingVectors
    ) -> None:
        self._store = store
        self._keys = keys
        self._embedder = embedder
        self._pending = pending
        self._making = threading.Lock()  # so that nobody makes the same vectors twice
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pillion-embedding", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the batch at hand; the rest stays queued in the store.

        A batch that takes too long stays queued too: its thread is left behind, and finds the
        store closed.
        """
        self._stopping.set()
        self._pending.wake()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        backoff = BACKOFF_FIRST_SECONDS
        while not self._stopping.is_set():
            partitions = self._pending.wait(IDLE_SECONDS)
            failed: Exception | None = None
            for partition in partitions:
                if self._stopping.is_set():
                    return
                try:
                    self.make_some(partition, newest=True)
                except StoreClosed:
                    return
                except Exception as error:  # noqa: BLE001  (the job outlives whatever goes wrong)
                    failed = error  # one partition's trouble must not hold up the others
            if failed is None:
                backoff = BACKOFF_FIRST_SECONDS
            else:
                _log.warning(
                    "vectors are late: %s; trying again in %.1f s", type(failed).__name__, backoff
                )
                self._stopping.wait(backoff)
                backoff = min(2 * backoff, BACKOFF_MAX_SECONDS)

    def make_some(self, partition: Partition, *, newest: bool = False) -> int:
        """Make the vectors of one batch, the oldest or the newest; return how many are not queued.

        Those are as many ``q`` records less.

        Raises:
            EmbedderError: The embedder does not answer; the batch stays queued.
        """
        with self._making:
            return self._make_some(partition, newest=newest)

    def _make_some(self, partition: Partition, *, newest: bool) -> int:
        page = self._store.scan(
            partition,
            PENDING,
            prefix_end(PENDING),
            limit=BATCH_TEXTS,
            reverse=newest,
            keys_only=True,
        )
        ids = [id_of(row.key) for row in page.rows]
        if not ids:
            return 0
        wanted = [memory_key(one) for one in ids] + [EMBEDDER_KEY]
        found = self._store.read(partition, wanted, at=page.revision).entries
        space = found.get(EMBEDDER_KEY)
        if space is None or not codec.decode_embedder(space.value).same_space(
            self._embedder.identity
        ):
            # A mix would be worse than no vector. They stay queued for the embedder that fits.
            _log.error("a partition waits for vectors of another embedder; they stay queued")
            self._pending.skip(partition)
            return 0
        texts: list[tuple[UUID, str]] = []
        owners: dict[bytes, bytes] = {}
        keys = self._keys.at(partition, page.revision)
        expect = {row.key: row.version for row in page.rows}
        for one in ids:
            entry = found.get(memory_key(one))
            if entry is not None:
                expect[memory_key(one)] = entry.version
                memory = codec.decode_memory(one, entry.value, entry.version)
                texts.append((one, embedded_text(memory)))
                owners[vector_key(one)] = keys.subject(memory.subject)
        vectors, refused = self._embed([text for _, text in texts])
        puts = {
            vector_key(one): vector
            for (one, _), vector in zip(texts, vectors, strict=True)
            if vector is not None
        }
        again = [REFUSED + key[1:] for key in puts]  # refused before, with another text
        puts.update({REFUSED + texts[index][0].bytes: b"" for index in refused})
        batch = Batch(
            puts=puts,
            deletes=[row.key for row in page.rows] + again,
            expect=expect,
            owners={key: owner for key, owner in owners.items() if key in puts},
        )
        if isinstance(self._store.commit(partition, batch), Committed):
            self._pending.add(partition, -len(ids))
            return len(ids)
        return 0

    def _embed(self, texts: Sequence[str]) -> tuple[list[bytes | None], list[int]]:
        """Return each text's vector, None where none is to be had, and the places of those."""
        if not texts:
            return [], []
        try:
            made = self._embedder.embed_passages(texts)
        except EmbedderInputRejected:
            if len(texts) == 1:
                return [None], [0]
            half = len(texts) // 2
            left, left_refused = self._embed(texts[:half])
            right, right_refused = self._embed(texts[half:])
            return left + right, left_refused + [half + place for place in right_refused]
        rows = usable_rows(made, len(texts), self._embedder.identity.dimension)
        bad = [place for place, row in enumerate(rows) if row is None]
        if bad:
            _log.error(
                "%s made no usable vector of %d texts; they are set aside",
                self._embedder.identity.name,
                len(bad),
            )
        packed = [
            np.ascontiguousarray(row, dtype="<f4").tobytes() if row is not None else None
            for row in rows
        ]
        return packed, bad
