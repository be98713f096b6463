"""Write: an atomic list of mutations, applied once whatever is retried."""

from __future__ import annotations

import hashlib
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from pillion_storage.api import Committed, Token

from pillion.domain.commands import WriteAnswer
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_partition
from pillion.domain.limits import COMMIT_TRIES_MAX
from pillion.domain.mutations import EmbeddingMode
from pillion.domain.validation import check_write
from pillion.embedders.usable import usable_rows
from pillion.service import answers
from pillion.service.applier import Applier
from pillion.service.draft import Draft
from pillion.service.stated import text_to_embed
from pillion.service.vectors import MadeVectors, pending_added

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pillion_storage.api import Store

    from pillion.domain.commands import WriteCommand
    from pillion.domain.mutations import Mutation, MutationResult
    from pillion.domain.scope import Partition
    from pillion.embedders.cache import QueryCache
    from pillion.ports import Clock, Deadline, IdSource
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors
    from pillion.service.registry import Registry

TOKEN_BYTES: Final = 16
# How often a Write that is held back looks whether its caller is still there.
TURN_SECONDS: Final = 0.25


def token_id(verb: str, request_id: str) -> bytes:
    """Return the store's token for a request_id: the two verbs' ids never meet."""
    return hashlib.blake2b(f"{verb}\0{request_id}".encode(), digest_size=TOKEN_BYTES).digest()


def changed_too_often() -> PillionError:
    """Return the error for records that kept changing while a write was planned."""
    return PillionError(
        Reason.OVERLOADED,
        "the same records are being changed by others all the time: try again",
        retry_after_ms=50,
    )


