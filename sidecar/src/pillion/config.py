"""The settings of ``pillion serve``: flags, then PILLION_* variables, then a TOML file, then these.

A wrong value is named by its setting, with what to do. Values themselves are not repeated: one of
them may be a secret in the wrong place.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from datetime import date  # noqa: TC003  (pydantic reads it)
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableVariable

from pillion.domain.indexed_text import EpisodeIndexing
from pillion.domain.limits import (
    CLASSES_MAX,
    DEADLINE_DEFAULT_MS,
    HALF_LIFE_MAX_US,
    HALF_LIFE_MIN_US,
    INDEX_FROM_DEFAULT,
    NAME_BYTES_MAX,
    PROFILES_MAX,
    PROMOTE_AFTER_DEFAULT,
    RECURRENCE_EPISODES_MAX,
    WATCHERS_DEFAULT,
    WEIGHTS_SUM_MIN,
)
from pillion.domain.memory import MemoryKind, SourceKind
from pillion.domain.queries import RankingProfile, RecencyAnchor
from pillion.domain.retention import RetentionClass
from pillion.logs import LogFormat, LogLevel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

ENV_PREFIX: Final = "PILLION_"
SOCKET_NAME: Final = "pillion.sock"
_PORT_MAX: Final = 65_535
# 100 years.
HOURS_MAX: Final = 876_600
# Read by the provider ``environment``: a secret, so no setting.
_NO_SETTINGS: Final = frozenset({f"{ENV_PREFIX}MASTER_KEY"})


class SettingsError(Exception):
    """A setting is wrong. The message names it and says what to do."""


def parse_address(text: str) -> tuple[str, int]:
    """Return (host, port) of ``127.0.0.1:0``, ``[::1]:7430`` or a bare port.

    Raises:
        ValueError: It is none of these, or the host is not a loopback address.
    """
    host, separator, port_text = text.rpartition(":")
    host = host.strip("[]") if separator else "127.0.0.1"
    if not port_text.isdecimal() or int(port_text) > _PORT_MAX:
        raise ValueError("write HOST:PORT, for example 127.0.0.1:7430; port 0 picks a free one")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ValueError("name the host by its address, for example 127.0.0.1") from None
    if not loopback:
        raise ValueError("only a loopback address is served without TLS; use 127.0.0.1")
    return host, int(port_text)


def _check_address(text: str) -> str:
    parse_address(text)
    return text


_Address = Annotated[str, AfterValidator(_check_address)]


class Encryption(StrEnum):
    """Whether what is stored is encrypted."""

    ON = "on"
    OFF = "off"


class Erasing(StrEnum):
    """Whether ERASE is served."""

    OFF = "off"
    PREVIEW = "preview"


class StoreOptions(BaseModel):
    """Options of the store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size_bytes_max: Annotated[int, Field(ge=1 << 20, description="Bytes it may grow to.")] = (
        256 << 30
    )
    queue_batches_max: Annotated[int, Field(ge=1, description="Writes that may wait.")] = 4096
    queue_bytes_max: Annotated[int, Field(ge=1 << 20, description="Bytes that may wait.")] = (
        64 << 20
    )
    tokens_max: Annotated[
        int, Field(ge=1, description="Request ids remembered in each partition.")
    ] = 1_000_000


_PROFILE_NAME: Final = re.compile(r"[a-z0-9_-]{1,64}")
_DAY_US: Final = 86_400 * 1_000_000
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def _check_half_life(days: object) -> object:
    if days == "none":
        return None
    number = float(days) if isinstance(days, int | float) else 0.0
    if HALF_LIFE_MIN_US <= number * _DAY_US <= HALF_LIFE_MAX_US:
        return number
    raise ValueError("write days, from 1 minute (0.0007) to 100 years (36500), or 'none'")


def _check_profile_name(name: str) -> str:
    if not _PROFILE_NAME.fullmatch(name):
        raise ValueError("a profile is named with 1 to 64 of a-z, 0-9, '-' and '_'")
    return name


