"""Where each record lives: the key layout within a partition.

Keys never carry personal data: subjects, contexts and attributes go in as keyed hashes under the
partition's secret. A key is one family byte and fixed-width parts, so ranges are prefixes:

    family  key after the family byte               value
    a       name                                    a setting of the partition
    b       attribute(16) memory id(16)             empty: every fact of an attribute
    c       created(8) memory id(16)                empty: memories by creation
    d       source id(16) derived id(16)            empty: what came from a source
    e       episode id(16)                          an episode
    f       about(16) memory id(16)                 empty: every row a key ever had, its guesses,
                                                    and named statements that became no row
    g       attribute(16)                           where an attribute's registration stands
    h       fact(16)                                the head of a fact's timeline, or of a set's
    i       timeline(16) epoch(8) valid from(8)     evidence that the retraction after an epoch
                                                    took, and in whose place something else stands
    j       attribute(16) schema version(4)         one version of a registered attribute
    k       recorded(8) episode id(16)              empty: episodes by capture
    l       memory id(16)                           how often a memory was used, and when last
    m       memory id(16)                           a memory
    o       operation id(16)                        long work: what it is to do and has done
    n       about(16) claim(16)                     the open candidate that makes a claim
    p       what(1) id or subject(16)               a legal hold
    q       memory id(16)                           a vector that is still to be made
    r       e erasure id(16)                        an erasure under way, or its receipt
    r       p erasure id(16) number(4)              ids that go with it, until its end
    r       k erasure id(16) number(4)              keys that it deleted, until its end
    r       t tombstone(16)                         empty: a source that was erased
    s       subject(16) type(1) time(8) id(16)      empty: memories and episodes of a subject
    t       timeline(16) valid from(8)              one entry of a timeline
    u       operation id(16) more                   an operation's own notes, which go with it; of
                                                    a migration, until its end: memory id(16),
                                                    empty: a memory that it changed
    v       memory id(16)                           a vector
    w       timeline(16) epoch(8)                   evidence that a retraction took with its row
    x       memory id(16)                           a text whose vector cannot be made
    y       memory id(16)                           what a retraction took from a memory

``about`` is the hash of a fact key or, for an untyped candidate, of subject, context and kind.
``timeline`` is the hash of a fact key or, where its attribute is a set, of that and one member.
Instants are 8 bytes, big endian, with the sign bit flipped, so that byte order is time order.
"""

from __future__ import annotations

import hashlib
from enum import IntEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

if TYPE_CHECKING:
    from pillion.domain.scope import FactKey, Subject

HASH_BYTES: Final = 16
ID_BYTES: Final = 16
INSTANT_BYTES: Final = 8
_SIGN: Final = 1 << 63

# Hashes that are kept: contexts, kinds of source and the like come up in every search.
COLUMNS_KEPT_MAX: Final = 4096
# The same of fact keys, whose timelines an agent asks for again and again, and of their parts.
FACTS_KEPT_MAX: Final = 4096

SCHEMA_VERSION_BYTES: Final = 4
EMBEDDER_KEY: Final = b"aembedder"
# How far the index by attribute (``b``) reaches back: partitions of earlier versions lack it.
BY_ATTRIBUTE_KEY: Final = b"abyattribute"
REGISTRATIONS: Final = b"g"
OPERATIONS: Final = b"o"
ACCESSES: Final = b"l"
HOLDS: Final = b"p"
ERASURES: Final = b"re"
ERASURE_PLANS: Final = b"rp"
ERASURE_JOURNALS: Final = b"rk"


class SubjectRecord(IntEnum):
    """What a row of the subject index points at."""

    MEMORY = 1
    EPISODE = 2


def instant_bytes(instant: int) -> bytes:
    """Return an instant as 8 bytes whose order is the order of time."""
    return (instant + _SIGN).to_bytes(INSTANT_BYTES, "big")


def instant_of(data: bytes) -> int:
    """Return the instant of 8 bytes made by ``instant_bytes``."""
    return int.from_bytes(data, "big") - _SIGN


def after(key: bytes) -> bytes:
    """Return the smallest key greater than ``key``."""
    return key + b"\x00"


def prefix_end(prefix: bytes) -> bytes:
    """Return the end of the half-open range of all keys that begin with ``prefix``.

    The last byte must not be 0xff: every prefix here ends in a family byte or is followed by
    fixed-width parts, for which the next value of the whole prefix is taken.
    """
    number = int.from_bytes(prefix, "big") + 1
    if number.bit_length() > 8 * len(prefix):
        return prefix + b"\xff" * 64
    return number.to_bytes(len(prefix), "big")


def memory_key(memory_id: UUID) -> bytes:
    """Return the key of a memory."""
    return b"m" + memory_id.bytes


def episode_key(episode_id: UUID) -> bytes:
    """Return the key of an episode."""
    return b"e" + episode_id.bytes


