"""The composition root: the one place that sees concrete classes and puts them together.

`start` opens the store first, whose lock keeps a second server out, then the embedder, the use
cases and the listeners. Whatever fails closes what was opened before it. `Running.stop` goes the
other way: not ready, drain, flush, close.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import uuid_utils.compat
from pillion_storage.api import StoreSettings
from pillion_storage.erasure_ledger import ErasureLedger
from pillion_storage.schema import FORMAT_VERSION
from pillion_storage.sealed import KEYS_DIRECTORY, SealSettings, open_sealed, refuse_sealed

from pillion import __version__
from pillion.clocks import SteadyClock
from pillion.config import Encryption, Erasing, SettingsError, parse_address
from pillion.domain.memory import MemoryKind
from pillion.domain.retention import RetentionClasses
from pillion.embedders.entry_points import PluginError, installed, load_factory
from pillion.embedders.errors import EmbedderMisconfigured
from pillion.embedders.registry import create_embedder
from pillion.jobs.ageing import AgeingSettings
from pillion.jobs.retention import RetentionSettings
from pillion.memory_share import memory_bytes, partitions_share
from pillion.schemas.json_schema import JsonSchemaCompiler
from pillion.service import ServiceSettings, assemble
from pillion.service.profiles import Profiles
from pillion.summarizers.details import lost_details
from pillion.token_counters.errors import CounterMisconfiguredError
from pillion.token_counters.registry import GROUP as TOKEN_COUNTERS
from pillion.token_counters.registry import create_counters
from pillion.transport.identity import LocalAuthenticator, TokenFileError, load_tokens
from pillion.transport.memory_servicer import ServerFacts
from pillion.transport.server import Server, ServerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from uuid import UUID

    from pillion_storage.api import Store
    from pillion_storage.sealed import MasterKeys

    from pillion.config import Settings
    from pillion.ports import Embedder, Summarizer, TokenCounter
    from pillion.service import UseCases
    from pillion.token_counters.registry import Factory as CounterFactory
    from pillion.transport.identity import Authenticator

    _MasterKeysFactory = Callable[[Mapping[str, object], Path], MasterKeys]
    _SummarizerFactory = Callable[[Mapping[str, object]], Summarizer]

STORES: Final = "pillion.stores"
MASTER_KEYS: Final = "pillion.master_keys"
SUMMARIZERS: Final = "pillion.summarizers"
# Beside the data: what vector indexes are kept in between two runs.
INDEX_DIRECTORY: Final = "index"
NO_EMBEDDER: Final = "none"
# Stores that write nothing down: there is nothing to encrypt, and no file to keep keys beside.
_NOTHING_AT_REST: Final = frozenset({"ram"})


class Uuid7Source:
    """Makes UUIDv7 ids that sort in the order in which this process made them."""

    def new_id(self) -> UUID:
        """Return a new id."""
        return uuid_utils.compat.uuid7()


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens, and what it stands on."""

    server: Server
    use_cases: UseCases
    settings: Settings

    @property
    def embedder_name(self) -> str:
        """The embedder in use, for the line that says the server is ready."""
        identity = self.use_cases.statistics.embedder_identity()
        return identity.name if identity else NO_EMBEDDER

    def stop(self) -> None:
        """Drain, flush and close. Repeated calls do nothing."""
        self.server.stop(self.settings.drain_seconds)
        self.use_cases.close()


def start(settings: Settings) -> Running:
    """Open everything and listen.

    Raises:
        SettingsError: A setting names something that is not there or cannot be used.
        StoreError: The directory is locked, unusable, damaged or of a newer format.
        ListenError: The socket or the port cannot be had.
    """
    authenticator = _authenticator(settings)
    summarizers = _summarizers()
    token_counters = _token_counters(settings)
    with contextlib.ExitStack() as opened:
        clock = SteadyClock()
        store = _open_store(settings, clock)
        opened.callback(store.close)
        for partition in store.partitions():
            clock.not_before(store.head(partition).recorded_at)
        ledger = _ledger(settings)
        embedder = _open_embedder(settings)
        if embedder is not None:
            opened.callback(embedder.close)
        use_cases = assemble(
            store=store,
            store_kind=settings.store,
            embedder=embedder,
            summarizers=summarizers,
            token_counters=token_counters,
            lost_details=lost_details,
            schemas=JsonSchemaCompiler(),
            clock=clock,
            ids=Uuid7Source(),
            ledger=ledger,
            settings=ServiceSettings(
                index_from=settings.index_from,
                index_directory=_index_directory(settings),
                access_flush_seconds=settings.access_flush_seconds,
                partitions_memory_bytes=(
                    settings.partitions_memory_bytes or partitions_share(memory_bytes())
                ),
                episode_indexing=settings.episode_indexing,
                profiles=_profiles(settings),
                refuse_unregistered=settings.unregistered_attributes == "refuse",
                promote_after_episodes=settings.promote_after_episodes,
                format_version=FORMAT_VERSION,
                retention=_retention(settings),
                ageing=_ageing(settings),
                erases=settings.erasure is Erasing.PREVIEW,
            ),
        )
        opened.pop_all()
        opened.callback(use_cases.close)
        server = Server(
            use_cases,
            ServerSettings(
                socket=settings.socket_path,
                tcp=parse_address(settings.tcp) if settings.tcp is not None else None,
                read_workers=settings.workers,
                write_workers=settings.write_workers,
                streams_max=settings.streams_max,
                watchers_max=settings.watchers_max,
                default_deadline_ms=settings.default_deadline_ms,
            ),
            ServerFacts(
                version=__version__,
                store_kind=settings.store,
                default_deadline_ms=settings.default_deadline_ms,
                request_ids_max=settings.store_options.tokens_max,
                request_id_window_us=_hours(settings.request_id_window_hours),
                history_window_us=_hours(settings.history_window_hours),
            ),
            authenticator,
            clock,
        )
        opened.callback(server.stop, 0)
        server.start()
        opened.pop_all()
    return Running(server, use_cases, settings)


