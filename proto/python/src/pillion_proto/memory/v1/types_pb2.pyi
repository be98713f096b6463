import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MemoryKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_KIND_UNSPECIFIED: _ClassVar[MemoryKind]
    MEMORY_KIND_EPISODIC: _ClassVar[MemoryKind]
    MEMORY_KIND_SEMANTIC: _ClassVar[MemoryKind]
    MEMORY_KIND_PROCEDURAL: _ClassVar[MemoryKind]
    MEMORY_KIND_SESSION: _ClassVar[MemoryKind]
    MEMORY_KIND_OPEN_ITEM: _ClassVar[MemoryKind]

class MemoryStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMORY_STATUS_UNSPECIFIED: _ClassVar[MemoryStatus]
    MEMORY_STATUS_CANDIDATE: _ClassVar[MemoryStatus]
    MEMORY_STATUS_STATED: _ClassVar[MemoryStatus]
    MEMORY_STATUS_CONFIRMED: _ClassVar[MemoryStatus]

class SourceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SOURCE_KIND_UNSPECIFIED: _ClassVar[SourceKind]
    SOURCE_KIND_USER_STATEMENT: _ClassVar[SourceKind]
    SOURCE_KIND_USER_CONFIRMATION: _ClassVar[SourceKind]
    SOURCE_KIND_TOOL_RESULT: _ClassVar[SourceKind]
    SOURCE_KIND_DOCUMENT: _ClassVar[SourceKind]
    SOURCE_KIND_INFERENCE: _ClassVar[SourceKind]
    SOURCE_KIND_CONSOLIDATION: _ClassVar[SourceKind]

class OperationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OPERATION_STATE_UNSPECIFIED: _ClassVar[OperationState]
    OPERATION_STATE_RUNNING: _ClassVar[OperationState]
    OPERATION_STATE_SUCCEEDED: _ClassVar[OperationState]
    OPERATION_STATE_FAILED: _ClassVar[OperationState]
    OPERATION_STATE_CANCELLED: _ClassVar[OperationState]

class ClusterSkipReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLUSTER_SKIP_REASON_UNSPECIFIED: _ClassVar[ClusterSkipReason]
    CLUSTER_SKIP_REASON_LOSES_DETAILS: _ClassVar[ClusterSkipReason]
    CLUSTER_SKIP_REASON_CHANGED: _ClassVar[ClusterSkipReason]
    CLUSTER_SKIP_REASON_TOO_SMALL: _ClassVar[ClusterSkipReason]
MEMORY_KIND_UNSPECIFIED: MemoryKind
MEMORY_KIND_EPISODIC: MemoryKind
MEMORY_KIND_SEMANTIC: MemoryKind
MEMORY_KIND_PROCEDURAL: MemoryKind
MEMORY_KIND_SESSION: MemoryKind
MEMORY_KIND_OPEN_ITEM: MemoryKind
MEMORY_STATUS_UNSPECIFIED: MemoryStatus
MEMORY_STATUS_CANDIDATE: MemoryStatus
MEMORY_STATUS_STATED: MemoryStatus
MEMORY_STATUS_CONFIRMED: MemoryStatus
SOURCE_KIND_UNSPECIFIED: SourceKind
SOURCE_KIND_USER_STATEMENT: SourceKind
SOURCE_KIND_USER_CONFIRMATION: SourceKind
SOURCE_KIND_TOOL_RESULT: SourceKind
SOURCE_KIND_DOCUMENT: SourceKind
SOURCE_KIND_INFERENCE: SourceKind
SOURCE_KIND_CONSOLIDATION: SourceKind
OPERATION_STATE_UNSPECIFIED: OperationState
OPERATION_STATE_RUNNING: OperationState
OPERATION_STATE_SUCCEEDED: OperationState
OPERATION_STATE_FAILED: OperationState
OPERATION_STATE_CANCELLED: OperationState
CLUSTER_SKIP_REASON_UNSPECIFIED: ClusterSkipReason
CLUSTER_SKIP_REASON_LOSES_DETAILS: ClusterSkipReason
CLUSTER_SKIP_REASON_CHANGED: ClusterSkipReason
CLUSTER_SKIP_REASON_TOO_SMALL: ClusterSkipReason

class Partition(_message.Message):
    __slots__ = ("namespace", "tenant")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    tenant: str
    def __init__(self, namespace: _Optional[str] = ..., tenant: _Optional[str] = ...) -> None: ...

class Subject(_message.Message):
    __slots__ = ("type", "id")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    type: str
    id: str
    def __init__(self, type: _Optional[str] = ..., id: _Optional[str] = ...) -> None: ...

