"""Evidence asleep: what a retraction took with a row, and what becomes of it meanwhile.

It stays in its place in the timeline, and one record says which evidence of which value sleeps.
Where something else takes its place, it is *displaced*: kept under the retraction that took it,
so that a restore has all of it. As that record goes by value, what was taken from a row has to
follow where the row gets another value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import INSTANT_BYTES, instant_of, prefix_end, taken_key

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import TIMELINE_WALK_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from pillion_storage.keys import KeySpace

    from pillion.domain.scope import FactKey
    from pillion.domain.segments import Entry, Sleep
    from pillion.service.draft import Draft

SLEEPS_STEP: Final = 256


def sleeps_between(
    draft: Draft, keys: KeySpace, key: FactKey, since: int, newest: int
) -> list[Sleep]:
    """Return what the retractions of [since, newest) took from a timeline, the first one first."""
    start, end = (keys.sleep(key, one) for one in (since, newest))
    return [
        codec.decode_sleep(instant_of(place[-INSTANT_BYTES:]), data)
        for place, data in draft.scan(start, end, step=SLEEPS_STEP)
    ]


def first_that_holds(sleeps: Iterable[Sleep], evidence: Entry) -> Sleep | None:
    """Return which of these took some evidence: the first, for later ones found it asleep."""
    return next((one for one in sleeps if one.holds(evidence)), None)


def sleeps_of(draft: Draft, keys: KeySpace, key: FactKey) -> dict[bytes, list[Sleep]]:
    """Return which evidence of a timeline sleeps, by the fingerprint of its value."""
    found: dict[bytes, list[Sleep]] = {}
    start = keys.sleep(key, 0)[:-INSTANT_BYTES]
    for place, data in draft.scan(start, prefix_end(start), step=SLEEPS_STEP):
        sleep = codec.decode_sleep(instant_of(place[-INSTANT_BYTES:]), data)
        found.setdefault(sleep.fingerprint, []).append(sleep)
    return found


def displace(draft: Draft, keys: KeySpace, key: FactKey, instant: int, newest: int) -> None:
    """Keep the evidence asleep at an instant, if there is any, before something takes its place.

    Args:
        draft: The commit in the making.
        keys: Of the partition.
        key: Of the timeline.
        instant: Whose place is about to be taken.
        newest: How many retractions the timeline has seen.
    """
    if newest == codec.FIRST_EPOCH:
        return  # nothing was ever retracted, so nothing sleeps
    data = draft.get(keys.entry(key, instant))
    if data is None:
        return
    entry = codec.decode_entry(instant, data)
    if not entry.is_evidence:
        return
    took = first_that_holds(sleeps_between(draft, keys, key, entry.epoch, newest), entry)
    if took is not None:
        place = keys.displaced(key, took.until, instant)
        draft.put(place, data, owner=keys.subject(key.subject))


def displaced(draft: Draft, keys: KeySpace, key: FactKey, epoch: int) -> dict[Entry, bytes]:
    """Return the evidence out of its place that a retraction took, with what is stored of each.

    Raises:
        PillionError: LIMIT_EXCEEDED when it is more than one restore takes.
    """
    found: dict[Entry, bytes] = {}
    prefix = keys.displaced_range(key, epoch)
    for place, data in draft.scan(prefix, prefix_end(prefix)):
        if len(found) >= TIMELINE_WALK_MAX:
            raise PillionError(
                Reason.LIMIT_EXCEEDED,
                f"more than {TIMELINE_WALK_MAX} statements of this key were stated anew since",
            )
        found[codec.decode_entry(instant_of(place[-INSTANT_BYTES:]), data)] = data
    return found


def displaced_from(
    draft: Draft, keys: KeySpace, key: FactKey, row_id: UUID
) -> list[tuple[bytes, bytes]]:
    """Return the displaced evidence that the last retraction of a row took, with its keys."""
    data = draft.get(taken_key(row_id))
    if data is None:
        return []
    prefix = keys.displaced_range(key, codec.decode_taken(data).epoch)
    return list(draft.scan(prefix, prefix_end(prefix)))


def put_back(
    draft: Draft, keys: KeySpace, key: FactKey, epoch: int, found: dict[Entry, bytes]
) -> None:
    """Put displaced evidence in its place again where that is free, and let go of the rest."""
    for entry, data in found.items():
        draft.delete(keys.displaced(key, epoch, entry.valid_from))
        place = keys.entry(key, entry.valid_from)
        if draft.get(place) is None:
            draft.put(place, data, owner=keys.subject(key.subject))


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
    sleep = taken_from(draft, keys, key, row)
    data = draft.get(taken_key(row.memory_id))
    if sleep is None or data is None:
        return False
    owner = keys.subject(key.subject)
    place = keys.sleep(key, sleep.until)
    draft.put(place, codec.encode_sleep(replace(sleep, fingerprint=new)), owner=owner)
    taken = codec.decode_taken(data)
    moved = replace(taken, row=replace(taken.row, fingerprint=new))
    draft.put(taken_key(row.memory_id), codec.encode_taken(moved), owner=owner)
    return True


def taken_from(draft: Draft, keys: KeySpace, key: FactKey, row: Entry) -> Sleep | None:
    """Return which evidence the last retraction of a row took, if it has the row's value still."""
    data = draft.get(taken_key(row.memory_id))
    if data is None:
        return None
    epoch = codec.decode_taken(data).epoch
    asleep = draft.get(keys.sleep(key, epoch))
    if asleep is None:
        return None
    sleep = codec.decode_sleep(epoch, asleep)
    return sleep if sleep.fingerprint == row.fingerprint else None
