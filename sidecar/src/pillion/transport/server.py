"""The server: listeners, services, and an orderly end.

States: made (nothing listens), started (listens; ready once the store was probed), draining (not
ready, no new calls, those at work go on), stopped. `stop` may be called in any of them.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from pillion_proto.memory.v1 import (
    admin_service_pb2_grpc,
    memory_service_pb2_grpc,
    schema_service_pb2_grpc,
)

from pillion.domain.limits import MESSAGE_BYTES_MAX, STREAM_IDLE_SECONDS, WATCHERS_DEFAULT
from pillion.transport.admin_servicer import AdminServicer
from pillion.transport.admission import Pools
from pillion.transport.capabilities import PACKAGE, Work
from pillion.transport.health import READINESS, Health
from pillion.transport.interceptors import Edge
from pillion.transport.listener import ListenError, SocketLock, check_mode, socket_umask
from pillion.transport.memory_servicer import MemoryServicer, ServerFacts
from pillion.transport.schema_servicer import SchemaServicer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pillion.ports import Clock
    from pillion.service import UseCases
    from pillion.transport.identity import Authenticator

# Headers are small here; a caller who sends more is told so instead of being buffered.
_HEADER_BYTES_MAX: Final = 16 * 1024
# What gRPC itself refuses, without a reason, beyond what the pools take: a guard, never the rule.
_CALLS_SPARE: Final = 256
_ABORT_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.02
# From a handler's return to its answer's last byte on the socket.
_LAST_ANSWERS_SECONDS: Final = 0.25

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where a server listens and how much it takes on. ``tcp`` is (host, port), port 0: any."""

    socket: Path
    tcp: tuple[str, int] | None
    read_workers: int
    write_workers: int
    streams_max: int
    default_deadline_ms: int
    watchers_max: int = WATCHERS_DEFAULT
    stream_idle_seconds: float = STREAM_IDLE_SECONDS


class Server:
    """Serves use cases over gRPC."""

    def __init__(
        self,
        use_cases: UseCases,
        settings: ServerSettings,
        facts: ServerFacts,
        authenticator: Authenticator,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._pools = Pools(
            reads=settings.read_workers,
            writes=settings.write_workers,
            streams=settings.streams_max,
            watchers=settings.watchers_max,
        )
        self._end_watches = use_cases.watcher.end_all
        self._health = Health(use_cases.statistics.probe)
        self._lock: SocketLock | None = None
        self._stopped = threading.Event()
        self.tcp_port: int | None = None
        edge = Edge(
            authenticator,
            self._pools,
            default_deadline_seconds=settings.default_deadline_ms / 1000,
            idle_seconds=settings.stream_idle_seconds,
        )
        self._grpc = grpc.server(
            self._pools[Work.CONTROL],
            interceptors=[edge],
            options=[
                ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
                ("grpc.max_metadata_size", _HEADER_BYTES_MAX),
                # Without this a second server would share the port silently.
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=self._pools.taken_max + _CALLS_SPARE,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._grpc)
        add_services(self._grpc, use_cases, facts, clock)
        reflection.enable_server_reflection(
            (
                READINESS,
                f"{PACKAGE}.AdminService",
                f"{PACKAGE}.SchemaService",
                "grpc.health.v1.Health",
                reflection.SERVICE_NAME,
            ),
            self._grpc,
        )

    def start(self) -> None:
        """Listen, and become ready once the store was probed.

        Raises:
            ListenError: The socket or the port cannot be had.
        """
        socket = self._settings.socket
        self._lock = SocketLock(socket)
        with socket_umask():
            self._bind(f"unix:{socket}")
        if self._settings.tcp is not None:
            host, port = self._settings.tcp
            address = f"[{host}]" if ":" in host else host
            self.tcp_port = self._bind(f"{address}:{port}")
        self._grpc.start()
        check_mode(socket)
        self._health.start()

    @property
    def is_ready(self) -> bool:
        """Whether the store took and gave back a record at the last probe."""
        return self._health.is_ready

    def _bind(self, address: str) -> int:
        try:
            port: int = self._grpc.add_insecure_port(address)
        except RuntimeError as error:
            raise ListenError(f"{address} cannot be bound; is it in use?") from error
        return port

    def stop(self, drain_seconds: float) -> None:
        """Take no new calls, let those at work end, cut off what is left after the drain.

        Use cases may be closed afterwards: nothing calls them any more, but for a handler that
        does not look at its deadline.
        """
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._health.drain()
        self._end_watches()
        ended = self._grpc.stop(drain_seconds)
        # gRPC counts connections, and one that is open and idle would take up the whole drain.
        drained_by = time.monotonic() + drain_seconds
        while not self._pools.are_idle and time.monotonic() < drained_by:
            if ended.wait(_POLL_SECONDS):
                break
        if not self._pools.are_idle:
            _log.warning("calls are cut off at the end of the drain")
        ended.wait(min(drain_seconds, _LAST_ANSWERS_SECONDS))
        if not self._grpc.stop(None).wait(_ABORT_SECONDS):
            _log.warning("gRPC did not stop in time")
        self._pools.close()
        if self._lock is not None:
            self._lock.release()


def add_services(
    server: grpc.Server, use_cases: UseCases, facts: ServerFacts, clock: Clock
) -> None:
    """Add the services of the contract, as generated code does it."""
    servicers: dict[Callable[..., None], object] = {
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server: MemoryServicer(
            use_cases, facts, clock
        ),
        admin_service_pb2_grpc.add_AdminServiceServicer_to_server: AdminServicer(use_cases),
        schema_service_pb2_grpc.add_SchemaServiceServicer_to_server: SchemaServicer(use_cases),
    }
    for add, servicer in servicers.items():
        add(servicer, server)