class FactKey(_message.Message):
    __slots__ = ("subject", "context", "attribute", "member")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    MEMBER_FIELD_NUMBER: _ClassVar[int]
    subject: Subject
    context: str
    attribute: str
    member: Value
    def __init__(self, subject: _Optional[_Union[Subject, _Mapping]] = ..., context: _Optional[str] = ..., attribute: _Optional[str] = ..., member: _Optional[_Union[Value, _Mapping]] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ("string_value", "int_value", "double_value", "bool_value", "time_value", "subject_value", "json_value")
    STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
    INT_VALUE_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_VALUE_FIELD_NUMBER: _ClassVar[int]
    BOOL_VALUE_FIELD_NUMBER: _ClassVar[int]
    TIME_VALUE_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_VALUE_FIELD_NUMBER: _ClassVar[int]
    JSON_VALUE_FIELD_NUMBER: _ClassVar[int]
    string_value: str
    int_value: int
    double_value: float
    bool_value: bool
    time_value: _timestamp_pb2.Timestamp
    subject_value: Subject
    json_value: str
    def __init__(self, string_value: _Optional[str] = ..., int_value: _Optional[int] = ..., double_value: _Optional[float] = ..., bool_value: bool = ..., time_value: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., subject_value: _Optional[_Union[Subject, _Mapping]] = ..., json_value: _Optional[str] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("kind", "episode_id", "quote", "author")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EPISODE_ID_FIELD_NUMBER: _ClassVar[int]
    QUOTE_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    kind: SourceKind
    episode_id: str
    quote: str
    author: str
    def __init__(self, kind: _Optional[_Union[SourceKind, str]] = ..., episode_id: _Optional[str] = ..., quote: _Optional[str] = ..., author: _Optional[str] = ...) -> None: ...

class Recurrence(_message.Message):
    __slots__ = ("count", "episode_ids")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    count: int
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, count: _Optional[int] = ..., episode_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Memory(_message.Message):
    __slots__ = ("id", "partition", "subject", "context", "kind", "attribute", "value", "text", "vector", "importance", "confidence", "status", "pinned", "pii_labels", "labels", "source", "derived_from", "consolidated_into", "valid_from", "valid_to", "recorded_at", "superseded_by", "supersedes", "created_at", "updated_at", "last_used_at", "use_count", "recurrence", "expires_at", "retention_class", "schema_version", "version", "fact_version", "retracted_at", "closed_at", "vector_pending", "session_id", "legal_hold", "confirmation")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    PII_LABELS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    CONSOLIDATED_INTO_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    VALID_TO_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDED_BY_FIELD_NUMBER: _ClassVar[int]
    SUPERSEDES_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    UPDATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_USED_AT_FIELD_NUMBER: _ClassVar[int]
    USE_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECURRENCE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    RETENTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    FACT_VERSION_FIELD_NUMBER: _ClassVar[int]
    RETRACTED_AT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    VECTOR_PENDING_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LEGAL_HOLD_FIELD_NUMBER: _ClassVar[int]
    CONFIRMATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    partition: Partition
    subject: Subject
    context: str
    kind: MemoryKind
    attribute: str
    value: Value
    text: str
    vector: bytes
    importance: float
    confidence: float
    status: MemoryStatus
    pinned: bool
    pii_labels: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.RepeatedScalarFieldContainer[str]
    source: Source
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    consolidated_into: str
    valid_from: _timestamp_pb2.Timestamp
    valid_to: _timestamp_pb2.Timestamp
    recorded_at: _timestamp_pb2.Timestamp
    superseded_by: str
    supersedes: str
    created_at: _timestamp_pb2.Timestamp
    updated_at: _timestamp_pb2.Timestamp
    last_used_at: _timestamp_pb2.Timestamp
    use_count: int
    recurrence: Recurrence
    expires_at: _timestamp_pb2.Timestamp
    retention_class: str
    schema_version: int
    version: int
    fact_version: int
    retracted_at: _timestamp_pb2.Timestamp
    closed_at: _timestamp_pb2.Timestamp
    vector_pending: bool
    session_id: str
    legal_hold: bool
    confirmation: Source
    def __init__(self, id: _Optional[str] = ..., partition: _Optional[_Union[Partition, _Mapping]] = ..., subject: _Optional[_Union[Subject, _Mapping]] = ..., context: _Optional[str] = ..., kind: _Optional[_Union[MemoryKind, str]] = ..., attribute: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ..., text: _Optional[str] = ..., vector: _Optional[bytes] = ..., importance: _Optional[float] = ..., confidence: _Optional[float] = ..., status: _Optional[_Union[MemoryStatus, str]] = ..., pinned: bool = ..., pii_labels: _Optional[_Iterable[str]] = ..., labels: _Optional[_Iterable[str]] = ..., source: _Optional[_Union[Source, _Mapping]] = ..., derived_from: _Optional[_Iterable[str]] = ..., consolidated_into: _Optional[str] = ..., valid_from: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., valid_to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., superseded_by: _Optional[str] = ..., supersedes: _Optional[str] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_used_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., use_count: _Optional[int] = ..., recurrence: _Optional[_Union[Recurrence, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retention_class: _Optional[str] = ..., schema_version: _Optional[int] = ..., version: _Optional[int] = ..., fact_version: _Optional[int] = ..., retracted_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., vector_pending: bool = ..., session_id: _Optional[str] = ..., legal_hold: bool = ..., confirmation: _Optional[_Union[Source, _Mapping]] = ...) -> None: ...

class Episode(_message.Message):
    __slots__ = ("id", "partition", "subject", "context", "content", "media_type", "source_kind", "author", "occurred_at", "session_id", "external_ref", "labels", "retention_class", "expires_at", "recorded_at", "version", "memory_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MEDIA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_KIND_FIELD_NUMBER: _ClassVar[int]
    AUTHOR_FIELD_NUMBER: _ClassVar[int]
    OCCURRED_AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_REF_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    RECORDED_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    partition: Partition
    subject: Subject
    context: str
    content: str
    media_type: str
    source_kind: SourceKind
    author: str
    occurred_at: _timestamp_pb2.Timestamp
    session_id: str
    external_ref: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    retention_class: str
    expires_at: _timestamp_pb2.Timestamp
    recorded_at: _timestamp_pb2.Timestamp
    version: int
    memory_id: str
    def __init__(self, id: _Optional[str] = ..., partition: _Optional[_Union[Partition, _Mapping]] = ..., subject: _Optional[_Union[Subject, _Mapping]] = ..., context: _Optional[str] = ..., content: _Optional[str] = ..., media_type: _Optional[str] = ..., source_kind: _Optional[_Union[SourceKind, str]] = ..., author: _Optional[str] = ..., occurred_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., external_ref: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., retention_class: _Optional[str] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., recorded_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ..., memory_id: _Optional[str] = ...) -> None: ...

class Precondition(_message.Message):
    __slots__ = ("must_not_exist", "version_equals", "must_exist", "unconditional")
    MUST_NOT_EXIST_FIELD_NUMBER: _ClassVar[int]
    VERSION_EQUALS_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    UNCONDITIONAL_FIELD_NUMBER: _ClassVar[int]
    must_not_exist: bool
    version_equals: int
    must_exist: bool
    unconditional: bool
    def __init__(self, must_not_exist: bool = ..., version_equals: _Optional[int] = ..., must_exist: bool = ..., unconditional: bool = ...) -> None: ...

class ReadOptions(_message.Message):
    __slots__ = ("at_least_revision", "exact_revision", "known_at", "as_of")
    AT_LEAST_REVISION_FIELD_NUMBER: _ClassVar[int]
    EXACT_REVISION_FIELD_NUMBER: _ClassVar[int]
    KNOWN_AT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    at_least_revision: int
    exact_revision: int
    known_at: _timestamp_pb2.Timestamp
    as_of: _timestamp_pb2.Timestamp
    def __init__(self, at_least_revision: _Optional[int] = ..., exact_revision: _Optional[int] = ..., known_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("name", "verb", "progress", "done_units", "total_units", "unit", "state", "failure_reason", "started_at", "ended_at", "kept_for", "consolidate", "forget", "migration", "reindex")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    DONE_UNITS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_UNITS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_REASON_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    KEPT_FOR_FIELD_NUMBER: _ClassVar[int]
    CONSOLIDATE_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    MIGRATION_FIELD_NUMBER: _ClassVar[int]
    REINDEX_FIELD_NUMBER: _ClassVar[int]
    name: str
    verb: str
    progress: float
    done_units: int
    total_units: int
    unit: str
    state: OperationState
    failure_reason: str
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    kept_for: _duration_pb2.Duration
    consolidate: ConsolidateReport
    forget: ForgetReport
    migration: MigrationReport
    reindex: ReindexReport
    def __init__(self, name: _Optional[str] = ..., verb: _Optional[str] = ..., progress: _Optional[float] = ..., done_units: _Optional[int] = ..., total_units: _Optional[int] = ..., unit: _Optional[str] = ..., state: _Optional[_Union[OperationState, str]] = ..., failure_reason: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kept_for: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., consolidate: _Optional[_Union[ConsolidateReport, _Mapping]] = ..., forget: _Optional[_Union[ForgetReport, _Mapping]] = ..., migration: _Optional[_Union[MigrationReport, _Mapping]] = ..., reindex: _Optional[_Union[ReindexReport, _Mapping]] = ...) -> None: ...

class ReindexReport(_message.Message):
    __slots__ = ("memories", "re_embedded")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    RE_EMBEDDED_FIELD_NUMBER: _ClassVar[int]
    memories: int
    re_embedded: bool
    def __init__(self, memories: _Optional[int] = ..., re_embedded: bool = ...) -> None: ...

class MigrationReport(_message.Message):
    __slots__ = ("attribute", "schema_version", "migrated", "misfits", "misfit_ids")
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    MIGRATED_FIELD_NUMBER: _ClassVar[int]
    MISFITS_FIELD_NUMBER: _ClassVar[int]
    MISFIT_IDS_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    schema_version: int
    migrated: int
    misfits: int
    misfit_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attribute: _Optional[str] = ..., schema_version: _Optional[int] = ..., migrated: _Optional[int] = ..., misfits: _Optional[int] = ..., misfit_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class ConsolidateReport(_message.Message):
    __slots__ = ("clusters", "created", "consolidated", "skipped", "promoted_ids", "dry_run", "more")
    CLUSTERS_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CONSOLIDATED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    PROMOTED_IDS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    clusters: int
    created: _containers.RepeatedCompositeFieldContainer[Memory]
    consolidated: int
    skipped: _containers.RepeatedCompositeFieldContainer[SkippedCluster]
    promoted_ids: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    more: bool
    def __init__(self, clusters: _Optional[int] = ..., created: _Optional[_Iterable[_Union[Memory, _Mapping]]] = ..., consolidated: _Optional[int] = ..., skipped: _Optional[_Iterable[_Union[SkippedCluster, _Mapping]]] = ..., promoted_ids: _Optional[_Iterable[str]] = ..., dry_run: bool = ..., more: bool = ...) -> None: ...

class SkippedCluster(_message.Message):
    __slots__ = ("memory_ids", "reason", "lost_details")
    MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    LOST_DETAILS_FIELD_NUMBER: _ClassVar[int]
    memory_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: ClusterSkipReason
    lost_details: int
    def __init__(self, memory_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[_Union[ClusterSkipReason, str]] = ..., lost_details: _Optional[int] = ...) -> None: ...

class ForgetReport(_message.Message):
    __slots__ = ("memories", "episodes", "derived", "sample_ids", "exempt_ids", "dry_run", "receipt", "unpreviewed")
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_IDS_FIELD_NUMBER: _ClassVar[int]
    EXEMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    UNPREVIEWED_FIELD_NUMBER: _ClassVar[int]
    memories: int
    episodes: int
    derived: int
    sample_ids: _containers.RepeatedScalarFieldContainer[str]
    exempt_ids: _containers.RepeatedScalarFieldContainer[str]
    dry_run: bool
    receipt: ErasureReceipt
    unpreviewed: int
    def __init__(self, memories: _Optional[int] = ..., episodes: _Optional[int] = ..., derived: _Optional[int] = ..., sample_ids: _Optional[_Iterable[str]] = ..., exempt_ids: _Optional[_Iterable[str]] = ..., dry_run: bool = ..., receipt: _Optional[_Union[ErasureReceipt, _Mapping]] = ..., unpreviewed: _Optional[int] = ...) -> None: ...

class ErasureReceipt(_message.Message):
    __slots__ = ("id", "partition", "erased_at", "revision", "places", "verification", "audit_entry_id")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ERASED_AT_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    PLACES_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_FIELD_NUMBER: _ClassVar[int]
    AUDIT_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    partition: Partition
    erased_at: _timestamp_pb2.Timestamp
    revision: int
    places: _containers.RepeatedCompositeFieldContainer[ErasedPlace]
    verification: str
    audit_entry_id: str
    def __init__(self, id: _Optional[str] = ..., partition: _Optional[_Union[Partition, _Mapping]] = ..., erased_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revision: _Optional[int] = ..., places: _Optional[_Iterable[_Union[ErasedPlace, _Mapping]]] = ..., verification: _Optional[str] = ..., audit_entry_id: _Optional[str] = ...) -> None: ...

class ErasedPlace(_message.Message):
    __slots__ = ("place", "removed", "method")
    PLACE_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    place: str
    removed: int
    method: str
    def __init__(self, place: _Optional[str] = ..., removed: _Optional[int] = ..., method: _Optional[str] = ...) -> None: ...