_HalfLifeDays = Annotated[float | None, BeforeValidator(_check_half_life)]
_KindName = Literal["episodic", "semantic", "procedural", "session", "open_item"]
_SourceName = Literal[
    "user_statement",
    "user_confirmation",
    "tool_result",
    "document",
    "inference",
    "consolidation",
]
_ProfileName = Annotated[str, AfterValidator(_check_profile_name)]


class RetentionClassSettings(BaseModel):
    """What is decided about a retention class."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    owner: Annotated[
        str, Field(min_length=1, max_length=256, description="Who answers for the class.")
    ]
    review_on: Annotated[
        date | None, Field(description="When it is to be looked at again: 2027-01-31.")
    ] = None
    keep_days: Annotated[
        float | None,
        Field(
            gt=0,
            le=36_500,
            allow_inf_nan=False,
            description="How long after its recording what bears it is kept; absent: without end.",
        ),
    ] = None

    def retention_class(self) -> RetentionClass:
        """Return it as the service takes it."""
        keep_for = None if self.keep_days is None else round(self.keep_days * _DAY_US)
        return RetentionClass(owner=self.owner, review_on=self.review_on, keep_for=keep_for)


_ClassName = Annotated[str, Field(min_length=1, max_length=NAME_BYTES_MAX)]


class ProfileSettings(BaseModel):
    """One ranking profile. What is absent is as in the built-in ``default``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    relevance_weight: Annotated[_Share, Field(description="Weight of relevance, 0 to 1.")] = 0.60
    recency_weight: Annotated[_Share, Field(description="Weight of recency, 0 to 1.")] = 0.25
    importance_weight: Annotated[_Share, Field(description="Weight of importance, 0 to 1.")] = 0.15
    half_life_days: Annotated[
        dict[_KindName, _HalfLifeDays],
        Field(description="By kind, 1 minute to 100 years; 'none': no decay."),
    ] = {}
    recency_anchor: Annotated[
        Literal["valid_from", "last_used"], Field(description="From when recency counts.")
    ] = "valid_from"
    diversity: Annotated[_Share, Field(description="0: pure score; 1: pure diversity.")] = 0.0
    consolidated_factor: Annotated[
        _Share, Field(description="On the score of memories consolidated into another.")
    ] = 0.5
    source_confidence: Annotated[
        dict[_SourceName, _Share],
        Field(description="On the score of memories, by the kind of their source; absent: 1."),
    ] = {}

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        total = self.relevance_weight + self.recency_weight + self.importance_weight
        if total < WEIGHTS_SUM_MIN:
            raise ValueError("at least one of the three weights must be above 0")
        return self

    def ranking(self) -> RankingProfile:
        """Return the profile in the domain's form."""
        return RankingProfile(
            relevance_weight=self.relevance_weight,
            recency_weight=self.recency_weight,
            importance_weight=self.importance_weight,
            usual_half_lives={
                MemoryKind[kind.upper()]: None if days is None else round(days * _DAY_US)
                for kind, days in self.half_life_days.items()
            },
            recency_anchor=RecencyAnchor[self.recency_anchor.upper()],
            consolidated_factor=self.consolidated_factor,
            source_confidence={
                SourceKind[kind.upper()]: factor for kind, factor in self.source_confidence.items()
            },
            diversity=self.diversity,
        )


