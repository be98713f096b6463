"""What a keyring holds, in memory."""

from __future__ import annotations

from pillion_storage.errors import KeyringUnusable
from pillion_storage.sealed import layout
from pillion_storage.sealed.layout import KeyRecord, Kind


class Holdings:
    """The records of a keyring and what finds them. The keyring's lock guards it.

    Attributes:
        records: Each live key's record as bytes, by the key's id.
        active: The id of the newest key, by partition's and owner's tag.
        secrets: The id of a partition's secret, by its tag.
        destroyed: The destroyed ids, by the partition's tag.
        gone: All destroyed ids.
        store_was_marked: Whether there is a record that the store was marked as sealed.
    """

    def __init__(self) -> None:
        self.records: dict[bytes, bytes] = {}
        self.active: dict[bytes, bytes] = {}
        self.secrets: dict[bytes, bytes] = {}
        self.destroyed: dict[bytes, set[bytes]] = {}
        self.gone: set[bytes] = set()
        self.store_was_marked = False

    def take_in(self, body: bytes) -> None:
        """Take in a record that was read, later ones after earlier ones.

        Raises:
            KeyringUnusable: its kind is unknown.
        """
        if body[0] == Kind.DESTROYED:
            ids = layout.unpack_destroyed(body)
            self.destroyed.setdefault(layout.partition_of(body), set()).update(ids)
            self.gone.update(ids)
            return
        record = layout.unpack_record(body)
        self.records[record.key_id] = body
        if not self._find_by(record):
            raise KeyringUnusable(f"the keyring holds a record of an unknown kind, {body[0]}")

    def add(self, record: KeyRecord) -> None:
        """Add the record of a new key."""
        self.records[record.key_id] = layout.pack_record(record)
        self._find_by(record)

    def _find_by(self, record: KeyRecord) -> bool:
        if record.kind == Kind.DATA:
            self.active[record.partition + record.owner] = record.key_id
        elif record.kind == Kind.SECRET:
            self.secrets[record.partition] = record.key_id
        elif record.kind == Kind.SEALED:
            self.store_was_marked = True
        else:
            return False
        return True

    def drop(self, key_id: bytes) -> None:
        """Take out a key that did not get to disk."""
        record = layout.unpack_record(self.records.pop(key_id))
        place = record.partition + record.owner
        if self.active.get(place) == key_id:
            del self.active[place]
        if self.secrets.get(record.partition) == key_id:
            del self.secrets[record.partition]

    def keys_of(self, partition_tag: bytes, owner_tag: bytes | None) -> list[bytes]:
        """Give the ids of all data keys of an owner, or (None) of a whole partition. Linear."""
        return [
            key_id
            for key_id, body in self.records.items()
            if body[0] == Kind.DATA
            and layout.partition_of(body) == partition_tag
            and (owner_tag is None or layout.unpack_record(body).owner == owner_tag)
        ]
