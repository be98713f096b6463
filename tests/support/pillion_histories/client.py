"""One client process: it does random things for as long as it may, and keeps a history of them.

Run as a program with its ``Orders`` as JSON. It works until its standard input ends, settles what
it left open, and exits with 0. For each answer it writes one byte to the progress pipe. The lines
of its history are described in ``tests/linearizability/checker/history.go``.
"""

from __future__ import annotations

import json
import os
import random
import select
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pillion_client import (
    AlreadyExists,
    Cancelled,
    Client,
    DeadlineExceeded,
    FactConflict,
    FactKey,
    Guard,
    NoServer,
    NotFound,
    OutOfRange,
    Overloaded,
    Partition,
    PutFact,
    RetryPolicy,
    Source,
    Subject,
    Unavailable,
    VersionMismatch,
    must_exist,
    must_not_exist,
    unconditional,
    version_equals,
)

NAMESPACE = "histories"
SUBJECT = Subject("system", "histories")
COUNTERS = ("counter0", "counter1")
REGISTERS = ("register0", "register1", "register2", "register3")
KEYS = COUNTERS + REGISTERS
DEADLINE_SECONDS = 5.0
INCREMENT_TRIES_MAX = 4
PATIENCE_SECONDS = 120.0
# Now and then a caller is in a hurry, and does not learn what became of its write.
SHORT_DEADLINE_SECONDS = 0.004
# How far ahead of what it has seen a read waits for others' writes, and for how long.
REVISIONS_AHEAD_MAX = 3
WAITING_DEADLINE_SECONDS = 0.5
# After these nobody knows whether the write took effect.
UNKNOWN = (Unavailable, DeadlineExceeded, Cancelled)


@dataclass(frozen=True)
class Orders:
    """What a client process is told."""

    target: str
    path: str
    seed: int
    process: int
    tenants: tuple[str, ...]
    progress_fd: int


@dataclass
class Condition:
    """What must hold of a key: "any", "absent", "exists", or "version" with the version."""

    must: str
    version: int = 0

    def precondition(self):
        if self.must == "version":
            return version_equals(self.version)
        return {"any": unconditional, "absent": must_not_exist, "exists": must_exist}[self.must]


@dataclass
class Write:
    """A write from its first sending to its last answer."""

    id: str
    partition: str
    puts: list[tuple[str, object, Condition]]
    guards: list[tuple[str, Condition]]
    call: int = 0
    attempts: int = 0
    # Whether an attempt ended without an answer: from then on only some answers are final.
    in_doubt: bool = False
    answer: dict = field(default_factory=dict)

    @property
    def counts(self):
        """Whether it changes a counter."""
        return any(key in COUNTERS for key, _, _ in self.puts)

    def record(self):
        puts = [{"key": key, "value": str(value), **asdict(must)} for key, value, must in self.puts]
        guards = [{"key": key, **asdict(must)} for key, must in self.guards]
        line = {"op": "write", "partition": self.partition, "id": self.id, "call": self.call}
        return line | {"puts": puts, "guards": guards, "attempts": self.attempts}


class NotingClient(Client):
    """A client that remembers the revision of its last answer."""

    revision = None

    def _call(self, method, request, options):
        self.revision = None
        response = super()._call(method, request, options)
        self.revision = getattr(response, "revision", None)
        return response


def key_of(name):
    return FactKey(SUBJECT, name)


def row_of(memory):
    if memory is None:
        return None
    return {"value": str(memory.value), "version": memory.fact_version}


