"""Who made a vector: vectors of different makers are never compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """Names one embedding space: only vectors of the same space may be compared.

    Attributes:
        name: The model, for example ``multilingual-e5-small-q4``.
        version: Changes whenever the same text would get another vector.
        dimension: Components of a vector, at least 1.
        fingerprint: Hex digest of the weights or the configuration; ``""`` when unknown.
        unrelated_cosine: The typical cosine of a query and a passage that have nothing in common,
            the floor from which ranking counts; 0.0 when nobody measured it. It describes the
            space and does not name it, so measuring it again must not orphan stored vectors:
            compare with `same_space`.
    """

    name: str
    version: str
    dimension: int
    fingerprint: str
    unrelated_cosine: float

    def same_space(self, other: EmbedderIdentity) -> bool:
        """Whether vectors of the two may be compared with each other."""
        return (self.name, self.version, self.dimension, self.fingerprint) == (
            other.name,
            other.version,
            other.dimension,
            other.fingerprint,
        )
