"""What this server serves: one table of calls and one of features.

`GetServerInfo` publishes it, the servicers refuse by it, and a test calls every method of every
service and holds the answers to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pillion_proto.memory.v1 import memory_service_pb2 as wire

from pillion.domain.errors import PillionError, Reason
from pillion.transport.identity import Role

PACKAGE: Final = "pillion.memory.v1"
_MEMORY: Final = f"/{PACKAGE}.MemoryService/"
GET: Final = _MEMORY + "Get"
_ADMIN: Final = f"/{PACKAGE}.AdminService/"
_SCHEMA: Final = f"/{PACKAGE}.SchemaService/"


class Work(Enum):
    """Which bounded pool does a call's work; see `admission`."""

    READ = "read"
    WRITE = "write"
    STREAM = "stream"
    WATCH = "watch"
    REFLECTION = "reflection"
    CONTROL = "control"


@dataclass(frozen=True, slots=True)
class Method:
    """One call: who may make it, which pool does it, whether it is served, under what name.

    ``role`` None is any identity. Where an absent partition means the whole server and not the
    credential's only one, ``whole_server`` is True.
    """

    role: Role | None
    work: Work
    served: bool
    capability: wire.Capability | None
    whole_server: bool = False


READER, WRITER, CURATOR, ADMIN = Role.READER, Role.WRITER, Role.CURATOR, Role.ADMIN
READ, WRITE, STREAM, CONTROL = Work.READ, Work.WRITE, Work.STREAM, Work.CONTROL
_YES: Final = True
_NO: Final = False

METHODS: Final[dict[str, Method]] = {
    _MEMORY + "GetServerInfo": Method(None, CONTROL, _YES, None),
    _MEMORY + "Write": Method(WRITER, WRITE, _YES, wire.CAPABILITY_WRITE),
    _MEMORY + "Search": Method(READER, READ, _YES, wire.CAPABILITY_SEARCH),
    GET: Method(READER, READ, _YES, wire.CAPABILITY_GET),
    _MEMORY + "BatchGet": Method(READER, READ, _YES, wire.CAPABILITY_BATCH_GET),
    _MEMORY + "List": Method(READER, READ, _YES, wire.CAPABILITY_LIST),
    _MEMORY + "History": Method(READER, READ, _YES, wire.CAPABILITY_HISTORY),
    _MEMORY + "Neighbors": Method(READER, READ, _YES, wire.CAPABILITY_NEIGHBORS),
    _MEMORY + "Recall": Method(READER, READ, _YES, wire.CAPABILITY_RECALL),
    _MEMORY + "Consolidate": Method(CURATOR, WRITE, _YES, wire.CAPABILITY_CONSOLIDATE),
    _MEMORY + "Forget": Method(CURATOR, WRITE, _YES, wire.CAPABILITY_FORGET),
    _MEMORY + "Watch": Method(READER, Work.WATCH, _YES, wire.CAPABILITY_WATCH),
    _MEMORY + "Import": Method(WRITER, STREAM, _YES, wire.CAPABILITY_IMPORT),
    _MEMORY + "Export": Method(READER, STREAM, _NO, wire.CAPABILITY_EXPORT),
    _MEMORY + "GetOperation": Method(READER, CONTROL, _YES, wire.CAPABILITY_OPERATIONS),
    _MEMORY + "ListOperations": Method(READER, CONTROL, _YES, wire.CAPABILITY_OPERATIONS),
    # It holds a thread for as long as it waits, as a stream does.
    _MEMORY + "WaitOperation": Method(READER, STREAM, _YES, wire.CAPABILITY_OPERATIONS),
    _MEMORY + "CancelOperation": Method(CURATOR, CONTROL, _YES, wire.CAPABILITY_OPERATIONS),
    _MEMORY + "ListRejectedCandidates": Method(
        CURATOR, READ, _NO, wire.CAPABILITY_LIST_REJECTED_CANDIDATES
    ),
    _SCHEMA + "RegisterAttribute": Method(ADMIN, WRITE, _YES, wire.CAPABILITY_SCHEMA),
    _SCHEMA + "GetAttribute": Method(READER, READ, _YES, wire.CAPABILITY_SCHEMA),
    _SCHEMA + "ListAttributes": Method(READER, READ, _YES, wire.CAPABILITY_SCHEMA),
    _SCHEMA + "MigrateAttribute": Method(ADMIN, WRITE, _YES, wire.CAPABILITY_MIGRATIONS),
    _SCHEMA + "RollBackMigration": Method(ADMIN, WRITE, _YES, wire.CAPABILITY_MIGRATIONS),
    _ADMIN + "GetStats": Method(ADMIN, CONTROL, _YES, wire.CAPABILITY_STATS, whole_server=True),
    _ADMIN + "GetQuotas": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_QUOTAS),
    _ADMIN + "SetQuotas": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_QUOTAS),
    _ADMIN + "Backup": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_BACKUP),
    _ADMIN + "Verify": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_VERIFY, whole_server=True),
    _ADMIN + "Reindex": Method(ADMIN, CONTROL, _YES, wire.CAPABILITY_REINDEX),
    _ADMIN + "RotateKeys": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_ROTATE_KEYS),
    _ADMIN + "QueryAudit": Method(ADMIN, CONTROL, _NO, wire.CAPABILITY_AUDIT, whole_server=True),
    _ADMIN + "GetErasureReceipt": Method(ADMIN, CONTROL, _YES, wire.CAPABILITY_ERASURE_RECEIPTS),
    _ADMIN + "ListErasureReceipts": Method(
        ADMIN, CONTROL, _YES, wire.CAPABILITY_ERASURE_RECEIPTS, whole_server=True
    ),
    _ADMIN + "SetLegalHold": Method(ADMIN, WRITE, _YES, wire.CAPABILITY_LEGAL_HOLD),
}

