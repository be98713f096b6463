import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from pillion_proto.memory.v1 import memory_service_pb2 as _memory_service_pb2
from pillion_proto.memory.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatsRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ...) -> None: ...

class GetStatsResponse(_message.Message):
    __slots__ = ("store", "partitions", "uptime", "resident_bytes")
    STORE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    UPTIME_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    store: StoreStats
    partitions: _containers.RepeatedCompositeFieldContainer[PartitionStats]
    uptime: _duration_pb2.Duration
    resident_bytes: int
    def __init__(self, store: _Optional[_Union[StoreStats, _Mapping]] = ..., partitions: _Optional[_Iterable[_Union[PartitionStats, _Mapping]]] = ..., uptime: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., resident_bytes: _Optional[int] = ...) -> None: ...

class StoreStats(_message.Message):
    __slots__ = ("kind", "disk_bytes", "disk_bytes_max", "commits", "flushes", "queue_depth", "format_version")
    KIND_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    COMMITS_FIELD_NUMBER: _ClassVar[int]
    FLUSHES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_DEPTH_FIELD_NUMBER: _ClassVar[int]
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    kind: str
    disk_bytes: int
    disk_bytes_max: int
    commits: int
    flushes: int
    queue_depth: int
    format_version: int
    def __init__(self, kind: _Optional[str] = ..., disk_bytes: _Optional[int] = ..., disk_bytes_max: _Optional[int] = ..., commits: _Optional[int] = ..., flushes: _Optional[int] = ..., queue_depth: _Optional[int] = ..., format_version: _Optional[int] = ...) -> None: ...

class PartitionStats(_message.Message):
    __slots__ = ("partition", "revision", "memories", "episodes", "records", "record_bytes", "resident", "resident_bytes", "vectors_pending", "vectors_failed", "indexed_vectors", "index_lag", "embedder")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    EPISODES_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    RECORD_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    VECTORS_PENDING_FIELD_NUMBER: _ClassVar[int]
    VECTORS_FAILED_FIELD_NUMBER: _ClassVar[int]
    INDEXED_VECTORS_FIELD_NUMBER: _ClassVar[int]
    INDEX_LAG_FIELD_NUMBER: _ClassVar[int]
    EMBEDDER_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    revision: int
    memories: int
    episodes: int
    records: int
    record_bytes: int
    resident: bool
    resident_bytes: int
    vectors_pending: int
    vectors_failed: int
    indexed_vectors: int
    index_lag: int
    embedder: _memory_service_pb2.EmbedderInfo
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., revision: _Optional[int] = ..., memories: _Optional[int] = ..., episodes: _Optional[int] = ..., records: _Optional[int] = ..., record_bytes: _Optional[int] = ..., resident: bool = ..., resident_bytes: _Optional[int] = ..., vectors_pending: _Optional[int] = ..., vectors_failed: _Optional[int] = ..., indexed_vectors: _Optional[int] = ..., index_lag: _Optional[int] = ..., embedder: _Optional[_Union[_memory_service_pb2.EmbedderInfo, _Mapping]] = ...) -> None: ...

class Quotas(_message.Message):
    __slots__ = ("memories_max", "record_bytes_max", "requests_per_second_max", "streams_max")
    MEMORIES_MAX_FIELD_NUMBER: _ClassVar[int]
    RECORD_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_PER_SECOND_MAX_FIELD_NUMBER: _ClassVar[int]
    STREAMS_MAX_FIELD_NUMBER: _ClassVar[int]
    memories_max: int
    record_bytes_max: int
    requests_per_second_max: float
    streams_max: int
    def __init__(self, memories_max: _Optional[int] = ..., record_bytes_max: _Optional[int] = ..., requests_per_second_max: _Optional[float] = ..., streams_max: _Optional[int] = ...) -> None: ...

class GetQuotasRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ...) -> None: ...

class GetQuotasResponse(_message.Message):
    __slots__ = ("quotas", "used")
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    quotas: Quotas
    used: Quotas
    def __init__(self, quotas: _Optional[_Union[Quotas, _Mapping]] = ..., used: _Optional[_Union[Quotas, _Mapping]] = ...) -> None: ...

class SetQuotasRequest(_message.Message):
    __slots__ = ("partition", "quotas")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    quotas: Quotas
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., quotas: _Optional[_Union[Quotas, _Mapping]] = ...) -> None: ...

