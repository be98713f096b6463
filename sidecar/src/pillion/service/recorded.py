"""Which recorded state a read sees, and the instants that it judges by.

A read of the present sees the newest revision by the clock on the wall. A read of the past sees a
revision and judges everything that depends on time (which row of a fact holds, what has expired,
how recent a memory is) by the recorded instant that was asked about: the clock on the wall plays
no part in it, so the same question gets the same answer whenever it is asked.

The past reaches back as far as the store keeps both its history and its change feed, which is
where recorded times are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pillion_storage.api import FutureRevision, HistoryGone
from pillion_storage.keys import EMBEDDER_KEY

from pillion.domain.errors import PillionError, Reason
from pillion.domain.queries import PLAIN_READ
from pillion.domain.validation import check_read
from pillion.service.reading import wait_for_revision

if TYPE_CHECKING:
    from pillion_storage.api import Head, Store

    from pillion.domain.queries import ReadAt
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline


class Moment(NamedTuple):
    """What a read sees.

    ``now`` is the instant by which expiry and recency are judged, ``as_of`` the one of valid time.
    """

    revision: int
    now: int
    as_of: int


def moment_of(
    store: Store, partition: Partition, read: ReadAt, clock: Clock, deadline: Deadline
) -> Moment:
    """Return what a read sees, having waited for ``at_least_revision``.

    An instant before the first commit is revision 0, which holds nothing. One that is later than
    the newest commit, but not than the server's clock, is the newest revision.

    Raises:
        PillionError: INVALID_FIELD for malformed options. HISTORY_GONE when the state is no longer
            kept. FUTURE_REVISION when the revision is not reached yet, or the instant is later
            than the server's clock: that is out of range and not malformed, because the same
            question will be a good one in a while.
    """
    if read is not PLAIN_READ:
        check_read(read)
    wait_for_revision(store, partition, read.at_least_revision, deadline)
    if not read.asks_for_the_past:
        revision = store.head(partition).revision
        # After the revision is fixed: else a row that it holds could begin after this "now", and
        # the row before it would be returned with the version of the timeline that has both.
        now = clock.now_us()
        return Moment(revision, now, read.as_of if read.as_of is not None else now)
    try:
        revision, instant = _recorded(store, partition, read, clock)
        _touch(store, partition, revision)
    except HistoryGone as error:
        raise _gone(store, partition) from error
    except FutureRevision as error:
        raise _future(f"revision {error.asked} is not reached yet", error.head) from error
    return Moment(revision, instant, read.as_of if read.as_of is not None else instant)


def check_kept(store: Store, partition: Partition, revision: int) -> None:
    """Refuse to go on with a state that the store no longer keeps.

    Raises:
        PillionError: HISTORY_GONE.
    """
    try:
        _touch(store, partition, revision)
    except HistoryGone as error:
        raise _gone(store, partition) from error


def _recorded(store: Store, partition: Partition, read: ReadAt, clock: Clock) -> tuple[int, int]:
    """Return the revision that a read asks for, and its recorded instant."""
    head = store.head(partition)
    if read.exact_revision is not None:
        return read.exact_revision, _recorded_at(store, partition, head, read.exact_revision)
    instant = read.known_at
    if instant is None:
        raise AssertionError("a read of the past names a revision or an instant")
    # Recorded time never goes back, so a clock that was set back lies behind the newest commit.
    if instant > max(clock.now_us(), head.recorded_at):
        raise _future(
            "known_at is later than the server's clock: what will be known then is not known yet",
            head.revision,
        )
    return store.revision_at(partition, instant), instant


def _recorded_at(store: Store, partition: Partition, head: Head, revision: int) -> int:
    if revision > head.revision:
        raise FutureRevision(revision, head.revision)
    if revision == head.revision:
        return head.recorded_at
    if revision == 0:
        return 0  # nothing had been recorded, so nothing is judged by it
    try:
        return store.changes(partition, revision - 1, limit=1).changes[0].recorded_at
    except HistoryGone:
        kept = store.partition_stats(partition)
        if revision != kept.oldest_change - 1:
            raise
        return kept.before_feed_recorded_at  # the one before the feed is the last with an instant


def _touch(store: Store, partition: Partition, revision: int) -> None:
    """Read at a revision, which the store refuses when it is not kept."""
    store.read(partition, (EMBEDDER_KEY,), at=revision)


def _gone(store: Store, partition: Partition) -> PillionError:
    newest = store.head(partition).revision
    kept = store.partition_stats(partition)
    oldest = max(kept.oldest_history, min(kept.oldest_change - 1, newest))
    return PillionError(
        Reason.HISTORY_GONE,
        "that state is older than what is kept: the oldest that can be read is that of "
        f"revision {oldest}",
        metadata={"oldest_revision": str(oldest), "newest_revision": str(newest)},
    )


def _future(message: str, newest: int) -> PillionError:
    return PillionError(
        Reason.FUTURE_REVISION,
        f"{message}; the newest revision is {newest}",
        metadata={"newest_revision": str(newest)},
    )
