"""Several searches of the present as one read of one revision.

Each of several searches may see a newer revision than the one before. After them the change feed is
read: where nothing that matters changed since the first revision, all of them saw, of what
matters, the state of that revision. Otherwise they are made again, and after a few times that
revision is read as a past one, which is slower and which nothing can disturb.

What a word weighs follows from every memory of the partition, so a write about another subject may
change the order that a search by words gives. That alone makes nothing be read again: where many
write, every such read would end as one of the past, which goes through the whole partition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from pillion_storage import codec
from pillion_storage.api import HistoryGone
from pillion_storage.keys import EMBEDDER_KEY, REGISTRATIONS, id_of

from pillion.domain.errors import PillionError, Reason
from pillion.domain.queries import ReadAt
from pillion.service.recorded import moment_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pillion_storage.api import Store

    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.recorded import Moment

    # What is read, given what it is to see and how searches are to be asked for that; and which
    # memories it would have looked at.
    Read = Callable[[Moment, ReadAt], tuple["FoundT", Callable[[Memory], bool]]]

FoundT = TypeVar("FoundT")

# Reads of the present before the revision is read as a past one.
TRIES_MAX: Final = 3
# Commits since the revision that are looked through; more of them count as a disturbance.
FEED_STEP: Final = 64


def at_one_revision(
    store: Store,
    partition: Partition,
    read_at: ReadAt,
    clock: Clock,
    deadline: Deadline,
    *,
    read: Read[FoundT],
) -> tuple[Moment, FoundT]:
    """Return what ``read`` finds, all of it of the revision of the moment beside it.

    Raises:
        PillionError: as in `moment_of`, and what ``read`` raises.
    """
    moment = moment_of(store, partition, read_at, clock, deadline)
    if read_at.asks_for_the_past:
        return moment, read(moment, read_at)[0]
    for _ in range(TRIES_MAX):
        try:
            found, matters = read(moment, replace(read_at, as_of=moment.as_of))
        except PillionError as error:
            # A search gives up on memories that change under it all the time; the past holds still.
            if error.reason is not Reason.OVERLOADED:
                raise
            break
        if not _changed_since(store, partition, moment.revision, matters):
            return moment, found
        moment = moment_of(store, partition, read_at, clock, deadline)
    past = ReadAt(exact_revision=moment.revision, as_of=moment.as_of)
    return moment, read(moment, past)[0]


def _changed_since(
    store: Store, partition: Partition, revision: int, matters: Callable[[Memory], bool]
) -> bool:
    """Return whether anything that matters may have changed after a revision."""
    head = store.head(partition).revision
    if head == revision:
        return False
    try:
        page = store.changes(partition, revision, limit=FEED_STEP)
    except HistoryGone:
        return True
    if not page.changes or page.changes[-1].revision < head:
        return True
    touched: set[bytes] = set()
    for change in page.changes:
        for key, _ in change.keys:
            if key == EMBEDDER_KEY or key[:1] == REGISTRATIONS:
                return True
            if key[:1] in (b"m", b"v"):
                touched.add(b"m" + key[1:])
    return any(
        matters(codec.decode_memory(id_of(key), entry.value, entry.version))
        for at in (revision, None)
        for key, entry in store.read(partition, touched, at=at).entries.items()
    )
