"""One sealed value: its bytes, and what they are bound to. Pure, but for the nonce.

    magic(4) key id(8) nonce(12) ciphertext tag(16)

The value is AES-256-GCM under a data key. Bound to it as associated data are the envelope's head,
the store (by the keyring's id), the partition, what the value is (a value, a memo, a note) and
its key, so a value that strays to another place does not open there.

The first byte of the magic is the envelope's version: 1 is the plain envelope of ``codec``. As a
little-endian float32 the magic is NaN, which no stored vector begins with. So in a store that was
plain once, what is sealed and what is not are told apart by these four bytes.

A memo may belong to several owners. It is sealed once for each, one seal around the other; all
but the innermost have version 3. It opens only while all of their keys exist.

Nonces are random. Two of n values under one key share one with a probability of about n^2 / 2^97:
2^-33 at 2^32 values, the bound of NIST SP 800-38D, section 8.3. The keyring makes a new key for an
owner after 2^30 values sealed in one process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag

from pillion_storage.errors import Corrupt

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC: Final = b"\x02S\xff\xff"
MAGIC_OUTER: Final = b"\x03S\xff\xff"
MAGIC_BYTES: Final = 4
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
HEAD_BYTES: Final = MAGIC_BYTES + KEY_ID_BYTES
_BODY_AT: Final = HEAD_BYTES + NONCE_BYTES
OVERHEAD_BYTES: Final = _BODY_AT + TAG_BYTES
# Owners of one memo; a commit of more seals it for the partition.
LAYERS_MAX: Final = 16
# Parts of one file, for the count of what a key sealed: 64 GiB of parts of 1 MiB.
PARTS_MAX: Final = 1 << 16


# What a sealed value is: part of what it is bound to, so these never change.
VALUE: Final = b"v"
MEMO: Final = b"m"
NOTE: Final = b"n"
FILE: Final = b"f"  # a part of a file beside the store


def is_sealed(data: bytes) -> bool:
    """Say whether these bytes are an envelope of this kind, sound or not."""
    return data[:MAGIC_BYTES] == MAGIC or data[:MAGIC_BYTES] == MAGIC_OUTER


def key_id_of(data: bytes) -> bytes:
    """Give the id of the key that an envelope was sealed with."""
    return data[MAGIC_BYTES:HEAD_BYTES]


def seal(
    cipher: AESGCM,
    key_id: bytes,
    plain: bytes | memoryview,
    place: bytes,
    *,
    outer: bool = False,
) -> bytes:
    """Seal a value for its place: its kind, the partition's tag and its key, one after another."""
    head = (MAGIC_OUTER if outer else MAGIC) + key_id
    nonce = os.urandom(NONCE_BYTES)
    return head + nonce + cipher.encrypt(nonce, plain, head + place)


def open_sealed(cipher: AESGCM, data: bytes, place: bytes) -> bytes:
    """Give the value of an envelope.

    Raises:
        Corrupt: it was changed, cut, or belongs to another place or key.
    """
    try:
        return cipher.decrypt(data[HEAD_BYTES:_BODY_AT], data[_BODY_AT:], data[:HEAD_BYTES] + place)
    except (InvalidTag, ValueError):  # the latter: it is too short to hold a nonce
        raise Corrupt(
            describe(place), "the sealed value was changed, or was sealed for another place"
        ) from None


_KEY_AT: Final = 1 + 16  # of a place: past the kind and the partition's tag


def describe(place: bytes) -> str:
    """Name a value for people: keys hold hashes, never content."""
    names = {VALUE: "value of key", MEMO: "memo of token", NOTE: "note", FILE: "part of file"}
    what = names[place[:1]]
    return f"{what} {place[_KEY_AT:].hex()}".strip()
