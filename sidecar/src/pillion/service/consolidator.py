"""Consolidate: state the lasting facts of one subject's old episodic memories."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, overload
from uuid import UUID

import numpy as np
from pillion_storage import codec
from pillion_storage.api import Batch, Committed, Token
from pillion_storage.keys import EMBEDDER_KEY, SubjectRecord, id_of, prefix_end

from pillion.domain.commands import ConsolidateReport, SkippedCluster, SkipReason
from pillion.domain.consolidation import (
    cluster,
    consolidated,
    labels_lost,
    same_thing_threshold,
)
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import (
    check_instant,
    check_partition,
    check_request_id,
    check_subject,
    check_text,
)
from pillion.domain.limits import (
    CLUSTER_IDS_MAX,
    CLUSTER_SIZE_MAX,
    CLUSTER_SIZE_MIN,
    CONSOLIDATE_MEMORIES_MAX,
    CONTEXT_BYTES_MAX,
    SKIPPED_CLUSTERS_MAX,
    TEXT_BYTES_MAX,
)
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter
from pillion.service import answers
from pillion.service.reading import RecordReader
from pillion.service.vectors import MadeVectors, pending_added
from pillion.service.writer import token_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pillion_storage.api import Store

    from pillion.domain.commands import ConsolidateCommand
    from pillion.domain.memory import Memory
    from pillion.domain.scope import Partition
    from pillion.ports import Clock, Deadline, IdSource, Summarizer
    from pillion.service.partitions import KeySpaces
    from pillion.service.pending import PendingVectors
    from pillion.service.promoter import Promoter
    from pillion.service.writer import Writer

WEEK_US: Final = 7 * 86_400 * 1_000_000
SENTENCES_MAX: Final = 12
SCAN_ROWS: Final = 500
# Memories whose words are compared in one run: texts are longer than vectors, and to read the
# words of many takes seconds.
WORDS_MEMORIES_MAX: Final = 500
# Distinct words whose use is compared in one step: a few megabytes, some milliseconds.
WORDS_AT_A_TIME: Final = 2048
_WORD: Final = re.compile(r"\w+")


class Consolidator:
    """Makes semantic memories of episodic ones. One at a time in a partition."""

    def __init__(
        self,
        *,
        store: Store,
        keys: KeySpaces,
        clock: Clock,
        ids: IdSource,
        writer: Writer,
        pending: PendingVectors,
        summarizers: Mapping[str, Summarizer],
        lost_details: Callable[[Sequence[str], Sequence[str]], Sequence[str]],
        promoter: Promoter,
    ) -> None:
        self._store = store
        self._keys = keys
        self._clock = clock
        self._ids = ids
        self._writer = writer
        self._pending = pending
        self._summarizers = summarizers
        self._lost_details = lost_details
        self._promoter = promoter
        self._lock = threading.Lock()
        self._running: set[Partition] = set()

    def consolidate(
        self, partition: Partition, command: ConsolidateCommand, deadline: Deadline
    ) -> ConsolidateReport:
        """Consolidate one subject's episodic memories, cluster by cluster.

        Each cluster is one commit that fails if a source changed meanwhile, so live writers win.
        Before that, the subject's candidates that enough episodes state are promoted.
        Sources stay, marked; what is marked is not looked at again, so a call that was cut short
        is gone on with by calling it again.

        Raises:
            PillionError: ALREADY_RUNNING when this partition is being consolidated.
        """
        check_partition(partition)
        summarizer = self._checked(command)
        token = token_id("consolidate", command.request_id) if command.request_id else b""
        if token and not command.dry_run:
            earlier = self._store.find_token(partition, token)
            if earlier is not None:
                return self._replayed(partition, earlier, command.body_digest)
        with self._alone(partition):
            report = self._run(partition, command, summarizer, deadline)
            if token and not command.dry_run:
                memo = _memo(command.body_digest, report)
                outcome = self._store.commit(partition, Batch(token=Token(token, memo)))
                if isinstance(outcome, Committed):
                    if outcome.replayed:  # the same request was at work while this one waited
                        return self._replayed(partition, outcome, command.body_digest)
                    report = replace(report, revision=outcome.revision)
        return report

    def _checked(self, command: ConsolidateCommand) -> Summarizer:
        check_request_id(command.request_id)
        check_subject("subject", command.subject)
        check_text("context", command.context, CONTEXT_BYTES_MAX)
        check_instant("before", command.before)
        if not CLUSTER_SIZE_MIN <= command.cluster_size_min <= CLUSTER_SIZE_MAX:
            raise PillionError.of_field(
                "cluster_size_min", f"must be from {CLUSTER_SIZE_MIN} to {CLUSTER_SIZE_MAX}"
            )
        summarizer = self._summarizers.get(command.summarizer)
        if summarizer is None:
            known = ", ".join(sorted(self._summarizers))
            raise PillionError.of_field("summarizer", f"is not installed here; there is {known}")
        return summarizer

    @contextmanager
    def _alone(self, partition: Partition) -> Iterator[None]:
        with self._lock:
            if partition in self._running:
                raise PillionError(
                    Reason.ALREADY_RUNNING, "this partition is being consolidated already"
                )
            self._running.add(partition)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(partition)

    def _run(
        self,
        partition: Partition,
        command: ConsolidateCommand,
        summarizer: Summarizer,
        deadline: Deadline,
    ) -> ConsolidateReport:
        now = self._clock.now_us()
        before = command.before if command.before is not None else now - WEEK_US
        promoted, more_due = self._promoter.promote(
            partition, command.subject, command.context, deadline, dry_run=command.dry_run
        )
        memories, more = self._old_memories(partition, command, before, now, deadline)
        compared, groups = self._clusters(partition, memories, command.cluster_size_min, deadline)
        more = more or more_due or len(compared) < len(memories)
        created: list[Memory] = []
        skipped: list[SkippedCluster] = []
        count = looked_at = 0
        for group in groups:
            deadline.check()
            sources = [compared[place] for place in group]
            if len(sources) < command.cluster_size_min:
                skipped.append(_skip(sources, SkipReason.TOO_SMALL))
                continue
            looked_at += 1
            outcome = self._consolidate_one(partition, sources, summarizer, dry_run=command.dry_run)
            if isinstance(outcome, SkippedCluster):
                skipped.append(outcome)
            else:
                created.append(outcome)
                count += len(sources)
        return ConsolidateReport(
            clusters=looked_at,
            created=tuple(created),
            consolidated=count,
            skipped=tuple(sorted(skipped, key=lambda one: one.reason)[:SKIPPED_CLUSTERS_MAX]),
            promoted=promoted,
            dry_run=command.dry_run,
            more=more,
            revision=self._store.head(partition).revision,
        )

    def _old_memories(
        self,
        partition: Partition,
        command: ConsolidateCommand,
        before: int,
        now: int,
        deadline: Deadline,
    ) -> tuple[list[Memory], bool]:
        """Return the memories to look at, oldest first, and whether there are more."""
        wanted = Filter(
            subjects=frozenset({command.subject}),
            contexts=frozenset({command.context}),
            kinds=frozenset({MemoryKind.EPISODIC}),
        )
        keys = self._keys.at(partition, self._store.head(partition).revision)
        reader = RecordReader(self._store, partition, keys)
        prefix = keys.subject_range(command.subject, SubjectRecord.MEMORY)
        found: list[Memory] = []
        start: bytes | None = prefix
        while start is not None:
            deadline.check()
            page = self._store.scan(
                partition, start, prefix_end(prefix), limit=SCAN_ROWS, keys_only=True
            )
            memories, _ = reader.memories([id_of(row.key) for row in page.rows], page.revision)
            found += [
                one
                for one in memories.values()
                if one.valid_from < before
                and one.consolidated_into is None
                and wanted.admits(one, now, now)
            ]
            if len(found) > CONSOLIDATE_MEMORIES_MAX:
                break
            start = page.next_start
        found.sort(key=lambda one: (one.valid_from, one.id))
        return found[:CONSOLIDATE_MEMORIES_MAX], len(found) > CONSOLIDATE_MEMORIES_MAX

    def _clusters(
        self,
        partition: Partition,
        memories: Sequence[Memory],
        size_min: int,
        deadline: Deadline,
    ) -> tuple[Sequence[Memory], list[list[int]]]:
        """Return the memories that were compared, and groups of their places.

        Vectors are compared where there are any. Memories without one wait for a later run, by
        which their vectors may be made; when no group of those with vectors is large enough, they
        are compared by their words, so that waiting ends.
        """
        reader = RecordReader(
            self._store, partition, self._keys.at(partition, self._store.head(partition).revision)
        )
        vectors: dict[UUID, bytes] = {}
        ids = [one.id for one in memories]
        for begin in range(0, len(ids), SCAN_ROWS):
            deadline.check()
            vectors |= reader.vectors(ids[begin : begin + SCAN_ROWS], None)
        compared = [one for one in memories if one.id in vectors]
        groups: list[list[int]] = []
        if compared:
            rows = np.stack([np.frombuffer(vectors[one.id], dtype="<f4") for one in compared])
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            # 0.0 means that nobody measured it: clients' vectors, for example.
            space = self._store.read(partition, (EMBEDDER_KEY,)).entries[EMBEDDER_KEY]
            unrelated = codec.decode_embedder(space.value).unrelated_cosine or None
            groups = _grouped(compared, rows @ rows.T, unrelated, deadline)
        if any(len(group) >= size_min for group in groups):
            return compared, groups
        wordy = [one for one in memories if one.id not in vectors][:WORDS_MEMORIES_MAX]
        overlap = _word_overlap([one.text for one in wordy], deadline.check)
        more_groups = _grouped(wordy, overlap, 0.0, deadline)
        groups += [[len(compared) + place for place in group] for group in more_groups]
        return compared + wordy, groups

    def _consolidate_one(
        self,
        partition: Partition,
        sources: Sequence[Memory],
        summarizer: Summarizer,
        *,
        dry_run: bool,
    ) -> Memory | SkippedCluster:
        too_many = labels_lost(sources)
        if too_many:
            return _skip(sources, SkipReason.LOSES_DETAILS, too_many)
        texts = [one.text for one in sources]
        statements = [one.text for one in summarizer.summarize(texts, sentences_max=SENTENCES_MAX)]
        text = " ".join(statements)
        lost = self._lost_details(texts, statements)
        if lost or not text or len(text.encode()) > TEXT_BYTES_MAX:
            return _skip(sources, SkipReason.LOSES_DETAILS, len(lost))
        now = self._clock.now_us()
        made = consolidated(sources, text, self._ids.new_id(), now)
        if dry_run:
            return made
        draft, applier = self._writer.open_draft(partition, MadeVectors())
        for source in sources:
            current = applier.records.find_memory(source.id)
            if current is None or current.version != source.version:
                return _skip(sources, SkipReason.CHANGED)
            applier.records.update(replace(current, consolidated_into=made.id, updated_at=now))
        applier.records.create(made)
        outcome = self._store.commit(partition, draft.batch(None))
        if not isinstance(outcome, Committed):
            return _skip(sources, SkipReason.CHANGED)
        self._pending.add(partition, pending_added(draft))
        return replace(made, version=outcome.revision)

    def _replayed(
        self, partition: Partition, earlier: Committed, body_digest: bytes
    ) -> ConsolidateReport:
        answers.check_same_body(earlier.memo, body_digest)
        _, clusters, created, count, more, *later = codec.unpack(earlier.memo or b"")
        ids = [UUID(bytes=one) for one in created]
        reader = RecordReader(
            self._store, partition, self._keys.at(partition, self._store.head(partition).revision)
        )
        memories, _ = reader.memories(ids, None)
        return ConsolidateReport(
            clusters=clusters,
            created=tuple(memories[one] for one in ids if one in memories),
            consolidated=count,
            skipped=(),
            promoted=tuple(UUID(bytes=one) for one in (later[0] if later else ())),
            dry_run=False,
            more=more,
            revision=earlier.revision,
        )


def _memo(body_digest: bytes, report: ConsolidateReport) -> bytes:
    created = [one.id.bytes for one in report.created]
    promoted = [one.bytes for one in report.promoted]
    return codec.pack(
        [body_digest, report.clusters, created, report.consolidated, report.more, promoted]
    )


def _skip(sources: Sequence[Memory], reason: SkipReason, lost: int = 0) -> SkippedCluster:
    return SkippedCluster(tuple(one.id for one in sources[:CLUSTER_IDS_MAX]), reason, lost)


class _Rows(Sequence[list[float]]):
    """The rows of a matrix as lists, each made when asked for: all at once take much room."""

    def __init__(self, matrix: np.ndarray) -> None:
        self._matrix = matrix

    def __len__(self) -> int:
        return len(self._matrix)

    @overload
    def __getitem__(self, place: int) -> list[float]: ...
    @overload
    def __getitem__(self, place: slice) -> _Rows: ...
    def __getitem__(self, place: int | slice) -> list[float] | _Rows:
        if isinstance(place, slice):
            return _Rows(self._matrix[place])
        row: list[float] = self._matrix[place].tolist()
        return row


def _grouped(
    memories: Sequence[Memory], matrix: np.ndarray, unrelated: float | None, deadline: Deadline
) -> list[list[int]]:
    rows = _Rows(matrix)
    threshold = same_thing_threshold(rows, unrelated, check=deadline.check)
    classes = [one.retention_class for one in memories]
    return cluster(rows, threshold, classes, check=deadline.check)


def _word_overlap(texts: Sequence[str], check: Callable[[], None]) -> np.ndarray:
    """Return the Jaccard similarity of the texts' word sets, a symmetric matrix.

    Words in common are counted by products of 0/1 matrices, a block of words at a time, which
    leaves other threads free to run. ``check`` is called for each text and block.
    """
    numbers: dict[str, int] = {}
    said: list[list[int]] = []
    for text in texts:
        check()
        words = set(_WORD.findall(text.casefold()))
        said.append([numbers.setdefault(one, len(numbers)) for one in words])
    sizes = np.array([len(one) for one in said], dtype=np.int64)
    owners = np.repeat(np.arange(len(said)), sizes)
    words_said = np.array([one for words in said for one in words], dtype=np.int64)
    order = np.argsort(words_said, kind="stable")
    owners, words_said = owners[order], words_said[order]
    both = np.zeros((len(said), len(said)))
    for base in range(0, len(numbers), WORDS_AT_A_TIME):
        check()
        low, high = np.searchsorted(words_said, (base, base + WORDS_AT_A_TIME))
        block = np.zeros((len(said), WORDS_AT_A_TIME), dtype=np.float32)
        block[owners[low:high], words_said[low:high] - base] = 1.0
        both += block @ block.T
    either = sizes[:, None] + sizes[None, :] - both
    overlap: np.ndarray = np.divide(both, either, out=np.ones_like(both), where=either > 0)
    return overlap