def vector_key(memory_id: UUID) -> bytes:
    """Return the key of a memory's vector."""
    return b"v" + memory_id.bytes


def access_key(memory_id: UUID) -> bytes:
    """Return the key of how often a memory was used, and when last."""
    return ACCESSES + memory_id.bytes


def taken_key(memory_id: UUID) -> bytes:
    """Return the key of what a retraction took from a memory."""
    return b"y" + memory_id.bytes


def pending_key(memory_id: UUID) -> bytes:
    """Return the key that says that a memory's vector is still to be made."""
    return b"q" + memory_id.bytes


def operation_key(operation_id: UUID) -> bytes:
    """Return the key of an operation."""
    return OPERATIONS + operation_id.bytes


def operation_slot(verb: str) -> bytes:
    """Return the key that says which operation of a verb is at work, if only one may be."""
    return b"aoperation:" + verb.encode()


def undo_key(operation_id: UUID, memory_id: UUID) -> bytes:
    """Return the key that says that an operation changed a memory."""
    return undo_range(operation_id) + memory_id.bytes


def undo_range(operation_id: UUID) -> bytes:
    """Return the prefix of what an operation changed, and of its other notes."""
    return b"u" + operation_id.bytes


def hold_key(record_id: UUID) -> bytes:
    """Return the key of the legal hold on one memory or episode."""
    return HOLDS + b"i" + record_id.bytes


def erasure_key(erasure_id: UUID) -> bytes:
    """Return the key of an erasure."""
    return ERASURES + erasure_id.bytes


def plan_key(erasure_id: UUID, number: int) -> bytes:
    """Return the key of a part of an erasure's plan."""
    return ERASURE_PLANS + erasure_id.bytes + number.to_bytes(4, "big")


def journal_key(erasure_id: UUID, number: int) -> bytes:
    """Return the key of a part of what an erasure deleted."""
    return ERASURE_JOURNALS + erasure_id.bytes + number.to_bytes(4, "big")


def created_key(created_at: int, memory_id: UUID) -> bytes:
    """Return the key of a memory in the index by creation."""
    return b"c" + instant_bytes(created_at) + memory_id.bytes


def captured_key(recorded_at: int, episode_id: UUID) -> bytes:
    """Return the key of an episode in the index by capture."""
    return b"k" + instant_bytes(recorded_at) + episode_id.bytes


def derived_key(source_id: UUID, derived_id: UUID) -> bytes:
    """Return the key that says that one record came from another."""
    return derived_prefix(source_id) + derived_id.bytes


def derived_prefix(source_id: UUID) -> bytes:
    """Return the prefix of everything that came from a record."""
    return b"d" + source_id.bytes


def id_of(key: bytes) -> UUID:
    """Return the id that a key ends with."""
    return UUID(bytes=key[-ID_BYTES:])


