"""ERASE: make records, and everything that follows them, never have been here.

An erasure goes from stage to stage (`domain.erasure.Stage`), each of which is written down and may
be repeated, so after a stop it is gone on with where it was: before anything is served. Only at
the end, once it is proved, there is a receipt.

Invariants:
  - What goes is deleted in commits that depend on what they read: a live writer makes the commit
    be planned anew, and whatever it writes is erased whole or stays whole.
  - The ledger names an erasure, and the keys, before a key is destroyed.
  - Nothing that stays is sealed with a key that is destroyed.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pillion_storage.api import Batch, Committed, KeyStillLive, OwnerKeys, StoreError
from pillion_storage.erasure_ledger import LedgerEntry
from pillion_storage.keys import SubjectRecord, prefix_end
from pillion_storage.scrubbing import Compacts, Scrubs

from pillion.domain import erasure as words
from pillion.domain.erasure import Erasure, Place, Stage
from pillion.domain.errors import PillionError, Reason
from pillion.domain.limits import COMMIT_TRIES_MAX, FORGET_SAMPLE_MAX
from pillion.service.erasure_proof import Evidence, Proof
from pillion.service.erasure_records import ErasureRecords
from pillion.service.erasure_scope import Gatherer, Scope, Selection
from pillion.service.erasure_scrub import Scrubbing
from pillion.service.erasure_steps import Step
from pillion.service.vectors import MadeVectors, pending_added
from pillion.service.writer import changed_too_often

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.erasure_ledger import ErasureLedger

    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline, IdSource
    from pillion.service.erasure_memory import MemoryWiper
    from pillion.service.erasure_records import ErasurePlan
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors
    from pillion.service.writer import Writer

# Records of one commit: what a memory brings, a dozen keys, comes to some hundreds.
STEP_RECORDS: Final = 64
# How often a subject that is being written to is looked at again.
ROUNDS_MAX: Final = 4
# How often a commit that others got ahead of is tried before they are held back for it.
POLITE_TRIES: Final = 3
LOCK_STEP_SECONDS: Final = 0.25


class Unhurried:
    """The deadline of work that nobody waits for."""

    def remaining_seconds(self) -> float:
        """Return an hour, whenever it is asked."""
        return 3600.0

    def check(self) -> None:
        """Never raise."""


UNHURRIED: Final = Unhurried()


_log = logging.getLogger(__name__)


class Eraser:
    """Erases. One erasure at a time in a partition. Safe to share between threads."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        ids: IdSource,
        writer: Writer,
        pending: PendingVectors,
        memory: MemoryWiper,
        ledger: ErasureLedger | None,
        promote_after: int,
        serves: bool = True,
    ) -> None:
        self._serves = serves
        self._store = store
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._writer = writer
        self._pending = pending
        self._memory = memory
        self._ledger = ledger
        self._promote_after = promote_after
        self.records = ErasureRecords(store)
        self._evidence: dict[UUID, Evidence] = {}
        self._lock = threading.Lock()
        self._busy: dict[Partition, threading.Lock] = {}

    # --- the calls ---------------------------------------------------------------------------

    def check_served(self) -> None:
        """Refuse what the operator has not switched on.

        Raises:
            PillionError: NOT_SERVED.
        """
        if not self._serves:
            raise PillionError(
                Reason.NOT_SERVED,
                "ERASE is a preview that does not keep all it should yet: read SECURITY.md, then "
                'set erasure = "preview"; EXPIRE and RETRACT are served',
                metadata={"capability": "CAPABILITY_FORGET_ERASE"},
            )

    def preview(self, partition: Partition, selection: Selection, deadline: Deadline) -> Scope:
        """Return what an erasure would take, and change nothing.

        Raises:
            PillionError: NOT_FOUND when an id is neither memory nor episode.
        """
        revision = self._store.head(partition).revision
        return self._gatherer(partition, revision, deadline).gather(selection)

    def erase(
        self,
        partition: Partition,
        select: Callable[[], Selection],
        deadline: Deadline,
        *,
        token: bytes = b"",
        body_digest: bytes = b"",
        preview_revision: int = 0,
    ) -> Erasure:
        """Erase, and return the receipt once it is proved.

        A call that ran out of time has written down how far it is: the next erasure in the
        partition, or the next start, goes on with it, and a retry with the same request_id
        returns its receipt.

        Args:
            partition: Where.
            select: Says what; called once it is this erasure's turn, and again when a hold was set
                meanwhile.
            deadline: Looked at between steps.
            token: Of the request; empty: it has no request_id.
            body_digest: Of the request's body.
            preview_revision: That of the dry run that this was decided by; 0: of none.

        Raises:
            PillionError: NOT_FOUND when an id is neither memory nor episode; ERASURE_UNPROVEN when
                something of it may be left: say it again.
        """
        self._check_able()
        with self._alone(partition, deadline):
            for one in self.records.unfinished(partition):
                self._go_on(partition, one, deadline)
            erasure_id = self.records.requested(partition, token, body_digest)
            if erasure_id is not None:
                earlier = self.records.find(partition, erasure_id)
                if earlier is not None:
                    return earlier
            for _ in range(COMMIT_TRIES_MAX):
                selection = select()
                scope = self.preview(partition, selection, deadline)
                if erasure_id is None:
                    erasure_id = self._ids.new_id()
                    if token:
                        self.records.request(partition, token, body_digest, erasure_id)
                subject = b""
                if selection.whole_subject is not None:
                    subject = self._keys.of(partition).subject(selection.whole_subject)
                    scope.owners.add(subject)
                begun = self._begin(partition, scope, erasure_id, subject, preview_revision)
                if begun is not None:
                    return self._go_on(partition, begun, deadline)
            raise changed_too_often()

    def catch_up(self, deadline: Deadline) -> int:
        """Finish what was begun, and erase again what the ledger names. Before serving."""
        return self.go_on(deadline) + self.apply_ledger(deadline)

    def go_on(self, deadline: Deadline) -> int:
        """Finish what an earlier process began; return how much that was. Before serving."""
        count = 0
        for partition in self._store.partitions():
            for one in self.records.unfinished(partition):
                try:
                    self._go_on(partition, one, deadline)
                except PillionError as error:
                    if error.reason is not Reason.ERASURE_UNPROVEN:
                        raise
                    # Its records are deleted; other partitions, and other reads, do not wait.
                    _log.error("erasure %s is not proved and stays unfinished", one.id)
                count += 1
        return count

    def apply_ledger(self, deadline: Deadline) -> int:
        """Erase again what this data still has of earlier erasures: it is an older copy.

        Before serving. Returns how many erasures that were.
        """
        if self._ledger is None or not self._ledger.entries():
            return 0
        count = 0
        entries = self._ledger.entries()
        for partition in self._store.partitions():
            if not self._store.head(partition).revision:
                continue
            keys = self._keys.of(partition)
            name = keys.erased_partition(partition.namespace, partition.tenant)
            for entry in entries:
                if entry.partition == name and not self._is_done(partition, entry):
                    self._repeat(partition, entry, deadline)
                    count += 1
        return count

    def _is_done(self, partition: Partition, entry: LedgerEntry) -> bool:
        found = self.records.find(partition, entry.erasure)
        return found is not None and found.stage is Stage.DONE

    def _repeat(self, partition: Partition, entry: LedgerEntry, deadline: Deadline) -> None:
        known = self.records.find(partition, entry.erasure)
        if known is None:
            wanted = set(entry.ids)
            gatherer = self._gatherer(partition, self._store.head(partition).revision, deadline)
            scope = gatherer.gather_hashed(wanted, entry.subject)
            known = self._begin(partition, replace(scope, holds=[]), entry.erasure, entry.subject)
            if known is None:
                raise changed_too_often()
        self._go_on(partition, known, deadline)
        if isinstance(self._store, OwnerKeys):
            self._store.bury_keys(partition, entry.key_ids)

    def _check_able(self) -> None:
        if not isinstance(self._store, Scrubs):
            raise PillionError(Reason.NOT_SERVED, "this store can't change what it keeps")
        if self._ledger is not None:
            try:
                self._ledger.check_writable()
            except StoreError as error:
                raise PillionError(
                    Reason.ERASURE_UNPROVEN,
                    f"nothing was erased, for a backup could bring it back: {error}",
                ) from error

    @contextmanager
    def _alone(self, partition: Partition, deadline: Deadline) -> Iterator[None]:
        with self._lock:
            busy = self._busy.setdefault(partition, threading.Lock())
        while not busy.acquire(timeout=LOCK_STEP_SECONDS):
            deadline.check()
        try:
            yield
        finally:
            busy.release()

    # --- planning ----------------------------------------------------------------------------

    def _gatherer(self, partition: Partition, revision: int, deadline: Deadline) -> Gatherer:
        return Gatherer(
            self._store,
            partition,
            self._keys.at(partition, revision),
            revision=revision,
            promote_after=self._promote_after,
            deadline=deadline,
        )

    def _begin(
        self,
        partition: Partition,
        scope: Scope,
        erasure_id: UUID,
        subject: bytes,
        preview_revision: int = 0,
    ) -> Erasure | None:
        """Write down what is to be done; None: something of it is held by now."""
        erasure = Erasure(
            id=erasure_id,
            stage=Stage.PLANNED,
            started_at=self._clock.now_us(),
            subject=subject,
            owners=tuple(sorted(scope.owners)),
            memories=scope.memories,
            episodes=scope.episodes,
            derived=scope.derived,
            changed=len(scope.changed),
            sample=tuple(scope.gone)[:FORGET_SAMPLE_MAX],
            exempt=tuple(scope.exempt)[:FORGET_SAMPLE_MAX],
            unpreviewed=scope.newer_than(preview_revision),
        )
        self._evidence[erasure_id] = Evidence.of(
            self._store, partition, scope, plain=self._is_plain(partition)
        )
        begun = self.records.begin(partition, erasure, scope)
        if begun is None:
            self._evidence.pop(erasure_id, None)
        return begun

    # --- carrying out ------------------------------------------------------------------------

    def _go_on(self, partition: Partition, erasure: Erasure, deadline: Deadline) -> Erasure:
        """Take an erasure from where it is to its end."""
        stages: dict[Stage, Callable[[Partition, Erasure, Deadline], Erasure]] = {
            Stage.PLANNED: self._delete,
            Stage.DELETED: self._scrub,
            Stage.SCRUBBED: self._log,
            Stage.LOGGED: self._finish,
        }
        while erasure.stage is not Stage.DONE:
            deadline.check()
            erasure = stages[erasure.stage](partition, erasure, deadline)
        return erasure

    def _delete(self, partition: Partition, erasure: Erasure, deadline: Deadline) -> Erasure:
        """Delete what goes; then see whether more of the subject came meanwhile."""
        plan = self.records.plan(partition, erasure)
        erasure = self._delete_planned(partition, erasure, plan, deadline)
        for _ in range(ROUNDS_MAX):
            if not erasure.subject or self._is_empty(partition, erasure.subject):
                break
            revision = self._store.head(partition).revision
            scope = self._gatherer(partition, revision, deadline).gather_hashed(
                set(), erasure.subject
            )
            if erasure.id in self._evidence:
                self._evidence[erasure.id].add(self._store, partition, scope)
            erasure = self.records.extend(partition, erasure, scope)
            plan = self.records.plan(partition, erasure)
            erasure = self._delete_planned(partition, erasure, plan, deadline)
        revision = self._store.head(partition).revision
        erasure = replace(erasure, stage=Stage.DELETED, revision=revision)
        self.records.put(partition, erasure)
        return erasure

    def _is_empty(self, partition: Partition, subject: bytes) -> bool:
        for kind in SubjectRecord:
            prefix = b"s" + subject + bytes([kind])
            page = self._store.scan(partition, prefix, prefix_end(prefix), limit=1, keys_only=True)
            if page.rows:
                return False
        return True

    def _delete_planned(
        self, partition: Partition, erasure: Erasure, plan: ErasurePlan, deadline: Deadline
    ) -> Erasure:
        for begin in range(0, len(plan.gone), STEP_RECORDS):
            part = plan.gone[begin : begin + STEP_RECORDS]
            erasure = self._commit_step(partition, erasure, plan, part, deadline, deletes=True)
        for begin in range(0, len(plan.changed), STEP_RECORDS):
            part = plan.changed[begin : begin + STEP_RECORDS]
            erasure = self._commit_step(partition, erasure, plan, part, deadline, deletes=False)
        return erasure

    def _commit_step(
        self,
        partition: Partition,
        erasure: Erasure,
        plan: ErasurePlan,
        ids: Sequence[UUID],
        deadline: Deadline,
        *,
        deletes: bool,
    ) -> Erasure:
        """Delete or change some records in one commit, or in several where one is too small."""
        for tries in range(COMMIT_TRIES_MAX):
            deadline.check()
            # A writer that is always faster has to wait in the end.
            polite = tries < POLITE_TRIES
            with nullcontext() if polite else self._writer.hold_back(partition):
                done = self._try_step(partition, erasure, plan, ids, deletes=deletes)
            if isinstance(done, Erasure):
                return done
            if done is not None:
                more, erasure = done
                for part in more:
                    erasure = self._commit_step(
                        partition, erasure, plan, part, deadline, deletes=deletes
                    )
                return erasure
        raise changed_too_often()

    def _try_step(
        self,
        partition: Partition,
        erasure: Erasure,
        plan: ErasurePlan,
        ids: Sequence[UUID],
        *,
        deletes: bool,
    ) -> Erasure | tuple[list[Sequence[UUID]], Erasure] | None:
        """Try one commit.

        Returns:
            How far the erasure is then; or what is left to be done in further commits; or None:
            somebody was faster.
        """
        draft, applier = self._writer.open_draft(partition, MadeVectors())
        step = Step(
            draft,
            self._keys.of(partition),
            applier,
            now=self._clock.now_us(),
            gone=frozenset(plan.gone),
            said=plan.said,
        )
        whole = step.erase(ids) if deletes else step.change(ids) >= 0
        if draft.is_empty:
            return erasure
        noted = self.records.note_deleted(draft, erasure)
        if draft.outgrown and len(ids) > 1:
            half = len(ids) // 2
            return [ids[:half], ids[half:]], erasure
        if not isinstance(self._store.commit(partition, draft.batch(None)), Committed):
            return None
        self._pending.add(partition, pending_added(draft))
        return noted if whole else ([ids], noted)

    def _scrub(self, partition: Partition, erasure: Erasure, deadline: Deadline) -> Erasure:
        """Take what is gone out of history, and seal what stays with other keys."""
        store = self._store
        plan = self.records.plan(partition, erasure)
        if isinstance(store, OwnerKeys):
            # Also when they were retired before: a stop forgets that, and what stays must not be
            # sealed with one of them once more.
            retired = [
                one for owner in erasure.owners for one in store.retire_owner(partition, owner)
            ]
            if not erasure.key_ids:
                erasure = replace(erasure, key_ids=tuple(retired))
                self.records.put(partition, erasure)
        purged, stuck = self._purge(partition, erasure, deadline)
        scrubbing = Scrubbing(plan, stuck, erasure.revision)
        if not isinstance(store, Scrubs):
            raise TypeError("looked at before the erasure began")
        whole = bool(erasure.subject) and set(erasure.owners) == {erasure.subject}
        alone = whole and not plan.changed and not stuck
        if not (alone and self._is_empty(partition, erasure.subject)):
            store.scrub(partition, scrubbing.change, key_ids=erasure.key_ids)
        elif isinstance(store, OwnerKeys):
            # Nobody leads to them any more; they are the subject's all the same.
            left = store.sealed_with(partition, erasure.key_ids)
            step = store.features.batch_ops_max
            for begin in range(0, len(left), step):
                store.commit(partition, Batch(deletes=left[begin : begin + step]))
                store.purge(partition, left[begin : begin + step])
        snapshot_keys = self._memory.forget_index(partition, deadline)
        total = erasure.memories + erasure.episodes + erasure.derived
        places = (
            Place("records", total, self._method(partition)),
            Place("history", purged + scrubbing.dropped, self._method(partition)),
            Place("citations", erasure.changed + scrubbing.changed, self._method(partition)),
        )
        erasure = replace(
            erasure,
            stage=Stage.SCRUBBED,
            key_ids=tuple(dict.fromkeys((*erasure.key_ids, *snapshot_keys))),
            places=places,
        )
        self.records.put(partition, erasure)
        return erasure

    def _purge(
        self, partition: Partition, erasure: Erasure, deadline: Deadline
    ) -> tuple[int, set[bytes]]:
        """Take what was deleted out of the past; return how many versions, and what lives again."""
        purged = 0
        stuck: set[bytes] = set()
        for keys in self.records.journal(partition, erasure):
            deadline.check()
            left = list(dict.fromkeys(keys))
            while left:
                try:
                    purged += self._store.purge(partition, left)
                    break
                except KeyStillLive as error:  # a live writer has stated something there since
                    stuck |= set(error.keys)
                    left = [one for one in left if one not in stuck]
        return purged, stuck

    def _log(self, partition: Partition, erasure: Erasure, _deadline: Deadline) -> Erasure:
        """Write the erasure down where no backup of the data reaches."""
        if self._ledger is None:
            logged = replace(erasure, stage=Stage.LOGGED)
            self.records.put(partition, logged)
            return logged
        keys = self._keys.of(partition)
        plan = self.records.plan(partition, erasure)
        known = self._ledger.find(erasure.id)
        if known is None:
            known = self._ledger.append(
                LedgerEntry(
                    erasure=erasure.id,
                    partition=keys.erased_partition(partition.namespace, partition.tenant),
                    recorded_at=self._clock.now_us(),
                    subject=erasure.subject,
                    ids=tuple(keys.erased_id(one) for one in plan.gone),
                    key_ids=erasure.key_ids,
                )
            )
        logged = replace(erasure, stage=Stage.LOGGED, ledger_entry=known)
        self.records.put(partition, logged)
        return logged

    def _finish(self, partition: Partition, erasure: Erasure, deadline: Deadline) -> Erasure:
        """Destroy the keys, or write the file anew; prove it; write the receipt."""
        store = self._store
        plan = self.records.plan(partition, erasure)
        self._memory.wipe(partition)
        destroyed = 0
        if isinstance(store, OwnerKeys):
            if store.sealed_with(partition, erasure.key_ids):
                raise PillionError(
                    Reason.ERASURE_UNPROVEN,
                    "something that stays is sealed with a key that is to be destroyed",
                )
            store.destroy_keys(erasure.key_ids)
            destroyed = len(erasure.key_ids)
        size = 0
        if self._is_plain(partition) and isinstance(store, Compacts):
            size = store.compact()
        evidence = self._evidence.get(erasure.id)
        proof = Proof(
            store,
            partition,
            self._keys.of(partition),
            erasure,
            plan,
            evidence=evidence,
            memory=self._memory,
        )
        verified = proof.prove(deadline, plain=self._is_plain(partition))
        places = erasure.places
        if destroyed:
            places += (Place("data_keys", destroyed, words.KEY_DESTROYED),)
        if size:
            places += (Place("data_file_bytes", size, words.COMPACTED),)
        done = replace(
            erasure,
            stage=Stage.DONE,
            places=places,
            verification=verified,
            finished_at=self._clock.now_us(),
        )
        self.records.finish(partition, done)
        self._evidence.pop(erasure.id, None)
        return done

    def _is_plain(self, partition: Partition) -> bool:
        store = self._store
        return not isinstance(store, OwnerKeys) or store.holds_plain(partition)

    def _method(self, partition: Partition) -> str:
        if not isinstance(self._store, OwnerKeys):
            return words.COMPACTED
        both = f"{words.KEY_DESTROYED}+{words.COMPACTED}"
        return both if self._is_plain(partition) else words.KEY_DESTROYED
