"""What a registered attribute means. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pillion.domain.mutations import ConflictPolicy


class Cardinality(IntEnum):
    """How many values a key may have at one instant. Numbers as in the contract."""

    ONE = 1
    SET = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributeSchema:
    """One version of a registered attribute.

    Attributes:
        attribute: Its name.
        json_schema: The JSON Schema of its values (draft 2020-12), in canonical form.
        subject_types: Types of subject that may have it; empty: any.
        cardinality: How many values at one instant.
        half_life: Its half-life in ranking, microseconds; None: that of its kind.
        retention_class: Of new values; empty: the partition's default.
        pii_labels: Kinds of personal data in its values.
        conflict_policy: For statements that name none; None: REJECT.
        schema_version: 1, 2, 3 ...
        registered_at: When, in microseconds since the epoch.
        version: The revision that registered it; 0 while that is being written.
    """

    attribute: str
    json_schema: str
    subject_types: tuple[str, ...] = ()
    cardinality: Cardinality = Cardinality.ONE
    half_life: int | None = None
    retention_class: str = ""
    pii_labels: tuple[str, ...] = ()
    conflict_policy: ConflictPolicy | None = None
    schema_version: int = 1
    registered_at: int = 0
    version: int = 0
