import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from pillion_proto.memory.v1 import memory_service_pb2 as _memory_service_pb2
from pillion_proto.memory.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Cardinality(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CARDINALITY_UNSPECIFIED: _ClassVar[Cardinality]
    CARDINALITY_ONE: _ClassVar[Cardinality]
    CARDINALITY_SET: _ClassVar[Cardinality]
CARDINALITY_UNSPECIFIED: Cardinality
CARDINALITY_ONE: Cardinality
CARDINALITY_SET: Cardinality

class AttributeSchema(_message.Message):
    __slots__ = ("attribute", "json_schema", "subject_types", "cardinality", "half_life", "retention_class", "pii_labels", "conflict_policy", "schema_version", "registered_at", "version")
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_TYPES_FIELD_NUMBER: _ClassVar[int]
    CARDINALITY_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_FIELD_NUMBER: _ClassVar[int]
    RETENTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    PII_LABELS_FIELD_NUMBER: _ClassVar[int]
    CONFLICT_POLICY_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_AT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    json_schema: str
    subject_types: _containers.RepeatedScalarFieldContainer[str]
    cardinality: Cardinality
    half_life: _duration_pb2.Duration
    retention_class: str
    pii_labels: _containers.RepeatedScalarFieldContainer[str]
    conflict_policy: _memory_service_pb2.ConflictPolicy
    schema_version: int
    registered_at: _timestamp_pb2.Timestamp
    version: int
    def __init__(self, attribute: _Optional[str] = ..., json_schema: _Optional[str] = ..., subject_types: _Optional[_Iterable[str]] = ..., cardinality: _Optional[_Union[Cardinality, str]] = ..., half_life: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retention_class: _Optional[str] = ..., pii_labels: _Optional[_Iterable[str]] = ..., conflict_policy: _Optional[_Union[_memory_service_pb2.ConflictPolicy, str]] = ..., schema_version: _Optional[int] = ..., registered_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class RegisterAttributeRequest(_message.Message):
    __slots__ = ("partition", "request_id", "schema", "precondition")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    schema: AttributeSchema
    precondition: _types_pb2.Precondition
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., schema: _Optional[_Union[AttributeSchema, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ...) -> None: ...

class RegisterAttributeResponse(_message.Message):
    __slots__ = ("schema", "revision")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    schema: AttributeSchema
    revision: int
    def __init__(self, schema: _Optional[_Union[AttributeSchema, _Mapping]] = ..., revision: _Optional[int] = ...) -> None: ...

class GetAttributeRequest(_message.Message):
    __slots__ = ("partition", "attribute", "schema_version")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    attribute: str
    schema_version: int
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., attribute: _Optional[str] = ..., schema_version: _Optional[int] = ...) -> None: ...

class GetAttributeResponse(_message.Message):
    __slots__ = ("schema",)
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    schema: AttributeSchema
    def __init__(self, schema: _Optional[_Union[AttributeSchema, _Mapping]] = ...) -> None: ...

class ListAttributesRequest(_message.Message):
    __slots__ = ("partition", "page_size", "page_token")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    page_size: int
    page_token: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListAttributesResponse(_message.Message):
    __slots__ = ("schemas", "next_page_token")
    SCHEMAS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schemas: _containers.RepeatedCompositeFieldContainer[AttributeSchema]
    next_page_token: str
    def __init__(self, schemas: _Optional[_Iterable[_Union[AttributeSchema, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class MigrateAttributeRequest(_message.Message):
    __slots__ = ("partition", "request_id", "attribute", "to_schema_version", "dry_run")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    TO_SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    attribute: str
    to_schema_version: int
    dry_run: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., attribute: _Optional[str] = ..., to_schema_version: _Optional[int] = ..., dry_run: bool = ...) -> None: ...

class MigrateAttributeResponse(_message.Message):
    __slots__ = ("operation", "values", "misfit_ids")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    MISFIT_IDS_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    values: int
    misfit_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ..., values: _Optional[int] = ..., misfit_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class RollBackMigrationRequest(_message.Message):
    __slots__ = ("partition", "operation_name")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OPERATION_NAME_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    operation_name: str
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., operation_name: _Optional[str] = ...) -> None: ...

class RollBackMigrationResponse(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: _types_pb2.Operation
    def __init__(self, operation: _Optional[_Union[_types_pb2.Operation, _Mapping]] = ...) -> None: ...
