"""kill -9 while a sealed store takes new owners and destroys keys: nothing acknowledged is lost,
and nothing destroyed comes back.

This file is also the program that gets killed: it commits, erases, and reports each.
"""

from __future__ import annotations

import importlib
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pillion_storage.api import Batch, Committed, Partition, StoreSettings
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.verify import verify

KILLS = 12
THREADS = 4
P = Partition("crash", "sealed")


def open_there(directory: Path):
    keys = directory / "keys"
    return open_sealed(
        open_store,
        StoreSettings(directory=directory, size_bytes_initial=1 << 20),
        SealSettings(keys, FileMasterKey(directory.parent / "master.key")),
    )


def owner_of(name: bytes) -> bytes:
    return b"owner of " + name


def work(store, thread, run):
    """Write for one new owner after the other; erase every third; report what is done."""
    number = 0
    try:
        while True:
            number += 1
            name = b"%d/%d/%d" % (run, thread, number)
            outcome = store.commit(
                P, Batch(puts={name: b"value " + name}, owners={name: owner_of(name)})
            )
            assert isinstance(outcome, Committed)
            os.write(1, b"wrote %s\n" % name)
            if number % 3 == 0:
                os.write(1, b"erasing %s\n" % name)
                assert store.destroy_keys(store.retire_owner(P, owner_of(name))) == 1
                os.write(1, b"erased %s\n" % name)
    finally:
        os._exit(1)  # the parent expects the exit status of a kill


def test_acknowledged_values_are_there_and_erased_ones_are_not(tmp_path):
    directory = tmp_path / "store"
    wrote: set[bytes] = set()
    erasing: set[bytes] = set()
    erased: set[bytes] = set()
    for run in range(KILLS):
        with subprocess.Popen(
            [sys.executable, __file__, str(directory), str(run)], stdout=subprocess.PIPE
        ) as program:
            for _ in range(random.randrange(1, 60)):
                line = program.stdout.readline()
                assert line, "the program ended by itself"
                note(line, wrote, erasing, erased)
            program.send_signal(signal.SIGKILL)
            for line in program.stdout.read().splitlines(keepends=True):
                if line.endswith(b"\n"):
                    note(line, wrote, erasing, erased)
            assert program.wait() == -signal.SIGKILL
        store = open_there(directory)
        for name in wrote:
            entry = store.read(P, [name]).entries.get(name)
            if name in erased:
                assert entry is None, f"{name!r} is back (run {run})"
            elif name not in erasing:
                assert entry is not None, f"{name!r} is lost (run {run})"
            if entry is not None:
                assert entry.value == b"value " + name
        for row in store.export(P):
            assert row.value == b"value " + row.key
        store.close()
        assert not (directory / "keys" / "keyring.new").exists()
        assert verify(directory).clean
    assert erased


# Where to kill: (module, function, before or after it) of the first call once the store is set up.
POINTS = {
    "key on disk, not the commit": ("pillion_storage.lmdb.store", "apply_batch", "before"),
    "append torn off": ("pillion_storage.sealed.keyfile", "_write", "before"),
    "append written, not flushed": ("pillion_storage.sealed.keyfile", "_write", "after"),
}
ERASING = {
    "new file half made": ("pillion_storage.sealed.keyfile", "_write", "before"),
    "new file written, not in place": ("pillion_storage.sealed.keyfile", "_write", "after"),
    "in place, old one not overwritten": (
        "pillion_storage.sealed.keyfile",
        "sync_directory",
        "before",
    ),
    "rewritten, the store not told": ("pillion_storage.sealed.keyfile", "_overwrite", "after"),
}


def run_to(point, directory):
    """Write for a known owner, then be killed in the middle of what comes next."""
    store = open_there(directory)
    old = Batch(puts={b"old": b"value old"}, owners={b"old": owner_of(b"old")})
    assert isinstance(store.commit(P, old), Committed)
    module_name, name, when = (POINTS | ERASING)[point]
    module = importlib.import_module(module_name)
    real = getattr(module, name)

    def killed(*args, **options):
        if when == "after":
            real(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, killed)
    if point in ERASING:
        store.destroy_keys(store.retire_owner(P, owner_of(b"old")))
    else:
        store.commit(P, Batch(puts={b"new": b"value new"}, owners={b"new": owner_of(b"new")}))


@pytest.mark.parametrize("point", [*POINTS, *ERASING])
def test_killed_at_each_step(tmp_path, point):
    directory = tmp_path / "store"
    killed = subprocess.run([sys.executable, __file__, str(directory), "to", point], check=False)
    assert killed.returncode == -signal.SIGKILL
    store = open_there(directory)
    found = store.read(P, [b"old", b"new"]).entries
    assert b"new" not in found
    gone = point in {"in place, old one not overwritten", "rewritten, the store not told"}
    assert (b"old" not in found) == gone
    assert not (directory / "keys" / "keyring.new").exists()
    again = Batch(
        puts={b"new": b"value new", b"old": b"again"},
        owners={b"new": owner_of(b"new"), b"old": owner_of(b"old")},
    )
    assert isinstance(store.commit(P, again), Committed)
    store.close()
    store = open_there(directory)
    assert [row.value for row in store.export(P)] == [b"value new", b"again"]
    assert store.versions(P, b"old")[0].value == (b"again" if gone else b"value old")
    store.close()
    assert verify(directory).clean


def note(line, wrote, erasing, erased):
    what, name = line.split()
    {b"wrote": wrote, b"erasing": erasing, b"erased": erased}[what].add(name)


if __name__ == "__main__":
    if sys.argv[2] == "to":
        run_to(sys.argv[3], Path(sys.argv[1]))
        sys.exit("was not killed")
    the_store = open_there(Path(sys.argv[1]))
    for index in range(THREADS):
        threading.Thread(
            target=work, args=(the_store, index, int(sys.argv[2])), daemon=True
        ).start()
    threading.Event().wait()
