"""Where the indexes of partitions are kept between two runs, and until when they may be believed.

One file for each partition, in a directory beside the data. It repeats vectors of many subjects,
so it is sealed with a key of its own, and an erasure does away with file and key: ``forget``.

What makes a snapshot fit to use, for it is never the truth:
  - It is of this partition and space, and sealed if the store seals (``index.snapshot``).
  - Its revision is one of this store: the feed still says when it was recorded, and that is what
    the snapshot says. A store that was restored from a backup has another history from there on.
  - Its memories and the table's differ in nothing but what the feed says has changed since.
Everything else is left alone with a line in the log, and the index is built anew.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from pillion_storage.api import FileSeals, HistoryGone, OwnerKeys, StoreError
from pillion_storage.index import snapshot as files
from pillion_storage.index.graph_state import SnapshotUnusable, layout_of
from pillion_storage.index.hnsw import EF_CONSTRUCTION, M
from pillion_storage.index.snapshot import Manifest, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from pillion_storage.api import Store
    from pillion_storage.index.graph_state import GraphState

    from pillion.domain.embedding import EmbedderIdentity
    from pillion.domain.scope import Partition

# The owner of the key that seals a partition's snapshots. Those of records are longer hashes.
OWNER: Final = b"index snapshot"
_FEED_STEP: Final = 256
# The families of records whose change may be one of a memory's vector; see ``Resident``.
_FAMILIES: Final = (b"m", b"v", b"q")
_MEMORY_ID_END: Final = 17
_HNSWLIB: Final = importlib.metadata.version("hnswlib")

_log = logging.getLogger(__name__)


class IndexSnapshots:
    """The snapshots of all partitions of one store. Safe to share between threads."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._lock = threading.Lock()
        self._partitions: dict[Partition, PartitionSnapshots] = {}

    def of(self, partition: Partition) -> PartitionSnapshots:
        """Return those of a partition."""
        with self._lock:
            found = self._partitions.get(partition)
            if found is None:
                found = PartitionSnapshots(self._store, partition, self._path(partition))
                self._partitions[partition] = found
            return found

    def drop(self, partition: Partition, revision: int) -> None:
        """Do away with a partition's snapshot and its key: another is made from what is now."""
        retired = self.forget(partition, revision)
        if retired and isinstance(self._store, OwnerKeys):
            self._store.destroy_keys(retired)

    def _path(self, partition: Partition) -> Path:
        names = f"{len(partition.namespace)}:{partition.namespace}{partition.tenant}"
        name = hashlib.blake2b(names.encode(), digest_size=16).hexdigest()
        return self._directory / f"{name}.hnsw"

    def forget(self, partition: Partition, revision: int) -> list[bytes]:
        """Do away with what snapshots hold of records that were erased by a revision.

        Called once the commit that deletes them is durable, and again after a stop. From the
        return on there is no snapshot of an earlier revision, nor will one be written or read by
        this process: the file was overwritten and removed. Where the store seals, what was written
        before, in whatever copy, is unreadable once the caller has destroyed the keys that this
        returns (``OwnerKeys.destroy_keys``, in one call with the erased subjects' own).

        What the index has in memory is another matter: ``VectorIndex.wait_erased``.

        Raises:
            OSError: the file may still be there. The erasure must not be called done.
        """
        return self.of(partition).forget(revision)