class Writer:
    """Applies Writes."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        ids: IdSource,
        embedder: QueryCache | None,
        pending: PendingVectors,
        registry: Registry,
        promote_after: int,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._embedder = embedder
        self._pending = pending
        self._registry = registry
        self._promote_after = promote_after
        self._turn = threading.Condition()
        self._holding: set[Partition] = set()

    @contextmanager
    def hold_back(self, partition: Partition) -> Iterator[None]:
        """Let no Write of a partition begin meanwhile; they wait, as long as their callers do.

        For one commit of an erasure that others kept getting ahead of.
        """
        with self._turn:
            self._holding.add(partition)
        try:
            yield
        finally:
            with self._turn:
                self._holding.discard(partition)
                self._turn.notify_all()

    def _wait_turn(self, partition: Partition, deadline: Deadline) -> None:
        while partition in self._holding:
            deadline.check()
            with self._turn:
                self._turn.wait_for(lambda: partition not in self._holding, TURN_SECONDS)

    def write(self, partition: Partition, command: WriteCommand, deadline: Deadline) -> WriteAnswer:
        """Apply a Write: all of its mutations, or none.

        Raises:
            PillionError: For every reason of the contract; nothing was changed then. Only after
                DEADLINE_EXCEEDED or a lost connection is the outcome unknown: retry with the same
                request_id.
        """
        check_partition(partition)
        check_write(command)
        token = token_id("write", command.request_id) if command.request_id else b""
        earlier = self._find_earlier(partition, token)
        if earlier is not None:
            return self._replayed(partition, command, earlier)
        made = self.make_vectors(command.mutations, command.embedding_mode, deadline)
        for _ in range(COMMIT_TRIES_MAX):
            deadline.check()
            if self._holding:
                self._wait_turn(partition, deadline)
            draft, applier = self.open_draft(partition, made, commits=not command.validate_only)
            try:
                results = _apply_all(applier, command)
            except PillionError:
                # What stands in its way may be itself: an earlier try of the same request that
                # was still at work, and is in this draft's revision by now.
                earlier = self._find_earlier(partition, token)
                if earlier is not None:
                    return self._replayed(partition, command, earlier)
                raise
            if command.validate_only:
                return self._answer(partition, draft.revision, results, self._clock.now_us())
            memo = answers.encode(command.body_digest, results)
            outcome = self._store.commit(
                partition, draft.batch(Token(token, memo) if token else None)
            )
            if isinstance(outcome, Committed):
                if outcome.replayed:
                    return self._replayed(partition, command, outcome)
                self._pending.add(partition, pending_added(draft))
                return self._answer(partition, outcome.revision, results, outcome.recorded_at)
        raise changed_too_often()

    def open_draft(
        self, partition: Partition, made: MadeVectors, *, commits: bool = True
    ) -> tuple[Draft, Applier]:
        """Return a fresh draft of the partition's newest state, and what applies to it.

        A draft that is never committed (``commits`` is False) leaves no trace of the partition.
        """
        draft = Draft(self._store, partition)
        keys = self._keys.of(partition) if commits else self._keys.at(partition, draft.revision)
        applier = Applier(
            draft,
            keys,
            now=self._clock.now_us(),
            new_id=self._ids.new_id,
            server_space=self._embedder.identity if self._embedder is not None else None,
            made=made,
            registry=self._registry,
            promote_after=self._promote_after,
        )
        return draft, applier

    def make_vectors(
        self, mutations: Iterable[Mutation], mode: EmbeddingMode, deadline: Deadline
    ) -> MadeVectors:
        """Return the vectors that a write asked to have in line.

        Raises:
            PillionError: DEADLINE_EXCEEDED or OVERLOADED when the embedder does not keep up;
                PLUGIN_UNAVAILABLE when it returns what is no vector.
            EmbedderError: The embedder does not answer, or refuses a text.
        """
        if mode is not EmbeddingMode.INLINE or self._embedder is None:
            return MadeVectors()
        texts = list(
            dict.fromkeys(text for one in mutations if (text := text_to_embed(one)) is not None)
        )
        if not texts:
            return MadeVectors({})
        identity = self._embedder.identity
        made = self._embedder.embed_passages(texts, within_seconds=deadline.remaining_seconds())
        by_text = {}
        for text, row in zip(texts, usable_rows(made, len(texts), identity.dimension), strict=True):
            if row is None:
                raise PillionError(
                    Reason.PLUGIN_UNAVAILABLE,
                    f"the embedder {identity.name} made no usable vector of a text: queue the "
                    "vectors, so that the write does not depend on them",
                )
            by_text[text] = np.ascontiguousarray(row, dtype="<f4").tobytes()
        return MadeVectors(by_text)

    def _find_earlier(self, partition: Partition, token: bytes) -> Committed | None:
        """Return what an earlier try of this request did, if one is on disk."""
        return self._store.find_token(partition, token) if token else None

    def _replayed(
        self, partition: Partition, command: WriteCommand, earlier: Committed
    ) -> WriteAnswer:
        results = answers.decode(earlier.memo, command.body_digest)
        answer = self._answer(partition, earlier.revision, results, earlier.recorded_at)
        return replace(answer, replayed=True)

    def _answer(
        self,
        partition: Partition,
        revision: int,
        results: tuple[MutationResult, ...],
        recorded_at: int,
    ) -> WriteAnswer:
        """Return the answer, with the revision filled in where results wait for it."""
        return WriteAnswer(
            revision=revision,
            results=tuple(answers.at_revision(result, revision) for result in results),
            recorded_at=recorded_at,
            replayed=False,
            vectors_pending=self._pending.count(partition),
        )


def _apply_all(applier: Applier, command: WriteCommand) -> tuple[MutationResult, ...]:
    for index, guard in enumerate(command.guards):
        try:
            applier.check_guard(guard)
        except PillionError as error:
            raise error.within(f"guards[{index}]", guard_index=str(index)) from None
    results = []
    for index, mutation in enumerate(command.mutations):
        try:
            results.append(applier.apply(mutation))
        except PillionError as error:
            raise error.within(f"mutations[{index}]", index=str(index)) from None
    return tuple(results)
