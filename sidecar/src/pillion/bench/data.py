"""What a load runs over: made from a seed, the same for every server that is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pillion_client import AddMemory, Client, Partition, PutFact, Source
from pillion_client.preconditions import unconditional

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMESPACE: Final = "bench"
DIMENSION: Final = 384
TOP_K: Final = 10
QUERIES: Final = 512
VALUES: Final = 97  # a fact's value goes through as many

_TEXT: Final = "Mira said on day {0} that the report for account {0} is due on Friday at noon."
_MEMORIES_OF_OTHERS: Final = 10
_KEYS_OF_OTHERS: Final = 5
_SOURCE: Final = Source("tool_result")

Vectors = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class Data:
    """How much there is.

    Attributes:
        memories: Memories with a vector, of the first tenant.
        keys: Facts of the first tenant.
        tenants: How many tenants there are; all but the first are small.
    """

    memories: int = 10_000
    keys: int = 1_000
    tenants: int = 1

    def memories_of(self, tenant: int) -> int:
        """Return how many memories a tenant has."""
        return self.memories if tenant == 0 else _MEMORIES_OF_OTHERS

    def keys_of(self, tenant: int) -> int:
        """Return how many facts a tenant has."""
        return self.keys if tenant == 0 else _KEYS_OF_OTHERS


def tenant_name(tenant: int) -> str:
    """Return what a tenant is called."""
    return f"tenant-{tenant}"


def subject_of(key: int) -> str:
    """Return whom a fact is about."""
    return f"user:person-{key}"


def clustered(count: int, dimension: int, *, seed: int) -> Vectors:
    """Return unit vectors (count, dimension) that cluster as texts do: never plain Gaussian noise.

    300 clusters, and within each a low-dimensional structure of 24 directions plus little noise.
    """
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(300, dimension))
    basis = rng.normal(size=(24, dimension))
    rows = centres[rng.integers(0, len(centres), count)]
    rows = rows + 0.5 * rng.normal(size=(count, 24)) @ basis / np.sqrt(24) * 2
    rows = rows + 0.1 * rng.normal(size=(count, dimension))
    vectors: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return vectors


def queries() -> Vectors:
    """Return the vectors that are searched with, (QUERIES, DIMENSION)."""
    return clustered(QUERIES, DIMENSION, seed=2)


def fill(target: str, data: Data) -> None:
    """Put the data into a server.

    Raises:
        RuntimeError: The server refused some of it.
    """
    vectors = clustered(data.memories, DIMENSION, seed=1)
    for tenant in range(data.tenants):
        partition = Partition(NAMESPACE, tenant_name(tenant))
        with Client(target, partition=partition) as client:
            for ack in client.import_(_items(data, tenant, vectors)):
                if ack.rejections:
                    raise RuntimeError(f"the server refused a memory: {ack.rejections[0]}")


def _items(data: Data, tenant: int, vectors: Vectors) -> Iterator[AddMemory | PutFact]:
    for i in range(data.memories_of(tenant)):
        yield AddMemory("user:mira", _TEXT.format(i), _SOURCE, vector=vectors[i])
    for i in range(data.keys_of(tenant)):
        yield PutFact(subject_of(i), "home city", f"City {i % VALUES}", _SOURCE, unconditional)