class Settings(BaseSettings):
    """How to serve."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    directory: Annotated[Path, Field(description="Where memories are kept.")] = Path(".pillion")
    socket: Annotated[
        Path | None, Field(description="The Unix socket. Default: DIRECTORY/pillion.sock.")
    ] = None
    tcp: Annotated[
        _Address | None,
        Field(description="Also listen on this loopback HOST:PORT; port 0 picks a free one."),
    ] = None
    token_file: Annotated[
        Path | None, Field(description="Callers must present a token of this file.")
    ] = None
    allow_unauthenticated_tcp: Annotated[
        bool, Field(description="Serve TCP without a token file: every local user gets in.")
    ] = False
    workers: Annotated[
        int, Field(ge=1, le=64, description="Threads for reads. More than a few only contend.")
    ] = 4
    write_workers: Annotated[
        int, Field(ge=1, le=512, description="Threads for writes; they share flushes to disk.")
    ] = 64
    streams_max: Annotated[
        int, Field(ge=1, le=256, description="Streams open at once; each holds a thread.")
    ] = 8
    watchers_max: Annotated[
        int, Field(ge=1, le=1024, description="Watches open at once; each holds a thread.")
    ] = WATCHERS_DEFAULT
    default_deadline_ms: Annotated[
        int, Field(ge=1, le=3_600_000, description="The deadline of a call that brought none.")
    ] = DEADLINE_DEFAULT_MS
    drain_seconds: Annotated[
        float, Field(ge=0, le=600, description="How long calls may go on after SIGTERM.")
    ] = 5.0
    store: Annotated[str, Field(description="The store, by plug-in name.")] = "lmdb"
    store_options: Annotated[StoreOptions, Field(description="Its options.")] = StoreOptions()
    encryption: Annotated[
        Encryption, Field(description="Encrypt what is stored: on or off. A choice for good.")
    ] = Encryption.ON
    erasure: Annotated[
        Erasing,
        Field(description="Whether Forget erases: off, or preview: see the gaps in SECURITY.md."),
    ] = Erasing.OFF
    erasure_ledger: Annotated[
        Path | None,
        Field(
            description="Where erasures are written down, apart from the data and its backups. "
            "Default: DIRECTORY.erasures."
        ),
    ] = None
    master_key_provider: Annotated[
        str, Field(description="Who keeps the master key, by plug-in name: file, environment.")
    ] = "file"
    master_key_options: Annotated[dict[str, Any], Field(description="Its options.")] = {}
    embedder: Annotated[
        str, Field(description="The embedder, by plug-in name; 'auto' picks; 'none': no embedder.")
    ] = "auto"
    embedder_options: Annotated[dict[str, Any], Field(description="Its options.")] = {}
    token_counters: Annotated[
        dict[str, dict[str, Any]], Field(description="Options of token counters, by their names.")
    ] = {}
    index_from: Annotated[
        int,
        Field(ge=1, description="Vectors of a partition from which an approximate index pays."),
    ] = INDEX_FROM_DEFAULT
    episode_indexing: Annotated[
        EpisodeIndexing,
        Field(description="What is indexed of an episode: 'context' or 'plain', its text alone."),
    ] = EpisodeIndexing.CONTEXT
    profiles: Annotated[
        dict[_ProfileName, ProfileSettings],
        Field(max_length=PROFILES_MAX, description="Ranking profiles by name."),
    ] = {}
    unregistered_attributes: Annotated[
        Literal["accept", "refuse"],
        Field(description="Facts of attributes that nobody registered: 'accept' or 'refuse'."),
    ] = "accept"
    promote_after_episodes: Annotated[
        int,
        Field(
            ge=0,
            le=RECURRENCE_EPISODES_MAX,
            description="Distinct episodes that make a candidate CONFIRMED; 0: only a user does.",
        ),
    ] = PROMOTE_AFTER_DEFAULT
    history_window_hours: Annotated[
        int,
        Field(ge=0, le=HOURS_MAX, description="How long history is readable; 0: for ever."),
    ] = 0
    request_id_window_hours: Annotated[
        int,
        Field(ge=0, le=HOURS_MAX, description="How long request ids are remembered; 0: for ever."),
    ] = 24
    retention_classes: Annotated[
        dict[_ClassName, RetentionClassSettings],
        Field(max_length=CLASSES_MAX, description="Retention classes by name."),
    ] = {}
    decay_below: Annotated[
        dict[_KindName, _Share],
        Field(description="By kind, the vitality under which memories are forgotten."),
    ] = {}
    ageing_interval_seconds: Annotated[
        float, Field(ge=60, le=2_592_000, description="How often what is past its time goes.")
    ] = 21_600.0
    partitions_memory_bytes: Annotated[
        int | None,
        Field(
            ge=1 << 20,
            description="What partitions may take in memory. Default: half of what there is.",
        ),
    ] = None
    access_flush_seconds: Annotated[
        float,
        Field(ge=1, le=86_400, description="How often the uses of memories are written down."),
    ] = 300.0
    sweep_interval_seconds: Annotated[
        float, Field(ge=1, le=86_400, description="How often what is past its window is forgotten.")
    ] = 600.0
    log_level: Annotated[LogLevel, Field(description="debug, info, warning or error.")] = (
        LogLevel.INFO
    )
    log_format: Annotated[LogFormat, Field(description="json or text.")] = LogFormat.TEXT

    @model_validator(mode="after")
    def _check_tcp(self) -> Self:
        if self.tcp is not None and self.token_file is None and not self.allow_unauthenticated_tcp:
            raise ValueError(
                "tcp needs token_file, or every user of this machine could read every memory; "
                "set token_file, or allow_unauthenticated_tcp=true if that is what you want"
            )
        return self

    @model_validator(mode="after")
    def _check_windows(self) -> Self:
        history, ids = self.history_window_hours, self.request_id_window_hours
        if history and (not ids or ids > history):
            kept = f"{ids} hours" if ids else "for ever (0)"
            raise ValueError(
                f"history_window_hours is {history} and request_id_window_hours {kept}: history "
                "must be kept at least as long as request ids, for the answer that a retry gets "
                "goes with it; raise the one or lower the other"
            )
        return self

    @property
    def erasure_ledger_path(self) -> Path:
        """The erasure ledger's path, with its default: beside the directory, not in it."""
        if self.erasure_ledger is not None:
            return self.erasure_ledger
        directory = self.directory.absolute()
        return directory.with_name(f"{directory.name}.erasures")

    @model_validator(mode="after")
    def _check_ledger(self) -> Self:
        directory = self.directory.absolute()
        if directory in self.erasure_ledger_path.absolute().parents:
            raise ValueError(
                "erasure_ledger must not lie in the directory: whoever restores that would bring "
                "back what was erased; name a file elsewhere"
            )
        return self

    @property
    def socket_path(self) -> Path:
        """The socket's path, with its default."""
        return self.socket or self.directory / SOCKET_NAME


