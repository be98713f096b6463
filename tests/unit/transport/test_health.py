"""Readiness follows the store, liveness the process."""

import itertools
import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pillion.transport import health

SECONDS = 20
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture(autouse=True)
def probe_at_every_check(monkeypatch):
    monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)


def check(channel, service=health.READINESS):
    request = health_pb2.HealthCheckRequest(service=service)
    return health_pb2_grpc.HealthStub(channel).Check(request, timeout=SECONDS).status


def test_readiness_follows_the_store_and_liveness_does_not(channel, use_cases):
    assert check(channel) == SERVING
    use_cases.probe_error = OSError("disk")
    assert check(channel) == NOT_SERVING
    assert check(channel, health.LIVENESS) == SERVING
    use_cases.probe_error = None
    assert check(channel) == SERVING


def test_a_server_whose_store_fails_at_the_start_is_not_ready(serve, use_cases):
    use_cases.probe_error = OSError("disk")
    channel = serve()
    assert not serve.server.is_ready
    assert check(channel) == NOT_SERVING
    use_cases.probe_error = None
    assert check(channel) == SERVING
    assert serve.server.is_ready


def test_an_unknown_name_is_not_found(channel):
    with pytest.raises(grpc.RpcError) as caught:
        check(channel, "other")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_watcher_sees_the_store_fail_and_the_server_drain(serve, use_cases, monkeypatch):
    monkeypatch.setattr(health, "_PROBE_EVERY_SECONDS", 0.01)
    channel = serve()
    request = health_pb2.HealthCheckRequest(service=health.READINESS)
    watch = health_pb2_grpc.HealthStub(channel).Watch(request, timeout=SECONDS)
    assert next(watch).status == SERVING
    use_cases.probe_error = OSError("disk")
    assert next(watch).status == NOT_SERVING
    use_cases.probe_error = None
    assert next(watch).status == SERVING
    stopping = threading.Thread(target=serve.server.stop, args=(0.2,))
    stopping.start()
    assert next(watch).status == NOT_SERVING
    stopping.join(SECONDS)


def test_a_probe_that_hangs_is_not_ready(monkeypatch):
    monkeypatch.setattr(health, "_PROBE_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(health, "_PROBE_EVERY_SECONDS", 0.01)
    hang, hanging = threading.Event(), threading.Event()
    probes = itertools.count()

    def probe():
        if next(probes) > 0:  # the one at the start goes well
            hanging.set()
            assert hang.wait(SECONDS)

    servicer = health.Health(probe)
    request = health_pb2.HealthCheckRequest(service=health.READINESS)
    assert servicer.Check(request, None).status == NOT_SERVING
    servicer.start()
    assert hanging.wait(SECONDS)
    assert servicer.Check(request, None).status == NOT_SERVING
    hang.set()
    servicer.drain()
    assert servicer.Check(request, None).status == NOT_SERVING
