"""``pillion serve`` as a process of its own: started, asked, told to stop, killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from pillion_proto.memory.v1 import memory_service_pb2 as wire
from pillion_proto.memory.v1.memory_service_pb2_grpc import MemoryServiceStub

SECONDS = 30


def environment():
    """This process's environment without settings of a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PILLION_")}


def serve_command(directory, *flags):
    return [
        *(sys.executable, "-m", "pillion.cli", "serve"),
        *("--directory", str(directory), "--embedder", "hashing", "--log-format", "json"),
        *map(str, flags),
    ]


def serve_in_vain(directory, *flags, **options):
    """Run a server that is expected not to start; return how it ended."""
    return subprocess.run(
        serve_command(directory, *flags),
        env=environment() | options.pop("variables", {}),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        **options,
    )


class ServerProcess:
    """A server in a directory, ready when made. Its log is read as it comes, so it never blocks."""

    def __init__(self, directory, *flags):
        self.directory = directory
        self._process = subprocess.Popen(
            serve_command(directory, *flags),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._log = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        watchdog = threading.Timer(SECONDS, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            self.wait()
            raise AssertionError(f"the server did not start: {self.log}")
        self.ready = json.loads(line)
        self.channel = grpc.insecure_channel(f"unix:{self.ready['socket']}")
        self.stub = MemoryServiceStub(self.channel)

    def _read_log(self):
        self._log.extend(self._process.stderr)

    @property
    def log(self):
        """What it has logged so far, as text."""
        return "".join(self._log)

    @property
    def pid(self):
        return self._process.pid

    def signal(self, number=signal.SIGTERM):
        self._process.send_signal(number)

    def wait(self, seconds=SECONDS):
        """Wait for its end and return the exit code."""
        code = self._process.wait(seconds)
        self._reader.join(SECONDS)
        self._process.stdout.close()
        self._process.stderr.close()
        return code

    def kill(self):
        """End it without warning, as a power cut or the kernel would."""
        with suppress(ProcessLookupError):
            self._process.kill()
        code = self.wait()
        self.channel.close()
        return code

    def stop(self):
        """Tell it to stop and return the exit code."""
        self.signal()
        code = self.wait()
        self.channel.close()
        return code

    @property
    def is_running(self):
        return self._process.poll() is None


def note(text="a note", subject="mira", **fields):
    """A mutation that adds a memory."""
    memory = {
        "subject": {"type": "user", "id": subject},
        "kind": 1,
        "text": text,
        "source": {"kind": 1},
    }
    return wire.Mutation(add_memory={"memory": memory | fields})


def reason_of(error):
    """The published reason of a failed call; None when gRPC itself refused it."""
    status = rpc_status.from_call(error)
    if status is None:
        return None
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return info.reason
