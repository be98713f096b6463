"""How the type registry becomes bytes and back, in the envelope of ``codec``."""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, Final

from pillion.domain.mutations import ConflictPolicy
from pillion.domain.schemas import AttributeSchema, Cardinality, Registration

from pillion_storage import codec
from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from pillion_storage.codec import Fields

DIGEST_BYTES: Final = 16
_COMPRESSION: Final = 6
# Far above what the contract lets in; a damaged length cannot take all memory.
_SCHEMA_BYTES_MAX: Final = 1 << 20
_MISSHAPEN: Final = (KeyError, ValueError, TypeError, IndexError, AttributeError, zlib.error)


def digest_of(record: bytes) -> bytes:
    """Return what tells one version of a schema from another."""
    return hashlib.blake2b(record, digest_size=DIGEST_BYTES).digest()


def encode_schema(schema: AttributeSchema) -> bytes:
    """Return one version of a registered attribute as stored. ``version`` is the store's."""
    fields: Fields = {
        1: schema.attribute,
        2: zlib.compress(schema.json_schema.encode(), _COMPRESSION),
        3: list(schema.subject_types),
        4: int(schema.cardinality),
        5: schema.half_life,
        6: schema.retention_class,
        7: list(schema.pii_labels),
        8: int(schema.conflict_policy) if schema.conflict_policy is not None else None,
        9: schema.schema_version,
        10: schema.registered_at,
    }
    return codec.pack({k: v for k, v in fields.items() if v is not None and v not in ("", [])})


def decode_schema(data: bytes, version: int) -> AttributeSchema:
    """Return a stored version of a registered attribute.

    Raises:
        Corrupt: It cannot be read as one.
    """
    fields: Fields = codec.unpack(data)
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(fields[2], _SCHEMA_BYTES_MAX)
        if not unpacker.eof:
            raise Corrupt("attribute schema", "its text ends early")
        policy = fields.get(8)
        return AttributeSchema(
            attribute=fields[1],
            json_schema=text.decode(),
            subject_types=tuple(fields.get(3, ())),
            cardinality=Cardinality(fields[4]),
            half_life=fields.get(5),
            retention_class=fields.get(6, ""),
            pii_labels=tuple(fields.get(7, ())),
            conflict_policy=ConflictPolicy(policy) if policy is not None else None,
            schema_version=fields[9],
            registered_at=fields[10],
            version=version,
        )
    except _MISSHAPEN as error:
        raise Corrupt("attribute schema", type(error).__name__) from error


def decode_half_life(data: bytes) -> int | None:
    """Return the half-life of a stored version, microseconds, without reading the rest of it.

    Raises:
        Corrupt: It cannot be read as one.
    """
    fields: Fields = codec.unpack(data)
    half_life = fields.get(5)
    if half_life is not None and (not isinstance(half_life, int) or half_life <= 0):
        raise Corrupt("attribute schema", "its half-life is none")
    return half_life


def encode_registration(registration: Registration) -> bytes:
    """Return where a registration stands, as stored."""
    fields: Fields = {1: registration.attribute, 2: registration.latest, 3: registration.digest}
    if registration.proposed:
        fields |= {
            4: registration.proposed,
            5: registration.proposed_digest,
            6: registration.proposed_until,
        }
    if registration.migration:
        fields[7] = registration.migration
    if registration.vouched:
        fields[8] = True
    if registration.proposed_vouched:
        fields[9] = True
    return codec.pack(fields)


def decode_registration(data: bytes) -> Registration:
    """Return where a registration stands.

    Raises:
        Corrupt: It cannot be read as that.
    """
    fields: Fields = codec.unpack(data)
    try:
        return Registration(
            attribute=fields[1],
            latest=fields[2],
            digest=fields[3],
            proposed=fields.get(4, 0),
            proposed_digest=fields.get(5, b""),
            proposed_until=fields.get(6, 0),
            migration=fields.get(7, b""),
            vouched=fields.get(8, False),
            proposed_vouched=fields.get(9, False),
        )
    except _MISSHAPEN as error:
        raise Corrupt("registration", type(error).__name__) from error
