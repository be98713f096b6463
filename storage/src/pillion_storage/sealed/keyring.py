"""The data keys of a store: made, lent, destroyed.

Invariants:

* Whoever gets a key to seal with gets it after it is on disk. Those who need new keys at the same
  time share one flush.
* A key that was destroyed is destroyed for good: ``destroy`` returns after a file without it is on
  disk, no value is being committed under it, and no thread gets it from memory again.
* A key's id is random and never used twice. An id is live, or known to be destroyed, or unknown;
  unknown means that the keyring is older than the data, and is an error, never "absent".
* ``_lock`` guards what is in memory, ``Holdings`` too; ``_file_lock`` the file, and is taken first.

Data keys are unwrapped when they are first used, and a bounded number of them is kept.
"""

from __future__ import annotations

import os
import secrets
import threading
from typing import TYPE_CHECKING, Final

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pillion_storage.errors import Corrupt, MasterKeyUnusable, StoreForked
from pillion_storage.sealed import layout
from pillion_storage.sealed.ciphers import CIPHERS_MAX, Ciphers
from pillion_storage.sealed.holdings import Holdings
from pillion_storage.sealed.keyfile import KeyFile
from pillion_storage.sealed.layout import NO_OWNER, Header, KeyRecord, Kind, RingKeys
from pillion_storage.sealed.leases import Append, Lease

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    from pillion.domain.scope import Partition

    from pillion_storage.sealed.master import MasterKeys

# Values sealed under one key by one process before the owner gets a new one.
SEALS_MAX: Final = 1 << 30
_CONTEXT: Final = b"pillion keyring "
_NONCE_BYTES: Final = 12
_NO_KEY: Final = bytes(60)


