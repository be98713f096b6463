"""Forget: a selection, carried out in steps; or in a dry run, what it would take."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from pillion_storage import codec
from pillion_storage.api import Batch, Committed, Token

from pillion.domain.commands import ForgetMode, ForgetReport
from pillion.domain.erasure import Receipt
from pillion.domain.field_checks import check_partition, check_reason_code, check_request_id
from pillion.domain.forgetting import (
    ByEpisode,
    ByFact,
    ByIds,
    BySubject,
    check_force,
    check_selector,
)
from pillion.domain.limits import FORGET_SAMPLE_MAX
from pillion.service import answers
from pillion.service.erasure_scope import Selection
from pillion.service.forgetting import Forgetting, Tally
from pillion.service.writer import token_id

if TYPE_CHECKING:
    from pillion_storage.api import Store

    from pillion.domain.commands import ForgetCommand
    from pillion.domain.forgetting import Selector
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline
    from pillion.service.eraser import Eraser
    from pillion.service.selecting import Selecting


class Forgetter:
    """Takes memories and episodes out of recall, retracts or erases them."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        selecting: Selecting,
        forgetting: Forgetting,
        eraser: Eraser,
    ) -> None:
        self._store = store
        self._clock = clock
        self._selecting = selecting
        self._forgetting = forgetting
        self._eraser = eraser

    def forget(
        self, partition: Partition, command: ForgetCommand, deadline: Deadline
    ) -> ForgetReport:
        """Forget, or in a dry run say what would be forgotten.

        Up to 100 ids are one atomic commit. Anything else goes in steps of 100 records; a call
        that was cut short has forgotten the steps that it committed, and calling it again goes
        on. What is forgotten already is passed over, and what is held stays, unless it was named:
        by its id, its subject or its fact.

        Raises:
            PillionError: NOT_FOUND when one of the ids is neither memory nor episode; SEALED when
                what was named is held; FORCE_REQUIRED for a selector that matches everything;
                nothing was changed then. Further as `Selecting.steps`.
        """
        check_partition(partition)
        check_command(command)
        token = token_id("forget", command.request_id) if command.request_id else b""
        if command.mode is ForgetMode.ERASE:
            return self._erase(partition, command, token, deadline)
        if token and not command.dry_run:
            earlier = self._store.find_token(partition, token)
            if earlier is not None:
                return _replayed(earlier, command.body_digest)
        tally = Tally()
        revision = self._store.head(partition).revision
        now = self._clock.now_us()
        while tally.unseen:
            tally.unseen = False
            for step in self._selecting.steps(partition, command.selector, now, deadline):
                deadline.check()
                revision = self._forgetting.step(partition, command, step, tally)
        if token and not command.dry_run:
            memo = _memo(command.body_digest, tally)
            outcome = self._store.commit(partition, Batch(token=Token(token, memo)))
            if isinstance(outcome, Committed):
                if outcome.replayed:
                    return _replayed(outcome, command.body_digest)
                revision = outcome.revision
        return report_of(tally, revision, dry_run=command.dry_run)

    def _erase(
        self, partition: Partition, command: ForgetCommand, token: bytes, deadline: Deadline
    ) -> ForgetReport:
        """Erase, or in a dry run say what an erasure would take."""
        self._eraser.check_served()
        select = partial(self._selection, partition, command.selector, deadline)
        if command.dry_run:
            scope = self._eraser.preview(partition, select(), deadline)
            return ForgetReport(
                memories=scope.memories,
                episodes=scope.episodes,
                derived=scope.derived,
                sample_ids=tuple(scope.gone)[:FORGET_SAMPLE_MAX],
                exempt_ids=tuple(scope.exempt)[:FORGET_SAMPLE_MAX],
                unpreviewed=scope.newer_than(command.preview_revision),
                dry_run=True,
                revision=scope.revision,
            )
        erasure = self._eraser.erase(
            partition,
            select,
            deadline,
            token=token,
            body_digest=command.body_digest,
            preview_revision=command.preview_revision,
        )
        return ForgetReport(
            memories=erasure.memories,
            episodes=erasure.episodes,
            derived=erasure.derived,
            sample_ids=erasure.sample,
            exempt_ids=erasure.exempt,
            unpreviewed=erasure.unpreviewed,
            dry_run=False,
            revision=erasure.revision,
            receipt=Receipt(partition, erasure),
        )

    def _selection(self, partition: Partition, selector: Selector, deadline: Deadline) -> Selection:
        """Return what an erasure by a selector is about."""
        match selector:
            case ByIds(ids):
                return Selection(ids)
            case ByEpisode(episode_id):
                return Selection((episode_id,))
            case BySubject(subject, contexts):
                return Selection(subject=subject, contexts=contexts)
            case ByFact(fact):
                return Selection(fact=fact)
        now = self._clock.now_us()
        found: dict[UUID, None] = {}
        for step in self._selecting.steps(partition, selector, now, deadline):
            found.update(dict.fromkeys(step.ids))
        return Selection(tuple(found), named=False)


def check_command(command: ForgetCommand) -> None:
    """Refuse a malformed Forget, and one of everything that nobody said ``force`` to.

    Raises:
        PillionError: As `check_selector` and `check_force`.
    """
    check_request_id(command.request_id)
    check_reason_code("reason_code", command.reason_code)
    check_selector(command.selector)
    if not command.dry_run:
        check_force(command.selector, force=command.force)


def report_of(tally: Tally, revision: int, *, dry_run: bool) -> ForgetReport:
    """Return what a tally comes to."""
    return ForgetReport(
        memories=tally.memories,
        episodes=tally.episodes,
        derived=tally.derived,
        sample_ids=tally.sample,
        exempt_ids=tally.exempt,
        unpreviewed=tally.unpreviewed,
        dry_run=dry_run,
        revision=revision,
    )


def _memo(body_digest: bytes, tally: Tally) -> bytes:
    return codec.pack(
        [
            body_digest,
            tally.memories,
            tally.episodes,
            [one.bytes for one in tally.sample],
            tally.derived,
            [one.bytes for one in tally.exempt],
            tally.unpreviewed,
        ]
    )


def _replayed(earlier: Committed, body_digest: bytes) -> ForgetReport:
    answers.check_same_body(earlier.memo, body_digest)
    _, memories, episodes, sample, *more = codec.unpack(earlier.memo or b"")
    derived, exempt, unpreviewed = more or (0, (), 0)  # earlier versions wrote none of these
    return ForgetReport(
        memories=memories,
        episodes=episodes,
        derived=derived,
        sample_ids=tuple(UUID(bytes=one) for one in sample),
        exempt_ids=tuple(UUID(bytes=one) for one in exempt),
        unpreviewed=unpreviewed,
        dry_run=False,
        revision=earlier.revision,
    )
