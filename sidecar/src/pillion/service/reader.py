"""Get, BatchGet, List and History."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion_storage import codec
from pillion_storage.api import HistoryGone
from pillion_storage.keys import (
    SubjectRecord,
    after,
    episode_key,
    id_of,
    memory_key,
    prefix_end,
)

from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import (
    BATCH_GET_MAX,
    HISTORY_PAGE_DEFAULT,
    INSTANT_MAX_US,
    INSTANT_MIN_US,
    PAGE_SIZE_DEFAULT,
    PAGE_SIZE_MAX,
)
from pillion.domain.memory import MemoryStatus
from pillion.domain.queries import Found, HistoryEntry, Page
from pillion.domain.validation import check_count, check_fact_key, check_filter, check_instant
from pillion.service.draft import Draft
from pillion.service.reading import RecordReader, wait_for_revision
from pillion.service.records import not_found
from pillion.service.timelines import find_holding

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableSequence, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.keys import KeySpace

    from pillion.domain.memory import Episode
    from pillion.domain.queries import Filter, ReadAt, Target
    from pillion.domain.scope import FactKey, Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.partitions import KeySpaces

LIST_STEP: Final = 256
ROWS_STEP: Final = 1000
DIGEST_BYTES: Final = 8


class Reader:
    """Answers the reads that name what they want."""

    def __init__(self, *, store: Store, keys: KeySpaces, clock: Clock) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock

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
            PillionError: NOT_FOUND.
        """
        (found,), revision = self.batch_get(
            partition, (target,), read, include_vectors=include_vector, deadline=deadline
        )
        if found is None:
            raise _target_not_found(target)
        return found, revision

    def batch_get(
        self,
        partition: Partition,
        targets: Sequence[Target],
        read: ReadAt,
        *,
        include_vectors: bool,
        deadline: Deadline,
    ) -> tuple[tuple[Found | None, ...], int]:
        """Return the records in order, None where there is none, all read at one revision."""
        if not targets:
            raise PillionError.of_field("targets", "must not be empty")
        check_count("targets", len(targets), BATCH_GET_MAX)
        as_of = self._as_of(read)
        for target in targets:
            if target.fact is not None:
                check_fact_key("target.fact", target.fact)
        wait_for_revision(self._store, partition, read.at_least_revision, deadline)
        keys = self._keys.of(partition)
        draft = Draft(self._store, partition)
        ids = [self._memory_id(draft, keys, target, as_of) for target in targets]
        reader = RecordReader(self._store, partition, keys)
        memories, _ = reader.memories([one for one in ids if one is not None], draft.revision)
        vectors = reader.vectors(list(memories), draft.revision) if include_vectors else {}
        now = self._clock.now_us()
        found: list[Found | None] = []
        for target, memory_id in zip(targets, ids, strict=True):
            if target.episode_id is not None:
                found.append(_episode(draft, target.episode_id))
                continue
            memory = memories.get(memory_id) if memory_id is not None else None
            hidden = (
                memory is not None and target.fact is not None and not memory.recallable_at(now)
            )
            if memory is None or hidden:
                found.append(None)
            else:
                found.append(Found(memory=memory, vector=vectors.get(memory.id, b"")))
        return tuple(found), draft.revision

    def _as_of(self, read: ReadAt) -> int:
        check_instant("read.as_of", read.as_of)
        return read.as_of if read.as_of is not None else self._clock.now_us()

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

        Raises:
            PillionError: PAGE_TOKEN_INVALID; HISTORY_GONE when the first page's revision is no
                longer kept.
        """
        check_filter(filter_)
        size = _page_size(page_size, PAGE_SIZE_DEFAULT)
        wait_for_revision(self._store, partition, read.at_least_revision, deadline)
        keys = self._keys.of(partition)
        digest = _digest(filter_, read.as_of, episodes)
        head = self._store.head(partition).revision
        if page_token:
            token = _Token.decode(page_token, digest, head)
        else:
            token = _Token(head, self._as_of(read), b"", digest)
        now = self._clock.now_us()
        records: list[Found] = []
        last = token.after
        more = False
        for key, found in self._records(partition, keys, filter_, token, episodes=episodes):
            deadline.check()
            if not _admitted(found, filter_, token.as_of, now):
                continue
            if len(records) == size:
                more = True
                break
            records.append(found)
            last = key
        next_token = _Token(token.revision, token.as_of, last, digest).encode() if more else ""
        return Page(tuple(records), next_token, token.revision)

    def _records(
        self,
        partition: Partition,
        keys: KeySpace,
        filter_: Filter,
        token: _Token,
        *,
        episodes: bool,
    ) -> Iterator[tuple[bytes, Found]]:
        """Yield index keys and records after the token, in the index's order."""
        if len(filter_.subjects) == 1:
            (subject,) = filter_.subjects
            kind = SubjectRecord.EPISODE if episodes else SubjectRecord.MEMORY
            prefix = keys.subject_range(subject, kind)
        else:
            prefix = b"k" if episodes else b"c"
        reader = RecordReader(self._store, partition, keys)
        start: bytes | None = after(token.after) if token.after else prefix
        if token.after and not token.after.startswith(prefix):
            raise _bad_token()
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
            PillionError: NOT_FOUND when the key never had a row, or there is no such memory.
        """
        if fact is None and memory_id is None:
            raise PillionError.of_field("target", "name a fact or a memory")
        size = _page_size(page_size, HISTORY_PAGE_DEFAULT)
        wait_for_revision(self._store, partition, read.at_least_revision, deadline)
        keys = self._keys.of(partition)
        digest = _digest(fact, memory_id)
        revision = self._store.head(partition).revision
        skip = 0
        if page_token:
            token = _Token.decode(page_token, digest, revision)
            revision, skip = token.revision, int.from_bytes(token.after, "big")
        if fact is not None:
            check_fact_key("fact", fact)
            ids = self._rows_ever(partition, keys, fact, revision)
        else:
            ids = [memory_id] if memory_id is not None else []
        entries: MutableSequence[HistoryEntry] = []
        for one in ids:
            deadline.check()
            entries.extend(
                version
                for version in self._versions(partition, one, revision)
                # A guess is kept under the key and was never part of the timeline.
                if fact is None or version.memory.status is not MemoryStatus.CANDIDATE
            )
        if not entries:
            raise not_found("fact" if fact is not None else "memory", memory_id or fact.attribute)  # type: ignore[union-attr]
        ordered = sorted(
            entries, key=lambda one: (one.memory.valid_from, one.from_revision, one.memory.id)
        )
        page = ordered[skip : skip + size]
        rest = skip + len(page)
        next_token = ""
        if rest < len(ordered):
            next_token = _Token(revision, 0, rest.to_bytes(8, "big"), digest).encode()
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

    def _versions(
        self, partition: Partition, memory_id: UUID, revision: int
    ) -> Iterator[HistoryEntry]:
        before: int | None = None
        while True:
            versions = self._store.versions(partition, memory_key(memory_id), before=before)
            for one in versions:
                if one.version > revision:
                    continue
                ended = one.ended if one.ended is not None and one.ended <= revision else None
                yield HistoryEntry(
                    memory=codec.decode_memory(memory_id, one.value, one.version),
                    from_revision=one.version,
                    to_revision=ended or 0,
                    recorded_from=self._recorded_at(partition, one.version),
                    recorded_to=self._recorded_at(partition, ended) if ended else None,
                )
            if not versions:  # a page may be short without being the last
                return
            before = versions[0].version

    def _recorded_at(self, partition: Partition, revision: int) -> int:
        try:
            page = self._store.changes(partition, revision - 1, limit=1)
        except HistoryGone as error:
            raise PillionError(
                Reason.HISTORY_GONE, "the recorded times of this history are no longer kept"
            ) from error
        return page.changes[0].recorded_at


@dataclass(frozen=True, slots=True)
class _Token:
    """Where a listing stands. ``digest`` ties it to the listing's other parameters."""

    revision: int
    as_of: int
    after: bytes
    digest: bytes

    def encode(self) -> str:
        body = codec.pack([self.revision, self.as_of, self.after, self.digest])
        return base64.urlsafe_b64encode(body).decode()

    @classmethod
    def decode(cls, text: str, digest: bytes, head: int) -> _Token:
        try:
            fields = codec.unpack(base64.b64decode(text, altchars=b"-_", validate=True))
            revision, as_of, after_key, found = fields
        except Exception as error:
            raise _bad_token() from error
        if (
            found != digest
            or type(revision) is not int
            or type(as_of) is not int
            or not isinstance(after_key, bytes)
            or not 0 <= revision <= head
            or not INSTANT_MIN_US <= as_of <= INSTANT_MAX_US
        ):
            raise _bad_token()
        return cls(revision, as_of, after_key, digest)


