"""A real server on a real socket, over use cases that record what they were asked."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import grpc
import pytest
from pillion.domain import commands, queries
from pillion.domain.embedding import EmbedderIdentity
from pillion.domain.memory import Memory, MemoryKind, Source, SourceKind
from pillion.domain.scope import Partition, Subject
from pillion.service.profiles import BUILT_IN
from pillion.transport.identity import LocalAuthenticator
from pillion.transport.memory_servicer import ServerFacts
from pillion.transport.server import Server, ServerSettings

MEMORY_ID = UUID("01890000-0000-7000-8000-000000000001")
MIRA = Subject("user", "mira")


def a_memory(**changes: Any) -> Memory:
    values: dict[str, Any] = {
        "id": MEMORY_ID,
        "subject": MIRA,
        "kind": MemoryKind.SEMANTIC,
        "text": "a text",
        "source": Source(SourceKind.USER_STATEMENT),
        "valid_from": 1,
        "created_at": 2,
        "updated_at": 3,
    }
    return Memory(**(values | changes))


@dataclass
class FakeUseCases:
    """Answers every verb with something small; ``fail`` or ``hook`` are played first."""

    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    fail: Exception | None = None
    hook: Any = None
    probe_error: Exception | None = None
    watches_end: threading.Event = field(default_factory=threading.Event)
    watch_events: Any = ()
    import_acks: list[commands.ImportAck] = field(default_factory=list)

    def _play(self, verb: str, answer: Any) -> Any:
        def play(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((verb, args, kwargs))
            if self.hook is not None:
                self.hook(verb, args, kwargs)
            if self.fail is not None:
                raise self.fail
            return answer() if callable(answer) else answer

        return play

    def __post_init__(self) -> None:
        found = queries.Found(memory=a_memory())
        write = commands.WriteAnswer(
            revision=1, results=(), recorded_at=5, replayed=False, vectors_pending=0
        )
        search = queries.SearchAnswer(
            hits=(queries.Hit(a_memory(), 0.5, 0.4, 0.3, 0.2, None),),
            revision=1,
            exactness=queries.Exactness.EXACT,
            path=queries.SearchPath.SCAN,
            admitted=1,
            vectors_pending=0,
        )
        forget = commands.ForgetReport(
            memories=1, episodes=0, derived=0, sample_ids=(MEMORY_ID,), dry_run=True, revision=1
        )
        consolidate = commands.ConsolidateReport(
            clusters=0, created=(), consolidated=0, skipped=(), promoted=(MEMORY_ID,),
            dry_run=True, more=False, revision=1,
        )  # fmt: skip
        store = commands.StoreStatistics(
            kind="ram", disk_bytes=1, disk_bytes_max=2, commits=3, flushes=4, queue_depth=5,
            format_version=6,
        )  # fmt: skip
        statistics = commands.Statistics(store=store, partitions=(), uptime_us=7, resident_bytes=8)
        play = self._play
        self.writer = SimpleNamespace(write=play("write", write))
        self.importer = SimpleNamespace(import_batch=play("import_batch", self._next_ack))
        self.reader = SimpleNamespace(
            get=play("get", (found, 1)),
            batch_get=play("batch_get", ((found, None), 1)),
            list=play("list", queries.Page((found,), "", 1)),
            history=play("history", ((), "", 1)),
        )
        self.profiles = BUILT_IN
        self.searcher = SimpleNamespace(search=play("search", search))
        self.memory_wiper = SimpleNamespace(on_wipe=lambda _wipe: None)
        self.forgetter = SimpleNamespace(forget=play("forget", forget))
        self.consolidator = SimpleNamespace(consolidate=play("consolidate", consolidate))
        self.watcher = SimpleNamespace(watch=self._watch, end_all=self.watches_end.set)
        self.statistics = SimpleNamespace(
            statistics=play("statistics", statistics),
            embedder_identity=lambda: EmbedderIdentity("hashing", "1", 64, "", 0.0),
            probe=self._probe,
        )

    def _watch(self, *args: Any) -> Any:
        self.calls.append(("watch", args, {}))
        if self.fail is not None:
            raise self.fail
        yield from self.watch_events(*args) if callable(self.watch_events) else self.watch_events

    def _next_ack(self) -> commands.ImportAck:
        if self.import_acks:
            return self.import_acks.pop(0)
        return commands.ImportAck(
            revision=1, written=1, existing=0, rejections=(), vectors_pending=0
        )

    def _probe(self) -> None:
        if self.probe_error is not None:
            raise self.probe_error

    @property
    def last_partition(self) -> Partition:
        return self.calls[-1][1][0]


class Gate:
    """Holds calls inside a use case until it is opened; says how many are inside."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._inside = threading.Semaphore(0)

    def __call__(self, *_: Any) -> None:
        self._inside.release()
        assert self._open.wait(20)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._inside.acquire(timeout=20)

    def open(self) -> None:
        self._open.set()


class StoppedClock:
    def now_us(self) -> int:
        return 1_700_000_000_000_000


@pytest.fixture
def use_cases() -> FakeUseCases:
    return FakeUseCases()


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open()


@pytest.fixture
def serve(tmp_path, use_cases):
    """Start a server and return a channel to it."""
    stops = []

    def start(authenticator=None, **settings) -> grpc.Channel:
        given = {
            "socket": tmp_path / "s",
            "tcp": None,
            "read_workers": 4,
            "write_workers": 4,
            "streams_max": 2,
            "default_deadline_ms": 30_000,
        } | settings
        server = Server(
            use_cases,
            ServerSettings(**given),
            ServerFacts(
                version="9.9.9", store_kind="ram", default_deadline_ms=30_000, request_ids_max=77
            ),
            authenticator or LocalAuthenticator(),
            StoppedClock(),
        )
        server.start()
        channel = grpc.insecure_channel(f"unix:{given['socket']}")
        stops.extend([channel.close, lambda: server.stop(0)])
        start.server = server
        return channel

    yield start
    for stop in stops:
        stop()


@pytest.fixture
def channel(serve) -> grpc.Channel:
    return serve()