class PartitionSnapshots:
    """The snapshot of one partition. At any time one thread reads or writes it."""

    def __init__(self, store: Store, partition: Partition, path: Path) -> None:
        self._store = store
        self._partition = partition
        self._path = path
        self._lock = threading.Lock()
        self.revision = 0  # of the snapshot that is there and fits; 0: there is none
        self._oldest = 0  # a snapshot of an earlier revision holds what was erased, or less

    def forget(self, revision: int) -> list[bytes]:
        """See ``IndexSnapshots.forget``."""
        with self._lock:
            self._oldest = max(self._oldest, revision)
            self.revision = 0
            retired = []
            if isinstance(self._store, OwnerKeys):
                retired = self._store.retire_owner(self._partition, OWNER)
            files.forget(self._path)
            return retired

    def save(
        self,
        space: EmbedderIdentity,
        capture: Callable[[], Captured | None],
        recall: list[list[float]],
        go_on: Callable[[], bool],
    ) -> int:
        """Write what ``capture`` gives; return its revision, or 0 when nothing was written.

        The key is lent before the graph is captured, so whoever retires the key afterwards knows
        that this snapshot is sealed with it.
        """
        try:
            with self._lock, self._sealing() as seal:
                captured = capture()
                recorded_at = self._recorded_at(captured.revision) if captured else None
                if captured is None or recorded_at is None:
                    return 0
                # The latter: this index left memory while another one took its place.
                if captured.revision < max(self._oldest, self.revision):
                    return 0
                made = self._snapshot(captured, space, recorded_at, recall)
                self._path.parent.mkdir(mode=0o700, exist_ok=True)
                if not files.write(self._path, made, seal, go_on):
                    _log.info("an index snapshot was given up for want of time")
                    return 0
                self.revision = captured.revision
        except (OSError, StoreError) as error:
            _log.warning("an index snapshot could not be written: %s", error)
            return 0
        _log.info(
            "index snapshot written: revision %d, %d vectors, %d deleted",
            captured.revision,
            made.manifest.live,
            made.manifest.count - made.manifest.live,
        )
        return captured.revision

    def _snapshot(
        self,
        captured: Captured,
        space: EmbedderIdentity,
        recorded_at: int,
        recall: list[list[float]],
    ) -> Snapshot:
        state = captured.state
        manifest = Manifest(
            namespace=self._partition.namespace,
            tenant=self._partition.tenant,
            space=_space(space),
            dimension=state.dimension,
            live=int(captured.ids.any(axis=1).sum()),
            count=state.count,
            revision=captured.revision,
            recorded_at=recorded_at,
            hnswlib=_HNSWLIB,
            max_level=state.max_level,
            entry=state.entry,
            layout=state.layout,
            upper_bytes=state.upper.nbytes,
            recall=recall,
        )
        return Snapshot(manifest, captured.ids, state)

    def load(self, space: EmbedderIdentity) -> Snapshot | None:
        """Return the snapshot, if there is one that this partition may have made."""

        def accept(told: Manifest) -> None:
            if [told.namespace, told.tenant] != [*self._names]:
                raise SnapshotUnusable("it is of another partition")
            if told.space != _space(space) or told.dimension != space.dimension:
                raise SnapshotUnusable("it is of another embedder")
            if told.hnswlib != _HNSWLIB:
                raise SnapshotUnusable(f"hnswlib {told.hnswlib} made it, this is {_HNSWLIB}")
            if told.revision < max(self._oldest, 1):
                raise SnapshotUnusable("it is older than an erasure")
            if told.recorded_at != self._recorded_at(told.revision):
                raise SnapshotUnusable("its revision is not one of this store, or not kept")

        try:
            with self._lock:
                layout = layout_of(space.dimension, M, EF_CONSTRUCTION)
                found = files.read(self._path, layout, self._opener(), accept)
                self.revision = found.manifest.revision if found is not None else 0
                return found
        except SnapshotUnusable as error:
            self.refused(str(error))
        except StoreError as error:
            self.refused(f"its revision can't be looked up: {error}")
        return None

    def refused(self, why: str) -> None:
        """Say that a snapshot is not used."""
        self.revision = 0
        _log.warning("an index snapshot is not used, and the index built anew: %s", why)

    def changed_since(self, revision: int, ids_max: int) -> set[bytes]:
        """Return the ids of all memories changed after a revision.

        Raises:
            SnapshotUnusable: they are more than ``ids_max``, or the feed does not say.
        """
        changed: set[bytes] = set()
        while True:
            try:
                page = self._store.changes(self._partition, revision, limit=_FEED_STEP)
            except HistoryGone:
                raise SnapshotUnusable("the feed no longer says what changed since") from None
            except StoreError as error:
                raise SnapshotUnusable(f"what changed since can't be read: {error}") from None
            for change in page.changes:
                changed.update(
                    key[1:_MEMORY_ID_END] for key, _ in change.keys if key[:1] in _FAMILIES
                )
                revision = change.revision
            if len(changed) > ids_max:
                raise SnapshotUnusable("too much has changed since")
            if not page.changes or revision >= page.head_revision:
                return changed

    @property
    def _names(self) -> tuple[str, str]:
        return self._partition.namespace, self._partition.tenant

    def _recorded_at(self, revision: int) -> int | None:
        """Return when a revision was recorded; None: it isn't there, or not kept any more."""
        head = self._store.head(self._partition)
        if head.revision == revision:
            return head.recorded_at
        if head.revision < revision:
            return None
        try:
            page = self._store.changes(self._partition, revision - 1, limit=1)
        except HistoryGone:
            return None
        return page.changes[0].recorded_at if page.changes else None

    def _sealing(self) -> AbstractContextManager[files.Seal | None]:
        if isinstance(self._store, FileSeals):
            return self._store.sealing(self._partition, OWNER)
        return nullcontext()

    def _opener(self) -> files.Open | None:
        store = self._store
        if not isinstance(store, FileSeals):
            return None
        return lambda data, place: store.open_part(self._partition, data, place)


class Captured:
    """A graph at a revision: every change up to it is in, some later ones may be.

    Attributes:
        state: The graph.
        ids: (count, 16): the memory of each node; zeros where there is none.
        revision: The revision.
    """

    __slots__ = ("ids", "revision", "state")

    def __init__(self, state: GraphState, ids: NDArray[np.uint8], revision: int) -> None:
        self.state = state
        self.ids = ids
        self.revision = revision


def _space(space: EmbedderIdentity) -> list[str]:
    return [space.name, space.version, space.fingerprint]