def _ledger(settings: Settings) -> ErasureLedger | None:
    if settings.store in _NOTHING_AT_REST:
        return None
    return ErasureLedger(settings.erasure_ledger_path)


def _index_directory(settings: Settings) -> Path | None:
    return None if settings.store in _NOTHING_AT_REST else settings.directory / INDEX_DIRECTORY


def _hours(hours: int) -> int | None:
    """Return hours in microseconds; None for 0, which is for ever."""
    return hours * 3_600_000_000 or None


def _profiles(settings: Settings) -> Profiles:
    return Profiles({name: one.ranking() for name, one in settings.profiles.items()})


def _retention(settings: Settings) -> RetentionSettings:
    return RetentionSettings(
        history_window_us=_hours(settings.history_window_hours),
        request_id_window_us=_hours(settings.request_id_window_hours),
        sweep_interval_seconds=settings.sweep_interval_seconds,
    )


def _ageing(settings: Settings) -> AgeingSettings:
    classes = {name: one.retention_class() for name, one in settings.retention_classes.items()}
    return AgeingSettings(
        classes=RetentionClasses(classes),
        decay_below={
            MemoryKind[kind.upper()]: vitality for kind, vitality in settings.decay_below.items()
        },
        interval_seconds=settings.ageing_interval_seconds,
    )


def _authenticator(settings: Settings) -> Authenticator:
    if settings.token_file is None:
        return LocalAuthenticator()
    try:
        return load_tokens(settings.token_file)
    except TokenFileError as error:
        raise SettingsError(f"token_file: {error}") from None


def _open_store(settings: Settings, clock: SteadyClock) -> Store:
    points = importlib.metadata.entry_points(group=STORES)
    if settings.store not in points.names:
        known = ", ".join(sorted(points.names))
        raise SettingsError(f"store: no plug-in is called '{settings.store}'; known: {known}")
    open_store = cast("Callable[[StoreSettings], Store]", load_factory(STORES, settings.store))
    options = settings.store_options
    size_max = options.size_bytes_max
    bare = StoreSettings(
        directory=settings.directory,
        size_bytes_initial=min(StoreSettings().size_bytes_initial, size_max),
        size_bytes_max=size_max,
        queue_batches_max=options.queue_batches_max,
        queue_bytes_max=options.queue_bytes_max,
        tokens_max=options.tokens_max,
        clock_us=clock.now_us,
    )
    if settings.encryption is Encryption.ON and settings.store not in _NOTHING_AT_REST:
        return open_sealed(open_store, bare, _seals(settings))
    store = open_store(bare)
    try:
        refuse_sealed(store)
    except BaseException:
        store.close()
        raise
    return store


def _seals(settings: Settings) -> SealSettings:
    """Return where the keys are and who keeps the master key."""
    keys_directory = settings.directory / KEYS_DIRECTORY
    name = settings.master_key_provider
    try:
        create = cast("_MasterKeysFactory", load_factory(MASTER_KEYS, name))
    except PluginError as error:
        raise SettingsError(f"master_key_provider: {error}") from None
    try:
        master = create(settings.master_key_options, keys_directory)
    except ValueError as error:
        raise SettingsError(f"master_key_options: {error}") from None
    return SealSettings(keys_directory, master)


def _open_embedder(settings: Settings) -> Embedder | None:
    if settings.embedder == NO_EMBEDDER:
        return None
    try:
        return create_embedder(settings.embedder, settings.embedder_options)
    except EmbedderMisconfigured as error:
        raise SettingsError(f"embedder: {error}") from None


def _summarizers() -> dict[str, Summarizer]:
    """Return every summarizer that is installed, by name."""
    made: dict[str, Summarizer] = {}
    try:
        for name in installed(SUMMARIZERS):
            create = cast("_SummarizerFactory", load_factory(SUMMARIZERS, name))
            made[name] = create({})
    except PluginError as error:
        raise SettingsError(f"summarizers: {error}") from None
    return made


def _token_counters(settings: Settings) -> dict[str, TokenCounter]:
    """Return every token counter that is installed and configured, by name."""
    try:
        factories = {
            name: cast("CounterFactory", load_factory(TOKEN_COUNTERS, name))
            for name in installed(TOKEN_COUNTERS)
        }
        return create_counters(factories, settings.token_counters)
    except (PluginError, CounterMisconfiguredError) as error:
        raise SettingsError(f"token_counters: {error}") from None
