"""The socket: its mode, its lock, its path."""

import os
import socket as sockets
import stat

import pytest
from pillion.transport.listener import ListenError, SocketLock


def test_the_socket_has_its_mode_whatever_the_umask(serve, tmp_path):
    before = os.umask(0o077)
    try:
        serve()
        assert os.umask(0o077) == 0o077  # binding put it back
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o660


def test_a_second_server_on_the_socket_is_refused_and_the_first_goes_on(serve, tmp_path):
    channel = serve()
    with pytest.raises(ListenError, match="another server listens"):
        SocketLock(tmp_path / "s")
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20) is not None


def test_a_path_too_long_for_a_socket_is_refused(tmp_path):
    with pytest.raises(ListenError, match="107 fit"):
        SocketLock(tmp_path / ("x" * 120))


def test_a_file_in_the_way_is_not_removed(tmp_path):
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(ListenError, match="no socket"):
        SocketLock(path)
    assert path.read_text() == "mine"


def test_a_directory_that_is_missing_is_made_for_the_group(tmp_path):
    before = os.umask(0)
    try:
        SocketLock(tmp_path / "run" / "s").release()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o770
    with pytest.raises(ListenError, match="set `socket`"):
        SocketLock(tmp_path / "a" / "b" / "s")


def test_a_stale_socket_is_bound_over(serve, tmp_path):
    with sockets.socket(sockets.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))
    channel = serve()
    assert channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20) is not None


def test_a_port_is_not_shared_with_another_server(serve, tmp_path):
    serve(tcp=("127.0.0.1", 0))
    with pytest.raises(ListenError, match="in use"):
        serve(tcp=("127.0.0.1", serve.server.tcp_port), socket=tmp_path / "other")


def test_a_port_in_use_is_refused_and_never_shared(serve):
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ListenError, match="in use"):
            serve(tcp=("127.0.0.1", taken.getsockname()[1]))
