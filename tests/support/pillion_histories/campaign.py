"""A campaign: client processes at work on a server that is killed and started again, in rounds.

A round has partitions of its own and client processes of its own; the data directory stays. Kills
come when a random number of answers has been given, or at a random moment of a start. Everything
random comes from one seed; what the kernel makes of it differs from run to run all the same.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pillion_client import Client, NotFound, Partition
from pillion_testing.servers import environment, serve_command

from pillion_histories import client as clients
from pillion_histories.client import KEYS, NAMESPACE, Orders, key_of, row_of

# Nothing of this takes nearly so long; what does hangs.
PATIENCE_SECONDS = 120.0
ANSWERS_BEFORE_KILL_MAX = 200
STARTING_SHARE = 0.3
TENANTS_PER_ROUND = 2
READBACK_PROCESS = -1


@dataclass
class Counts:
    """What was done to the server."""

    kills_starting: int = 0
    kills_at_work: int = 0
    starts: int = 0
    answers: int = 0

    @property
    def kills(self):
        return self.kills_starting + self.kills_at_work


@dataclass
class Readback:
    """What a partition holds at the end of its round.

    ``timelines`` gives each key's rows as (revision that made it, value), in that order, and
    ``touched`` all revisions at which anything of the key changed.
    """

    partition: str
    head: int
    timelines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    touched: dict[str, list[int]] = field(default_factory=dict)


class Server:
    """A server in a directory, which is killed again and again."""

    def __init__(self, directory, *, command=serve_command):
        self.directory = Path(directory)
        self.socket = self.directory / "data" / "pillion.sock"
        self.counts = Counts()
        self.startup_seconds = 1.0
        self._command = command
        self._process = None
        self._log = (self.directory / "server.log").open("ab")
        self.progress_read, self.progress_write = os.pipe()
        os.set_blocking(self.progress_read, False)

    @property
    def target(self):
        return f"unix:{self.socket}"

    def start(self):
        self._process = subprocess.Popen(
            self._command(self.directory / "data", "--embedder", "none", "--log-level", "warning"),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self.counts.starts += 1
        self._ready = False
        self._started = time.monotonic()

    def wait_until_ready(self):
        while not self._ready:
            self._watch(PATIENCE_SECONDS, answers=None)

    def wait_for_answers(self, count):
        """Wait until the clients have had so many answers from now on."""
        self._drain()
        wanted = self.counts.answers + count
        while self.counts.answers < wanted:
            self._watch(PATIENCE_SECONDS, answers=wanted)

    def wait_into_start(self, seconds):
        """Wait until so much time has passed since the start, ready or not."""
        while (left := self._started + seconds - time.monotonic()) > 0:
            self._watch(left, answers=None, must_happen=False)

    def kill(self):
        if self._ready:
            self.counts.kills_at_work += 1
        else:
            self.counts.kills_starting += 1
        self._process.kill()
        code = self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()
        assert code == -signal.SIGKILL, f"the server had ended by itself with {code}: {self.log}"

    def stop(self):
        """Tell it to end in order."""
        self._process.terminate()
        assert self._process.wait(PATIENCE_SECONDS) == 0, self.log
        self._process.stdout.close()

    def close(self):
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE_SECONDS)
        if self._process is not None:
            self._process.stdout.close()
        self._log.close()
        os.close(self.progress_read)
        os.close(self.progress_write)

    @property
    def log(self):
        return (self.directory / "server.log").read_text(encoding="utf-8", errors="replace")[-4000:]

    def _watch(self, seconds, *, answers, must_happen=True):
        """Wait for answers or for the server's first line, at most so long."""
        watched = [self.progress_read] if answers is not None else []
        if not self._ready:
            watched.append(self._process.stdout)
        readable, _, _ = select.select(watched, [], [], seconds)
        if not readable and must_happen:
            raise AssertionError(f"nothing happened for {seconds:g} s: {self.log}")
        if self.progress_read in readable:
            self._drain()
        if self._process.stdout in readable:
            assert self._process.stdout.readline(), f"the server did not start: {self.log}"
            self._ready = True
            self.startup_seconds = time.monotonic() - self._started

    def _drain(self):
        with suppress(BlockingIOError):
            while data := os.read(self.progress_read, 65536):
                self.counts.answers += len(data)


