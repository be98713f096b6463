"""An erasure's records in the store: how far it is, what it takes, what it deleted, its receipt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from pillion_storage import codec
from pillion_storage.api import Batch, Committed, Token
from pillion_storage.erasure_codec import decode_erasure, decode_keys, encode_erasure, encode_keys
from pillion_storage.keys import (
    ERASURE_JOURNALS,
    ERASURE_PLANS,
    ERASURES,
    erasure_key,
    id_of,
    journal_key,
    plan_key,
    prefix_end,
)

from pillion.domain.erasure import Erasure, Stage
from pillion.domain.limits import PAGE_SIZE_MAX
from pillion.service.answers import check_same_body
from pillion.service.records import not_found
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pillion_storage.api import Store

    from pillion.domain.scope import Partition
    from pillion.service.draft import Draft
    from pillion.service.erasure_scope import Scope

# What a part of a plan names, by its first byte; the rest is an id or a hash.
GOES: Final = b"g"  # a record that goes with all that was said for it
SAID: Final = b"s"  # a memory that goes; what records that stay said for it stays
CHANGES: Final = b"c"
TIMELINE: Final = b"t"
FINGERPRINT: Final = b"f"
PART_NAMES: Final = 2000
# Keys of one record of the journal: 50 bytes each fit many times.
JOURNAL_KEYS: Final = 800


class ErasurePlan(NamedTuple):
    """What an erasure is to do, as it was written down."""

    gone: tuple[UUID, ...]
    said: frozenset[UUID]
    changed: tuple[UUID, ...]
    timelines: frozenset[bytes]
    fingerprints: frozenset[bytes]


class ErasureRecords:
    """Reads and writes the records of erasures."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, partition: Partition, erasure_id: UUID) -> Erasure | None:
        """Return an erasure, or None."""
        key = erasure_key(erasure_id)
        found = self._store.read(partition, [key]).entries.get(key)
        return None if found is None else decode_erasure(erasure_id, found.value)

    def get(self, partition: Partition, erasure_id: UUID) -> Erasure:
        """Return a finished erasure.

        Raises:
            PillionError: NOT_FOUND.
        """
        found = self.find(partition, erasure_id)
        if found is None or found.stage is not Stage.DONE:
            raise not_found("receipt", erasure_id)
        return found

    def all(self, partition: Partition) -> Iterator[Erasure]:
        """Yield the erasures of a partition, the latest last."""
        start: bytes | None = ERASURES
        while start is not None:
            page = self._store.scan(partition, start, prefix_end(ERASURES), limit=PAGE_SIZE_MAX)
            for row in page.rows:
                yield decode_erasure(id_of(row.key), row.value)
            start = page.next_start

    def unfinished(self, partition: Partition) -> list[Erasure]:
        """Return the erasures that are to be gone on with."""
        return [one for one in self.all(partition) if one.stage is not Stage.DONE]

    def begin(self, partition: Partition, erasure: Erasure, scope: Scope) -> Erasure | None:
        """Write a plan down, in one commit; None: something of it is held by now."""
        names = _names(scope)
        parts = [names[at : at + PART_NAMES] for at in range(0, len(names), PART_NAMES)]
        erasure = replace(erasure, plan_rows=len(parts))
        puts = {
            plan_key(erasure.id, number): encode_keys(part) for number, part in enumerate(parts)
        }
        puts[erasure_key(erasure.id)] = encode_erasure(erasure)
        outcome = self._store.commit(
            partition, Batch(puts=puts, expect=dict.fromkeys(scope.holds, 0))
        )
        return erasure if isinstance(outcome, Committed) else None

    def requested(self, partition: Partition, token: bytes, body_digest: bytes) -> UUID | None:
        """Return the id of the erasure that a request began; None: it is a new one.

        Raises:
            PillionError: REQUEST_ID_REUSED when the request_id came with another body.
        """
        found = self._store.find_token(partition, token) if token else None
        if found is None:
            return None
        check_same_body(found.memo, body_digest)
        return UUID(bytes=codec.unpack(found.memo or b"")[1])

    def request(
        self, partition: Partition, token: bytes, body_digest: bytes, erasure_id: UUID
    ) -> None:
        """Remember which erasure a request begins.

        In a commit of its own: what is forgotten of others takes their answers along.
        """
        memo = codec.pack([body_digest, erasure_id.bytes])
        self._store.commit(partition, Batch(token=Token(token, memo)))

    def extend(self, partition: Partition, erasure: Erasure, scope: Scope) -> Erasure:
        """Add what came to a plan meanwhile."""
        names = _names(scope)
        parts = [names[at : at + PART_NAMES] for at in range(0, len(names), PART_NAMES)]
        grown = replace(
            erasure,
            plan_rows=erasure.plan_rows + len(parts),
            memories=erasure.memories + scope.memories,
            episodes=erasure.episodes + scope.episodes,
            derived=erasure.derived + scope.derived,
            owners=tuple(sorted({*erasure.owners, *scope.owners})),
        )
        puts = {
            plan_key(erasure.id, erasure.plan_rows + number): encode_keys(part)
            for number, part in enumerate(parts)
        }
        puts[erasure_key(erasure.id)] = encode_erasure(grown)
        self._store.commit(partition, Batch(puts=puts))
        return grown

    def plan(self, partition: Partition, erasure: Erasure) -> ErasurePlan:
        """Return what an erasure is to do."""
        by_tag: dict[bytes, list[bytes]] = {}
        for names in self._parts(partition, ERASURE_PLANS + erasure.id.bytes):
            for name in names:
                by_tag.setdefault(name[:1], []).append(name[1:])
        ids = {
            tag: [UUID(bytes=one) for one in by_tag.get(tag, ())] for tag in (GOES, SAID, CHANGES)
        }
        return ErasurePlan(
            gone=(*ids[GOES], *ids[SAID]),
            said=frozenset(ids[SAID]),
            changed=tuple(ids[CHANGES]),
            timelines=frozenset(by_tag.get(TIMELINE, ())),
            fingerprints=frozenset(by_tag.get(FINGERPRINT, ())),
        )

    def journal(self, partition: Partition, erasure: Erasure) -> Iterator[list[bytes]]:
        """Yield the keys that an erasure deleted, those of one commit at a time."""
        yield from self._parts(partition, ERASURE_JOURNALS + erasure.id.bytes)

    def _parts(self, partition: Partition, prefix: bytes) -> Iterator[list[bytes]]:
        start: bytes | None = prefix
        while start is not None:
            page = self._store.scan(partition, start, prefix_end(prefix), limit=PAGE_SIZE_MAX)
            for row in page.rows:
                yield decode_keys(row.value)
            start = page.next_start

    def note_deleted(self, draft: Draft, erasure: Erasure) -> Erasure:
        """Have a draft remember which keys it deletes, for them to be purged afterwards."""
        keys = draft.deleted
        parts = [keys[at : at + JOURNAL_KEYS] for at in range(0, len(keys), JOURNAL_KEYS)]
        grown = replace(erasure, journal_rows=erasure.journal_rows + len(parts))
        draft.get(erasure_key(erasure.id))  # two that go on with it must not count as one
        for number, part in enumerate(parts, start=erasure.journal_rows):
            draft.put(journal_key(erasure.id, number), encode_keys(part))
        draft.put(erasure_key(erasure.id), encode_erasure(grown))
        return grown

    def put(self, partition: Partition, erasure: Erasure) -> int:
        """Write how far an erasure is; return the revision."""
        outcome = self._store.commit(
            partition, Batch(puts={erasure_key(erasure.id): encode_erasure(erasure)})
        )
        if not isinstance(outcome, Committed):
            raise changed_too_often()
        return outcome.revision

    def finish(self, partition: Partition, erasure: Erasure) -> None:
        """Write the receipt, and do away with the plan and the journal."""
        keys = [plan_key(erasure.id, number) for number in range(erasure.plan_rows)]
        keys += [journal_key(erasure.id, number) for number in range(erasure.journal_rows)]
        self.put(partition, erasure)
        step = self._store.features.batch_ops_max
        for begin in range(0, len(keys), step):
            part = keys[begin : begin + step]
            self._store.commit(partition, Batch(deletes=part))
            self._store.purge(partition, part)


def _names(scope: Scope) -> Sequence[bytes]:
    names = [(SAID if one.id in scope.said else GOES) + one.id.bytes for one in scope.gone.values()]
    names += [CHANGES + one.bytes for one in scope.changed]
    names += [TIMELINE + one for one in scope.timelines]
    names += [FINGERPRINT + one for one in scope.fingerprints]
    return names
