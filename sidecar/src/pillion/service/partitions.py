"""What every use case needs of a partition: its key space and secrets, looked up once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from pillion_storage.keys import KeySpace

from pillion.domain.field_checks import check_partition

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.scope import Partition

# The secret of partitions that hold nothing: whatever is looked up under it is not there.
_NOTHING_TO_HIDE: Final = bytes(32)


class KeySpaces:
    """The key spaces of the partitions in use. Safe to share between threads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._spaces: dict[Partition, KeySpace] = {}

    def of(self, partition: Partition) -> KeySpace:
        """Return a partition's key space, to write to it.

        The first use of a partition writes its secret; a partition that was only ever asked for
        thus exists, empty. Reads use ``at``.
        """
        found = self._spaces.get(partition)
        if found is not None:
            return found
        check_partition(partition)
        space = KeySpace(self._store.partition_secret(partition))
        with self._lock:
            return self._spaces.setdefault(partition, space)

    def let_go(self, partition: Partition) -> None:
        """Forget the names of a partition whose hashes are kept."""
        found = self._spaces.get(partition)
        if found is not None:
            found.forget_names()

    def known(self, partition: Partition) -> KeySpace | None:
        """Return the key space of a partition that was used before, None for another one."""
        return self._spaces.get(partition)

    def at(self, partition: Partition, revision: int) -> KeySpace:
        """Return a partition's key space, to read it at a revision of its past or its head.

        Nothing is written, and of a partition at revision 0 nothing is kept either: its key space
        is then a made-up one, good for finding nothing.
        """
        if revision > 0 or partition in self._spaces:
            return self.of(partition)
        check_partition(partition)
        return KeySpace(_NOTHING_TO_HIDE)
