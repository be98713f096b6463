"""kill -9 while many threads commit: what was acknowledged is there, nothing is half there.

This file is also the program that gets killed: it commits and reports each acknowledgement.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

from pillion_storage.api import Batch, Committed, Partition, StoreSettings, Token
from pillion_storage.lmdb import open_store
from pillion_storage.verify import verify

KILLS = 25
THREADS = 6
PARTITIONS = [Partition("crash", "one"), Partition("crash", "two")]
PARTS = 5  # keys that one batch sets to the same number


def where(thread: int) -> Partition:
    return PARTITIONS[thread % len(PARTITIONS)]


def part_key(thread: int, part: int) -> bytes:
    return b"thread %d part %d" % (thread, part)


def log_key(thread: int, number: int) -> bytes:
    return b"thread %d log %08d" % (thread, number)


def settings(directory: Path) -> StoreSettings:
    # A small map, so that it also grows (and is killed) now and then.
    return StoreSettings(directory=directory, size_bytes_initial=1 << 20)


def commit_or_exit(store, thread):
    try:
        commit_for_ever(store, thread)
    finally:
        os._exit(1)  # the parent expects the exit status of a kill


def commit_for_ever(store, thread):
    """Number the batches of a thread from where it stands; report each one that is on disk."""
    partition = where(thread)
    entry = store.read(partition, [part_key(thread, 0)]).entries.get(part_key(thread, 0))
    number = 0 if entry is None else int(entry.value)
    while True:
        number += 1
        puts = {part_key(thread, part): b"%d" % number for part in range(PARTS)}
        puts[log_key(thread, number)] = b"x" * random.randrange(2000)
        deletes = [log_key(thread, number - 10)] if number > 10 else []
        token = Token(b"%d/%d" % (thread, number), b"memo")
        outcome = store.commit(partition, Batch(puts, deletes, token=token))
        assert isinstance(outcome, Committed)
        os.write(1, b"%d %d %d\n" % (thread, number, outcome.revision))


def check(store, acknowledged, seen):
    """Every acknowledged batch is there, and every batch is there whole.

    `seen` has the number of each thread that the check before found on disk, and is renewed: a
    child may be killed before it acknowledges the batch after one that was not acknowledged.
    """
    for thread in range(THREADS):
        partition = where(thread)
        found = store.read(partition, [part_key(thread, part) for part in range(PARTS)]).entries
        numbers = {int(entry.value) for entry in found.values()}
        last, revision = acknowledged.get(thread, (0, 0))
        if not found:
            assert last == 0
            continue
        assert len(found) == PARTS
        assert len(numbers) == 1, "half a batch"
        assert len({entry.version for entry in found.values()}) == 1
        (number,) = numbers
        least = max(last, seen.get(thread, 0))
        assert number >= least, "a batch that was acknowledged, or seen after a kill, is lost"
        # One batch per thread was in flight, so at most one more can be there.
        assert number <= least + 1, "a batch is there that nobody can have sent"
        seen[thread] = number
        assert store.head(partition).revision >= revision
        logs = [log_key(thread, n) for n in range(max(1, number - 9), number + 1)]
        assert store.read(partition, logs).entries.keys() == set(logs)
        assert not store.read(partition, [log_key(thread, number + 1)]).entries
        if last:
            past = store.read(partition, [part_key(thread, 0)], at=revision).entries
            assert int(past[part_key(thread, 0)].value) == last
            retry = Batch(token=Token(b"%d/%d" % (thread, last)))
            outcome = store.commit(partition, retry)
            assert outcome == Committed(revision, outcome.recorded_at, replayed=True, memo=b"memo")


def run_and_kill(directory, lines):
    """Run this file until it has reported so many lines, kill it, return what it reported."""
    child = subprocess.Popen(
        [sys.executable, __file__, str(directory)], stdout=subprocess.PIPE, text=True
    )
    acknowledged = {}
    with child:
        try:
            for count, line in enumerate(child.stdout, start=1):
                if count == lines:
                    child.kill()
                # What was in the pipe already was acknowledged before the kill: read it all.
                fields = line.split()
                if len(fields) == 3 and line.endswith("\n"):
                    thread, number, revision = map(int, fields)
                    acknowledged[thread] = number, revision
        finally:
            child.kill()
    assert child.returncode == -signal.SIGKILL
    return acknowledged


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 -- shown when the test fails
    choose = random.Random(seed)
    directory = tmp_path / "store"
    everything, seen = {}, {}
    for _ in range(KILLS):
        everything.update(run_and_kill(directory, choose.randrange(1, 150)))
        report = verify(directory)
        assert report.clean, report.findings
        store = open_store(settings(directory))
        check(store, everything, seen)
        store.close()
    assert len(everything) == THREADS


if __name__ == "__main__":
    the_store = open_store(settings(Path(sys.argv[1])))
    for index in range(THREADS):
        threading.Thread(target=commit_or_exit, args=(the_store, index), daemon=True).start()
    threading.Event().wait()
