"""Where a memory belongs: partition, subject, context. Pure values."""

from __future__ import annotations

from dataclasses import dataclass


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
