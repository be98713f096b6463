"""The calls of the contract: path, answer, and whether one may be sent again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from pillion_proto.memory.v1 import admin_service_pb2 as admin
from pillion_proto.memory.v1 import memory_service_pb2 as service
from pillion_proto.memory.v1 import schema_service_pb2 as schema

ResponseT = TypeVar("ResponseT", bound=Message)

_MEMORY: Final = "/pillion.memory.v1.MemoryService/"
_SCHEMA: Final = "/pillion.memory.v1.SchemaService/"
_ADMIN: Final = "/pillion.memory.v1.AdminService/"


@dataclass(frozen=True, slots=True)
class Method(Generic[ResponseT]):
    """One remote call with one request and one answer.

    Every one of these is safe to send again: reads by nature, and the mutations among them
    because each request carries a request_id. Import and Watch are streams and not in this table.
    """

    path: str
    response: type[ResponseT]


GET_SERVER_INFO: Final = Method(_MEMORY + "GetServerInfo", service.GetServerInfoResponse)
WRITE: Final = Method(_MEMORY + "Write", service.WriteResponse)
SEARCH: Final = Method(_MEMORY + "Search", service.SearchResponse)
GET: Final = Method(_MEMORY + "Get", service.GetResponse)
BATCH_GET: Final = Method(_MEMORY + "BatchGet", service.BatchGetResponse)
LIST: Final = Method(_MEMORY + "List", service.ListResponse)
HISTORY: Final = Method(_MEMORY + "History", service.HistoryResponse)
NEIGHBORS: Final = Method(_MEMORY + "Neighbors", service.NeighborsResponse)
RECALL: Final = Method(_MEMORY + "Recall", service.RecallResponse)
CONSOLIDATE: Final = Method(_MEMORY + "Consolidate", service.ConsolidateResponse)
FORGET: Final = Method(_MEMORY + "Forget", service.ForgetResponse)
REGISTER_ATTRIBUTE: Final = Method(_SCHEMA + "RegisterAttribute", schema.RegisterAttributeResponse)
GET_ATTRIBUTE: Final = Method(_SCHEMA + "GetAttribute", schema.GetAttributeResponse)
LIST_ATTRIBUTES: Final = Method(_SCHEMA + "ListAttributes", schema.ListAttributesResponse)
MIGRATE_ATTRIBUTE: Final = Method(_SCHEMA + "MigrateAttribute", schema.MigrateAttributeResponse)
ROLL_BACK_MIGRATION: Final = Method(_SCHEMA + "RollBackMigration", schema.RollBackMigrationResponse)
GET_OPERATION: Final = Method(_MEMORY + "GetOperation", service.GetOperationResponse)
LIST_OPERATIONS: Final = Method(_MEMORY + "ListOperations", service.ListOperationsResponse)
WAIT_OPERATION: Final = Method(_MEMORY + "WaitOperation", service.WaitOperationResponse)
CANCEL_OPERATION: Final = Method(_MEMORY + "CancelOperation", service.CancelOperationResponse)
GET_STATS: Final = Method(_ADMIN + "GetStats", admin.GetStatsResponse)
SET_LEGAL_HOLD: Final = Method(_ADMIN + "SetLegalHold", admin.SetLegalHoldResponse)
GET_ERASURE_RECEIPT: Final = Method(_ADMIN + "GetErasureReceipt", admin.GetErasureReceiptResponse)
LIST_ERASURE_RECEIPTS: Final = Method(
    _ADMIN + "ListErasureReceipts", admin.ListErasureReceiptsResponse
)
REINDEX: Final = Method(_ADMIN + "Reindex", admin.ReindexResponse)
CHECK_HEALTH: Final = Method("/grpc.health.v1.Health/Check", health_pb2.HealthCheckResponse)

IMPORT_PATH: Final = _MEMORY + "Import"
WATCH_PATH: Final = _MEMORY + "Watch"
