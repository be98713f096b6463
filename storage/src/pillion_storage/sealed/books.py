"""What a store remembers of its sealing, in a partition that callers never see.

``marker`` is there from the moment on at which the store counts as sealed: a store that has it is
not opened without its keyring. Its value is the lowest generation of the keyring that fits: an
older file would bring destroyed keys back. ``plain`` rows name the partitions that were there
before, with the revision up to which values in them may be in plain.

The partition is sealed like any other, so that its rows can't be made up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage.api import KEY_SPACE_END, Batch
from pillion_storage.errors import Corrupt, KeyringUnusable
from pillion_storage.sealed.reading import BOOKS
from pillion_storage.sealed.store import SealedStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pillion_storage.api import Store
    from pillion_storage.sealed.keyring import Keyring

MARKER: Final = b"marker"
PLAIN: Final = b"plain"
_NUMBER_BYTES: Final = 8
_ROWS_MAX: Final = 1000


def is_marked(store: Store) -> bool:
    """Say whether a bare store, read without a keyring, was sealed before."""
    page = store.scan(BOOKS, MARKER, MARKER + b"\0", limit=1, keys_only=True)
    return bool(page.rows)


def refuse_sealed(store: Store) -> None:
    """Refuse to go on without encryption in a store that has it.

    Raises:
        KeyringUnusable: it was sealed before.
    """
    if is_marked(store):
        raise KeyringUnusable(
            "the values of this store are encrypted: it can't be opened with encryption off; turn "
            "it on, or export and import into a new directory"
        )


class Books:
    """The records of one store's sealing."""

    def __init__(self, inner: Store, keyring: Keyring) -> None:
        self._inner = inner
        self._keyring = keyring
        self._sealed = SealedStore(inner, keyring, None, {})
        self.commits = 0  # made since the store was opened

    def check(self) -> Mapping[bytes, int]:
        """Compare marker and keyring; mark a store that has no marker yet.

        Returns:
            The tags of partitions that may hold plain values, with the last such revision.

        Raises:
            KeyringUnusable: they don't belong together, or the keyring is older than the data.
        """
        keyring = self._keyring
        if not is_marked(self._inner):
            if keyring.store_is_sealed:
                raise KeyringUnusable(
                    f"the keyring {keyring.path} belongs to other data than what lies here: "
                    "restore that data, or move the keyring away to begin with a new one"
                )
            self._mark()
        generation = self._generation()
        if keyring.generation < generation:
            raise KeyringUnusable(
                f"the keyring {keyring.path} is older than the data: keys that were destroyed "
                "since would be back; restore its newest copy"
            )
        if keyring.generation > generation:
            self.note_generation()
        if not keyring.store_is_sealed:
            keyring.mark_sealed()
        return self._plain_partitions()

    def note_generation(self) -> None:
        """Remember the keyring's generation: an older file is refused from now on."""
        self._put({MARKER: _number_bytes(self._keyring.generation)})

    def _generation(self) -> int:
        try:
            found = self._sealed.read(BOOKS, [MARKER]).entries.get(MARKER)
        except Corrupt as error:
            raise KeyringUnusable(
                f"the keyring {self._keyring.path} is not the one of this store, or is older than "
                f"its data: restore its newest copy ({error.record})"
            ) from error
        return 0 if found is None else int.from_bytes(found.value)

    def _plain_partitions(self) -> dict[bytes, int]:
        found = {}
        start: bytes | None = PLAIN
        while start is not None:
            page = self._sealed.scan(BOOKS, start, KEY_SPACE_END, limit=_ROWS_MAX)
            for row in page.rows:
                found[row.key[len(PLAIN) :]] = int.from_bytes(row.value)
            start = page.next_start
        return found

    def _mark(self) -> None:
        """Note which partitions are plain so far, then that the store is sealed from now on."""
        rows: dict[bytes, bytes] = {}
        for partition in self._inner.partitions():
            if partition == BOOKS:
                continue
            tag = self._keyring.partition_tag(partition)
            rows[PLAIN + tag] = _number_bytes(self._inner.head(partition).revision)
            if len(rows) == _ROWS_MAX:
                self._put(rows)
                rows = {}
        self._put({**rows, MARKER: _number_bytes(self._keyring.generation)})

    def _put(self, rows: dict[bytes, bytes]) -> None:
        self._sealed.commit(BOOKS, Batch(puts=rows))
        self.commits += 1


def _number_bytes(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
