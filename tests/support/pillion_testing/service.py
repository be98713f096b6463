"""A whole service over a store of the test's choice, with short ways to say what tests say."""

from __future__ import annotations

import json
import struct
from contextlib import contextmanager

import pytest
from pillion.domain.commands import (
    ConsolidateCommand,
    ForgetCommand,
    ForgetMode,
    WriteCommand,
)
from pillion.domain.errors import PillionError
from pillion.domain.forgetting import ByFact, ByIds, BySubject
from pillion.domain.memory import MemoryKind, Source, SourceKind
from pillion.domain.mutations import (
    AddMemory,
    CaptureEpisode,
    CloseOpenItem,
    ConfirmMemory,
    ConflictPolicy,
    EmbeddingMode,
    MemoryDraft,
    MemoryPatch,
    PatchMemory,
    Precondition,
    PreconditionKind,
    PutFact,
    RestoreMemory,
    RetractMemory,
)
from pillion.domain.queries import PLAIN_READ, Filter, ReadAt, SearchQuery, Target
from pillion.domain.recall import RecallQuery
from pillion.domain.schemas import AttributeSchema, ExistingValues, RegisterCommand
from pillion.domain.scope import FactKey, Partition, Subject
from pillion.domain.search_plan import Costs
from pillion.domain.values import Value, ValueKind
from pillion.domain.watching import WatchQuery
from pillion.schemas.json_schema import JsonSchemaCompiler

from pillion.service import ServiceSettings, assemble  # isort: skip  (jobs import it)
from pillion.jobs.embedding import EmbeddingJob
from pillion.jobs.operations import OperationsJob
from pillion.summarizers.details import lost_details
from pillion.summarizers.extractive import create as create_extractive
from pillion.token_counters import estimate, lengths
from pillion_storage.api import KEY_SPACE_END, StoreSettings
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed

from pillion_testing.fakes import CountingIds, FakeClock, Patience
from pillion_testing.owners import OwnersChecked

ACME = Partition("production", "acme")
MIRA = Subject("user", "mira")
STATED = Source(SourceKind.USER_STATEMENT)
ANY = Precondition(PreconditionKind.UNCONDITIONAL)
NEW = Precondition(PreconditionKind.MUST_NOT_EXIST)
EXISTS = Precondition(PreconditionKind.MUST_EXIST)
TOKEN_COUNTERS = {
    "bytes": lengths.create_bytes({}),
    "characters": lengths.create_characters({}),
    "estimate": estimate.create({}),
}
EVERYTHING = Filter(
    contexts=None,
    statuses=frozenset(),
    include_retracted=True,
    include_expired=True,
    valid_only=False,
)


def version_is(version: int) -> Precondition:
    return Precondition(PreconditionKind.VERSION_EQUALS, version)


def text_value(text: str) -> Value:
    return Value(ValueKind.TEXT, text)


