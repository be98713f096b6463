"""The keyring file's bytes. Pure.

    header, 2048 bytes      magic(8) format(u16) blob length(u16) reserved(4) generation(u64)
                            keyring id(16) reserved(24), the keyring's own key as the master key
                            wrapped it, zeros, MAC(16)
    record, 128 bytes each  kind(u8) count(u8) reserved(2) key id(8) partition tag(16) owner tag(16)
                            made at(u64 us) wrapped key(60) MAC(16)
    of kind DESTROYED       kind(u8) count(u8) reserved(2) reserved(8) partition tag(16),
                            up to 10 key ids(8), zeros, MAC(16)

Numbers are big-endian. A record never lies across two sectors of a disk, so a write that a power
cut tore leaves each record whole, all zeros, or beyond the end of the file.

A MAC covers the generation and the record's place too: records can't be taken out of the middle,
put in another order, or carried over from an older file. Each rewriting raises the generation.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from pillion_storage.errors import KeyringUnusable, NewerFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pillion.domain.scope import Partition

FORMAT: Final = 1
MAGIC: Final = b"PILLKEYS"
HEADER_BYTES: Final = 2048
RECORD_BYTES: Final = 128
BODY_BYTES: Final = 112
MAC_BYTES: Final = 16
ID_BYTES: Final = 8
TAG_BYTES: Final = 16
KEY_BYTES: Final = 32
BLOB_BYTES_MAX: Final = 1536
_HEADER: Final = struct.Struct(">8sHH4xQ16s24x")
_RECORD: Final = struct.Struct(">BBxx8s16s16sQ60s")
_PLACE: Final = struct.Struct(">QQ")
_NONCE_BYTES: Final = 12
_BOUND_BYTES: Final = 52  # of a record: what the wrapped key is bound to
_IDS_AT: Final = 28
_IDS_MAX: Final = 10
NO_OWNER: Final = bytes(TAG_BYTES)


class Kind(IntEnum):
    """What a record holds. Never renumbered."""

    DATA = 1  # a data key
    SECRET = 2  # a partition's secret, for keyed hashes
    DESTROYED = 3  # ids of keys that were destroyed
    SEALED = 4  # the store was marked as sealed with this keyring; holds no key


@dataclass(frozen=True, slots=True)
class Header:
    """The head of the file."""

    generation: int
    keyring_id: bytes
    blob: bytes


class KeyRecord(NamedTuple):
    """A wrapped key."""

    kind: int
    key_id: bytes
    partition: bytes
    owner: bytes
    made_us: int
    wrapped: bytes


class RingKeys:
    """The keyring's own key, and what is derived from it."""

    def __init__(self, own: bytes, keyring_id: bytes) -> None:
        self.own = own
        self._keyring_id = keyring_id
        self._wrapping = AESGCM(_derive(own, b"pillion keyring wrap 1" + keyring_id))
        self._mac = hashlib.blake2b(
            key=_derive(own, b"pillion keyring mac 1" + keyring_id), digest_size=MAC_BYTES
        )

    def mac(self, data: bytes) -> bytes:
        """Authenticate bytes."""
        state = self._mac.copy()
        state.update(data)
        return state.digest()

    def wrapped(self, bare: KeyRecord, key: bytes, nonce: bytes) -> KeyRecord:
        """Give the record with a key in it."""
        sealed = self._wrapping.encrypt(nonce, key, self._bound(bare))
        return bare._replace(wrapped=nonce + sealed)

    def unwrapped(self, record: KeyRecord) -> bytes:
        """Give the key in a record.

        Raises:
            KeyringUnusable: it isn't what was wrapped.
        """
        nonce, sealed = record.wrapped[:_NONCE_BYTES], record.wrapped[_NONCE_BYTES:]
        try:
            return self._wrapping.decrypt(nonce, sealed, self._bound(record))
        except InvalidTag:
            raise KeyringUnusable(f"key {record.key_id.hex()} of the keyring is damaged") from None

    def _bound(self, record: KeyRecord) -> bytes:
        return pack_record(record)[:_BOUND_BYTES] + self._keyring_id


def _derive(own: bytes, info: bytes) -> bytes:
    return HKDFExpand(algorithm=SHA256(), length=KEY_BYTES, info=info).derive(own)


def pack_header(header: Header, keys: RingKeys) -> bytes:
    """Encode the header."""
    fixed = _HEADER.pack(MAGIC, FORMAT, len(header.blob), header.generation, header.keyring_id)
    content = (fixed + header.blob).ljust(HEADER_BYTES - MAC_BYTES, b"\0")
    return content + keys.mac(content)