class Worker:
    """Does random things through a client."""

    def __init__(self, orders):
        self._orders = orders
        self._random = random.Random(orders.seed)
        self._history = Path(orders.path).open("w", encoding="utf-8")  # noqa: SIM115
        self._number = 0
        self._open: list[Write] = []
        self._answered: list[Write] = []
        self._seen = dict.fromkeys(orders.tenants, 0)
        # Some clients send again by themselves, as the library does unless told otherwise.
        self._retries = orders.process % 2 == 0
        self._client = self._connected()

    def run(self):
        actions = {
            self.increment: 30,
            self.put: 16,
            self.batch: 22,
            self.read: 18,
            self.replay: 8,
            self.take_up: 6,
        }
        while not self.told_to_stop():
            (action,) = self._random.choices(list(actions), actions.values())
            tenant = self._random.choice(self._orders.tenants)
            action(tenant)
        while self._open:
            write = self._open[-1]
            self._settle(write)
        self._history.close()
        self._client.close()

    def told_to_stop(self):
        return bool(select.select([sys.stdin], [], [], 0)[0])

    # --- what it does ------------------------------------------------------------------------

    def increment(self, tenant):
        """Read a counter and write one more, if nobody wrote between; else begin again."""
        key = self._random.choice(COUNTERS)
        for _ in range(INCREMENT_TRIES_MAX):
            rows = self._read(tenant, [key])
            if rows is None:
                return
            write = self._begin(tenant, [self._changed(key, rows[0])])
            self._pursue(write)
            if write.answer.get("outcome") == "ok":
                return

    def put(self, tenant):
        """State a value whatever is there."""
        key = self._random.choice(REGISTERS)
        self._pursue(self._begin(tenant, [(key, self._fresh(), Condition("any"))]))

    def batch(self, tenant):
        """Read some keys and change most of them together, under the eyes of guards."""
        keys = self._random.sample(KEYS, self._random.randint(2, 4))
        rows = self._read(tenant, keys)
        if rows is None:
            return
        puts, guards = [], []
        for key, row in zip(keys, rows, strict=True):
            if len(puts) < 2 or self._chance(0.5):
                puts.append(self._changed(key, row))
            elif row is not None:
                guards.append((key, self._same_or_there(row)))
            else:
                guards.append((key, Condition("absent")))
        self._pursue(self._begin(tenant, puts, guards))

    def read(self, tenant):
        keys = self._random.sample(KEYS, self._random.choice((1, 1, 2, 3, len(KEYS))))
        self._read(tenant, keys)

    def replay(self, tenant):
        """Send a write that was answered once more: it must say the same and do nothing."""
        if not self._answered:
            return
        write = self._random.choice(self._answered)
        call = time.monotonic_ns()
        try:
            answer = self._send(write, DEADLINE_SECONDS)
        except UNKNOWN as error:
            self._lost(error)
            return
        except (VersionMismatch, AlreadyExists, NotFound) as error:  # it was forgotten
            answer = {"outcome": "refused", "refusal": refusal_of(error)}
        line = {"op": "replay", "partition": write.partition, "id": write.id, "call": call}
        self._note(line | answer | {"return": time.monotonic_ns()})

    def take_up(self, tenant):
        """Send a write whose outcome is unknown once more, however long ago it was."""
        if self._open:
            self._attempt(self._random.choice(self._open), DEADLINE_SECONDS)

    # --- parts of it -------------------------------------------------------------------------

    def _changed(self, key, row):
        """Return a put of a key that was read: counters by CAS always, registers mostly."""
        if key not in COUNTERS and self._chance(0.3):
            return key, self._fresh(), Condition("any")
        must = Condition("version", row.fact_version) if row is not None else Condition("absent")
        if key in COUNTERS:
            return key, (row.value if row is not None else 0) + 1, must
        return key, self._fresh(), must

    def _same_or_there(self, row):
        if self._chance(0.3):
            return Condition("exists")
        return Condition("version", row.fact_version)

    def _fresh(self):
        self._number += 1
        return f"{self._orders.process}-{self._number}"

    def _chance(self, share):
        return self._random.random() < share

    def _read(self, tenant, keys):
        """Read keys at one moment; None when no answer came."""
        options = {"partition": Partition(NAMESPACE, tenant), "deadline_seconds": DEADLINE_SECONDS}
        if self._chance(0.15):
            ahead = self._random.randint(0, REVISIONS_AHEAD_MAX)
            options["at_least_revision"] = self._seen[tenant] + ahead
            options["deadline_seconds"] = WAITING_DEADLINE_SECONDS
        call = time.monotonic_ns()
        try:
            if len(keys) == 1:
                rows = [self._client.get_fact(SUBJECT, keys[0], **options)]
            else:
                rows = list(self._client.batch_get([key_of(key) for key in keys], **options))
        except NotFound:
            rows = [None]
        except OutOfRange:  # nobody wrote while it waited
            return None
        except UNKNOWN as error:
            self._lost(error)
            return None
        line = {"op": "read", "partition": tenant, "call": call, "return": time.monotonic_ns()}
        line |= {"keys": keys, "rows": [row_of(row) for row in rows]}
        if self._client.revision is not None:
            line["revision"] = self._client.revision
            self._seen[tenant] = max(self._seen[tenant], self._client.revision)
        self._note(line)
        return rows

    def _begin(self, tenant, puts, guards=()):
        self._number += 1
        name = f"{self._orders.process}-{self._number}"
        return Write(name, tenant, puts, list(guards), in_doubt=self._retries)

    def _pursue(self, write):
        """Send a write; when its outcome stays unknown, send it again, leave it open, or for good.

        What became of counters is always found out, so that their end is known exactly.
        """
        write.call = time.monotonic_ns()
        self._open.append(write)
        hurried = self._chance(0.05)
        self._attempt(write, SHORT_DEADLINE_SECONDS if hurried else DEADLINE_SECONDS)
        if write.answer:
            return
        if not write.counts and self._chance(0.3):
            self._give_up(write)
        elif self._chance(0.6):
            self._settle(write)

    def _give_up(self, write):
        """Leave the outcome of a write unknown: it may take effect at any later time, or never."""
        self._open.remove(write)
        self._note(write.record() | {"outcome": "unknown"})

    def _settle(self, write):
        while not write.answer:
            self._attempt(write, DEADLINE_SECONDS)

    def _attempt(self, write, deadline_seconds):
        """Send a write once more; note it when the answer is final."""
        write.attempts += 1
        try:
            answer = self._send(write, deadline_seconds)
        except FactConflict:  # two puts in one microsecond
            answer = {} if write.in_doubt else {"outcome": "failed"}
        except (VersionMismatch, AlreadyExists, NotFound) as error:
            # An attempt in doubt may still find what must exist; versions never come back.
            if isinstance(error, NotFound) and write.in_doubt:
                answer = {}
            else:
                answer = {"outcome": "refused", "refusal": refusal_of(error)}
        except Overloaded:
            answer = {} if write.in_doubt else {"outcome": "failed"}
        except UNKNOWN as error:
            write.in_doubt = True
            self._lost(error)
            return
        if not answer:
            # Refused now, but an earlier attempt might yet take effect: nobody will ever know.
            answer = {"outcome": "unknown"}
        write.answer = answer
        self._open.remove(write)
        line = write.record() | answer
        if answer["outcome"] != "unknown":
            line["return"] = time.monotonic_ns()
        if answer["outcome"] == "ok":
            self._answered.append(write)
        self._note(line)

    def _send(self, write, deadline_seconds):
        guards = [Guard(key_of(key), must.precondition()) for key, must in write.guards]
        result = self._client.write(
            *[
                PutFact(
                    SUBJECT,
                    key,
                    value,
                    source=Source("tool_result"),
                    precondition=must.precondition(),
                )
                for key, value, must in write.puts
            ],
            guards=guards,
            request_id=write.id,
            partition=Partition(NAMESPACE, write.partition),
            deadline_seconds=deadline_seconds,
        )
        return {
            "outcome": "ok",
            "revision": result.revision,
            "versions": [one.fact_version for one in result.results],
            "replayed": result.replayed,
            "client_retries": self._retries,
        }

    def _lost(self, error):
        """Go on after an answer that did not come: over a new connection where the old is gone."""
        if isinstance(error, DeadlineExceeded):
            return
        self._client.close()
        self._client = self._connected()

    def _connected(self):
        policy = RetryPolicy() if self._retries else RetryPolicy(attempts_max=1)
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up_at:  # else it would outlive a campaign that broke off
            client = NotingClient(self._orders.target, retry=policy)
            with suppress(NoServer):
                client.wait_until_ready(1.0)
                return client
            client.close()
        raise SystemExit(f"no server for {PATIENCE_SECONDS:g} s")

    def _note(self, line):
        line["process"] = self._orders.process
        self._history.write(json.dumps(line) + "\n")
        os.write(self._orders.progress_fd, b".")


def refusal_of(error):
    """Return what a refusal says: the reason, whose condition failed, the current version."""
    about = error.metadata
    said = {"reason": error.reason, "index": int(about.get("index", about.get("guard_index", 0)))}
    if "guard_index" in about:
        said["guard"] = True
    if "current_version" in about:
        said["current"] = int(about["current_version"])
    return said


def main():
    given = json.loads(sys.argv[1])
    orders = Orders(**given)
    Worker(replace(orders, tenants=tuple(orders.tenants))).run()


if __name__ == "__main__":
    main()