class KeySpace:
    """The keys that hide names: hashes under one partition's secret."""

    __slots__ = ("_attributes", "_columns", "_facts", "_secret", "_subjects", "_timelines")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._columns: dict[tuple[str, ...], int] = {}
        self._facts: dict[FactKey, bytes] = {}
        self._timelines: dict[FactKey, bytes] = {}
        self._subjects: dict[Subject, bytes] = {}
        self._attributes: dict[str, bytes] = {}

    @property
    def secret(self) -> bytes:
        """The partition's secret, for those who hash many names at once."""
        return self._secret

    def forget_names(self) -> None:
        """Let go of the names whose hashes are kept."""
        for kept in (self._attributes, self._columns, self._facts, self._subjects, self._timelines):
            kept.clear()

    def _hash(self, *parts: str) -> bytes:
        digest = hashlib.blake2b(key=self._secret, digest_size=HASH_BYTES)
        for part in parts:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(4, "big"))
            digest.update(encoded)
        return digest.digest()

    def fact(self, key: FactKey) -> bytes:
        """Return the hash of a fact key as a whole, whatever member it names."""
        known = self._facts.get(key)
        if known is None:
            subject = key.subject
            known = self._hash("fact", subject.type, subject.id, key.context, key.attribute)
            if len(self._facts) >= FACTS_KEPT_MAX:
                self._facts.clear()
            self._facts[key] = known
        return known

    def timeline(self, key: FactKey) -> bytes:
        """Return the hash under which a timeline is kept: that of its key, or of a set's member."""
        if not key.member:
            return self.fact(key)
        known = self._timelines.get(key)
        if known is None:
            digest = hashlib.blake2b(key=self._secret, digest_size=HASH_BYTES)
            digest.update(b"member" + self.fact(key) + key.member)
            known = digest.digest()
            if len(self._timelines) >= FACTS_KEPT_MAX:
                self._timelines.clear()
            self._timelines[key] = known
        return known

    def subject(self, subject: Subject) -> bytes:
        """Return the hash of a subject."""
        known = self._subjects.get(subject)
        if known is None:
            known = self._hash("subject", subject.type, subject.id)
            if len(self._subjects) >= FACTS_KEPT_MAX:
                self._subjects.clear()
            self._subjects[subject] = known
        return known

    def hold(self, subject: Subject) -> bytes:
        """Return the key of the legal hold on everything about a subject."""
        return HOLDS + b"s" + self.subject(subject)

    def attribute(self, name: str) -> bytes:
        """Return the hash of an attribute."""
        known = self._attributes.get(name)
        if known is None:
            known = self._hash("attribute", name)
            if len(self._attributes) >= FACTS_KEPT_MAX:
                self._attributes.clear()
            self._attributes[name] = known
        return known

    def registration(self, name: str) -> bytes:
        """Return the key of an attribute's registration."""
        return REGISTRATIONS + self.attribute(name)

    def schema(self, name: str, schema_version: int) -> bytes:
        """Return the key of one version of a registered attribute."""
        return b"j" + self.attribute(name) + schema_version.to_bytes(SCHEMA_VERSION_BYTES, "big")

    def of_attribute(self, name: str, memory_id: UUID) -> bytes:
        """Return the key of a fact in the index by attribute."""
        return self.attribute_range(name) + memory_id.bytes

    def attribute_range(self, name: str) -> bytes:
        """Return the prefix of all facts of an attribute."""
        return b"b" + self.attribute(name)

    def column(self, *parts: str) -> int:
        """Return a 64-bit hash for the ranker's columns: a name, kept apart by its first part."""
        known = self._columns.get(parts)
        if known is None:
            known = int.from_bytes(self._hash("column", *parts)[:8], "big")
            if len(self._columns) >= COLUMNS_KEPT_MAX:
                self._columns.clear()
            self._columns[parts] = known
        return known

    def head(self, key: FactKey) -> bytes:
        """Return the key of a fact's head: one for the fact, also where it is a set."""
        return b"h" + self.fact(key)

    def row(self, key: FactKey, memory_id: UUID) -> bytes:
        """Return the key that says that a memory is, or once was, a row of a fact."""
        return b"f" + self.fact(key) + memory_id.bytes

    def rows(self, key: FactKey) -> bytes:
        """Return the prefix of all rows that a fact ever had."""
        return b"f" + self.fact(key)

    def claim(self, about: tuple[str, ...], *said: str) -> bytes:
        """Return the key that leads from what a candidate says to the candidate.

        Args:
            about: The names of what it is about; a fact's as `fact` hashes them.
            said: What it says of it.
        """
        return b"n" + self._hash(*about) + self._hash("claim", *said)

    def heard(self, about: tuple[str, ...], memory_id: UUID) -> bytes:
        """Return the key that says that an untyped candidate's statement was heard."""
        return b"f" + self._hash(*about) + memory_id.bytes

    def entry(self, key: FactKey, valid_from: int) -> bytes:
        """Return the key of one entry of a timeline."""
        return b"t" + self.timeline(key) + instant_bytes(valid_from)

    def entries(self, key: FactKey) -> bytes:
        """Return the prefix of a timeline's entries."""
        return b"t" + self.timeline(key)

    def sleep(self, key: FactKey, epoch: int) -> bytes:
        """Return the key of the evidence that the retraction after an epoch took."""
        return b"w" + self.timeline(key) + instant_bytes(epoch)

    def displaced(self, key: FactKey, epoch: int, valid_from: int) -> bytes:
        """Return the key of evidence that the retraction after an epoch took, out of its place."""
        return self.displaced_range(key, epoch) + instant_bytes(valid_from)

    def displaced_range(self, key: FactKey, epoch: int) -> bytes:
        """Return the prefix of the evidence out of its place that a retraction took."""
        return b"i" + self.timeline(key) + instant_bytes(epoch)

    def tombstone(self, *source: str) -> bytes:
        """Return the key that says that a source was erased."""
        return b"rt" + self._hash("erased", *source)

    def erased_id(self, record_id: UUID) -> bytes:
        """Return what stands for the id of an erased record outside of the store."""
        return self._hash("erased id", str(record_id))

    def erased_partition(self, namespace: str, tenant: str) -> bytes:
        """Return what stands for the partition outside of the store."""
        return self._hash("erased partition", namespace, tenant)

    def of_subject(
        self, subject: Subject, record: SubjectRecord, instant: int, record_id: UUID
    ) -> bytes:
        """Return the key of a record in the index by subject."""
        return self.subject_range(subject, record) + instant_bytes(instant) + record_id.bytes

    def subject_range(self, subject: Subject, record: SubjectRecord) -> bytes:
        """Return the prefix of a subject's memories or episodes."""
        return b"s" + self.subject(subject) + bytes([record])