class SetQuotasResponse(_message.Message):
    __slots__ = ("quotas",)
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    quotas: Quotas
    def __init__(self, quotas: _Optional[_Union[Quotas, _Mapping]] = ...) -> None: ...

class BackupRequest(_message.Message):
    __slots__ = ("name", "since_backup")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SINCE_BACKUP_FIELD_NUMBER: _ClassVar[int]
    name: str
    since_backup: str
    def __init__(self, name: _Optional[str] = ..., since_backup: _Optional[str] = ...) -> None: ...

class BackupResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class VerifyRequest(_message.Message):
    __slots__ = ("partition",)
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ...) -> None: ...

class VerifyResponse(_message.Message):
    __slots__ = ("checked", "findings")
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    checked: int
    findings: _containers.RepeatedCompositeFieldContainer[VerifyFinding]
    def __init__(self, checked: _Optional[int] = ..., findings: _Optional[_Iterable[_Union[VerifyFinding, _Mapping]]] = ...) -> None: ...

class VerifyFinding(_message.Message):
    __slots__ = ("rule", "place", "advice")
    RULE_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    rule: str
    place: str
    advice: str
    def __init__(self, rule: _Optional[str] = ..., place: _Optional[str] = ..., advice: _Optional[str] = ...) -> None: ...

class ReindexRequest(_message.Message):
    __slots__ = ("partition", "re_embed")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    RE_EMBED_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    re_embed: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., re_embed: bool = ...) -> None: ...

class ReindexResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class RotateKeysRequest(_message.Message):
    __slots__ = ("new_key_id",)
    NEW_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    new_key_id: str
    def __init__(self, new_key_id: _Optional[str] = ...) -> None: ...

class RotateKeysResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...

class QueryAuditRequest(_message.Message):
    __slots__ = ("partition", "to", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    to: _timestamp_pb2.Timestamp
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., **kwargs) -> None: ...

class QueryAuditResponse(_message.Message):
    __slots__ = ("entries", "next_page_token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next_page_token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("id", "at", "identity", "verb", "partition", "ids", "outcome", "previous_hash", "hash")
    ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    VERB_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_HASH_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    id: str
    at: _timestamp_pb2.Timestamp
    identity: str
    verb: str
    partition: _types_pb2.Partition
    ids: _containers.RepeatedScalarFieldContainer[str]
    outcome: str
    previous_hash: bytes
    hash: bytes
    def __init__(self, id: _Optional[str] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., identity: _Optional[str] = ..., verb: _Optional[str] = ..., partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., ids: _Optional[_Iterable[str]] = ..., outcome: _Optional[str] = ..., previous_hash: _Optional[bytes] = ..., hash: _Optional[bytes] = ...) -> None: ...

class GetErasureReceiptRequest(_message.Message):
    __slots__ = ("id", "partition")
    ID_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    id: str
    partition: _types_pb2.Partition
    def __init__(self, id: _Optional[str] = ..., partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ...) -> None: ...

class GetErasureReceiptResponse(_message.Message):
    __slots__ = ("receipt",)
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    receipt: _types_pb2.ErasureReceipt
    def __init__(self, receipt: _Optional[_Union[_types_pb2.ErasureReceipt, _Mapping]] = ...) -> None: ...

class ListErasureReceiptsRequest(_message.Message):
    __slots__ = ("partition", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListErasureReceiptsResponse(_message.Message):
    __slots__ = ("receipts", "next_page_token")
    RECEIPTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    receipts: _containers.RepeatedCompositeFieldContainer[_types_pb2.ErasureReceipt]
    next_page_token: str
    def __init__(self, receipts: _Optional[_Iterable[_Union[_types_pb2.ErasureReceipt, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SetLegalHoldRequest(_message.Message):
    __slots__ = ("partition", "id", "subject", "held", "reason_code")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    REASON_CODE_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    id: str
    subject: _types_pb2.Subject
    held: bool
    reason_code: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., id: _Optional[str] = ..., subject: _Optional[_Union[_types_pb2.Subject, _Mapping]] = ..., held: bool = ..., reason_code: _Optional[str] = ...) -> None: ...

class SetLegalHoldResponse(_message.Message):
    __slots__ = ("held",)
    HELD_FIELD_NUMBER: _ClassVar[int]
    held: int
    def __init__(self, held: _Optional[int] = ...) -> None: ...
