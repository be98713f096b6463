"""A server's life as a process: start, refusals to start, drain, kill, restart."""

import ctypes
import itertools
import os
import signal
import socket as sockets
import stat
import threading
import time

import grpc
import lmdb
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from pillion.cli import serve
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_storage.lmdb import records
from pillion_storage.schema import META
from pillion_testing.servers import SECONDS, ServerProcess, note, serve_in_vain

READINESS = "pillion.memory.v1.MemoryService"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def start(tmp_path):
    started = []

    def make(*flags, directory=None):
        server = ServerProcess(directory or tmp_path / "d", *flags)
        started.append(server)
        return server

    yield make
    for server in started:
        if server.is_running:
            server.kill()


def write(server, text="a note", **options):
    request = wire.WriteRequest(mutations=[note(text)])
    return server.stub.Write(request, timeout=SECONDS, **options).results[0].id


def texts(server):
    found, token = [], ""
    while True:
        request = wire.ListRequest(page_size=1000, page_token=token)
        page = server.stub.List(request, timeout=SECONDS)
        found += [record.memory.text for record in page.records]
        token = page.next_page_token
        if not token:
            return found


def test_it_says_when_it_is_ready_and_drains_on_sigterm(start, tmp_path):
    server = start()
    assert server.ready["event"] == "ready"
    assert server.ready["store"] == "lmdb"
    assert server.ready["embedder"].startswith("hashing")
    socket = tmp_path / "d" / "pillion.sock"
    assert server.ready["socket"] == str(socket)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o660
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    write(server)
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 5
    assert "abandoned" not in server.log
    assert not socket.exists()


def test_memories_outlive_a_restart(start):
    first = start()
    write(first, "kept")
    assert first.stop() == 0
    assert texts(start()) == ["kept"]


def test_tcp_listens_on_loopback_beside_the_socket(start):
    server = start("--tcp", "127.0.0.1:0", "--allow-unauthenticated-tcp")
    write(server, "kept")
    with grpc.insecure_channel(server.ready["tcp"]) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        assert check(health_pb2.HealthCheckRequest(), timeout=SECONDS).status == SERVING


# What keeps it from starting.


def one_line(done):
    (line,) = [one for one in done.stderr.splitlines() if one.startswith("pillion: ")]
    assert "Traceback" not in done.stderr
    return line


def test_a_second_server_on_the_directory_is_refused_and_the_first_goes_on(start, tmp_path):
    server = start()
    done = serve_in_vain(tmp_path / "d", "--socket", tmp_path / "other.sock")
    assert done.returncode == 3
    assert f"in use by process {server.pid}" in one_line(done)
    write(server)


def test_a_second_server_on_the_socket_is_refused_and_the_first_goes_on(start, tmp_path):
    server = start("--socket", tmp_path / "s.sock")
    done = serve_in_vain(tmp_path / "other", "--socket", tmp_path / "s.sock")
    assert done.returncode == 3
    assert "another server listens" in one_line(done)
    write(server)


def without_power_over_files():
    """Make root subject to modes, as any other user is, from the next program on."""
    prctl_bounding_set_drop, cap_dac_override = 24, 1
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(prctl_bounding_set_drop, cap_dac_override, 0, 0, 0) == 0


def test_a_directory_that_cannot_be_written_is_refused(tmp_path):
    directory = tmp_path / "d"
    directory.mkdir(mode=0o500)
    done = serve_in_vain(directory, preexec_fn=without_power_over_files)
    assert done.returncode == 3
    assert str(directory) in one_line(done)


def test_a_directory_whose_parent_is_missing_is_refused(tmp_path):
    done = serve_in_vain(tmp_path / "a" / "b")
    assert done.returncode == 3
    assert "doesn't exist" in one_line(done)


def test_a_file_in_the_directorys_place_is_refused(tmp_path):
    (tmp_path / "d").write_text("mine")
    done = serve_in_vain(tmp_path / "d")
    assert done.returncode == 3
    assert "directory" in one_line(done)


def test_data_of_a_newer_format_is_refused_and_left_alone(start, tmp_path):
    server = start()
    write(server)
    server.stop()
    with lmdb.open(str(tmp_path / "d"), max_dbs=32) as env:
        meta = env.open_db(META.name.encode(), create=False)
        with env.begin(write=True) as txn:
            newer = records.seal(META, b"format", records.U32.pack(99))
            txn.put(b"format", newer, db=meta)
    before = (tmp_path / "d" / "data.mdb").read_bytes()
    done = serve_in_vain(tmp_path / "d")
    assert done.returncode == 3
    assert "format 99" in one_line(done)
    assert "upgrade" in one_line(done)
    assert (tmp_path / "d" / "data.mdb").read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--workers", "0"], "workers"),
        (["--tcp", "0.0.0.0:1"], "loopback"),
        (["--tcp", "127.0.0.1:0"], "token_file"),
        (["--token-file", "nowhere.json"], "token_file: nowhere.json cannot be read"),
        (["--store", "nothing"], "store: no plug-in is called 'nothing'"),
        (["--embedder", "nothing"], "embedder"),
        (["--config", "nowhere.toml"], "config: nowhere.toml cannot be read"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, flags, named):
    done = serve_in_vain(tmp_path / "d", *flags)
    assert done.returncode == 2
    assert named in one_line(done)


