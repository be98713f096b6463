"""Where a memory belongs: partition, subject, context, fact key. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAIN_CONTEXT: Final = ""
DEFAULT_NAME: Final = "default"


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One (namespace, tenant): the unit of storage keys, indexes, quotas and encryption."""

    namespace: str
    tenant: str


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """Whom or what a memory is about, for example ``user`` + ``mira``."""

    type: str
    id: str

    def __str__(self) -> str:
        return f"{self.type}:{self.id}"


@dataclass(frozen=True, slots=True, order=True)
class FactKey:
    """The key of a fact within a partition: at any instant it has at most one value.

    Of an attribute that is a set, each member has a timeline of its own: ``member`` is the
    fingerprint of its value. Empty: the key as a whole, or the one value of another attribute.
    """

    subject: Subject
    context: str
    attribute: str
    member: bytes = b""
