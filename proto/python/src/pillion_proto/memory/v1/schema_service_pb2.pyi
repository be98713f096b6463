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

class ExistingValues(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXISTING_VALUES_UNSPECIFIED: _ClassVar[ExistingValues]
    EXISTING_VALUES_MUST_FIT: _ClassVar[ExistingValues]
    EXISTING_VALUES_MAY_DIFFER: _ClassVar[ExistingValues]

class ValueType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_TYPE_UNSPECIFIED: _ClassVar[ValueType]
    VALUE_TYPE_STRING: _ClassVar[ValueType]
    VALUE_TYPE_INT: _ClassVar[ValueType]
    VALUE_TYPE_DOUBLE: _ClassVar[ValueType]
    VALUE_TYPE_BOOL: _ClassVar[ValueType]
    VALUE_TYPE_TIME: _ClassVar[ValueType]
CARDINALITY_UNSPECIFIED: Cardinality
CARDINALITY_ONE: Cardinality
CARDINALITY_SET: Cardinality
EXISTING_VALUES_UNSPECIFIED: ExistingValues
EXISTING_VALUES_MUST_FIT: ExistingValues
EXISTING_VALUES_MAY_DIFFER: ExistingValues
VALUE_TYPE_UNSPECIFIED: ValueType
VALUE_TYPE_STRING: ValueType
VALUE_TYPE_INT: ValueType
VALUE_TYPE_DOUBLE: ValueType
VALUE_TYPE_BOOL: ValueType
VALUE_TYPE_TIME: ValueType

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
    __slots__ = ("partition", "request_id", "schema", "precondition", "existing_values", "validate_only")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    PRECONDITION_FIELD_NUMBER: _ClassVar[int]
    EXISTING_VALUES_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    schema: AttributeSchema
    precondition: _types_pb2.Precondition
    existing_values: ExistingValues
    validate_only: bool
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., schema: _Optional[_Union[AttributeSchema, _Mapping]] = ..., precondition: _Optional[_Union[_types_pb2.Precondition, _Mapping]] = ..., existing_values: _Optional[_Union[ExistingValues, str]] = ..., validate_only: bool = ...) -> None: ...

class RegisterAttributeResponse(_message.Message):
    __slots__ = ("schema", "revision", "misfits", "misfit_ids")
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    MISFITS_FIELD_NUMBER: _ClassVar[int]
    MISFIT_IDS_FIELD_NUMBER: _ClassVar[int]
    schema: AttributeSchema
    revision: int
    misfits: int
    misfit_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, schema: _Optional[_Union[AttributeSchema, _Mapping]] = ..., revision: _Optional[int] = ..., misfits: _Optional[int] = ..., misfit_ids: _Optional[_Iterable[str]] = ...) -> None: ...

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
    __slots__ = ("partition", "request_id", "attribute", "to_schema_version", "dry_run", "steps")
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    TO_SCHEMA_VERSION_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    partition: _types_pb2.Partition
    request_id: str
    attribute: str
    to_schema_version: int
    dry_run: bool
    steps: _containers.RepeatedCompositeFieldContainer[ValueStep]
    def __init__(self, partition: _Optional[_Union[_types_pb2.Partition, _Mapping]] = ..., request_id: _Optional[str] = ..., attribute: _Optional[str] = ..., to_schema_version: _Optional[int] = ..., dry_run: bool = ..., steps: _Optional[_Iterable[_Union[ValueStep, _Mapping]]] = ...) -> None: ...

class ValueStep(_message.Message):
    __slots__ = ("convert", "replace", "rename_property", "default_property", "remove_property", "wrap", "unwrap")
    CONVERT_FIELD_NUMBER: _ClassVar[int]
    REPLACE_FIELD_NUMBER: _ClassVar[int]
    RENAME_PROPERTY_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_PROPERTY_FIELD_NUMBER: _ClassVar[int]
    REMOVE_PROPERTY_FIELD_NUMBER: _ClassVar[int]
    WRAP_FIELD_NUMBER: _ClassVar[int]
    UNWRAP_FIELD_NUMBER: _ClassVar[int]
    convert: ConvertValue
    replace: ReplaceValue
    rename_property: RenameProperty
    default_property: DefaultProperty
    remove_property: RemoveProperty
    wrap: WrapValue
    unwrap: UnwrapValue
    def __init__(self, convert: _Optional[_Union[ConvertValue, _Mapping]] = ..., replace: _Optional[_Union[ReplaceValue, _Mapping]] = ..., rename_property: _Optional[_Union[RenameProperty, _Mapping]] = ..., default_property: _Optional[_Union[DefaultProperty, _Mapping]] = ..., remove_property: _Optional[_Union[RemoveProperty, _Mapping]] = ..., wrap: _Optional[_Union[WrapValue, _Mapping]] = ..., unwrap: _Optional[_Union[UnwrapValue, _Mapping]] = ...) -> None: ...

class ConvertValue(_message.Message):
    __slots__ = ("to",)
    TO_FIELD_NUMBER: _ClassVar[int]
    to: ValueType
    def __init__(self, to: _Optional[_Union[ValueType, str]] = ...) -> None: ...

class ReplaceValue(_message.Message):
    __slots__ = ("to",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    to: _types_pb2.Value
    def __init__(self, to: _Optional[_Union[_types_pb2.Value, _Mapping]] = ..., **kwargs) -> None: ...

class RenameProperty(_message.Message):
    __slots__ = ("to",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    to: str
    def __init__(self, to: _Optional[str] = ..., **kwargs) -> None: ...

class DefaultProperty(_message.Message):
    __slots__ = ("name", "json_value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    JSON_VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    json_value: str
    def __init__(self, name: _Optional[str] = ..., json_value: _Optional[str] = ...) -> None: ...

class RemoveProperty(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class WrapValue(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class UnwrapValue(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

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