def unpack_header(data: bytes) -> Header:
    """Decode the header; its MAC is checked by ``check_header``, once there is a key.

    Raises:
        KeyringUnusable: it is no keyring, or is cut short.
        NewerFormat: a newer version wrote it.
    """
    if len(data) < HEADER_BYTES or data[: len(MAGIC)] != MAGIC:
        raise KeyringUnusable("the keyring is no keyring, or is cut short; restore it from a copy")
    _, found, length, generation, keyring_id = _HEADER.unpack_from(data)
    if found > FORMAT:
        raise NewerFormat(found, FORMAT)
    if found < 1 or length > BLOB_BYTES_MAX:
        raise KeyringUnusable("the keyring's header is damaged; restore it from a copy")
    return Header(generation, keyring_id, data[_HEADER.size : _HEADER.size + length])


def check_header(data: bytes, keys: RingKeys) -> None:
    """Refuse a header that was changed.

    Raises:
        KeyringUnusable: its MAC is wrong.
    """
    content = data[: HEADER_BYTES - MAC_BYTES]
    if keys.mac(content) != data[HEADER_BYTES - MAC_BYTES : HEADER_BYTES]:
        raise KeyringUnusable("the keyring's header is damaged; restore it from a copy")


def pack_record(record: KeyRecord) -> bytes:
    """Encode a record without its MAC."""
    return _RECORD.pack(
        record.kind,
        1,
        record.key_id,
        record.partition,
        record.owner,
        record.made_us,
        record.wrapped,
    )


def unpack_record(body: bytes) -> KeyRecord:
    """Decode a record of another kind than DESTROYED."""
    kind, _, key_id, partition, owner, made_us, wrapped = _RECORD.unpack(body)
    return KeyRecord(kind, key_id, partition, owner, made_us, wrapped)


def partition_of(body: bytes) -> bytes:
    """Give the partition's tag of any record."""
    return body[12:_IDS_AT]


def partition_tag(keyring_id: bytes, partition: Partition) -> bytes:
    """Give what stands for a partition: not secret, as its names in the data aren't."""
    namespace = partition.namespace.encode()
    return hashlib.blake2b(
        len(namespace).to_bytes(2, "big") + namespace + partition.tenant.encode(),
        key=keyring_id,
        digest_size=TAG_BYTES,
    ).digest()


def owner_tag(keyring_id: bytes, partition: bytes, owner: bytes) -> bytes:
    """Give what stands for an owner in the partition of a tag."""
    if not owner:
        return NO_OWNER
    return hashlib.blake2b(partition + owner, key=keyring_id, digest_size=TAG_BYTES).digest()


def pack_destroyed(partition: bytes, key_ids: Iterable[bytes]) -> Iterator[bytes]:
    """Encode the ids of a partition's destroyed keys, as many records as it takes."""
    ids = sorted(key_ids)
    for first in range(0, len(ids), _IDS_MAX):
        some = ids[first : first + _IDS_MAX]
        head = bytes((Kind.DESTROYED, len(some), 0, 0)) + bytes(ID_BYTES) + partition
        yield (head + b"".join(some)).ljust(BODY_BYTES, b"\0")


def unpack_destroyed(body: bytes) -> list[bytes]:
    """Decode the ids of destroyed keys."""
    end = _IDS_AT + body[1] * ID_BYTES
    return [body[at : at + ID_BYTES] for at in range(_IDS_AT, end, ID_BYTES)]


def sealed_records(
    bodies: Iterable[bytes], keys: RingKeys, generation: int, first_place: int
) -> bytes:
    """Put the MACs behind records that go to these places."""
    return b"".join(
        body + keys.mac(_PLACE.pack(generation, place) + body)
        for place, body in enumerate(bodies, first_place)
    )


def read_records(data: bytes, keys: RingKeys, generation: int) -> tuple[list[bytes], int]:
    """Give the bodies of the records after the header, and where the sound part ends.

    What an unfinished write left at the end, all zeros or less than a record, is passed over: no
    value was sealed with it.

    Raises:
        KeyringUnusable: a record is damaged.
    """
    bodies: list[bytes] = []
    mac: Callable[[bytes], bytes] = keys.mac
    pack = _PLACE.pack
    count = (len(data) - HEADER_BYTES) // RECORD_BYTES
    for place in range(count):
        at = HEADER_BYTES + place * RECORD_BYTES
        body = data[at : at + BODY_BYTES]
        if mac(pack(generation, place) + body) != data[at + BODY_BYTES : at + RECORD_BYTES]:
            if not any(data[at:]):
                return bodies, at
            raise KeyringUnusable(
                f"record {place} of the keyring is damaged; restore the newest copy of the file"
            )
        bodies.append(body)
    return bodies, HEADER_BYTES + count * RECORD_BYTES
