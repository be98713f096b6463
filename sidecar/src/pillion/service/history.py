"""History: every version of every row of a fact, or of one memory, on both clocks.

Read at a revision of the past it is told as it was known then: what was recorded later is not
there, and what ended later is still held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pillion_storage import codec
from pillion_storage.api import HistoryGone
from pillion_storage.keys import id_of, memory_key, prefix_end

from pillion.domain.errors import PillionError
from pillion.domain.field_checks import check_fact_key
from pillion.domain.limits import HISTORY_PAGE_DEFAULT, PAGE_BYTES_MAX
from pillion.domain.memory import MemoryStatus
from pillion.domain.queries import HistoryEntry
from pillion.service.draft import Draft
from pillion.service.members import check_member
from pillion.service.page_tokens import PageToken, digest_of, page_size_of, record_bytes
from pillion.service.recorded import check_kept, moment_of
from pillion.service.records import not_found

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace
    from pillion_storage.values import KeyVersion

    from pillion.domain.queries import ReadAt
    from pillion.domain.scope import FactKey, Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces

ROWS_STEP: Final = 1000
VERSIONS_STEP: Final = 500  # of one memory, between two looks at the deadline
SKIP_BYTES: Final = 8  # of how many entries came on earlier pages, in a page token


class _Place(NamedTuple):
    """Where a version comes in a history, by its first three fields, and little more.

    A page decodes and dates the versions that are on it, not those that it passes.
    """

    valid_from: int
    from_revision: int
    memory_id: UUID
    to_revision: int  # 0: it is still held
    ended_at: int  # when the server made what ended it


class History:
    """Tells histories."""

    def __init__(self, *, store: Store, keys: KeySpaces, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock

    def tell(
        self,
        partition: Partition,
        *,
        fact: FactKey | None,
        memory_id: UUID | None,
        read: ReadAt,
        page_size: int,
        page_token: str,
        deadline: Deadline,
    ) -> tuple[tuple[HistoryEntry, ...], str, int]:
        """Return every version of every row of a fact, or of one memory, on both clocks.

        Entries come by valid_from, then by recorded time.

        Raises:
            PillionError: NOT_FOUND when the key never had a row, or there is no such memory;
                INVALID_FIELD when the key names a member and its attribute is no set;
                HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        if fact is None and memory_id is None:
            raise PillionError.of_field("target", "name a fact or a memory")
        size = page_size_of(page_size, HISTORY_PAGE_DEFAULT)
        revision = moment_of(self._store, partition, read, self._clock, deadline).revision
        digest = digest_of(fact, memory_id, read.exact_revision, read.known_at)
        keys = self._keys.at(partition, revision)
        skip = 0
        if page_token:
            token = PageToken.decode(
                page_token, digest, revision, prefix=b"", place_bytes=SKIP_BYTES
            )
            revision, skip = token.revision, int.from_bytes(token.after, "big")
            check_kept(self._store, partition, revision)
        if fact is not None:
            check_fact_key("fact", fact)
            newest = Draft(self._store, partition)
            check_member(
                newest, self._keys.at(partition, newest.revision), "fact", fact, whole=True
            )
            ids = self._rows_ever(partition, keys, fact, revision)
        else:
            ids = [memory_id] if memory_id is not None else []
        places: list[_Place] = []
        for one in ids:
            places.extend(self._places(partition, one, fact, revision, deadline))
        # While versions were gathered, a trim may have taken some of them.
        check_kept(self._store, partition, revision)
        if not places:
            raise not_found("fact" if fact is not None else "memory", memory_id or fact.attribute)  # type: ignore[union-attr]
        places.sort()
        page: list[HistoryEntry] = []
        bytes_left = PAGE_BYTES_MAX
        rest = skip
        times = RecordedTimes(self._store, partition)
        for place in places[skip : skip + size]:
            if bytes_left <= 0:
                break
            deadline.check()
            rest += 1
            entry = self._entry(partition, place, times)
            if entry is None:  # a trim took it since, and maybe the revision with it
                check_kept(self._store, partition, revision)
                continue
            page.append(entry)
            bytes_left -= record_bytes(entry.memory)
        next_token = ""
        if rest < len(places):
            next_token = PageToken(revision, 0, rest.to_bytes(SKIP_BYTES, "big"), digest).encode()
        return tuple(page), next_token, revision

    def _rows_ever(
        self, partition: Partition, keys: KeySpace, fact: FactKey, revision: int
    ) -> Sequence[UUID]:
        prefix = keys.rows(fact)
        ids = []
        start: bytes | None = prefix
        while start is not None:
            page = self._store.scan(
                partition,
                start,
                prefix_end(prefix),
                limit=ROWS_STEP,
                at=revision,
                keys_only=True,
            )
            ids += [id_of(row.key) for row in page.rows]
            start = page.next_start
        return ids

    def _places(
        self,
        partition: Partition,
        memory_id: UUID,
        fact: FactKey | None,
        revision: int,
        deadline: Deadline,
    ) -> Iterator[_Place]:
        """Yield where a memory's versions up to a revision come in order, newest first.

        With a fact, only those that are rows of it.
        """
        before: int | None = None
        following_at: int | None = None
        deadline.check()
        while versions := self._store.versions(
            partition, memory_key(memory_id), before=before, limit=VERSIONS_STEP
        ):
            for one in reversed(versions):
                if one.version > revision:
                    continue
                seen = codec.glimpse_memory(memory_id, one.value)
                ended = one.ended if one.ended is not None and one.ended <= revision else 0
                if _is_row_of(fact, memory_id, one, seen.status):
                    made_at = seen.updated_at if following_at is None else following_at
                    yield _Place(seen.valid_from, one.version, memory_id, ended, made_at)
                following_at = seen.updated_at
            before = versions[0].version  # a page may be short without being the last
            deadline.check()

    def _entry(
        self, partition: Partition, place: _Place, times: RecordedTimes
    ) -> HistoryEntry | None:
        """Return a version with all that is told of it; None: a trim has taken it meanwhile."""
        began, key = place.from_revision, memory_key(place.memory_id)
        found = self._store.versions(partition, key, before=began + 1, limit=1)
        if not found or found[0].version != began:
            return None
        memory = codec.decode_memory(place.memory_id, found[0].value, began)
        ended = place.to_revision
        return HistoryEntry(
            memory=memory,
            from_revision=began,
            to_revision=ended,
            recorded_from=times.of(began, memory.updated_at),
            recorded_to=times.of(ended, place.ended_at) if ended else None,
        )


def _is_row_of(
    fact: FactKey | None, memory_id: UUID, version: KeyVersion, status: MemoryStatus
) -> bool:
    """Return whether a version under a fact's key is a row of it, or of the member it names.

    A guess is kept under the key and was never part of the timeline.
    """
    if fact is None:
        return True
    if status is MemoryStatus.CANDIDATE:
        return False
    if not fact.member:
        return True
    return codec.decode_memory(memory_id, version.value, version.version).fact_key == fact


class RecordedTimes:
    """The recorded times of revisions, looked up once each.

    They are in the change feed. Of a revision that the feed no longer holds, the time at which the
    server made the version is told instead: the same but for how long its commit took.
    """

    def __init__(self, store: Store, partition: Partition) -> None:
        self._store = store
        self._partition = partition
        self._known: dict[int, int] = {}

    def of(self, revision: int, made_at: int) -> int:
        """Return when a revision was recorded; ``made_at`` when that is no longer known."""
        if revision not in self._known:
            try:
                page = self._store.changes(self._partition, revision - 1, limit=1)
            except HistoryGone:
                self._known[revision] = made_at
            else:
                self._known[revision] = page.changes[0].recorded_at
        return self._known[revision]