# Parts of served calls. A request that asks for one that is not served is refused, never ignored.
FEATURES: Final[dict[wire.Capability, bool]] = {
    wire.CAPABILITY_FORGET_ERASE: _NO,  # a preview: `erasure = "preview"` switches it on
    wire.CAPABILITY_FORGET_SELECTORS: _YES,
    wire.CAPABILITY_RECORDED_TIME: _YES,
    wire.CAPABILITY_CERTIFIED_SEARCH: _YES,
    wire.CAPABILITY_LEXICAL_SEARCH: _YES,
    wire.CAPABILITY_SEARCH_TRACE: _YES,
    wire.CAPABILITY_GRAPH_EXPANSION: _YES,
    wire.CAPABILITY_STATEMENT_GROUPS: _YES,
    wire.CAPABILITY_DIVERSITY: _YES,
    wire.CAPABILITY_EXTRACTION: _NO,
    wire.CAPABILITY_BACKGROUND: _NO,
    wire.CAPABILITY_GUARDS: _YES,
    wire.CAPABILITY_CONFLICT_POLICIES: _YES,
    wire.CAPABILITY_NESTED_FILTERS: _YES,
    wire.CAPABILITY_ACCESS: _YES,
    wire.CAPABILITY_FILTER_ALTERNATIVES: _YES,
}


def served_capabilities() -> tuple[wire.Capability, ...]:
    """Return what `GetServerInfo` publishes, in the order of the contract's numbers."""
    methods = {
        method.capability
        for method in METHODS.values()
        if method.served and method.capability is not None
    }
    features = {capability for capability, served in FEATURES.items() if served}
    return tuple(sorted(methods | features))


def feature_not_served(capability: wire.Capability, field: str) -> PillionError:
    """Return the error for a request that asks for a feature this server lacks."""
    name = wire.Capability.Name(capability)
    return not_served(name, f"{field}: this server does not serve it ({name})")


def not_served(what: str, message: str) -> PillionError:
    """Return NOT_SERVED; ``what`` is a capability's name, or what the contract calls it."""
    return PillionError(Reason.NOT_SERVED, message, metadata={"capability": what})
