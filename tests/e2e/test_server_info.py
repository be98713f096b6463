"""What a configured server says of its limits."""

import pytest
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_testing.servers import SECONDS, ServerProcess


@pytest.mark.parametrize("remembered", [None, 1234])
def test_the_configured_count_of_request_ids_is_published(tmp_path, remembered):
    config = tmp_path / "c.toml"
    table = "" if remembered is None else f"[store_options]\ntokens_max = {remembered}\n"
    config.write_text(table)
    server = ServerProcess(tmp_path / "d", "--config", config)
    try:
        info = server.stub.GetServerInfo(wire.GetServerInfoRequest(), timeout=SECONDS)
    finally:
        server.stop()
    assert info.limits.request_id_count == (remembered or 1_000_000)
    assert info.limits.request_id_window.ToSeconds() == 24 * 3600
    assert not info.limits.HasField("history_window")


def test_the_windows_are_published(tmp_path):
    flags = ("--history-window-hours", 48, "--request-id-window-hours", 2)
    server = ServerProcess(tmp_path / "d", *flags, "--sweep-interval-seconds", 1)
    try:
        info = server.stub.GetServerInfo(wire.GetServerInfoRequest(), timeout=SECONDS)
    finally:
        assert server.stop() == 0
    assert info.limits.history_window.ToSeconds() == 48 * 3600
    assert info.limits.request_id_window.ToSeconds() == 2 * 3600
