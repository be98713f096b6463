import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from pillion_proto.memory.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ValidityFilter(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALIDITY_FILTER_UNSPECIFIED: _ClassVar[ValidityFilter]
    VALIDITY_FILTER_VALID_NOW: _ClassVar[ValidityFilter]
    VALIDITY_FILTER_ANY: _ClassVar[ValidityFilter]

class RecencyAnchor(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECENCY_ANCHOR_UNSPECIFIED: _ClassVar[RecencyAnchor]
    RECENCY_ANCHOR_VALID_FROM: _ClassVar[RecencyAnchor]
    RECENCY_ANCHOR_LAST_USED: _ClassVar[RecencyAnchor]

class OlderStatements(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OLDER_STATEMENTS_UNSPECIFIED: _ClassVar[OlderStatements]
    OLDER_STATEMENTS_FOLLOW: _ClassVar[OlderStatements]
    OLDER_STATEMENTS_FOLD: _ClassVar[OlderStatements]

class Exactness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXACTNESS_UNSPECIFIED: _ClassVar[Exactness]
    EXACTNESS_EXACT: _ClassVar[Exactness]
    EXACTNESS_CERTIFIED: _ClassVar[Exactness]
    EXACTNESS_APPROXIMATE: _ClassVar[Exactness]

class SearchPath(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEARCH_PATH_UNSPECIFIED: _ClassVar[SearchPath]
    SEARCH_PATH_SCAN: _ClassVar[SearchPath]
    SEARCH_PATH_INDEX: _ClassVar[SearchPath]
    SEARCH_PATH_NO_VECTOR: _ClassVar[SearchPath]
VALIDITY_FILTER_UNSPECIFIED: ValidityFilter
VALIDITY_FILTER_VALID_NOW: ValidityFilter
VALIDITY_FILTER_ANY: ValidityFilter
RECENCY_ANCHOR_UNSPECIFIED: RecencyAnchor
RECENCY_ANCHOR_VALID_FROM: RecencyAnchor
RECENCY_ANCHOR_LAST_USED: RecencyAnchor
OLDER_STATEMENTS_UNSPECIFIED: OlderStatements
OLDER_STATEMENTS_FOLLOW: OlderStatements
OLDER_STATEMENTS_FOLD: OlderStatements
EXACTNESS_UNSPECIFIED: Exactness
EXACTNESS_EXACT: Exactness
EXACTNESS_CERTIFIED: Exactness
EXACTNESS_APPROXIMATE: Exactness
SEARCH_PATH_UNSPECIFIED: SearchPath
SEARCH_PATH_SCAN: SearchPath
SEARCH_PATH_INDEX: SearchPath
SEARCH_PATH_NO_VECTOR: SearchPath

class TimeWindow(_message.Message):
    __slots__ = ("to",)
    FROM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    to: _timestamp_pb2.Timestamp
    def __init__(self, to: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class Filter(_message.Message):
    __slots__ = ("subjects", "contexts", "all_contexts", "kinds", "statuses", "attributes", "labels_all", "labels_any", "labels_none", "created", "valid_from", "importance_min", "confidence_min", "source_kinds", "episode_ids", "session_ids", "include_retracted", "include_expired", "validity", "any_of", "none_of", "derived_from")
    SUBJECTS_FIELD_NUMBER: _ClassVar[int]
    CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    ALL_CONTEXTS_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    LABELS_ALL_FIELD_NUMBER: _ClassVar[int]
    LABELS_ANY_FIELD_NUMBER: _ClassVar[int]
    LABELS_NONE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    VALID_FROM_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_MIN_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_MIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_KINDS_FIELD_NUMBER: _ClassVar[int]
    EPISODE_IDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_IDS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_RETRACTED_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    VALIDITY_FIELD_NUMBER: _ClassVar[int]
    ANY_OF_FIELD_NUMBER: _ClassVar[int]
    NONE_OF_FIELD_NUMBER: _ClassVar[int]
    DERIVED_FROM_FIELD_NUMBER: _ClassVar[int]
    subjects: _containers.RepeatedCompositeFieldContainer[_types_pb2.Subject]
    contexts: _containers.RepeatedScalarFieldContainer[str]
    all_contexts: bool
    kinds: _containers.RepeatedScalarFieldContainer[_types_pb2.MemoryKind]
    statuses: _containers.RepeatedScalarFieldContainer[_types_pb2.MemoryStatus]
    attributes: _containers.RepeatedScalarFieldContainer[str]
    labels_all: _containers.RepeatedScalarFieldContainer[str]
    labels_any: _containers.RepeatedScalarFieldContainer[str]
    labels_none: _containers.RepeatedScalarFieldContainer[str]
    created: TimeWindow
    valid_from: TimeWindow
    importance_min: float
    confidence_min: float
    source_kinds: _containers.RepeatedScalarFieldContainer[_types_pb2.SourceKind]
    episode_ids: _containers.RepeatedScalarFieldContainer[str]
    session_ids: _containers.RepeatedScalarFieldContainer[str]
    include_retracted: bool
    include_expired: bool
    validity: ValidityFilter
    any_of: _containers.RepeatedCompositeFieldContainer[Filter]
    none_of: _containers.RepeatedCompositeFieldContainer[Filter]
    derived_from: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, subjects: _Optional[_Iterable[_Union[_types_pb2.Subject, _Mapping]]] = ..., contexts: _Optional[_Iterable[str]] = ..., all_contexts: bool = ..., kinds: _Optional[_Iterable[_Union[_types_pb2.MemoryKind, str]]] = ..., statuses: _Optional[_Iterable[_Union[_types_pb2.MemoryStatus, str]]] = ..., attributes: _Optional[_Iterable[str]] = ..., labels_all: _Optional[_Iterable[str]] = ..., labels_any: _Optional[_Iterable[str]] = ..., labels_none: _Optional[_Iterable[str]] = ..., created: _Optional[_Union[TimeWindow, _Mapping]] = ..., valid_from: _Optional[_Union[TimeWindow, _Mapping]] = ..., importance_min: _Optional[float] = ..., confidence_min: _Optional[float] = ..., source_kinds: _Optional[_Iterable[_Union[_types_pb2.SourceKind, str]]] = ..., episode_ids: _Optional[_Iterable[str]] = ..., session_ids: _Optional[_Iterable[str]] = ..., include_retracted: bool = ..., include_expired: bool = ..., validity: _Optional[_Union[ValidityFilter, str]] = ..., any_of: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ..., none_of: _Optional[_Iterable[_Union[Filter, _Mapping]]] = ..., derived_from: _Optional[_Iterable[str]] = ...) -> None: ...

class RankingProfile(_message.Message):
    __slots__ = ("name", "relevance_weight", "recency_weight", "importance_weight", "half_lives", "recency_anchor", "diversity")
    NAME_FIELD_NUMBER: _ClassVar[int]
    RELEVANCE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RECENCY_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_WEIGHT_FIELD_NUMBER: _ClassVar[int]
    HALF_LIVES_FIELD_NUMBER: _ClassVar[int]
    RECENCY_ANCHOR_FIELD_NUMBER: _ClassVar[int]
    DIVERSITY_FIELD_NUMBER: _ClassVar[int]
    name: str
    relevance_weight: float
    recency_weight: float
    importance_weight: float
    half_lives: _containers.RepeatedCompositeFieldContainer[KindHalfLife]
    recency_anchor: RecencyAnchor
    diversity: float
    def __init__(self, name: _Optional[str] = ..., relevance_weight: _Optional[float] = ..., recency_weight: _Optional[float] = ..., importance_weight: _Optional[float] = ..., half_lives: _Optional[_Iterable[_Union[KindHalfLife, _Mapping]]] = ..., recency_anchor: _Optional[_Union[RecencyAnchor, str]] = ..., diversity: _Optional[float] = ...) -> None: ...

class KindHalfLife(_message.Message):
    __slots__ = ("kind", "half_life")
    KIND_FIELD_NUMBER: _ClassVar[int]
    HALF_LIFE_FIELD_NUMBER: _ClassVar[int]
    kind: _types_pb2.MemoryKind
    half_life: _duration_pb2.Duration
    def __init__(self, kind: _Optional[_Union[_types_pb2.MemoryKind, str]] = ..., half_life: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SearchHit(_message.Message):
    __slots__ = ("memory", "score", "parts", "older_statement", "folded_ids", "path")
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    OLDER_STATEMENT_FIELD_NUMBER: _ClassVar[int]
    FOLDED_IDS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    memory: _types_pb2.Memory
    score: float
    parts: ScoreParts
    older_statement: bool
    folded_ids: _containers.RepeatedScalarFieldContainer[str]
    path: _containers.RepeatedCompositeFieldContainer[Edge]
    def __init__(self, memory: _Optional[_Union[_types_pb2.Memory, _Mapping]] = ..., score: _Optional[float] = ..., parts: _Optional[_Union[ScoreParts, _Mapping]] = ..., older_statement: bool = ..., folded_ids: _Optional[_Iterable[str]] = ..., path: _Optional[_Iterable[_Union[Edge, _Mapping]]] = ...) -> None: ...

class ScoreParts(_message.Message):
    __slots__ = ("relevance", "recency", "importance", "cosine", "lexical")
    RELEVANCE_FIELD_NUMBER: _ClassVar[int]
    RECENCY_FIELD_NUMBER: _ClassVar[int]
    IMPORTANCE_FIELD_NUMBER: _ClassVar[int]
    COSINE_FIELD_NUMBER: _ClassVar[int]
    LEXICAL_FIELD_NUMBER: _ClassVar[int]
    relevance: float
    recency: float
    importance: float
    cosine: float
    lexical: float
    def __init__(self, relevance: _Optional[float] = ..., recency: _Optional[float] = ..., importance: _Optional[float] = ..., cosine: _Optional[float] = ..., lexical: _Optional[float] = ...) -> None: ...

class SearchTrace(_message.Message):
    __slots__ = ("path", "memories", "admitted", "scored", "candidates", "timings")
    PATH_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    SCORED_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    path: SearchPath
    memories: int
    admitted: int
    scored: int
    candidates: _containers.RepeatedCompositeFieldContainer[TraceCandidate]
    timings: _containers.RepeatedCompositeFieldContainer[TraceTiming]
    def __init__(self, path: _Optional[_Union[SearchPath, str]] = ..., memories: _Optional[int] = ..., admitted: _Optional[int] = ..., scored: _Optional[int] = ..., candidates: _Optional[_Iterable[_Union[TraceCandidate, _Mapping]]] = ..., timings: _Optional[_Iterable[_Union[TraceTiming, _Mapping]]] = ...) -> None: ...

class TraceCandidate(_message.Message):
    __slots__ = ("memory_id", "proposed_by", "parts", "score", "dropped_by")
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    PROPOSED_BY_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BY_FIELD_NUMBER: _ClassVar[int]
    memory_id: str
    proposed_by: _containers.RepeatedScalarFieldContainer[str]
    parts: ScoreParts
    score: float
    dropped_by: str
    def __init__(self, memory_id: _Optional[str] = ..., proposed_by: _Optional[_Iterable[str]] = ..., parts: _Optional[_Union[ScoreParts, _Mapping]] = ..., score: _Optional[float] = ..., dropped_by: _Optional[str] = ...) -> None: ...

class TraceTiming(_message.Message):
    __slots__ = ("step", "duration")
    STEP_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    step: str
    duration: _duration_pb2.Duration
    def __init__(self, step: _Optional[str] = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Edge(_message.Message):
    __slots__ = ("attribute", "to", "memory_id", "version")
    FROM_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    to: _types_pb2.Subject
    memory_id: str
    version: int
    def __init__(self, attribute: _Optional[str] = ..., to: _Optional[_Union[_types_pb2.Subject, _Mapping]] = ..., memory_id: _Optional[str] = ..., version: _Optional[int] = ..., **kwargs) -> None: ...

class GraphExpansion(_message.Message):
    __slots__ = ("depth", "fan_out", "attributes")
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    FAN_OUT_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    depth: int
    fan_out: int
    attributes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, depth: _Optional[int] = ..., fan_out: _Optional[int] = ..., attributes: _Optional[_Iterable[str]] = ...) -> None: ...
