import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import field_mask_pb2 as _field_mask_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from pillion_proto.memory.v1 import search_pb2 as _search_pb2
from pillion_proto.memory.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Capability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAPABILITY_UNSPECIFIED: _ClassVar[Capability]
    CAPABILITY_WRITE: _ClassVar[Capability]
    CAPABILITY_SEARCH: _ClassVar[Capability]
    CAPABILITY_GET: _ClassVar[Capability]
    CAPABILITY_BATCH_GET: _ClassVar[Capability]
    CAPABILITY_LIST: _ClassVar[Capability]
    CAPABILITY_HISTORY: _ClassVar[Capability]
    CAPABILITY_NEIGHBORS: _ClassVar[Capability]
    CAPABILITY_RECALL: _ClassVar[Capability]
    CAPABILITY_CONSOLIDATE: _ClassVar[Capability]
    CAPABILITY_FORGET: _ClassVar[Capability]
    CAPABILITY_WATCH: _ClassVar[Capability]
    CAPABILITY_IMPORT: _ClassVar[Capability]
    CAPABILITY_EXPORT: _ClassVar[Capability]
    CAPABILITY_OPERATIONS: _ClassVar[Capability]
    CAPABILITY_LIST_REJECTED_CANDIDATES: _ClassVar[Capability]
    CAPABILITY_FORGET_ERASE: _ClassVar[Capability]
    CAPABILITY_FORGET_SELECTORS: _ClassVar[Capability]
    CAPABILITY_RECORDED_TIME: _ClassVar[Capability]
    CAPABILITY_CERTIFIED_SEARCH: _ClassVar[Capability]
    CAPABILITY_LEXICAL_SEARCH: _ClassVar[Capability]
    CAPABILITY_SEARCH_TRACE: _ClassVar[Capability]
    CAPABILITY_GRAPH_EXPANSION: _ClassVar[Capability]
    CAPABILITY_STATEMENT_GROUPS: _ClassVar[Capability]
    CAPABILITY_DIVERSITY: _ClassVar[Capability]
    CAPABILITY_EXTRACTION: _ClassVar[Capability]
    CAPABILITY_BACKGROUND: _ClassVar[Capability]
    CAPABILITY_GUARDS: _ClassVar[Capability]
    CAPABILITY_CONFLICT_POLICIES: _ClassVar[Capability]
    CAPABILITY_NESTED_FILTERS: _ClassVar[Capability]
    CAPABILITY_ACCESS: _ClassVar[Capability]
    CAPABILITY_FILTER_ALTERNATIVES: _ClassVar[Capability]
    CAPABILITY_SCHEMA: _ClassVar[Capability]
    CAPABILITY_STATS: _ClassVar[Capability]
    CAPABILITY_QUOTAS: _ClassVar[Capability]
    CAPABILITY_BACKUP: _ClassVar[Capability]
    CAPABILITY_VERIFY: _ClassVar[Capability]
    CAPABILITY_REINDEX: _ClassVar[Capability]
    CAPABILITY_ROTATE_KEYS: _ClassVar[Capability]
    CAPABILITY_AUDIT: _ClassVar[Capability]
    CAPABILITY_ERASURE_RECEIPTS: _ClassVar[Capability]
    CAPABILITY_LEGAL_HOLD: _ClassVar[Capability]
    CAPABILITY_MIGRATIONS: _ClassVar[Capability]

class EmbeddingMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EMBEDDING_MODE_UNSPECIFIED: _ClassVar[EmbeddingMode]
    EMBEDDING_MODE_QUEUED: _ClassVar[EmbeddingMode]
    EMBEDDING_MODE_INLINE: _ClassVar[EmbeddingMode]

class ConflictPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CONFLICT_POLICY_UNSPECIFIED: _ClassVar[ConflictPolicy]
    CONFLICT_POLICY_REJECT: _ClassVar[ConflictPolicy]
    CONFLICT_POLICY_PREFER_SOURCE: _ClassVar[ConflictPolicy]
    CONFLICT_POLICY_CORRECT: _ClassVar[ConflictPolicy]

class EpisodeIndexing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EPISODE_INDEXING_UNSPECIFIED: _ClassVar[EpisodeIndexing]
    EPISODE_INDEXING_INDEXED: _ClassVar[EpisodeIndexing]
    EPISODE_INDEXING_SOURCE_ONLY: _ClassVar[EpisodeIndexing]

class ExtractionMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXTRACTION_MODE_UNSPECIFIED: _ClassVar[ExtractionMode]
    EXTRACTION_MODE_NONE: _ClassVar[ExtractionMode]
    EXTRACTION_MODE_QUEUED: _ClassVar[ExtractionMode]
    EXTRACTION_MODE_INLINE: _ClassVar[ExtractionMode]

class MutationOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MUTATION_OUTCOME_UNSPECIFIED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_CREATED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_SUPERSEDED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_INSERTED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_EVIDENCE: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_CORRECTED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_UPDATED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_UNCHANGED: _ClassVar[MutationOutcome]
    MUTATION_OUTCOME_KEPT_EXISTING: _ClassVar[MutationOutcome]

class EdgeDirection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EDGE_DIRECTION_UNSPECIFIED: _ClassVar[EdgeDirection]
    EDGE_DIRECTION_OUT: _ClassVar[EdgeDirection]
    EDGE_DIRECTION_IN: _ClassVar[EdgeDirection]
    EDGE_DIRECTION_BOTH: _ClassVar[EdgeDirection]

class RecallPurpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_PURPOSE_UNSPECIFIED: _ClassVar[RecallPurpose]
    RECALL_PURPOSE_TURN: _ClassVar[RecallPurpose]
    RECALL_PURPOSE_SESSION_START: _ClassVar[RecallPurpose]

class RecallSection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECALL_SECTION_UNSPECIFIED: _ClassVar[RecallSection]
    RECALL_SECTION_PROCEDURES: _ClassVar[RecallSection]
    RECALL_SECTION_FACTS: _ClassVar[RecallSection]
    RECALL_SECTION_OPEN_ITEMS: _ClassVar[RecallSection]
    RECALL_SECTION_SESSIONS: _ClassVar[RecallSection]
    RECALL_SECTION_RELATED: _ClassVar[RecallSection]

class ForgetMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORGET_MODE_UNSPECIFIED: _ClassVar[ForgetMode]
    FORGET_MODE_EXPIRE: _ClassVar[ForgetMode]
    FORGET_MODE_RETRACT: _ClassVar[ForgetMode]
    FORGET_MODE_ERASE: _ClassVar[ForgetMode]

class ForgetRun(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORGET_RUN_UNSPECIFIED: _ClassVar[ForgetRun]
    FORGET_RUN_DRY_RUN: _ClassVar[ForgetRun]
    FORGET_RUN_EXECUTE: _ClassVar[ForgetRun]

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_UNSPECIFIED: _ClassVar[ChangeKind]
    CHANGE_KIND_CREATED: _ClassVar[ChangeKind]
    CHANGE_KIND_UPDATED: _ClassVar[ChangeKind]
    CHANGE_KIND_REMOVED: _ClassVar[ChangeKind]
CAPABILITY_UNSPECIFIED: Capability
CAPABILITY_WRITE: Capability
CAPABILITY_SEARCH: Capability
CAPABILITY_GET: Capability
CAPABILITY_BATCH_GET: Capability
CAPABILITY_LIST: Capability
CAPABILITY_HISTORY: Capability
CAPABILITY_NEIGHBORS: Capability
CAPABILITY_RECALL: Capability
CAPABILITY_CONSOLIDATE: Capability
CAPABILITY_FORGET: Capability
CAPABILITY_WATCH: Capability
CAPABILITY_IMPORT: Capability
CAPABILITY_EXPORT: Capability
CAPABILITY_OPERATIONS: Capability
CAPABILITY_LIST_REJECTED_CANDIDATES: Capability
CAPABILITY_FORGET_ERASE: Capability
CAPABILITY_FORGET_SELECTORS: Capability
CAPABILITY_RECORDED_TIME: Capability
CAPABILITY_CERTIFIED_SEARCH: Capability
CAPABILITY_LEXICAL_SEARCH: Capability
CAPABILITY_SEARCH_TRACE: Capability
CAPABILITY_GRAPH_EXPANSION: Capability
CAPABILITY_STATEMENT_GROUPS: Capability
CAPABILITY_DIVERSITY: Capability
CAPABILITY_EXTRACTION: Capability
CAPABILITY_BACKGROUND: Capability
CAPABILITY_GUARDS: Capability
CAPABILITY_CONFLICT_POLICIES: Capability
CAPABILITY_NESTED_FILTERS: Capability
CAPABILITY_ACCESS: Capability
CAPABILITY_FILTER_ALTERNATIVES: Capability
CAPABILITY_SCHEMA: Capability
CAPABILITY_STATS: Capability
CAPABILITY_QUOTAS: Capability
CAPABILITY_BACKUP: Capability
CAPABILITY_VERIFY: Capability
CAPABILITY_REINDEX: Capability
CAPABILITY_ROTATE_KEYS: Capability
CAPABILITY_AUDIT: Capability
CAPABILITY_ERASURE_RECEIPTS: Capability
CAPABILITY_LEGAL_HOLD: Capability
CAPABILITY_MIGRATIONS: Capability
EMBEDDING_MODE_UNSPECIFIED: EmbeddingMode
EMBEDDING_MODE_QUEUED: EmbeddingMode
EMBEDDING_MODE_INLINE: EmbeddingMode
CONFLICT_POLICY_UNSPECIFIED: ConflictPolicy
CONFLICT_POLICY_REJECT: ConflictPolicy
CONFLICT_POLICY_PREFER_SOURCE: ConflictPolicy
CONFLICT_POLICY_CORRECT: ConflictPolicy
EPISODE_INDEXING_UNSPECIFIED: EpisodeIndexing
EPISODE_INDEXING_INDEXED: EpisodeIndexing
EPISODE_INDEXING_SOURCE_ONLY: EpisodeIndexing
EXTRACTION_MODE_UNSPECIFIED: ExtractionMode
EXTRACTION_MODE_NONE: ExtractionMode
EXTRACTION_MODE_QUEUED: ExtractionMode
EXTRACTION_MODE_INLINE: ExtractionMode
MUTATION_OUTCOME_UNSPECIFIED: MutationOutcome
MUTATION_OUTCOME_CREATED: MutationOutcome
MUTATION_OUTCOME_SUPERSEDED: MutationOutcome
MUTATION_OUTCOME_INSERTED: MutationOutcome
MUTATION_OUTCOME_EVIDENCE: MutationOutcome
MUTATION_OUTCOME_CORRECTED: MutationOutcome
MUTATION_OUTCOME_UPDATED: MutationOutcome
MUTATION_OUTCOME_UNCHANGED: MutationOutcome
MUTATION_OUTCOME_KEPT_EXISTING: MutationOutcome
EDGE_DIRECTION_UNSPECIFIED: EdgeDirection
EDGE_DIRECTION_OUT: EdgeDirection
EDGE_DIRECTION_IN: EdgeDirection
EDGE_DIRECTION_BOTH: EdgeDirection
RECALL_PURPOSE_UNSPECIFIED: RecallPurpose
RECALL_PURPOSE_TURN: RecallPurpose
RECALL_PURPOSE_SESSION_START: RecallPurpose
RECALL_SECTION_UNSPECIFIED: RecallSection
RECALL_SECTION_PROCEDURES: RecallSection
RECALL_SECTION_FACTS: RecallSection
RECALL_SECTION_OPEN_ITEMS: RecallSection
RECALL_SECTION_SESSIONS: RecallSection
RECALL_SECTION_RELATED: RecallSection
FORGET_MODE_UNSPECIFIED: ForgetMode
FORGET_MODE_EXPIRE: ForgetMode
FORGET_MODE_RETRACT: ForgetMode
FORGET_MODE_ERASE: ForgetMode
FORGET_RUN_UNSPECIFIED: ForgetRun
FORGET_RUN_DRY_RUN: ForgetRun
FORGET_RUN_EXECUTE: ForgetRun
CHANGE_KIND_UNSPECIFIED: ChangeKind
CHANGE_KIND_CREATED: ChangeKind
CHANGE_KIND_UPDATED: ChangeKind
CHANGE_KIND_REMOVED: ChangeKind

class GetServerInfoRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("server_version", "contract", "capabilities", "limits", "embedder", "server_time", "started_at", "store")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    CONTRACT_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    SERVER_TIME_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    contract: str
    capabilities: _containers.RepeatedScalarFieldContainer[Capability]
    limits: ServerLimits
    embedder: EmbedderInfo
    server_time: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    store: str
    def __init__(self, server_version: _Optional[str] = ..., contract: _Optional[str] = ..., capabilities: _Optional[_Iterable[_Union[Capability, str]]] = ..., limits: _Optional[_Union[ServerLimits, _Mapping]] = ..., embedder: _Optional[_Union[EmbedderInfo, _Mapping]] = ..., server_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., store: _Optional[str] = ...) -> None: ...

class ServerLimits(_message.Message):
    __slots__ = ("message_bytes_max", "mutations_max", "text_bytes_max", "results_max", "page_size_max", "batch_get_max", "default_deadline", "request_id_window", "request_id_count", "write_bytes_max", "history_window")
    MESSAGE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    MUTATIONS_MAX_FIELD_NUMBER: _ClassVar[int]
    TEXT_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    RESULTS_MAX_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_MAX_FIELD_NUMBER: _ClassVar[int]
    BATCH_GET_MAX_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_WINDOW_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_COUNT_FIELD_NUMBER: _ClassVar[int]
    WRITE_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    HISTORY_WINDOW_FIELD_NUMBER: _ClassVar[int]
    message_bytes_max: int
    mutations_max: int
    text_bytes_max: int
    results_max: int
    page_size_max: int
    batch_get_max: int
    default_deadline: _duration_pb2.Duration
    request_id_window: _duration_pb2.Duration
    request_id_count: int
    write_bytes_max: int
    history_window: _duration_pb2.Duration
    def __init__(self, message_bytes_max: _Optional[int] = ..., mutations_max: _Optional[int] = ..., text_bytes_max: _Optional[int] = ..., results_max: _Optional[int] = ..., page_size_max: _Optional[int] = ..., batch_get_max: _Optional[int] = ..., default_deadline: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_id_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_id_count: _Optional[int] = ..., write_bytes_max: _Optional[int] = ..., history_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class EmbedderInfo(_message.Message):
    __slots__ = ("name", "version", "dimension", "fingerprint")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    dimension: int
    fingerprint: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., dimension: _Optional[int] = ..., fingerprint: _Optional[str] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("partition", "request_id", "mutations", "guards", "embedding_mode", "validate_only")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MUTATIONS_FIELD_NUMBER: _ClassVar[int]
    GUARDS_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODE_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    mutations: _containers.RepeatedCompositeFieldContainer[Mutation]
    guards: _containers.RepeatedCompositeFieldContainer[Guard]
    embedding_mode: EmbeddingMode
    validate_only: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., mutations: _Optional[_Iterable[_Union[Mutation, _Mapping]]] = ..., guards: _Optional[_Iterable[_Union[Guard, _Mapping]]] = ..., embedding_mode: _Optional[_Union[EmbeddingMode, str]] = ..., validate_only: bool = ...) -> None: ...

class Mutation(_message.Message):
    __slots__ = ("put_fact", "add_memory", "capture_episode", "patch_memory", "confirm_memory", "retract_memory", "restore_memory", "close_open_item")
    PUT_FACT_FIELD_NUMBER: _ClassVar[int]
    ADD_MEMORY_FIELD_NUMBER: _ClassVar[int]
    CAPTURE_EPISODE_FIELD_NUMBER: _ClassVar[int]
    PATCH_MEMORY_FIELD_NUMBER: _ClassVar[int]
    CONFIRM_MEMORY_FIELD_NUMBER: _ClassVar[int]
    RETRACT_MEMORY_FIELD_NUMBER: _ClassVar[int]
    RESTORE_MEMORY_FIELD_NUMBER: _ClassVar[int]
    CLOSE_OPEN_ITEM_FIELD_NUMBER: _ClassVar[int]
    put_fact: PutFact
    add_memory: AddMemory
    capture_episode: CaptureEpisode
    patch_memory: PatchMemory
    confirm_memory: ConfirmMemory
    retract_memory: RetractMemory
    restore_memory: RestoreMemory
    close_open_item: CloseOpenItem
    def __init__(self, put_fact: _Optional[_Union[PutFact, _Mapping]] = ..., add_memory: _Optional[_Union[AddMemory, _Mapping]] = ..., capture_episode: _Optional[_Union[CaptureEpisode, _Mapping]] = ..., patch_memory: _Optional[_Union[PatchMemory, _Mapping]] = ..., confirm_memory: _Optional[_Union[ConfirmMemory, _Mapping]] = ..., retract_memory: _Optional[_Union[RetractMemory, _Mapping]] = ..., restore_memory: _Optional[_Union[RestoreMemory, _Mapping]] = ..., close_open_item: _Optional[_Union[CloseOpenItem, _Mapping]] = ...) -> None: ...

class PutFact(_message.Message):
    __slots__ = ("fact", "precondition", "conflict_policy")
    FACT_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    CONFLICT_POLICY_FIELD_NUMBER: _ClassVar[int]
    fact: _types_pb2.Memory
    precondition: _types_pb2.Precondition
    conflict_policy: ConflictPolicy
    def __init__(self, fact: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ..., conflict_policy: _Optional[_Union[ConflictPolicy, str]] = ...) -> None: ...

class AddMemory(_message.Message):
    __slots__ = ("memory", "precondition")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    precondition: _types_pb2.Precondition
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class CaptureEpisode(_message.Message):
    __slots__ = ("episode", "precondition", "indexing", "extraction", "importance", "vector")
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    INDEXING_FIELD_NUMBER: _ClassVar[int]
    EXTRACTION_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    episode: _types_pb2.Episode
    precondition: _types_pb2.Precondition
    indexing: EpisodeIndexing
    extraction: ExtractionMode
    importance: float
    vector: bytes
    def __init__(self, episode: _Optional[_Union[_types_pb2.Episode, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ..., indexing: _Optional[_Union[EpisodeIndexing, str]] = ..., extraction: _Optional[_Union[ExtractionMode, str]] = ..., importance: _Optional[float] = ..., vector: _Optional[bytes] = ...) -> None: ...

class PatchMemory(_message.Message):
    __slots__ = ("memory_id", "patch", "update_mask", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PATCH_FIELD_NUMBER: _ClassVar[int]
    UPDATE_MASK_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    patch: _types_pb2.Memory
    update_mask: _field_mask_pb2.FieldMask
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., patch: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., update_mask: _Optional[_Union[_field_mask_pb2.FieldMask, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class ConfirmMemory(_message.Message):
    __slots__ = ("memory_id", "source", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    source: _types_pb2.Source
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., source: _Optional[_Union[_types_pb2.Source, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class RetractMemory(_message.Message):
    __slots__ = ("memory_id", "fact", "valid_to", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    fact: _types_pb2.FactKey
    valid_to: _timestamp_pb2.Timestamp
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., fact: _Optional[_Union[_types_pb2.FactKey, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class RestoreMemory(_message.Message):
    __slots__ = ("memory_id", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class CloseOpenItem(_message.Message):
    __slots__ = ("memory_id", "closed_at", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    closed_at: _timestamp_pb2.Timestamp
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class Guard(_message.Message):
    __slots__ = ("memory_id", "fact", "precondition")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    fact: _types_pb2.FactKey
    precondition: _types_pb2.Precondition
    def __init__(self, memory_id: _Optional[str] = ..., fact: _Optional[_Union[_types_pb2.FactKey, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("revision", "results", "recorded_at", "replayed", "vectors_pending")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PENDING_FIELD_NUMBER: _ClassVar[int]
    revision: int
    results: _containers.RepeatedCompositeFieldContainer[MutationResult]
    recorded_at: _timestamp_pb2.Timestamp
    replayed: bool
    vectors_pending: int
    def __init__(self, revision: _Optional[int] = ..., results: _Optional[_Iterable[_Union[MutationResult, _Mapping]]] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., replayed: bool = ..., vectors_pending: _Optional[int] = ...) -> None: ...

class MutationResult(_message.Message):
    __slots__ = ("id", "version", "outcome", "superseded_id", "fact_version", "memory_id", "valid_to")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_ID_FIELD_NUMBER: _ClassVar[int]
    FACT_VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    outcome: MutationOutcome
    superseded_id: str
    fact_version: int
    memory_id: str
    valid_to: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ..., outcome: _Optional[_Union[MutationOutcome, str]] = ..., superseded_id: _Optional[str] = ..., fact_version: _Optional[int] = ..., memory_id: _Optional[str] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SearchRequest(_message.Message):
    __slots__ = ("partition", "text", "vector", "filter", "read", "ranking", "top_k", "include_parts", "include_vectors", "include_trace", "expansion", "older_statements", "score_min", "without_access", "recall_target")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    RANKING_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PARTS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VECTORS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TRACE_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_FIELD_NUMBER: _ClassVar[int]
    OLDER_STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    SCORE_MIN_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_ACCESS_FIELD_NUMBER: _ClassVar[int]
    RECALL_TARGET_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    text: str
    vector: bytes
    filter: _search_pb2.Filter
    read: _types_pb2.ReadOptions
    ranking: _search_pb2.RankingProfile
    top_k: int
    include_parts: bool
    include_vectors: bool
    include_trace: bool
    expansion: _search_pb2.GraphExpansion
    older_statements: _search_pb2.OlderStatements
    score_min: float
    without_access: bool
    recall_target: float
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., text: _Optional[str] = ..., vector: _Optional[bytes] = ..., filter: _Optional[_Union[_search_pb2.Filter, _Mapping]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., ranking: _Optional[_Union[_search_pb2.RankingProfile, _Mapping]] = ..., top_k: _Optional[int] = ..., include_parts: bool = ..., include_vectors: bool = ..., include_trace: bool = ..., expansion: _Optional[_Union[_search_pb2.GraphExpansion, _Mapping]] = ..., older_statements: _Optional[_Union[_search_pb2.OlderStatements, str]] = ..., score_min: _Optional[float] = ..., without_access: bool = ..., recall_target: _Optional[float] = ...) -> None: ...

class SearchResponse(_message.Message):
    __slots__ = ("hits", "revision", "exactness", "path", "bound", "admitted", "vectors_pending", "trace")
    HITS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    EXACTNESS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PENDING_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    hits: _containers.RepeatedCompositeFieldContainer[_search_pb2.SearchHit]
    revision: int
    exactness: _search_pb2.Exactness
    path: _search_pb2.SearchPath
    bound: float
    admitted: int
    vectors_pending: int
    trace: _search_pb2.SearchTrace
    def __init__(self, hits: _Optional[_Iterable[_Union[_search_pb2.SearchHit, _Mapping]]] = ..., revision: _Optional[int] = ..., exactness: _Optional[_Union[_search_pb2.Exactness, str]] = ..., path: _Optional[_Union[_search_pb2.SearchPath, str]] = ..., bound: _Optional[float] = ..., admitted: _Optional[int] = ..., vectors_pending: _Optional[int] = ..., trace: _Optional[_Union[_search_pb2.SearchTrace, _Mapping]] = ...) -> None: ...

class GetRequest(_message.Message):
    __slots__ = ("partition", "target", "read", "include_vector")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VECTOR_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    target: RecordTarget
    read: _types_pb2.ReadOptions
    include_vector: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., target: _Optional[_Union[RecordTarget, _Mapping]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., include_vector: bool = ...) -> None: ...

class RecordTarget(_message.Message):
    __slots__ = ("memory_id", "fact", "episode_id")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    fact: _types_pb2.FactKey
    episode_id: str
    def __init__(self, memory_id: _Optional[str] = ..., fact: _Optional[_Union[_types_pb2.FactKey, _Mapping]] = ..., episode_id: _Optional[str] = ...) -> None: ...

class Record(_message.Message):
    __slots__ = ("memory", "episode")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    EPISODE_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    episode: _types_pb2.Episode
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., episode: _Optional[_Union[_types_pb2.Episode, _Mapping]] = ...) -> None: ...

class GetResponse(_message.Message):
    __slots__ = ("record", "revision")
    RECORD_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    record: Record
    revision: int
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class BatchGetRequest(_message.Message):
    __slots__ = ("partition", "targets", "read", "include_vectors")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    TARGETS_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VECTORS_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    targets: _containers.RepeatedCompositeFieldContainer[RecordTarget]
    read: _types_pb2.ReadOptions
    include_vectors: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., targets: _Optional[_Iterable[_Union[RecordTarget, _Mapping]]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., include_vectors: bool = ...) -> None: ...

class BatchGetResponse(_message.Message):
    __slots__ = ("items", "revision")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[BatchGetItem]
    revision: int
    def __init__(self, items: _Optional[_Iterable[_Union[BatchGetItem, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class BatchGetItem(_message.Message):
    __slots__ = ("record",)
    RECORD_FIELD_NUMBER: _ClassVar[int]
    record: Record
    def __init__(self, record: _Optional[_Union[Record, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("partition", "filter", "read", "page_size", "page_token", "episodes")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    filter: _search_pb2.Filter
    read: _types_pb2.ReadOptions
    page_size: int
    page_token: str
    episodes: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., filter: _Optional[_Union[_search_pb2.Filter, _Mapping]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., episodes: bool = ...) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("records", "next_page_token", "revision")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    next_page_token: str
    revision: int
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class HistoryRequest(_message.Message):
    __slots__ = ("partition", "fact", "memory_id", "read", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    fact: _types_pb2.FactKey
    memory_id: str
    read: _types_pb2.ReadOptions
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., fact: _Optional[_Union[_types_pb2.FactKey, _Mapping]] = ..., memory_id: _Optional[str] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class HistoryResponse(_message.Message):
    __slots__ = ("entries", "next_page_token", "revision")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[HistoryEntry]
    next_page_token: str
    revision: int
    def __init__(self, entries: _Optional[_Iterable[_Union[HistoryEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class HistoryEntry(_message.Message):
    __slots__ = ("memory", "recorded_from_revision", "recorded_to_revision", "recorded_from", "recorded_to")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FROM_REVISION_FIELD_NUMBER: _ClassVar[int]
    RECORDED_TO_REVISION_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FROM_FIELD_NUMBER: _ClassVar[int]
    RECORDED_TO_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    recorded_from_revision: int
    recorded_to_revision: int
    recorded_from: _timestamp_pb2.Timestamp
    recorded_to: _timestamp_pb2.Timestamp
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., recorded_from_revision: _Optional[int] = ..., recorded_to_revision: _Optional[int] = ..., recorded_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., recorded_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class NeighborsRequest(_message.Message):
    __slots__ = ("partition", "subjects", "direction", "expansion", "read", "contexts", "edges_max")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    EXPANSION_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    EDGES_MAX_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    subjects: _containers.RepeatedCompositeFieldContainer[_types_pb2.Subject]
    direction: EdgeDirection
    expansion: _search_pb2.GraphExpansion
    read: _types_pb2.ReadOptions
    contexts: _containers.RepeatedScalarFieldContainer[str]
    edges_max: int
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., subjects: _Optional[_Iterable[_Union[_types_pb2.Subject, _Mapping]]] = ..., direction: _Optional[_Union[EdgeDirection, str]] = ..., expansion: _Optional[_Union[_search_pb2.GraphExpansion, _Mapping]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., contexts: _Optional[_Iterable[str]] = ..., edges_max: _Optional[int] = ...) -> None: ...

class NeighborsResponse(_message.Message):
    __slots__ = ("neighbors", "truncated", "revision")
    NEIGHBORS_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    neighbors: _containers.RepeatedCompositeFieldContainer[Neighbor]
    truncated: bool
    revision: int
    def __init__(self, neighbors: _Optional[_Iterable[_Union[Neighbor, _Mapping]]] = ..., truncated: bool = ..., revision: _Optional[int] = ...) -> None: ...

class Neighbor(_message.Message):
    __slots__ = ("subject", "path")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    subject: _types_pb2.Subject
    path: _containers.RepeatedCompositeFieldContainer[_search_pb2.Edge]
    def __init__(self, subject: _Optional[_Union[_types_pb2.Subject, _Mapping]] = ..., path: _Optional[_Iterable[_Union[_search_pb2.Edge, _Mapping]]] = ...) -> None: ...

class RecallRequest(_message.Message):
    __slots__ = ("partition", "subjects", "contexts", "query", "query_vector", "token_budget", "token_counter", "section_budgets", "read", "ranking", "purpose")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    QUERY_VECTOR_FIELD_NUMBER: _ClassVar[int]
    TOKEN_BUDGET_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNTER_FIELD_NUMBER: _ClassVar[int]
    SECTION_BUDGETS_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    RANKING_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    subjects: _containers.RepeatedCompositeFieldContainer[_types_pb2.Subject]
    contexts: _containers.RepeatedScalarFieldContainer[str]
    query: str
    query_vector: bytes
    token_budget: int
    token_counter: str
    section_budgets: _containers.RepeatedCompositeFieldContainer[SectionBudget]
    read: _types_pb2.ReadOptions
    ranking: _search_pb2.RankingProfile
    purpose: RecallPurpose
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., subjects: _Optional[_Iterable[_Union[_types_pb2.Subject, _Mapping]]] = ..., contexts: _Optional[_Iterable[str]] = ..., query: _Optional[str] = ..., query_vector: _Optional[bytes] = ..., token_budget: _Optional[int] = ..., token_counter: _Optional[str] = ..., section_budgets: _Optional[_Iterable[_Union[SectionBudget, _Mapping]]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., ranking: _Optional[_Union[_search_pb2.RankingProfile, _Mapping]] = ..., purpose: _Optional[_Union[RecallPurpose, str]] = ...) -> None: ...

class SectionBudget(_message.Message):
    __slots__ = ("section", "tokens")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    section: RecallSection
    tokens: int
    def __init__(self, section: _Optional[_Union[RecallSection, str]] = ..., tokens: _Optional[int] = ...) -> None: ...

class RecallResponse(_message.Message):
    __slots__ = ("lines", "text", "tokens", "tokens_estimated", "omitted", "revision")
    LINES_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_ESTIMATED_FIELD_NUMBER: _ClassVar[int]
    OMITTED_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[RecallLine]
    text: str
    tokens: int
    tokens_estimated: bool
    omitted: _containers.RepeatedCompositeFieldContainer[OmittedLine]
    revision: int
    def __init__(self, lines: _Optional[_Iterable[_Union[RecallLine, _Mapping]]] = ..., text: _Optional[str] = ..., tokens: _Optional[int] = ..., tokens_estimated: bool = ..., omitted: _Optional[_Iterable[_Union[OmittedLine, _Mapping]]] = ..., revision: _Optional[int] = ...) -> None: ...

class RecallLine(_message.Message):
    __slots__ = ("section", "text", "tokens", "citation")
    SECTION_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CITATION_FIELD_NUMBER: _ClassVar[int]
    section: RecallSection
    text: str
    tokens: int
    citation: Citation
    def __init__(self, section: _Optional[_Union[RecallSection, str]] = ..., text: _Optional[str] = ..., tokens: _Optional[int] = ..., citation: _Optional[_Union[Citation, _Mapping]] = ...) -> None: ...

class Citation(_message.Message):
    __slots__ = ("memory_id", "version", "episode_id", "valid_from", "valid_to")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    version: int
    episode_id: str
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    def __init__(self, memory_id: _Optional[str] = ..., version: _Optional[int] = ..., episode_id: _Optional[str] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class OmittedLine(_message.Message):
    __slots__ = ("memory_id", "section", "reason")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    SECTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    section: RecallSection
    reason: str
    def __init__(self, memory_id: _Optional[str] = ..., section: _Optional[_Union[RecallSection, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ConsolidateRequest(_message.Message):
    __slots__ = ("partition", "request_id", "subject", "context", "before", "summarizer", "cluster_size_min", "dry_run", "background")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    SUMMARIZER_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_SIZE_MIN_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    subject: _types_pb2.Subject
    context: str
    before: _timestamp_pb2.Timestamp
    summarizer: str
    cluster_size_min: int
    dry_run: bool
    background: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., subject: _Optional[_Union[_types_pb2.Subject, _Mapping]] = ..., context: _Optional[str] = ..., before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., summarizer: _Optional[str] = ..., cluster_size_min: _Optional[int] = ..., dry_run: bool = ..., background: bool = ...) -> None: ...

class ConsolidateResponse(_message.Message):
    __slots__ = ("report", "operation", "revision")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    report: _types_pb2.ConsolidateReport
    operation: _types_pb2.Operation
    revision: int
    def __init__(self, report: _Optional[_Union[_types_pb2.ConsolidateReport, _Mapping]] = ..., operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class ForgetRequest(_message.Message):
    __slots__ = ("partition", "request_id", "selector", "mode", "run", "background", "reason_code", "force", "preview_revision")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SELECTOR_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    BACKGROUND_FIELD_NUMBER: _ClassVar[int]
    REASON_CODE_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    PREVIEW_REVISION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    selector: ForgetSelector
    mode: ForgetMode
    run: ForgetRun
    background: bool
    reason_code: str
    force: bool
    preview_revision: int
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., selector: _Optional[_Union[ForgetSelector, _Mapping]] = ..., mode: _Optional[_Union[ForgetMode, str]] = ..., run: _Optional[_Union[ForgetRun, str]] = ..., background: bool = ..., reason_code: _Optional[str] = ..., force: bool = ..., preview_revision: _Optional[int] = ...) -> None: ...

class ForgetSelector(_message.Message):
    __slots__ = ("ids", "subject", "fact", "filter", "episode_id", "recorded", "topic", "retention_class", "expired", "decayed")
    IDS_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    FACT_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    RETENTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    DECAYED_FIELD_NUMBER: _ClassVar[int]
    ids: IdList
    subject: SubjectSelector
    fact: _types_pb2.FactKey
    filter: _search_pb2.Filter
    episode_id: str
    recorded: _search_pb2.TimeWindow
    topic: TopicSelector
    retention_class: str
    expired: bool
    decayed: DecaySelector
    def __init__(self, ids: _Optional[_Union[IdList, _Mapping]] = ..., subject: _Optional[_Union[SubjectSelector, _Mapping]] = ..., fact: _Optional[_Union[_types_pb2.FactKey, _Mapping]] = ..., filter: _Optional[_Union[_search_pb2.Filter, _Mapping]] = ..., episode_id: _Optional[str] = ..., recorded: _Optional[_Union[_search_pb2.TimeWindow, _Mapping]] = ..., topic: _Optional[_Union[TopicSelector, _Mapping]] = ..., retention_class: _Optional[str] = ..., expired: bool = ..., decayed: _Optional[_Union[DecaySelector, _Mapping]] = ...) -> None: ...

class IdList(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[str]] = ...) -> None: ...

class SubjectSelector(_message.Message):
    __slots__ = ("subject", "contexts")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    subject: _types_pb2.Subject
    contexts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, subject: _Optional[_Union[_types_pb2.Subject, _Mapping]] = ..., contexts: _Optional[_Iterable[str]] = ...) -> None: ...

class TopicSelector(_message.Message):
    __slots__ = ("text", "score_min", "subjects")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_MIN_FIELD_NUMBER: _ClassVar[int]
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score_min: float
    subjects: _containers.RepeatedCompositeFieldContainer[_types_pb2.Subject]
    def __init__(self, text: _Optional[str] = ..., score_min: _Optional[float] = ..., subjects: _Optional[_Iterable[_Union[_types_pb2.Subject, _Mapping]]] = ...) -> None: ...

class DecaySelector(_message.Message):
    __slots__ = ("thresholds",)
    THRESHOLDS_FIELD_NUMBER: _ClassVar[int]
    thresholds: _containers.RepeatedCompositeFieldContainer[KindThreshold]
    def __init__(self, thresholds: _Optional[_Iterable[_Union[KindThreshold, _Mapping]]] = ...) -> None: ...

class KindThreshold(_message.Message):
    __slots__ = ("kind", "vitality")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VITALITY_FIELD_NUMBER: _ClassVar[int]
    kind: _types_pb2.MemoryKind
    vitality: float
    def __init__(self, kind: _Optional[_Union[_types_pb2.MemoryKind, str]] = ..., vitality: _Optional[float] = ...) -> None: ...

class ForgetResponse(_message.Message):
    __slots__ = ("report", "operation", "revision")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    report: _types_pb2.ForgetReport
    operation: _types_pb2.Operation
    revision: int
    def __init__(self, report: _Optional[_Union[_types_pb2.ForgetReport, _Mapping]] = ..., operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("partition", "after_revision", "filter", "heartbeat")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    AFTER_REVISION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    after_revision: int
    filter: _search_pb2.Filter
    heartbeat: _duration_pb2.Duration
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., after_revision: _Optional[int] = ..., filter: _Optional[_Union[_search_pb2.Filter, _Mapping]] = ..., heartbeat: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("revision", "recorded_at", "changes", "resume")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    revision: int
    recorded_at: _timestamp_pb2.Timestamp
    changes: _containers.RepeatedCompositeFieldContainer[RecordChange]
    resume: bool
    def __init__(self, revision: _Optional[int] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., changes: _Optional[_Iterable[_Union[RecordChange, _Mapping]]] = ..., resume: bool = ...) -> None: ...

class RecordChange(_message.Message):
    __slots__ = ("kind", "id", "record")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    kind: ChangeKind
    id: str
    record: Record
    def __init__(self, kind: _Optional[_Union[ChangeKind, str]] = ..., id: _Optional[str] = ..., record: _Optional[_Union[Record, _Mapping]] = ...) -> None: ...

class ImportRequest(_message.Message):
    __slots__ = ("start", "batch")
    START_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    start: ImportStart
    batch: ImportBatch
    def __init__(self, start: _Optional[_Union[ImportStart, _Mapping]] = ..., batch: _Optional[_Union[ImportBatch, _Mapping]] = ...) -> None: ...

class ImportStart(_message.Message):
    __slots__ = ("partition", "embedding_mode")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EMBEDDING_MODE_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    embedding_mode: EmbeddingMode
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., embedding_mode: _Optional[_Union[EmbeddingMode, str]] = ...) -> None: ...

class ImportBatch(_message.Message):
    __slots__ = ("sequence", "items")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    items: _containers.RepeatedCompositeFieldContainer[Mutation]
    def __init__(self, sequence: _Optional[int] = ..., items: _Optional[_Iterable[_Union[Mutation, _Mapping]]] = ...) -> None: ...

class ImportResponse(_message.Message):
    __slots__ = ("ack", "backoff")
    ACK_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    ack: ImportAck
    backoff: ImportBackoff
    def __init__(self, ack: _Optional[_Union[ImportAck, _Mapping]] = ..., backoff: _Optional[_Union[ImportBackoff, _Mapping]] = ...) -> None: ...

class ImportAck(_message.Message):
    __slots__ = ("sequence", "revision", "written", "existing", "rejections", "vectors_pending")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PENDING_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    revision: int
    written: int
    existing: int
    rejections: _containers.RepeatedCompositeFieldContainer[ImportRejection]
    vectors_pending: int
    def __init__(self, sequence: _Optional[int] = ..., revision: _Optional[int] = ..., written: _Optional[int] = ..., existing: _Optional[int] = ..., rejections: _Optional[_Iterable[_Union[ImportRejection, _Mapping]]] = ..., vectors_pending: _Optional[int] = ...) -> None: ...

class ImportRejection(_message.Message):
    __slots__ = ("index", "reason", "field", "message")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    index: int
    reason: str
    field: str
    message: str
    def __init__(self, index: _Optional[int] = ..., reason: _Optional[str] = ..., field: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ImportBackoff(_message.Message):
    __slots__ = ("batch_size", "wait")
    BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    batch_size: int
    wait: _duration_pb2.Duration
    def __init__(self, batch_size: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExportRequest(_message.Message):
    __slots__ = ("partition", "filter", "read", "include_vectors", "include_episodes", "cursor")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    READ_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_VECTORS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EPISODES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    filter: _search_pb2.Filter
    read: _types_pb2.ReadOptions
    include_vectors: bool
    include_episodes: bool
    cursor: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., filter: _Optional[_Union[_search_pb2.Filter, _Mapping]] = ..., read: _Optional[_Union[_types_pb2.ReadOptions, _Mapping]] = ..., include_vectors: bool = ..., include_episodes: bool = ..., cursor: _Optional[str] = ...) -> None: ...

class ExportResponse(_message.Message):
    __slots__ = ("records", "cursor", "revision")
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedCompositeFieldContainer[Record]
    cursor: str
    revision: int
    def __init__(self, records: _Optional[_Iterable[_Union[Record, _Mapping]]] = ..., cursor: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class GetOperationRequest(_message.Message):
    __slots__ = ("partition", "name")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    name: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class GetOperationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class ListOperationsRequest(_message.Message):
    __slots__ = ("partition", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListOperationsResponse(_message.Message):
    __slots__ = ("operations", "next_page_token")
    OPERATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    operations: _containers.RepeatedCompositeFieldContainer[_types_pb2.Operation]
    next_page_token: str
    def __init__(self, operations: _Optional[_Iterable[_Union[_types_pb2.Operation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WaitOperationRequest(_message.Message):
    __slots__ = ("partition", "name")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    name: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class WaitOperationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class CancelOperationRequest(_message.Message):
    __slots__ = ("partition", "name")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    name: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., name: _Optional[str] = ...) -> None: ...

class CancelOperationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class ListRejectedCandidatesRequest(_message.Message):
    __slots__ = ("partition", "episode_id", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    episode_id: str
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., episode_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRejectedCandidatesResponse(_message.Message):
    __slots__ = ("candidates", "next_page_token")
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    candidates: _containers.RepeatedCompositeFieldContainer[RejectedCandidate]
    next_page_token: str
    def __init__(self, candidates: _Optional[_Iterable[_Union[RejectedCandidate, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RejectedCandidate(_message.Message):
    __slots__ = ("proposed", "reason", "extractor", "rejected_at")
    PROPOSED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EXTRACTOR_FIELD_NUMBER: _ClassVar[int]
    REJECTED_AT_FIELD_NUMBER: _ClassVar[int]
    proposed: _types_pb2.Memory
    reason: str
    extractor: str
    rejected_at: _timestamp_pb2.Timestamp
    def __init__(self, proposed: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., reason: _Optional[str] = ..., extractor: _Optional[str] = ..., rejected_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