def test_a_wrong_variable_is_named(tmp_path):
    done = serve_in_vain(tmp_path / "d", variables={"PILLION_DRAIN_SECONDS": "soon"})
    assert done.returncode == 2
    assert "drain_seconds" in one_line(done)


def test_a_port_in_use_is_refused(tmp_path):
    with sockets.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = serve_in_vain(tmp_path / "d", "--tcp", address, "--allow-unauthenticated-tcp")
    assert done.returncode == 3
    assert address in one_line(done)


# The end.


class Writers:
    """Threads that write without pause, and what became of every write."""

    def __init__(self, server, count=8):
        self.acknowledged = []
        self.failures = []
        self._enough = threading.Semaphore(0)
        self._server = server
        self._threads = [threading.Thread(target=self._run, args=(at,)) for at in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, at):
        for number in itertools.count():
            text = f"{at}-{number}"
            try:
                write(self._server, text)
            except (grpc.RpcError, ValueError) as error:
                self.failures.append(error)
                return
            self.acknowledged.append(text)
            self._enough.release()

    def wait_for(self, count):
        for _ in range(count):
            assert self._enough.acquire(timeout=SECONDS)

    def join(self):
        for thread in self._threads:
            thread.join(SECONDS)


def test_sigterm_answers_writes_in_flight_and_loses_none(start):
    server = start()
    writers = Writers(server)
    writers.wait_for(50)
    assert server.stop() == 0
    writers.join()
    codes = {error.code() for error in writers.failures if isinstance(error, grpc.RpcError)}
    # Refused, for the server was going; never cut off in the middle of the work.
    assert codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    kept = texts(start())
    assert set(writers.acknowledged) <= set(kept)
    assert len(kept) == len(set(kept))


def test_kill_9_loses_no_acknowledged_write(start):
    server = start()
    for round_ in range(3):
        writers = Writers(server)
        writers.wait_for(40)
        server.kill()
        writers.join()
        server = start()  # over the stale socket, in the unlocked directory
        kept = set(texts(server))
        assert set(writers.acknowledged) <= kept, f"round {round_}"


def waiting_call(server):
    """A read of a revision that never comes, known to be at work."""
    call = server.stub.List.future(
        wire.ListRequest(read={"at_least_revision": 1_000_000}), timeout=SECONDS
    )
    # The answer to a later call on the same connection says that the first one has arrived.
    write(server)
    return call


def test_a_call_that_outlasts_the_drain_is_cut_off(start):
    server = start("--drain-seconds", "0.3")
    call = waiting_call(server)
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 5
    with pytest.raises(grpc.RpcError):
        call.result(SECONDS)


PLUGIN = """
class Busy:
    def summarize(self, texts, *, sentences_max):
        open({mark!r}, "w").close()
        while True:
            pass


def create(options):
    return Busy()
"""


@pytest.fixture
def busy_summarizer(tmp_path, monkeypatch):
    """Install a summarizer that never returns, as a package of its own; yield its sign of life."""
    mark = tmp_path / "at-work"
    site = tmp_path / "site"
    facts = site / "busy-1.dist-info"
    facts.mkdir(parents=True)
    (site / "busy_plugin.py").write_text(PLUGIN.format(mark=str(mark)))
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: busy\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[pillion.summarizers]\nbusy = busy_plugin:create\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    return mark


def test_a_handler_stuck_in_python_does_not_keep_the_process(start, busy_summarizer):
    server = start("--drain-seconds", "0.3")
    now = int(time.time())
    server.stub.Write(
        wire.WriteRequest(
            mutations=[note("tea", valid_from={"seconds": now - 10**7 + n}) for n in range(3)]
        ),
        timeout=SECONDS,
    )
    call = server.stub.Consolidate.future(
        wire.ConsolidateRequest(subject={"type": "user", "id": "mira"}, summarizer="busy"),
        timeout=SECONDS,
    )
    deadline = time.monotonic() + SECONDS
    while not busy_summarizer.exists():
        assert time.monotonic() < deadline
        assert not call.done(), call.exception()
        time.sleep(0.005)
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 8
    assert "abandoned" in server.log
    assert texts(start()) == ["tea"] * 3


def test_closing_that_hangs_is_cut_short(monkeypatch):
    left, codes = threading.Event(), []
    monkeypatch.setattr(serve, "_leave", lambda code: (codes.append(code), left.set()))
    serve._watchdog(0.0)
    assert left.wait(SECONDS)
    assert codes == [1]
    serve._watchdog(SECONDS).cancel()
    assert codes == [1]


def test_a_second_signal_ends_it_at_once(start):
    server = start("--drain-seconds", "30")
    call = waiting_call(server)
    server.signal()
    deadline = time.monotonic() + SECONDS
    while "draining" not in server.log:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    server.signal(signal.SIGINT)
    assert server.wait(5) == 1
    with pytest.raises(grpc.RpcError):
        call.result(SECONDS)


def test_a_watcher_of_health_sees_the_drain_and_does_not_delay_it(start):
    server = start("--drain-seconds", "20")
    request = health_pb2.HealthCheckRequest(service=READINESS)
    watch = health_pb2_grpc.HealthStub(server.channel).Watch(request, timeout=SECONDS)
    assert next(watch).status == SERVING
    started = time.monotonic()
    server.signal()
    assert next(watch).status == NOT_SERVING
    assert server.wait() == 0
    assert time.monotonic() - started < 5