def load_settings(flags: Mapping[str, object], file: Path | None = None) -> Settings:
    """Return the settings; flags win over variables, and those over the file.

    Raises:
        SettingsError: It names each wrong setting.
    """
    table = _read_file(file) if file is not None else {}

    class Layered(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            del dotenv_settings, file_secret_settings  # neither is documented, so neither is read
            return init_settings, env_settings, InitSettingsSource(settings_cls, table)

    try:
        return Layered(**flags)  # type: ignore[arg-type]
    except ValidationError as error:
        raise SettingsError("; ".join(_problems(error))) from None
    except UnreadableVariable as error:
        raise SettingsError(f"{error}; nested settings are written as JSON") from None


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"config: {file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"config: {file} is not TOML: {error}") from None


def _problems(error: ValidationError) -> list[str]:
    problems = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        name = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, Settings.model_fields, n=1)
            message = "no such setting" + (f"; did you mean {near[0]}?" if near else "")
        problems.append(f"{name}: {message}" if name else message)
    return problems


def misspelt_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each PILLION_ variable that looks like a setting and is none."""
    known = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    sentences = []
    for name in sorted(environment):
        if not name.startswith(ENV_PREFIX) or name.split("__")[0] in known | _NO_SETTINGS:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if near:
            sentences.append(f"{name} is not a setting and is ignored; did you mean {near[0]}?")
    return sentences
