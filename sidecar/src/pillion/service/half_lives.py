"""The half-lives that a partition's registered attributes have in ranking.

They are read from the registry and not kept with the memories, so that registering an attribute
anew ranks the memories that are there anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage import registry_codec
from pillion_storage.keys import REGISTRATIONS, prefix_end

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import Partition


class HalfLives:
    """Half-lives of attributes. Immutable, and equal only to itself: profiles are kept by it.

    Attributes:
        columns: Microseconds by the attribute's hash in the ranker's columns.
    """

    __slots__ = ("_by_key", "columns")

    def __init__(self, by_key: Mapping[bytes, tuple[int, int]]) -> None:
        """Take (hash, microseconds) by the key of the registration."""
        self._by_key = by_key
        self.columns: Final = {column: float(span) for column, span in by_key.values()}

    def renewed(
        self, changed: Collection[bytes], found: Mapping[bytes, tuple[int, int]]
    ) -> HalfLives:
        """Return what holds after registrations changed, given what is found of them now."""
        kept = {key: one for key, one in self._by_key.items() if key not in changed}
        if not found and len(kept) == len(self._by_key):
            return self
        return HalfLives(kept | dict(found))


NO_HALF_LIVES: Final = HalfLives({})


def half_lives_at(store: Store, partition: Partition, keys: KeySpace, revision: int) -> HalfLives:
    """Return the half-lives that were registered at a revision.

    Raises:
        PillionError: CORRUPT.
    """
    found: dict[bytes, tuple[int, int]] = {}
    start: bytes | None = REGISTRATIONS
    while start is not None:
        page = store.scan(
            partition, start, prefix_end(REGISTRATIONS), limit=limits.ATTRIBUTES_MAX, at=revision
        )
        rows = {row.key: row.value for row in page.rows}
        found |= _found(store, partition, keys, rows, revision)
        start = page.next_start
    return HalfLives(found) if found else NO_HALF_LIVES


def after_changes(
    store: Store,
    partition: Partition,
    keys: KeySpace,
    known: HalfLives,
    changed: Collection[bytes],
) -> HalfLives:
    """Return the half-lives of now, given earlier ones and the registrations' keys since changed.

    Raises:
        PillionError: CORRUPT.
    """
    result = store.read(partition, changed)
    rows = {key: entry.value for key, entry in result.entries.items()}
    return known.renewed(changed, _found(store, partition, keys, rows, result.revision))


def _found(
    store: Store, partition: Partition, keys: KeySpace, rows: Mapping[bytes, bytes], revision: int
) -> dict[bytes, tuple[int, int]]:
    """Return (hash, microseconds) of those of some registrations that have a half-life."""
    places: dict[bytes, tuple[bytes, int]] = {}
    for key, value in rows.items():
        one = registry_codec.decode_registration(value)
        if one.latest:
            column = keys.column("attribute", one.attribute)
            places[keys.schema(one.attribute, one.latest)] = (key, column)
    schemas = store.read(partition, list(places), at=revision).entries if places else {}
    if len(schemas) < len(places):
        raise PillionError(Reason.CORRUPT, "a registered schema is missing")
    found = {}
    for place, entry in schemas.items():
        half_life = registry_codec.decode_half_life(entry.value)
        if half_life is not None:
            key, column = places[place]
            found[key] = (column, half_life)
    return found
