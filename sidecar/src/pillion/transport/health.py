"""The standard health service, with a real probe of the store behind its readiness.

Two names are known. "" is liveness: the process answers, whatever the store does. The name of
MemoryService is readiness: NOT_SERVING while starting and draining, and whenever the store did
not take and give back a record at the last probe. A thread probes every few seconds, for those
who watch; a check probes too unless the last probe is fresh, so that checks cannot be used to
flood the disk.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import HealthCheckResponse

from pillion.transport.call_log import describe
from pillion.transport.capabilities import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Callable

    import grpc

LIVENESS: Final = ""
READINESS: Final = f"{PACKAGE}.MemoryService"
_PROBE_EVERY_SECONDS: Final = 5.0
_FRESH_SECONDS: Final = 1.0
# A check waits no longer than this for a probe that hangs; then the store counts as down.
_PROBE_PATIENCE_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)


class Health(health.HealthServicer):  # type: ignore[misc]
    """Serves Check and Watch. Not ready until `start`, never again after `drain`."""

    def __init__(self, probe: Callable[[], None]) -> None:
        super().__init__()
        self._probe = probe
        self._probing = threading.Lock()
        self._probed_at = float("-inf")
        self._ready: bool | None = None  # None: never probed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch_store, name="pillion-probe", daemon=True)
        self.set(LIVENESS, HealthCheckResponse.SERVING)
        self.set(READINESS, HealthCheckResponse.NOT_SERVING)

    def start(self) -> None:
        """Probe the store once, and from now on in the background."""
        self._refresh()
        self._thread.start()

    @property
    def is_ready(self) -> bool:
        """Whether the last probe of the store went well."""
        return self._ready is True and not self._stopped.is_set()

    def drain(self) -> None:
        """Answer NOT_SERVING for good, to those who watch too."""
        self._stopped.set()
        self.enter_graceful_shutdown()
        if self._thread.is_alive():
            self._thread.join(_PROBE_PATIENCE_SECONDS)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401, N802
        """Answer for one name; for readiness after a fresh look at the store."""
        started = self._thread.is_alive()
        if request.service == READINESS and started and not self._stopped.is_set():
            self._refresh()
        return super().Check(request, context)

    def _refresh(self) -> None:
        if not self._probing.acquire(timeout=_PROBE_PATIENCE_SECONDS):
            self._say(ready=False, why="the probe hangs")
            return
        try:
            if time.monotonic() - self._probed_at < _FRESH_SECONDS:
                return
            try:
                self._probe()
            except Exception as error:  # noqa: BLE001 - whatever is wrong, the answer is "not ready"
                self._say(ready=False, why=describe(error))
            else:
                self._say(ready=True, why="")
            self._probed_at = time.monotonic()
        finally:
            self._probing.release()

    def _say(self, *, ready: bool, why: str) -> None:
        if ready == self._ready:
            return
        self._ready = ready
        if ready:
            _log.info("ready")
        else:
            _log.error("not ready", extra={"fields": {"why": why}})
        serving, not_serving = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
        self.set(READINESS, serving if ready else not_serving)

    def _watch_store(self) -> None:
        while not self._stopped.wait(_PROBE_EVERY_SECONDS):
            self._refresh()
