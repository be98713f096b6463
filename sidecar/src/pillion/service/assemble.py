"""Put the use cases together from what bootstrap chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pillion.domain.indexed_text import EpisodeIndexing
from pillion.domain.limits import INDEX_FROM_DEFAULT, PROMOTE_AFTER_DEFAULT
from pillion.domain.operations import FORGET, MIGRATE, ROLL_BACK
from pillion.domain.reindexing import REINDEX
from pillion.embedders.cache import QueryCache
from pillion.jobs.accesses import AccessJob
from pillion.jobs.ageing import NOTHING_AGES, AgeingJob, AgeingSettings
from pillion.jobs.embedding import EmbeddingJob
from pillion.jobs.operations import OperationsJob
from pillion.jobs.retention import RetentionJob, RetentionSettings
from pillion.service.accesses import Accesses, AccessFlusher
from pillion.service.background_forget import BackgroundForgetter, BackgroundForgetting
from pillion.service.beginning import Beginner
from pillion.service.catalogue import Catalogue
from pillion.service.consolidator import Consolidator
from pillion.service.eraser import UNHURRIED, Eraser
from pillion.service.erasure_memory import MemoryWiper
from pillion.service.faded import Fading
from pillion.service.forgetter import Forgetter
from pillion.service.forgetting import Forgetting
from pillion.service.holds import Holds
from pillion.service.importer import Importer
from pillion.service.index_snapshots import IndexSnapshots
from pillion.service.migrating import Migrating
from pillion.service.migrator import Migrator
from pillion.service.operating import Operator
from pillion.service.operations import Operations, RunningOperations
from pillion.service.partitions import KeySpaces
from pillion.service.past_search import PastSearcher
from pillion.service.past_tables import PastTables
from pillion.service.pending import PendingVectors
from pillion.service.profiles import BUILT_IN, Profiles
from pillion.service.promoter import Promoter
from pillion.service.query_vectors import QueryVectors
from pillion.service.ranked import Ranker
from pillion.service.reader import Reader
from pillion.service.recaller import Recaller
from pillion.service.receipts import Receipts
from pillion.service.registrar import Registrar
from pillion.service.registry import Registry
from pillion.service.reindexer import Reindexer
from pillion.service.residents import Residents
from pillion.service.searcher import Searcher
from pillion.service.selecting import Selecting
from pillion.service.statistics import StatisticsReader
from pillion.service.walker import Walker
from pillion.service.watcher import Watcher
from pillion.service.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pillion_storage.api import Store
    from pillion_storage.erasure_ledger import ErasureLedger

    from pillion.domain.search_plan import Costs
    from pillion.ports import Clock, Embedder, IdSource, SchemaCompiler, Summarizer, TokenCounter
    from pillion.service.operating import Doer

QUERY_CACHE_ENTRIES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the use cases let an operator choose.

    Attributes:
        index_from: Vectors of a partition from which it is searched by an approximate index.
        index_directory: Where indexes are kept between two runs; None: nowhere.
        partitions_memory_bytes: What partitions in memory may take together; None: whatever they
            come to.
        access_flush_seconds: How often uses of memories are written down; None: at the end only.
        episode_indexing: What of an episode its words are compared with.
        query_cache_entries: Query vectors that are remembered.
        promote_after_episodes: Distinct episodes that make a candidate CONFIRMED; 0: never.
        format_version: Of the store's files, for ``stats``.
        refuse_unregistered: Facts of attributes that nobody registered are refused.
        profiles: Ranking profiles by name.
        costs: What the search planner takes a row to cost; None: it is measured.
        ageing: What is forgotten by age.
        erases: Whether Forget erases; what was begun or is in the ledger is erased all the same.
        retention: How long history and request ids are kept; None: nothing is ever swept.
    """

    index_from: int = INDEX_FROM_DEFAULT
    index_directory: Path | None = None
    partitions_memory_bytes: int | None = None
    access_flush_seconds: float | None = None
    episode_indexing: EpisodeIndexing = EpisodeIndexing.CONTEXT
    query_cache_entries: int = QUERY_CACHE_ENTRIES
    promote_after_episodes: int = PROMOTE_AFTER_DEFAULT
    format_version: int = 0
    refuse_unregistered: bool = False
    profiles: Profiles = BUILT_IN
    costs: Costs | None = None
    ageing: AgeingSettings = NOTHING_AGES
    erases: bool = True
    retention: RetentionSettings | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UseCases:
    """Everything that the edge can ask for."""

    writer: Writer
    importer: Importer
    reader: Reader
    searcher: Searcher
    recaller: Recaller
    walker: Walker
    profiles: Profiles
    forgetter: Forgetter
    background_forgetter: BackgroundForgetter
    holds: Holds
    eraser: Eraser
    receipts: Receipts
    memory_wiper: MemoryWiper
    consolidator: Consolidator
    registrar: Registrar
    catalogue: Catalogue
    migrator: Migrator
    operations: Operations
    operator: Operator
    reindexer: Reindexer
    statistics: StatisticsReader
    watcher: Watcher
    access_flusher: AccessFlusher
    closers: tuple[Callable[[], None], ...]

    def close(self) -> None:
        """Stop background work, then close the embedder and the store. Repeats do nothing."""
        for close in self.closers:
            close()


