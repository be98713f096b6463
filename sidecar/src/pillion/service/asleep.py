"""Evidence asleep, as a change of the values of a timeline sees it.

What a retraction took from a row names the row's value: which evidence sleeps is said by value. So
where a row gets another value, what was taken from it has to follow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import INSTANT_BYTES, instant_of, prefix_end, taken_key

if TYPE_CHECKING:
    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Entry, Sleep
    from pillion.service.draft import Draft

SLEEPS_STEP: Final = 256


def sleeps_of(draft: Draft, keys: KeySpace, key: FactKey) -> dict[bytes, list[Sleep]]:
    """Return which evidence of a timeline sleeps, by the fingerprint of its value."""
    found: dict[bytes, list[Sleep]] = {}
    start = keys.sleep(key, 0)[:-INSTANT_BYTES]
    for place, data in draft.scan(start, prefix_end(start), step=SLEEPS_STEP):
        sleep = codec.decode_sleep(instant_of(place[-INSTANT_BYTES:]), data)
        found.setdefault(sleep.fingerprint, []).append(sleep)
    return found


def taken_follows(draft: Draft, keys: KeySpace, key: FactKey, row: Entry, new: bytes) -> bool:
    """Let what was taken from a row follow it to a value with another fingerprint.

    Args:
        draft: The commit in the making.
        keys: Of the partition.
        key: Of the timeline.
        row: The row's entry, with its old value.
        new: The fingerprint of its new value.

    Returns:
        Whether anything is taken from the row.
    """
    data = draft.get(taken_key(row.memory_id))
    if data is None:
        return False
    taken = codec.decode_taken(data)
    place = keys.sleep(key, taken.epoch)
    asleep = draft.get(place)
    if asleep is None:
        return False
    sleep = codec.decode_sleep(taken.epoch, asleep)
    if sleep.fingerprint != row.fingerprint:
        return False
    owner = keys.subject(key.subject)
    draft.put(place, codec.encode_sleep(replace(sleep, fingerprint=new)), owner=owner)
    moved = replace(taken, row=replace(taken.row, fingerprint=new))
    draft.put(taken_key(row.memory_id), codec.encode_taken(moved), owner=owner)
    return True