def _bad_token() -> PillionError:
    return PillionError.of_field(
        "page_token",
        "is not one of this listing: pass on next_page_token with everything else unchanged",
        Reason.PAGE_TOKEN_INVALID,
    )


def _digest(*parameters: object) -> bytes:
    """Return a digest of what must be the same on every page."""
    shown = "\0".join(_stable(parameter) for parameter in parameters)
    return hashlib.blake2b(shown.encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()


def _stable(value: object) -> str:
    """Return a text that is equal for equal values: sets in order."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(_stable(one) for one in value)) + "}"
    slots = getattr(type(value), "__slots__", None)
    if slots and hasattr(type(value), "__dataclass_fields__"):
        return (
            f"{type(value).__name__}(" + ",".join(_stable(getattr(value, s)) for s in slots) + ")"
        )
    return repr(value)


def _page_size(asked: int, default: int) -> int:
    if asked < 0:
        raise PillionError.of_field("page_size", "must not be negative")
    return min(asked or default, PAGE_SIZE_MAX)


def _admitted(found: Found, filter_: Filter, as_of: int, now: int) -> bool:
    if found.memory is not None:
        return filter_.admits(found.memory, as_of, now)
    return found.episode is not None and _admits_episode(found.episode, filter_, now)


def _admits_episode(episode: Episode, filter_: Filter, now: int) -> bool:
    labels = frozenset(episode.labels)
    return (
        (not filter_.subjects or episode.subject in filter_.subjects)
        and (filter_.contexts is None or episode.context in filter_.contexts)
        and filter_.labels_all <= labels
        and (not filter_.labels_any or not filter_.labels_any.isdisjoint(labels))
        and filter_.labels_none.isdisjoint(labels)
        and (not filter_.session_ids or episode.session_id in filter_.session_ids)
        and (not filter_.source_kinds or episode.source_kind in filter_.source_kinds)
        and filter_.created.holds(episode.recorded_at)
        and (filter_.include_expired or now < min(episode.expires_at, episode.expired_at))
    )


def _episode(draft: Draft, episode_id: UUID) -> Found | None:
    key = episode_key(episode_id)
    data = draft.get(key)
    if data is None:
        return None
    return Found(episode=codec.decode_episode(episode_id, data, draft.version(key)))


def _target_not_found(target: Target) -> PillionError:
    if target.fact is not None:
        return not_found("value at that instant of the fact", target.fact.attribute)
    if target.episode_id is not None:
        return not_found("episode", target.episode_id)
    return not_found("memory", str(target.memory_id))