def floats(*numbers: float) -> bytes:
    """A vector as it travels: little-endian float32."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


def fact(value="v", *, attribute="deadline", subject=MIRA, source=STATED, **more) -> MemoryDraft:
    made = value if isinstance(value, Value) else text_value(value)
    return MemoryDraft(
        subject=subject,
        source=source,
        kind=MemoryKind.SEMANTIC,
        attribute=attribute,
        value=made,
        **more,
    )


def put_fact(
    value="v", *, when: Precondition = ANY, policy: ConflictPolicy | None = None, **more
) -> PutFact:
    return PutFact(fact(value, **more), when, policy)


def memory(text="hello", *, kind=MemoryKind.EPISODIC, subject=MIRA, source=STATED, **more):
    return MemoryDraft(subject=subject, source=source, kind=kind, text=text, **more)


def add(text="hello", **more) -> AddMemory:
    return AddMemory(memory(text, **more), NEW)


def episode(content="hello", *, subject=MIRA, source_kind=SourceKind.USER_STATEMENT, **more):
    return CaptureEpisode(
        subject=subject, content=content, source_kind=source_kind, precondition=NEW, **more
    )


def patch(memory_id, when: Precondition = ANY, **fields) -> PatchMemory:
    return PatchMemory(memory_id, MemoryPatch(fields=frozenset(fields), **fields), when)


def confirm(memory_id, when: Precondition = ANY, episode_id=None) -> ConfirmMemory:
    return ConfirmMemory(memory_id, Source(SourceKind.USER_CONFIRMATION, episode_id), when)


def retract(memory_id=None, *, key=None, valid_to=None, when: Precondition = ANY):
    return RetractMemory(when, memory_id, key, valid_to)


def restore(memory_id, when: Precondition = ANY) -> RestoreMemory:
    return RestoreMemory(memory_id, when)


def close_item(memory_id, *, closed_at=None, when: Precondition = ANY) -> CloseOpenItem:
    return CloseOpenItem(memory_id, when, closed_at)


def key_of(attribute="deadline", subject=MIRA, context="") -> FactKey:
    return FactKey(subject, context, attribute)


def member_of(value, attribute="deadline", subject=MIRA, context="") -> FactKey:
    """The key of one member of a set; a value that is none is text."""
    made = value if isinstance(value, Value) else text_value(value)
    return FactKey(subject, context, attribute, made.fingerprint)


def refusal(call) -> PillionError | None:
    """Why a call was refused; None: it was not."""
    try:
        call()
    except PillionError as error:
        return error
    return None


# So dear a scan that the index is asked wherever it can help at all.
DEAR_SCAN = Costs(filter_row=1.0, prior_row=1.0, scan_row=1e6, score_row=1.0)


class Service:
    """Use cases over one store, in one partition unless told otherwise."""

    def __init__(
        self,
        store,
        *,
        clock=None,
        ids=None,
        embedder=None,
        summarizers=None,
        token_counters=None,
        lost=lost_details,
        index_from=1_000_000,
        costs=None,
        settings=None,
        partition=ACME,
        refuse_unregistered=False,
        ledger=None,
    ) -> None:
        self.store = store
        self.clock = clock or FakeClock()
        self.ids = ids or CountingIds()
        self.partition = partition
        self.patience = Patience()
        self.use_cases = assemble(
            store=store,
            store_kind="test",
            embedder=embedder,
            summarizers=summarizers or {"extractive": create_extractive({})},
            token_counters=token_counters or TOKEN_COUNTERS,
            lost_details=lost,
            schemas=JsonSchemaCompiler(),
            clock=self.clock,
            ids=self.ids,
            settings=settings
            or ServiceSettings(
                index_from=index_from, costs=costs, refuse_unregistered=refuse_unregistered
            ),
            ledger=ledger,
        )

    def close(self) -> None:
        self.use_cases.close()

    def by_hand(self):
        """Stop long work and the making of queued vectors: both go on only if a test says so."""
        for close in self.use_cases.closers:
            if isinstance(getattr(close, "__self__", None), OperationsJob | EmbeddingJob):
                close()
        return self

    # --- writing ---------------------------------------------------------------------------

    def write(
        self,
        *mutations,
        guards=(),
        request_id="",
        digest=b"d",
        mode=EmbeddingMode.QUEUED,
        validate_only=False,
        partition=None,
    ):
        command = WriteCommand(
            mutations=mutations,
            guards=guards,
            request_id=request_id,
            body_digest=digest,
            embedding_mode=mode,
            validate_only=validate_only,
        )
        return self.use_cases.writer.write(partition or self.partition, command, self.patience)

    def one(self, mutation, **more):
        """Write one mutation and return its result."""
        (result,) = self.write(mutation, **more).results
        return result

    def put(self, value="v", **more):
        return self.one(put_fact(value, **more))

    def import_(self, *items, mode=EmbeddingMode.QUEUED, partition=None):
        return self.use_cases.importer.import_batch(
            partition or self.partition, items, mode, self.patience
        )

    def forget(self, mode=ForgetMode.EXPIRE, *, partition=None, **selector):
        """Forget by one selector: as a value, or the usual ones by name."""
        made = selector.pop("selector", ByIds(()))
        if "ids" in selector:
            made = ByIds(tuple(selector.pop("ids")))
        if "subject" in selector:
            made = BySubject(selector.pop("subject"), selector.pop("contexts", None))
        if "fact" in selector:
            made = ByFact(selector.pop("fact"))
        command = ForgetCommand(mode=mode, selector=made, **selector)
        return self.use_cases.forgetter.forget(partition or self.partition, command, self.patience)

    def consolidate(self, subject=MIRA, *, partition=None, **more):
        command = ConsolidateCommand(subject=subject, **more)
        return self.use_cases.consolidator.consolidate(
            partition or self.partition, command, self.patience
        )

    def register(
        self,
        json_schema="true",
        *,
        attribute="deadline",
        when: Precondition = ANY,
        existing=ExistingValues.MUST_FIT,
        validate_only=False,
        request_id="",
        digest=b"d",
        partition=None,
        deadline=None,
        **more,
    ):
        """Register an attribute; a schema that is no text is written as JSON."""
        if not isinstance(json_schema, str):
            json_schema = json.dumps(json_schema)
        command = RegisterCommand(
            schema=AttributeSchema(attribute=attribute, json_schema=json_schema, **more),
            precondition=when,
            existing_values=existing,
            validate_only=validate_only,
            request_id=request_id,
            body_digest=digest,
        )
        return self.use_cases.registrar.register(
            partition or self.partition, command, deadline or self.patience
        )

    # --- reading ---------------------------------------------------------------------------

    def schema(self, attribute="deadline", version=0, *, partition=None):
        """One version of a registered attribute; 0: the latest."""
        return self.use_cases.catalogue.get(partition or self.partition, attribute, version)

    def schemas(self, page_size=0, page_token="", *, partition=None):
        return self.use_cases.catalogue.page(
            partition or self.partition,
            page_size=page_size,
            page_token=page_token,
            deadline=self.patience,
        )

    @property
    def revision(self) -> int:
        return self.store.head(self.partition).revision

    def get(self, memory_id, *, partition=None, read=PLAIN_READ):
        """The memory with an id."""
        found, _ = self.use_cases.reader.get(
            partition or self.partition,
            Target(memory_id=memory_id),
            read,
            include_vector=False,
            deadline=self.patience,
        )
        return found.memory

    def get_episode(self, episode_id):
        found, _ = self.use_cases.reader.get(
            self.partition,
            Target(episode_id=episode_id),
            ReadAt(),
            include_vector=False,
            deadline=self.patience,
        )
        return found.episode

    def vector(self, memory_id):
        found, _ = self.use_cases.reader.get(
            self.partition,
            Target(memory_id=memory_id),
            ReadAt(),
            include_vector=True,
            deadline=self.patience,
        )
        return found.vector

    def current(self, key=None, *, as_of=None, **read):
        """The row that answers for a fact at an instant, or None."""
        (found,), _ = self.use_cases.reader.batch_get(
            self.partition,
            (Target(fact=key or key_of()),),
            ReadAt(as_of=as_of, **read),
            include_vectors=False,
            deadline=self.patience,
        )
        return found.memory if found is not None else None

    def value_at(self, as_of=None, key=None, **read):
        row = self.current(key, as_of=as_of, **read)
        return row.value.data if row is not None else None

    def list(
        self,
        filter_=EVERYTHING,
        *,
        page_size=1000,
        page_token="",
        episodes=False,
        partition=None,
        read=PLAIN_READ,
    ):
        return self.use_cases.reader.list(
            partition or self.partition,
            filter_,
            read,
            page_size=page_size,
            page_token=page_token,
            episodes=episodes,
            deadline=self.patience,
        )

    def listed(self, filter_=EVERYTHING, **more):
        """The memories of a listing's first page."""
        return [one.memory or one.episode for one in self.list(filter_, **more).records]

    def history(self, key=None, *, memory_id=None, page_size=0, page_token="", read=PLAIN_READ):
        return self.use_cases.reader.history(
            self.partition,
            fact=key,
            memory_id=memory_id,
            read=read,
            page_size=page_size,
            page_token=page_token,
            deadline=self.patience,
        )

    def search(self, text="", *, top_k=10, partition=None, **more):
        query = SearchQuery(top_k=top_k, text=text, **more)
        return self.use_cases.searcher.search(partition or self.partition, query, self.patience)

    def found(self, text="", **more):
        """The ids of a search's hits, in order."""
        return [hit.memory.id for hit in self.search(text, **more).hits]

    def recall(self, text="", *subjects, token_budget=10_000, partition=None, **more):
        query = RecallQuery(
            subjects=subjects or (MIRA,), token_budget=token_budget, text=text, **more
        )
        return self.use_cases.recaller.recall(partition or self.partition, query, self.patience)

    def watch(
        self, after=0, filter_=None, *, heartbeat=30.0, partition=None, patience=None, cut_off=None
    ):
        """A watch as its consumer sees it: an iterator of events."""
        query = WatchQuery(after_revision=after, filter=filter_, heartbeat_seconds=heartbeat)
        return self.use_cases.watcher.watch(
            partition or self.partition, query, patience or self.patience, cut_off or (lambda: None)
        )

    def told(self, after=0, filter_=None, **more):
        """The events of a watch up to the heartbeat that says that it has caught up."""
        events = []
        for event in self.watch(after, filter_, **more):
            events.append(event)
            if event.recorded_at is None:
                break
        return events

    def records(self, partition=None):
        """Every live record of the partition: what "nothing was written" is measured by."""
        rows = {}
        start = b""
        while start is not None:
            page = self.store.scan(partition or self.partition, start, KEY_SPACE_END, limit=10_000)
            rows |= {row.key: (row.version, row.value) for row in page.rows}
            start = page.next_start
        return rows

    @contextmanager
    def refuses(self, reason, field=None, *, partition=None):
        """Expect a refusal for a reason, at a field, that writes nothing."""
        before = self.records(partition), self.store.head(partition or self.partition)
        with pytest.raises(PillionError) as caught:
            yield caught
        assert caught.value.reason is reason, caught.value
        if field is not None:
            assert [one.field for one in caught.value.violations] == [field]
        assert (self.records(partition), self.store.head(partition or self.partition)) == before


def ram_service(**more) -> Service:
    """A service over a fresh RAM store that shares its clock and checks the owners of values."""
    clock = more.pop("clock", None) or FakeClock()
    return Service(OwnersChecked(StoreSettings(clock_us=clock.now_us)), clock=clock, **more)


def lmdb_service(directory, *, sealed=False, **more) -> Service:
    """A service over an LMDB store in a directory, with encryption if it is to be sealed."""
    clock = more.pop("clock", None) or FakeClock()
    settings = StoreSettings(
        directory=directory,
        size_bytes_initial=1 << 20,
        size_bytes_max=256 << 20,
        clock_us=clock.now_us,
    )
    if not sealed:
        return Service(open_lmdb(settings), clock=clock, **more)
    keys = directory / "keys"
    seals = SealSettings(keys, FileMasterKey(keys / "master.key"))
    return Service(open_sealed(open_lmdb, settings, seals), clock=clock, **more)