class Keyring:
    """The keyring of one store, open and locked. Safe to share between threads."""

    def __init__(
        self,
        directory: Path,
        master: MasterKeys,
        *,
        clock_us: Callable[[], int],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
        secret_bytes: Callable[[int], bytes] = secrets.token_bytes,
        ciphers_max: int = CIPHERS_MAX,
        seals_max: int = SEALS_MAX,
    ) -> None:
        """Lock the directory. Then either ``load`` or ``create`` it.

        Raises:
            StoreLocked: another process has it.
            KeyringUnusable: the directory can't be used.
        """
        self._master = master
        self._clock_us = clock_us
        self._random = random_bytes
        self._secret_bytes = secret_bytes
        self._seals_max = seals_max
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._file_lock = threading.Lock()
        self._held = Holdings()
        self._unsynced: dict[bytes, Append] = {}
        self._collecting: Append | None = None
        self._leases: dict[bytes, int] = {}
        self._seals: dict[bytes, int] = {}
        self._ciphers = Ciphers(ciphers_max)
        self._pid = os.getpid()
        self.store_is_sealed = False
        self._header = Header(0, b"", b"")
        self._file = KeyFile(directory)

    # --- opening ---------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._file.path

    @property
    def generation(self) -> int:
        """How often the file was rewritten. It rises with each key that is destroyed."""
        return self._header.generation

    def create(self) -> None:
        """Make an empty keyring.

        Raises:
            MasterKeyUnusable: there is no master key and none can be made.
            StoreFull, StoreFailed: the file can't be written.
        """
        keyring_id, own = self._random(layout.TAG_BYTES), self._random(layout.KEY_BYTES)
        header = Header(1, keyring_id, self._wrap_own(self._master, own, keyring_id))
        keys = RingKeys(own, keyring_id)
        self._file.rewrite(header, [], keys)
        self._header, self._keys = header, keys

    def load(self) -> None:
        """Read the file and check it. Writes nothing before all of it is found sound.

        Raises:
            MasterKeyUnusable: the master key is missing or the wrong one.
            KeyringUnusable: the file is damaged.
            NewerFormat: a newer version wrote it.
        """
        data = self._file.read()
        header = layout.unpack_header(data)
        own = self._master.unwrap(header.blob, _CONTEXT + header.keyring_id)
        if len(own) != layout.KEY_BYTES:
            raise MasterKeyUnusable(f"{self._master.name} gave no key of 32 bytes for the keyring")
        keys = RingKeys(own, header.keyring_id)
        layout.check_header(data, keys)
        bodies, end = layout.read_records(data, keys, header.generation)
        self._header, self._keys = header, keys
        for body in bodies:
            self._held.take_in(body)
        self.store_is_sealed = self._held.store_was_marked
        self._file.adopt(header, end)

    @staticmethod
    def _wrap_own(master: MasterKeys, own: bytes, keyring_id: bytes) -> bytes:
        blob = master.wrap(own, _CONTEXT + keyring_id)
        if len(blob) > layout.BLOB_BYTES_MAX:
            raise MasterKeyUnusable(
                f"{master.name} made {len(blob)} bytes of the keyring's key; "
                f"{layout.BLOB_BYTES_MAX} fit"
            )
        return blob

    def close(self) -> None:
        """Close the file and forget every key. Repeated calls do nothing."""
        with self._file_lock, self._lock:
            self._file.close()
            self._ciphers.clear()

    # --- tags ------------------------------------------------------------------------------

    def partition_tag(self, partition: Partition) -> bytes:
        """Give what stands for a partition here; see ``layout.partition_tag``."""
        return layout.partition_tag(self._header.keyring_id, partition)

    def owner_tag(self, partition_tag: bytes, owner: bytes) -> bytes:
        """Give what stands for an owner here; without one, for the partition itself."""
        return layout.owner_tag(self._header.keyring_id, partition_tag, owner)

    # --- lending ---------------------------------------------------------------------------

    def lease(self, partition_tag: bytes, owner_tags: Collection[bytes], seals: int) -> Lease:
        """Give the keys to seal with, made where there are none. On disk when this returns.

        A partition that was never sealed for gets its secret too.

        Args:
            partition_tag: The partition.
            owner_tags: The owners; ``NO_OWNER`` is the partition itself.
            seals: How many values will be sealed, at most, with each of the keys.

        Raises:
            StoreFull, StoreFailed: a new key can't be written.
        """
        with self._lock:
            wanted = {tag: self._ready(partition_tag, tag, seals) for tag in owner_tags}
            if partition_tag not in self._held.secrets:
                self._make(Kind.SECRET, partition_tag, NO_OWNER)
            appends = self._appends_of([*wanted.values(), self._held.secrets[partition_tag]])
            for key_id in wanted.values():
                self._leases[key_id] = self._leases.get(key_id, 0) + 1
        try:
            self._await(appends)
            keys = {tag: (key_id, self._live(key_id)) for tag, key_id in wanted.items()}
        except BaseException:
            self._release(wanted.values())
            raise
        return Lease(keys, lambda: self._release(wanted.values()))

    def _ready(self, partition_tag: bytes, owner_tag: bytes, seals: int) -> bytes:
        """Give the id of the key to seal with now; a worn one is succeeded by a new one."""
        key_id = self._held.active.get(partition_tag + owner_tag)
        if key_id is not None:
            sealed = self._seals.get(key_id, 0) + seals
            if sealed <= self._seals_max:
                self._seals[key_id] = sealed
                return key_id
            self._seals.pop(key_id, None)
        key_id = self._make(Kind.DATA, partition_tag, owner_tag)
        self._seals[key_id] = seals
        return key_id

    def _make(self, kind: Kind, partition_tag: bytes, owner_tag: bytes) -> bytes:
        """Make a key, to be written with the next append."""
        key_id = self._random(layout.ID_BYTES)
        while key_id in self._held.records or key_id in self._held.gone:
            key_id = self._random(layout.ID_BYTES)
        bare = KeyRecord(kind, key_id, partition_tag, owner_tag, self._clock_us(), _NO_KEY)
        draw = self._secret_bytes if kind is Kind.SECRET else self._random
        key = draw(layout.KEY_BYTES)
        record = self._keys.wrapped(bare, key, self._random(_NONCE_BYTES))
        if self._collecting is None:
            self._collecting = Append()
        self._collecting.records.append(record)
        self._unsynced[key_id] = self._collecting
        self._held.add(record)
        return key_id

    def _appends_of(self, key_ids: Iterable[bytes]) -> list[Append]:
        appends = []
        for key_id in key_ids:
            append = self._unsynced.get(key_id)
            if append is not None and append not in appends:
                appends.append(append)
        return appends

    def _await(self, appends: Sequence[Append]) -> None:
        """Return when these are on disk. Who gets the file first writes for all who wait."""
        for append in appends:
            if not append.done:
                with self._file_lock:
                    if not append.done:
                        self._write(append)
            if append.error is not None:
                raise append.error

    def _write(self, append: Append) -> None:
        self._check_process()
        with self._lock:
            if self._collecting is append:
                self._collecting = None
            bodies = [self._held.records[record.key_id] for record in append.records]
        try:
            self._file.append(bodies, self._keys)
        except Exception as error:
            with self._lock:
                self._settle(append, error)
            raise
        with self._lock:
            self._settle(append, None)

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreForked("this keyring was opened before a fork; open it in the child")

    def _settle(self, append: Append, error: Exception | None) -> None:
        for record in append.records:
            self._unsynced.pop(record.key_id, None)
            if error is not None:
                self._held.drop(record.key_id)
                self._seals.pop(record.key_id, None)
        append.error = error
        append.done = True

    def _release(self, key_ids: Iterable[bytes]) -> None:
        with self._lock:
            for key_id in key_ids:
                left = self._leases[key_id] - 1
                if left:
                    self._leases[key_id] = left
                else:
                    del self._leases[key_id]
            self._idle.notify_all()

    # --- opening values --------------------------------------------------------------------

    def cipher(self, key_id: bytes) -> AESGCM | None:
        """Give the key of an id; None: it was destroyed.

        Raises:
            Corrupt: there never was such a key in this keyring.
        """
        cipher = self._ciphers.young(key_id)
        return cipher if cipher is not None else self._fetch(key_id)

    def data_key(self, key_id: bytes) -> bytes | None:
        """Give the bare key of an id, to open many values with at once; None: it was destroyed.

        It is the caller's to forget as soon as these are open.

        Raises:
            Corrupt: there never was such a key in this keyring.
        """
        with self._lock:
            body, keys = self._held.records.get(key_id), self._keys
        if body is not None:
            return keys.unwrapped(layout.unpack_record(body))
        if key_id in self._held.gone:
            return None
        raise Corrupt(
            f"key {key_id.hex()}",
            "not in the keyring, which is damaged or older than the data: restore its newest copy",
        )

    def _fetch(self, key_id: bytes) -> AESGCM | None:
        cipher = self._ciphers.old(key_id)
        if cipher is None:
            key = self.data_key(key_id)
            if key is None:
                return None
            cipher = AESGCM(key)
        with self._lock:
            if key_id not in self._held.records:  # destroyed just now
                return None
            self._ciphers.keep(key_id, cipher)
        return cipher

    def _live(self, key_id: bytes) -> AESGCM:
        cipher = self.cipher(key_id)
        if cipher is None:
            raise AssertionError("a leased key is not destroyed")
        return cipher

    def has_destroyed(self, partition_tag: bytes) -> bool:
        """Say whether a key of this partition was ever destroyed."""
        return partition_tag in self._held.destroyed

    def is_destroyed(self, key_id: bytes) -> bool:
        """Say whether this key was destroyed."""
        return key_id in self._held.gone

    # --- secrets ---------------------------------------------------------------------------

    def secret(self, partition_tag: bytes) -> bytes | None:
        """Give a partition's secret, once it is on disk; None: it has none here."""
        with self._lock:
            key_id = self._held.secrets.get(partition_tag)
            if key_id is None:
                return None
            body, keys = self._held.records[key_id], self._keys
            appends = self._appends_of([key_id])
        self._await(appends)
        return keys.unwrapped(layout.unpack_record(body))

    def make_secret(self, partition_tag: bytes) -> bytes:
        """Give a partition's secret, made if there is none. On disk when this returns."""
        with self._lock:
            if partition_tag not in self._held.secrets:
                self._make(Kind.SECRET, partition_tag, NO_OWNER)
        secret = self.secret(partition_tag)
        if secret is None:
            raise AssertionError("a secret stays")
        return secret

    def mark_sealed(self) -> None:
        """Remember that the store was marked as sealed with this keyring. On disk on return."""
        with self._lock:
            key_id = self._make(Kind.SEALED, NO_OWNER, NO_OWNER)
            appends = self._appends_of([key_id])
        self._await(appends)
        self.store_is_sealed = True

    # --- destroying ------------------------------------------------------------------------

    def keys_of(self, partition_tag: bytes, owner_tag: bytes | None) -> list[bytes]:
        """Give the ids of all keys of an owner, or (None) of a whole partition. Linear."""
        with self._lock:
            return self._held.keys_of(partition_tag, owner_tag)

    def owners_of(self, key_ids: Collection[bytes]) -> dict[bytes, bytes]:
        """Give the owners' tags of those of these keys that exist, by the key's id."""
        with self._lock:
            return {
                key_id: layout.unpack_record(self._held.records[key_id]).owner
                for key_id in key_ids
                if key_id in self._held.records
            }

    def destroyed_on_disk(self, key_ids: Collection[bytes]) -> bool:
        """Read the file again, and say whether it holds none of these keys and names all as gone.

        Raises:
            KeyringUnusable: what is on disk does not check.
            OSError: it can't be read.
        """
        with self._file_lock:
            data = self.path.read_bytes()
            keys = self._keys
        header = layout.unpack_header(data)
        layout.check_header(data, keys)
        bodies, _ = layout.read_records(data, keys, header.generation)
        found = Holdings()
        for body in bodies:
            found.take_in(body)
        wanted = set(key_ids)
        return not wanted & found.records.keys() and wanted <= found.gone

    def retire(self, partition_tag: bytes, owner_tag: bytes) -> list[bytes]:
        """Give the ids of an owner's keys, none of which will seal another value.

        The next value gets a new key. Returns once the commits under way with the old ones are
        through: what is sealed with them is then all that ever will be. A stop forgets a
        retirement unless a new key was made meanwhile.
        """
        with self._lock:
            self._held.active.pop(partition_tag + owner_tag, None)
        ids = self.keys_of(partition_tag, owner_tag)
        with self._lock:
            # A key made by a writer in between is the successor, and is in use already.
            successor = self._held.active.get(partition_tag + owner_tag)
            ids = [key_id for key_id in ids if key_id != successor]
            self._idle.wait_for(lambda: not any(key_id in self._leases for key_id in ids))
        return ids

    def bury(self, partition_tag: bytes, key_ids: Collection[bytes]) -> None:
        """Note ids as destroyed that this keyring may never have known. On disk on return.

        For keys that an erasure destroyed after this keyring was copied: no value that was sealed
        with one of them is missed then, or taken for damage.
        """
        self.destroy(key_ids)
        with self._file_lock, self._lock:
            unknown = set(key_ids) - self._held.gone
            if not unknown:
                return
            gone = {tag: set(ids) for tag, ids in self._held.destroyed.items()}
            gone.setdefault(partition_tag, set()).update(unknown)
            self._rewrite(self._header.blob, self._held.records, gone, self._keys)
            self._held.destroyed = gone
            self._held.gone.update(unknown)

    def destroy(self, key_ids: Collection[bytes]) -> int:
        """Destroy keys for good; return how many there were. On disk when this returns.

        Waits for the commits under way with them. Ids that are destroyed already count 0.

        Raises:
            StoreFull, StoreFailed: the file can't be rewritten; the keys are still there.
        """
        with self._lock:
            doomed = {
                key_id: layout.unpack_record(self._held.records[key_id])
                for key_id in key_ids
                if key_id in self._held.records
            }
            for key_id, record in doomed.items():
                place = record.partition + record.owner
                if self._held.active.get(place) == key_id:
                    del self._held.active[place]
            self._idle.wait_for(lambda: not any(key_id in self._leases for key_id in doomed))
        if not doomed:
            return 0
        with self._file_lock, self._lock:
            doomed = {
                key_id: record for key_id, record in doomed.items() if key_id in self._held.records
            }
            gone = {tag: set(ids) for tag, ids in self._held.destroyed.items()}
            for key_id, record in doomed.items():
                gone.setdefault(record.partition, set()).add(key_id)
            kept = {
                key_id: body for key_id, body in self._held.records.items() if key_id not in doomed
            }
            try:
                self._rewrite(self._header.blob, kept, gone, self._keys)
            except BaseException:
                for key_id, record in doomed.items():
                    self._held.active.setdefault(record.partition + record.owner, key_id)
                raise
            self._held.records, self._held.destroyed = kept, gone
            self._held.gone.update(doomed)
            for key_id in doomed:
                self._ciphers.drop(key_id)
                self._seals.pop(key_id, None)
        return len(doomed)

    def rotate(self, master: MasterKeys) -> None:
        """Wrap every key anew, under another master key. Reads and writes go on.

        Only with the new master key can the file then be opened. A stop at any point leaves the
        file as it was or wholly rotated.

        Raises:
            MasterKeyUnusable, StoreFull, StoreFailed: nothing changed.
        """
        own = self._random(layout.KEY_BYTES)
        blob = self._wrap_own(master, own, self._header.keyring_id)
        keys = RingKeys(own, self._header.keyring_id)
        with self._file_lock, self._lock:
            rewrapped = {}
            for key_id, body in self._held.records.items():
                record = layout.unpack_record(body)
                key = self._keys.unwrapped(record)
                again = keys.wrapped(record, key, self._random(_NONCE_BYTES))
                rewrapped[key_id] = layout.pack_record(again)
            self._rewrite(blob, rewrapped, self._held.destroyed, keys)
            self._held.records, self._keys, self._master = rewrapped, keys, master

    def _rewrite(
        self,
        blob: bytes,
        records: dict[bytes, bytes],
        destroyed: dict[bytes, set[bytes]],
        keys: RingKeys,
    ) -> None:
        """Write a new file with all of these, and with what waited for an append."""
        self._check_process()
        header = Header(self._header.generation + 1, self._header.keyring_id, blob)
        bodies = list(records.values())
        for tag, ids in destroyed.items():
            bodies.extend(layout.pack_destroyed(tag, ids))
        self._file.rewrite(header, bodies, keys)
        self._header = header
        for append in list(self._unsynced.values()):
            self._settle(append, None)
        self._collecting = None
