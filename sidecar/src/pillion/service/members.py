"""Whether a fact key names a member exactly where its attribute is a set.

The latest registration decides, also about reads of the past: the number of values of a key does
not change once it has rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion_storage import registry_codec

from pillion.domain.errors import PillionError
from pillion.service.catalogue import current_schema

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey
    from pillion.service.draft import Draft


def is_set(draft: Draft, keys: KeySpace, attribute: str) -> bool:
    """Return whether a draft sees an attribute registered as a set; its commit depends on it."""
    data = draft.get(keys.registration(attribute))
    registration = registry_codec.decode_registration(data) if data is not None else None
    schema = current_schema(draft, keys, registration)
    return schema is not None and schema.is_set


def check_member(
    draft: Draft, keys: KeySpace, field: str, fact: FactKey, *, whole: bool = False
) -> None:
    """Refuse a member of what is no set, and a set without one.

    Args:
        draft: As of when; the newest, for reads.
        keys: The partition's key space.
        field: Where the key stands in the request.
        fact: The key.
        whole: Whether the call can speak of a set as a whole.

    Raises:
        PillionError: INVALID_FIELD at the key's ``member``.
    """
    if not fact.member and whole:
        return
    of_set = is_set(draft, keys, fact.attribute)
    if of_set and not fact.member:
        raise PillionError.of_field(
            f"{field}.member",
            "the attribute is a set: name the member by its value, or List with the attribute "
            "for all of them",
        )
    if fact.member and not of_set:
        raise PillionError.of_field(
            f"{field}.member",
            "the attribute is not registered as a set: leave it out",
        )
