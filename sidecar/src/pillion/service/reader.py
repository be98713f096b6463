"""Get, BatchGet, List and History."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.keys import (
    ID_BYTES,
    INSTANT_BYTES,
    SubjectRecord,
    after,
    episode_key,
    id_of,
    prefix_end,
)

from pillion.domain.errors import PillionError
from pillion.domain.field_checks import check_count, check_fact_key
from pillion.domain.limits import BATCH_GET_MAX, PAGE_BYTES_MAX, PAGE_SIZE_DEFAULT
from pillion.domain.queries import PLAIN_READ, Found, Page
from pillion.domain.validation import check_filter, check_read
from pillion.service.derived import derived_memories, sources_named
from pillion.service.draft import Draft
from pillion.service.history import History
from pillion.service.lookup import Lookup, Seen
from pillion.service.members import check_member
from pillion.service.page_tokens import PageToken, digest_of, page_size_of, record_bytes
from pillion.service.reading import RecordReader, wait_for_revision
from pillion.service.recorded import check_kept, moment_of
from pillion.service.records import not_found
from pillion.service.surroundings import find_holding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Episode
    from pillion.domain.queries import Filter, HistoryEntry, ReadAt, Target
    from pillion.domain.scope import FactKey, Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces

LIST_STEP: Final = 256
_PLACE_BYTES: Final = INSTANT_BYTES + ID_BYTES


class Reader:
    """Answers the reads that name what they want."""

    def __init__(self, *, store: Store, keys: KeySpaces, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._history = History(store=store, keys=keys, clock=clock)
        self._lookup = Lookup(store, clock)

    def let_go(self, partition: Partition) -> None:
        """Keep nothing of a partition in memory."""
        self._lookup.let_go(partition)

    # --- by id or key ----------------------------------------------------------------------

    def get(
        self,
        partition: Partition,
        target: Target,
        read: ReadAt,
        *,
        include_vector: bool,
        deadline: Deadline,
    ) -> tuple[Found, int]:
        """Return one record and the revision it was read at.

        Raises:
            PillionError: NOT_FOUND; HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        seen = None
        if not include_vector:
            seen = self._look(partition, target, read, deadline)
        if seen is not None:
            found, revision = seen.found, seen.revision
        else:
            (found,), revision = self.batch_get(
                partition, (target,), read, include_vectors=include_vector, deadline=deadline
            )
        if found is None:
            raise _target_not_found(target)
        return found, revision

    def _look(
        self, partition: Partition, target: Target, read: ReadAt, deadline: Deadline
    ) -> Seen | None:
        """Return a memory as ``batch_get`` does, by the short way; None: it takes the long one."""
        keys = self._keys.known(partition)
        if keys is None:
            return None
        if read is not PLAIN_READ:
            if read.asks_for_the_past:
                return None
            if target.fact is not None:
                check_fact_key("target.fact", target.fact)
            check_read(read)
            wait_for_revision(self._store, partition, read.at_least_revision, deadline)
        if target.fact is not None:
            seen = self._lookup.by_fact(partition, keys, target.fact, read.as_of)
            return seen if seen.settled else None
        if target.memory_id is not None:
            return self._lookup.by_id(partition, keys, target.memory_id)
        return None

    def batch_get(
        self,
        partition: Partition,
        targets: Sequence[Target],
        read: ReadAt,
        *,
        include_vectors: bool,
        deadline: Deadline,
    ) -> tuple[tuple[Found | None, ...], int]:
        """Return the records in order, None where there is none, all read at one revision.

        Raises:
            PillionError: INVALID_FIELD when a key of a set names no member, or one that is no
                set's names one; HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        if not targets:
            raise PillionError.of_field("targets", "must not be empty")
        check_count("targets", len(targets), BATCH_GET_MAX)
        for target in targets:
            if target.fact is not None:
                check_fact_key("target.fact", target.fact)
        moment = moment_of(self._store, partition, read, self._clock, deadline)
        draft = Draft(self._store, partition, moment.revision)
        keys = self._keys.at(partition, draft.revision)
        ids = [self._memory_id(draft, keys, target, moment.as_of) for target in targets]
        missed = [
            target.fact
            for target, memory_id in zip(targets, ids, strict=True)
            if target.fact is not None and memory_id is None
        ]
        self._check_members(partition, missed)
        reader = RecordReader(self._store, partition, keys)
        memories, _ = reader.memories([one for one in ids if one is not None], draft.revision)
        vectors = reader.vectors(list(memories), draft.revision) if include_vectors else {}
        found: list[Found | None] = []
        for target, memory_id in zip(targets, ids, strict=True):
            if target.episode_id is not None:
                found.append(_episode(draft, target.episode_id))
                continue
            memory = memories.get(memory_id) if memory_id is not None else None
            hidden = (
                memory is not None
                and target.fact is not None
                and not memory.recallable_at(moment.now)
            )
            if memory is None or hidden:
                found.append(None)
            else:
                found.append(Found(memory=memory, vector=vectors.get(memory.id, b"")))
        return tuple(found), draft.revision

    def _check_members(self, partition: Partition, missed: Sequence[FactKey]) -> None:
        """Refuse keys without a row that name a member, or none, against what they are."""
        if not missed:
            return
        newest = Draft(self._store, partition)
        keys = self._keys.at(partition, newest.revision)
        for fact in missed:
            check_member(newest, keys, "target.fact", fact)

    @staticmethod
    def _memory_id(draft: Draft, keys: KeySpace, target: Target, as_of: int) -> UUID | None:
        if target.fact is None:
            return target.memory_id
        entry = find_holding(draft, keys, target.fact, as_of)
        return entry.memory_id if entry is not None else None

    # --- listing ---------------------------------------------------------------------------

    def list(
        self,
        partition: Partition,
        filter_: Filter,
        read: ReadAt,
        *,
        page_size: int,
        page_token: str,
        episodes: bool,
        deadline: Deadline,
    ) -> Page:
        """Return a page, oldest first, equal times by id; every page at the first's revision.

        A page ends early, with a token, where its records come to `PAGE_BYTES_MAX`.

        Raises:
            PillionError: PAGE_TOKEN_INVALID; HISTORY_GONE when the first page's revision is no
                longer kept, and else HISTORY_GONE or FUTURE_REVISION as in `moment_of`.
        """
        check_filter(filter_)
        size = page_size_of(page_size, PAGE_SIZE_DEFAULT)
        moment = moment_of(self._store, partition, read, self._clock, deadline)
        keys = self._keys.at(partition, moment.revision)
        digest = digest_of(filter_, read.as_of, read.exact_revision, read.known_at, episodes)
        prefix = _prefix(keys, filter_, episodes=episodes)
        if page_token:
            token = PageToken.decode(
                page_token, digest, moment.revision, prefix=prefix, place_bytes=_PLACE_BYTES
            )
            check_kept(self._store, partition, token.revision)
        else:
            token = PageToken(moment.revision, moment.as_of, b"", digest)
        records: list[Found] = []
        last = token.after
        bytes_left = PAGE_BYTES_MAX
        more = False
        for key, found in self._possible(
            partition, keys, filter_, prefix, token, episodes=episodes, deadline=deadline
        ):
            deadline.check()
            if not _admitted(found, filter_, token.as_of, moment.now):
                continue
            if len(records) == size or bytes_left <= 0:
                more = True
                break
            records.append(found)
            bytes_left -= _bytes_of(found)
            last = key
        next_token = PageToken(token.revision, token.as_of, last, digest).encode() if more else ""
        return Page(tuple(records), next_token, token.revision)

    def _possible(
        self,
        partition: Partition,
        keys: KeySpace,
        filter_: Filter,
        prefix: bytes,
        token: PageToken,
        *,
        episodes: bool,
        deadline: Deadline,
    ) -> Iterator[tuple[bytes, Found]]:
        """Yield the records that a filter may admit, after the token, with where they stand."""
        sources = sources_named(filter_)
        if episodes or not sources:
            yield from self._records(partition, keys, prefix, token, episodes=episodes)
            return
        for key, memory in derived_memories(
            self._store,
            partition,
            RecordReader(self._store, partition, keys),
            sources,
            revision=token.revision,
            start=after(token.after) if token.after else prefix,
            deadline=deadline,
        ):
            yield key, Found(memory=memory)

    def _records(
        self,
        partition: Partition,
        keys: KeySpace,
        prefix: bytes,
        token: PageToken,
        *,
        episodes: bool,
    ) -> Iterator[tuple[bytes, Found]]:
        """Yield index keys and records after the token, in the index's order."""
        reader = RecordReader(self._store, partition, keys)
        start: bytes | None = after(token.after) if token.after else prefix
        while start is not None:
            page = self._store.scan(
                partition,
                start,
                prefix_end(prefix),
                limit=LIST_STEP,
                at=token.revision,
                keys_only=True,
            )
            ids = [id_of(row.key) for row in page.rows]
            if episodes:
                wanted = [episode_key(one) for one in ids]
                entries = self._store.read(partition, wanted, at=token.revision).entries
                for row, one, key in zip(page.rows, ids, wanted, strict=True):
                    if key in entries:
                        entry = entries[key]
                        episode = codec.decode_episode(one, entry.value, entry.version)
                        yield row.key, Found(episode=episode)
            else:
                memories, _ = reader.memories(ids, token.revision)
                for row, one in zip(page.rows, ids, strict=True):
                    if one in memories:
                        yield row.key, Found(memory=memories[one])
            start = page.next_start

    # --- history ---------------------------------------------------------------------------

    def history(
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
        return self._history.tell(
            partition,
            fact=fact,
            memory_id=memory_id,
            read=read,
            page_size=page_size,
            page_token=page_token,
            deadline=deadline,
        )


def _prefix(keys: KeySpace, filter_: Filter, *, episodes: bool) -> bytes:
    """Return the prefix of the index that a listing walks."""
    by_source = not episodes and sources_named(filter_)
    if len(filter_.subjects) == 1 and not by_source:
        (subject,) = filter_.subjects
        return keys.subject_range(
            subject, SubjectRecord.EPISODE if episodes else SubjectRecord.MEMORY
        )
    return b"k" if episodes else b"c"


def _bytes_of(found: Found) -> int:
    record = found.memory or found.episode
    return record_bytes(record) if record is not None else 0


def _admitted(found: Found, filter_: Filter, as_of: int, now: int) -> bool:
    if found.memory is not None:
        return filter_.admits(found.memory, as_of, now)
    return found.episode is not None and _admits_episode(found.episode, filter_, now)


def _admits_episode(episode: Episode, filter_: Filter, now: int) -> bool:
    return filter_.admits_episode(episode) and (
        filter_.include_expired or now < min(episode.expires_at, episode.expired_at)
    )


def _episode(draft: Draft, episode_id: UUID) -> Found | None:
    key = episode_key(episode_id)
    data = draft.get(key)
    if data is None:
        return None
    return Found(episode=codec.decode_episode(episode_id, data, draft.version(key)))


def _target_not_found(target: Target) -> PillionError:
    if target.fact is not None:
        return not_found("value, now or at the instant asked, of the fact", target.fact.attribute)
    if target.episode_id is not None:
        return not_found("episode", target.episode_id)
    return not_found("memory", str(target.memory_id))