class Campaign:
    """Rounds of kills in one directory."""

    def __init__(self, directory, *, seed, processes, server=None, say=lambda _: None):
        self.directory = Path(directory)
        self.seed = seed
        self.processes = processes
        self.readbacks: list[Readback] = []
        self.histories: list[Path] = []
        self._random = random.Random(seed)
        self._say = say
        self.server = server or Server(self.directory)

    @property
    def counts(self):
        return self.server.counts

    def round(self, kills):
        """Let clients work while the server is killed so often; then read everything back."""
        number = len(self.readbacks) // TENANTS_PER_ROUND
        tenants = tuple(f"round{number}-{letter}" for letter in "ab"[:TENANTS_PER_ROUND])
        if not self.counts.starts:
            self.server.start()
        self.server.wait_until_ready()
        started = [
            self._start_client(number, process, tenants) for process in range(self.processes)
        ]
        try:
            for at in range(kills):
                self._kill_at_random()
                self._say(f"round {number}: kill {at + 1} of {kills}, {self.counts}")
            self.server.wait_until_ready()
            self.server.wait_for_answers(self.processes * 10)
            for process in started:
                process.stdin.close()
            for process in started:
                assert process.wait(PATIENCE_SECONDS) == 0, "a client process failed: see above"
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait(PATIENCE_SECONDS)
        self._read_back(number, tenants)

    def end(self):
        """Kill it once more, and return whether all reads the same after another start."""
        self.server.kill()
        self.server.start()
        self.server.wait_until_ready()
        with Client(self.server.target) as client:
            again = [read_back(client, one.partition) for one in self.readbacks]
        self.server.stop()
        return again == self.readbacks

    def _kill_at_random(self):
        if self._random.random() < STARTING_SHARE:
            self.server.wait_into_start(self._random.random() * self.server.startup_seconds)
        else:
            self.server.wait_until_ready()
            self.server.wait_for_answers(self._random.randint(1, ANSWERS_BEFORE_KILL_MAX))
        self.server.kill()
        self.server.start()

    def _start_client(self, number, process, tenants):
        path = self.directory / f"history-{number}-{process}.jsonl"
        self.histories.append(path)
        orders = Orders(
            target=self.server.target,
            path=str(path),
            seed=self._random.getrandbits(32),
            process=number * self.processes + process,
            tenants=tenants,
            progress_fd=self.server.progress_write,
        )
        return subprocess.Popen(
            [sys.executable, clients.__file__, json.dumps(asdict(orders))],
            stdin=subprocess.PIPE,
            pass_fds=[self.server.progress_write],
        )

    def _read_back(self, number, tenants):
        """Read every partition of the round, as one more client would."""
        path = self.directory / f"history-{number}-last.jsonl"
        self.histories.append(path)
        with Client(self.server.target) as client, path.open("w", encoding="utf-8") as file:
            for tenant in tenants:
                back = read_back(client, tenant)
                self.readbacks.append(back)
                call = time.monotonic_ns()
                rows = client.batch_get(
                    [key_of(key) for key in KEYS], partition=Partition(NAMESPACE, tenant)
                )
                line = {"op": "read", "partition": tenant, "process": READBACK_PROCESS}
                line |= {"call": call, "return": time.monotonic_ns(), "keys": list(KEYS)}
                line |= {"rows": [row_of(row) for row in rows], "revision": back.head}
                file.write(json.dumps(line) + "\n")


def read_back(client, tenant):
    """Return what a partition holds, from the histories of its keys."""
    where = Partition(NAMESPACE, tenant)
    back = Readback(tenant, head_of(client, where))
    for key in KEYS:
        rows, touched = {}, set()
        with suppress(NotFound):
            for entry in client.history(key_of(key), page_size=1000, partition=where):
                made = entry.recorded_from_revision
                touched.add(made)
                first, _ = rows.get(entry.memory.id, (made, None))
                rows[entry.memory.id] = min(first, made), str(entry.memory.value)
        back.timelines[key] = sorted(rows.values())
        back.touched[key] = sorted(touched)
    return back


def head_of(client, where):
    """Return the partition's revision."""
    noting = clients.NotingClient(client.target)
    with noting:
        noting.batch_get([key_of(key) for key in KEYS], partition=where)
        return noting.revision
