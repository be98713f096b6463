"""A read-through overlay on one revision of a partition: what a write wants the store to become.

A draft pins the revision of its first read, remembers the version of every record it read one by
one (so the commit fails if any of them changes meanwhile), and collects puts and deletes. Later
mutations of one Write see what earlier ones did. Nothing reaches the store before ``batch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage.api import Batch

from pillion.domain.errors import PillionError, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pillion_storage.api import Store, Token

    from pillion.domain.scope import Partition

# Rows that the first step of a lazy scan reads: timelines are mostly short. Each further step
# reads twice as many, up to this.
SCAN_STEP = 16
SCAN_STEP_MAX = 1024
# What a commit's token and memo take beside its records, at most.
TOKEN_ROOM_BYTES = 66_000


class Draft:
    """What one Write reads and wants written. Not shared between threads."""

    def __init__(self, store: Store, partition: Partition, revision: int | None = None) -> None:
        """Begin with nothing changed.

        Args:
            store: What is read.
            partition: Where.
            revision: Which one is read; None: the newest. A draft of an older one cannot be
                committed, since what it read has changed: it is good for reading.
        """
        self._store = store
        self.partition = partition
        self.revision = store.head(partition).revision if revision is None else revision
        self._read: dict[bytes, tuple[int, bytes | None]] = {}
        self._changed: dict[bytes, bytes | None] = {}
        self._owners: dict[bytes, bytes] = {}  # a key's owner is always the same
        self._journal: list[tuple[bytes, bool, bytes | None]] = []

    def preload(self, keys: Iterable[bytes]) -> None:
        """Read several records in one call, for those that are sure to be needed."""
        wanted = [key for key in keys if key not in self._read]
        if not wanted:
            return
        found = self._store.read(self.partition, wanted, at=self.revision).entries
        for key in wanted:
            entry = found.get(key)
            self._read[key] = (entry.version, entry.value) if entry is not None else (0, None)

    def get(self, key: bytes) -> bytes | None:
        """Return a record as this draft leaves it; the commit will depend on its version."""
        if key in self._changed:
            return self._changed[key]
        self.preload((key,))
        return self._read[key][1]

    def version(self, key: bytes) -> int:
        """Return the version that a record had before this draft; 0: it was absent."""
        self.preload((key,))
        return self._read[key][0]

    def before(self, key: bytes) -> bytes | None:
        """Return a record as it was before this draft; None: it was absent."""
        self.preload((key,))
        return self._read[key][1]

    def changed(self, key: bytes) -> bool:
        """Return whether this draft already changed the record."""
        return key in self._changed

    def put(self, key: bytes, value: bytes = b"", *, owner: bytes = b"") -> None:
        """Write a record.

        Args:
            key: Its key.
            value: What it holds.
            owner: The tag (``KeySpace.subject``) of the subject whose content that is; empty
                where it tells nothing of anybody.

        Raises:
            PillionError: LIMIT_EXCEEDED when the record as a whole is larger than the store takes.
        """
        size_max = self._store.features.value_bytes_max
        if len(value) > size_max:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                f"the record has {len(value)} bytes with all its fields; at most {size_max} fit: "
                "shorten its texts or lists",
            )
        self._note(key)
        self._changed[key] = value
        if owner:
            self._owners[key] = owner

    def delete(self, key: bytes) -> None:
        """Remove a record."""
        self._note(key)
        self._changed[key] = None

    def _note(self, key: bytes) -> None:
        self._journal.append((key, key in self._changed, self._changed.get(key)))

    def savepoint(self) -> int:
        """Return a mark for ``roll_back``."""
        return len(self._journal)

    def roll_back(self, mark: int) -> None:
        """Undo every put and delete since the mark. What was read stays read."""
        while len(self._journal) > mark:
            key, was_changed, value = self._journal.pop()
            if was_changed:
                self._changed[key] = value
            else:
                del self._changed[key]

    def scan(
        self, start: bytes, end: bytes, *, reverse: bool = False, step: int = SCAN_STEP
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records of [start, end) in key order, or in reverse, as this draft leaves them.

        Ranges are not part of what the commit depends on: the caller reads a head record that
        every writer of the range also writes. The store is asked for ``step`` records first.
        """
        own = sorted(
            (item for item in self._changed.items() if start <= item[0] < end), reverse=reverse
        )
        stored = self._stored(start, end, reverse=reverse, step=step)
        pending = next(stored, None)
        for key, value in own:
            while pending is not None and (pending[0] > key if reverse else pending[0] < key):
                yield pending
                pending = next(stored, None)
            if pending is not None and pending[0] == key:
                pending = next(stored, None)
            if value is not None:
                yield key, value
        while pending is not None:
            yield pending
            pending = next(stored, None)

    def _stored(
        self, start: bytes, end: bytes, *, reverse: bool, step: int
    ) -> Iterator[tuple[bytes, bytes]]:
        while True:
            page = self._store.scan(
                self.partition, start, end, limit=step, reverse=reverse, at=self.revision
            )
            for row in page.rows:
                yield row.key, row.value
            if page.next_start is None:
                return
            if reverse:
                end = page.next_start
            else:
                start = page.next_start
            step = max(step, min(2 * step, SCAN_STEP_MAX))

    def changes(self, family: bytes) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield what this draft puts (or, with None, deletes) in one family of keys."""
        for key, value in self._changed.items():
            if key[:1] == family:
                yield key, value

    @property
    def deleted(self) -> list[bytes]:
        """The keys that this draft deletes, whether or not they exist."""
        return [key for key, value in self._changed.items() if value is None]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be written."""
        return not self._changed

    @property
    def outgrown(self) -> bool:
        """Whether it is more than the store takes in one commit."""
        bounds = self._store.features
        size = sum(len(key) + len(value or b"") for key, value in self._changed.items())
        size += sum(len(key) for key in self._read)
        return (
            size + TOKEN_ROOM_BYTES > bounds.batch_bytes_max
            or len(self._changed) > bounds.batch_ops_max
            or len(self._read) > bounds.batch_ops_max
        )

    def batch(self, token: Token | None) -> Batch:
        """Return what the store is to commit, if every record read is still as it was.

        Raises:
            PillionError: LIMIT_EXCEEDED when it is more than one commit takes.
        """
        if self.outgrown:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                "this is more than one commit takes: spread it over several requests",
            )
        return Batch(
            puts={key: value for key, value in self._changed.items() if value is not None},
            deletes=[key for key, value in self._changed.items() if value is None],
            expect={key: version for key, (version, _) in self._read.items()},
            token=token,
            owners={
                key: owner
                for key, owner in self._owners.items()
                if self._changed.get(key) is not None
            },
        )