def assemble(
    *,
    store: Store,
    store_kind: str,
    embedder: Embedder | None,
    summarizers: Mapping[str, Summarizer],
    token_counters: Mapping[str, TokenCounter],
    lost_details: Callable[[Sequence[str], Sequence[str]], Sequence[str]],
    schemas: SchemaCompiler,
    clock: Clock,
    ids: IdSource,
    settings: ServiceSettings,
    ledger: ErasureLedger | None = None,
) -> UseCases:
    """Return the use cases, with their background work started."""
    keys = KeySpaces(store)
    pending = PendingVectors(store)
    pending.load()
    queries = (
        QueryCache(embedder, entries_max=settings.query_cache_entries)
        if embedder is not None
        else None
    )
    snapshots = (
        IndexSnapshots(store, settings.index_directory)
        if settings.index_directory is not None
        else None
    )
    accesses = Accesses()
    residents = Residents(
        store,
        keys,
        index_from=settings.index_from,
        episode_indexing=settings.episode_indexing,
        snapshots=snapshots,
        memory_bytes_max=settings.partitions_memory_bytes,
        accesses=accesses,
    )
    registry = Registry(store, keys, schemas, refuse_unregistered=settings.refuse_unregistered)
    catalogue = Catalogue(store=store, keys=keys)
    writer = Writer(
        store=store,
        keys=keys,
        clock=clock,
        ids=ids,
        embedder=queries,
        pending=pending,
        registry=registry,
        promote_after=settings.promote_after_episodes,
    )
    searcher, past = _searching(
        store=store,
        keys=keys,
        residents=residents,
        clock=clock,
        queries=queries,
        pending=pending,
        accesses=accesses,
        settings=settings,
    )
    selecting = Selecting(
        store=store,
        keys=keys,
        searcher=searcher,
        fading=Fading(store=store, keys=keys, residents=residents, accesses=accesses),
        classes=settings.ageing.classes,
    )
    forgetting = Forgetting(store=store, keys=keys, clock=clock, writer=writer, selecting=selecting)
    reader = Reader(store=store, keys=keys, clock=clock)
    wipers = (reader.let_go, keys.let_go, *((queries.let_go,) if queries is not None else ()))
    wiper = MemoryWiper(store, residents, snapshots, wipers)
    eraser = Eraser(
        store=store,
        keys=keys,
        clock=clock,
        ids=ids,
        writer=writer,
        pending=pending,
        memory=wiper,
        ledger=ledger,
        promote_after=settings.promote_after_episodes,
        serves=settings.erases,
    )
    # Nothing of this data is served, nor worked on, before what was to be gone is gone.
    eraser.catch_up(UNHURRIED)
    watcher = Watcher(store=store, keys=keys)
    closers: list[Callable[[], None]] = [watcher.close]
    running = RunningOperations(store)
    beginner = Beginner(store=store, clock=clock, ids=ids, running=running)
    migrating = Migrating(store=store, keys=keys, registry=registry)
    job = EmbeddingJob(store, keys, queries, pending) if queries is not None else None
    reindexer = Reindexer(
        store=store,
        residents=residents,
        pending=pending,
        server=queries.identity if queries is not None else None,
        make_some=job.make_some if job is not None else lambda _: 0,
        beginner=beginner,
    )
    doers: dict[str, Doer] = {
        MIGRATE: migrating,
        ROLL_BACK: migrating,
        REINDEX: reindexer,
        FORGET: BackgroundForgetting(keys),
    }
    operator = Operator(store=store, clock=clock, writer=writer, pending=pending, doers=doers)
    work = OperationsJob(running, operator.advance)
    work.start()
    closers.append(work.stop)
    if job is not None:
        job.start()
        closers.append(job.stop)
    if settings.retention is not None:
        retention = RetentionJob(store, clock, settings.retention)
        retention.start()
        closers.append(retention.stop)
    forgetter = Forgetter(
        store=store, clock=clock, selecting=selecting, forgetting=forgetting, eraser=eraser
    )
    if any(settings.ageing.selectors()):
        ageing = AgeingJob(store, clock, forgetter, settings.ageing)
        ageing.start()
        closers.append(ageing.stop)
    flusher = AccessFlusher(store, keys, accesses)
    access_job = AccessJob(accesses, flusher, settings.access_flush_seconds)
    access_job.start()
    closers += [access_job.stop, residents.close]
    if queries is not None:
        closers.append(queries.close)
    closers.append(store.close)
    return UseCases(
        writer=writer,
        importer=Importer(store=store, writer=writer, pending=pending),
        reader=reader,
        searcher=searcher,
        recaller=Recaller(
            store=store,
            keys=keys,
            clock=clock,
            searcher=searcher,
            past=past,
            token_counters=token_counters,
            used=lambda partition, used: accesses.note(partition, used, clock.now_us()),
        ),
        walker=Walker(store=store, clock=clock, searcher=searcher),
        profiles=settings.profiles,
        forgetter=forgetter,
        background_forgetter=BackgroundForgetter(
            store=store, clock=clock, ids=ids, selecting=selecting, beginner=beginner
        ),
        holds=Holds(store=store, keys=keys, clock=clock),
        eraser=eraser,
        receipts=Receipts(store),
        memory_wiper=wiper,
        consolidator=Consolidator(
            store=store,
            keys=keys,
            clock=clock,
            ids=ids,
            writer=writer,
            pending=pending,
            summarizers=summarizers,
            lost_details=lost_details,
            promoter=Promoter(
                store=store,
                keys=keys,
                clock=clock,
                writer=writer,
                promote_after=settings.promote_after_episodes,
            ),
        ),
        registrar=Registrar(
            store=store, keys=keys, clock=clock, registry=registry, catalogue=catalogue
        ),
        catalogue=catalogue,
        migrator=Migrator(
            store=store,
            keys=keys,
            clock=clock,
            ids=ids,
            registry=registry,
            running=running,
            beginner=beginner,
        ),
        operations=Operations(store=store, clock=clock, stoppers=doers),
        operator=operator,
        reindexer=reindexer,
        statistics=StatisticsReader(
            store=store,
            store_kind=store_kind,
            residents=residents,
            pending=pending,
            embedder=embedder,
            clock=clock,
            format_version=settings.format_version,
        ),
        watcher=watcher,
        access_flusher=flusher,
        closers=tuple(closers),
    )


def _searching(
    *,
    store: Store,
    keys: KeySpaces,
    residents: Residents,
    clock: Clock,
    queries: QueryCache | None,
    pending: PendingVectors,
    accesses: Accesses,
    settings: ServiceSettings,
) -> tuple[Searcher, PastSearcher]:
    """Return what searches the present and the past; tables of the past count in the budget."""
    vectors = QueryVectors(queries)
    past = PastSearcher(
        store=store,
        keys=keys,
        vectors=vectors,
        tables=PastTables(residents.count_elsewhere),
        episode_indexing=settings.episode_indexing,
    )
    searcher = Searcher(
        store=store,
        keys=keys,
        residents=residents,
        clock=clock,
        vectors=vectors,
        pending=pending,
        ranker=Ranker(settings.index_from, settings.costs),
        accesses=accesses,
        past=past,
    )
    return searcher, past
