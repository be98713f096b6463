"""Opening: lock, directory, modes, format, foreign files."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys

import lmdb
import pytest
from pillion_storage import migrations
from pillion_storage.api import (
    Batch,
    Corrupt,
    NewerFormat,
    Partition,
    StoreLocked,
    StoreSettings,
    StoreUnusable,
)
from pillion_storage.lmdb import open_store, records
from pillion_storage.schema import FORMAT_VERSION, META
from pillion_storage.verify import verify

P = Partition("n", "t")
HOLDER = """
import sys, threading
from pathlib import Path
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store
store = open_store(StoreSettings(directory=Path(sys.argv[1])))
print("open", flush=True)
threading.Event().wait()
"""


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_second_process_is_told_who_has_it_and_a_killed_one_lets_go(settings):
    command = [sys.executable, "-c", HOLDER, str(settings.directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"open\n"
        with pytest.raises(StoreLocked, match=f"in use by process {holder.pid};") as caught:
            open_store(settings)
        assert caught.value.pid == holder.pid
        with pytest.raises(StoreLocked):
            verify(settings.directory)
        holder.kill()
    open_store(settings).close()


FORKING_HOLDER = """
import os, sys
from pathlib import Path
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store
store = open_store(StoreSettings(directory=Path(sys.argv[1])))
child = os.fork()
if child == 0:
    print("forked", flush=True)
sys.stdin.read()
"""


def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(settings):
    command = [sys.executable, "-c", FORKING_HOLDER, str(settings.directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"forked\n"
        with pytest.raises(StoreLocked):
            open_store(settings)
        holder.kill()
        holder.wait()
        open_store(settings).close()  # the child is still there: it ends with our end of the pipe


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_modes_do_not_depend_on_the_umask(settings, umask):
    before = os.umask(umask)
    try:
        store = open_store(settings)
        store.commit(P, Batch(puts={b"a": b"1"}))
        copy = settings.directory.parent / "copy"
        store.backup(copy)
        store.close()
    finally:
        os.umask(before)
    for directory in (settings.directory, copy):
        assert mode(directory) == 0o700
        assert {mode(file) for file in directory.iterdir()} == {0o600}


def test_an_existing_directory_keeps_its_mode(settings):
    settings.directory.mkdir(mode=0o750)
    settings.directory.chmod(0o750)
    open_store(settings).close()
    assert mode(settings.directory) == 0o750


def test_a_missing_parent_a_file_and_no_directory_are_explained(tmp_path):
    file = tmp_path / "file"
    file.write_text("not a store")
    for directory, message in [
        (tmp_path / "missing" / "store", "doesn't exist; create it"),
        (file, "is not a directory"),
        (None, "needs a directory"),
    ]:
        with pytest.raises(StoreUnusable, match=message):
            open_store(StoreSettings(directory=directory))
    assert file.read_text() == "not a store"


UNWRITABLE = """
import os, sys
from pathlib import Path
from pillion_storage.api import StoreSettings, StoreUnusable
from pillion_storage.lmdb.store import LmdbStore  # before: the libraries may be unreadable
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for directory in sys.argv[1:]:
    try:
        LmdbStore(StoreSettings(directory=Path(directory)))
    except StoreUnusable as error:
        print(error)
"""


def test_a_directory_that_is_not_writable_is_explained(tmp_path):
    """In a process of another user, for root may write everywhere."""
    parent = tmp_path / "parent"
    unwritable = parent / "store"
    unwritable.mkdir(parents=True)
    unwritable.chmod(0o555)
    parent.chmod(0o555)
    opened = [ancestor for ancestor in (tmp_path, *tmp_path.parents) if not mode(ancestor) & 0o1]
    before = {ancestor: mode(ancestor) for ancestor in opened}
    try:
        for ancestor in opened:
            ancestor.chmod(before[ancestor] | 0o1)
        told = subprocess.run(
            [sys.executable, "-c", UNWRITABLE, unwritable, parent / "new"],
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        for ancestor in opened:
            ancestor.chmod(before[ancestor])
        parent.chmod(0o755)
    assert re.search(r"store is not writable for user \d+; change its owner", told.stdout), told
    assert "new can't be made: Permission denied" in told.stdout


def set_format(directory, version):
    with lmdb.open(str(directory), max_dbs=9, lib_version=0) as env:
        meta = env.open_db(b"meta")
        with env.begin(write=True) as txn:
            row = records.seal(META, b"format", records.U32.pack(version))
            txn.put(b"format", row, db=meta)


def test_a_newer_format_is_refused_and_nothing_is_written(settings):
    open_store(settings).close()
    set_format(settings.directory, FORMAT_VERSION + 3)
    data = settings.directory / "data.mdb"
    before = data.read_bytes()
    for attempt in (lambda: open_store(settings), lambda: verify(settings.directory)):
        with pytest.raises(NewerFormat, match="upgrade Pillion") as caught:
            attempt()
        assert (caught.value.found, caught.value.supported) == (FORMAT_VERSION + 3, FORMAT_VERSION)
    assert data.read_bytes() == before


def test_migrations_run_in_order_and_go_on_after_an_unclean_stop(tmp_path):
    ran = []

    def step(name, *, fails=False):
        def run(_env, txn):
            ran.append(name)
            txn.put(name, b"migrated")
            if fails:
                raise InterruptedError

        return run

    with lmdb.open(str(tmp_path), max_dbs=9, lib_version=0) as env:
        migrations.bring_up_to_date(env, lambda: 5)
        assert migrations.read_format(env) == FORMAT_VERSION
        first, second = FORMAT_VERSION, FORMAT_VERSION + 1
        with pytest.raises(InterruptedError):
            migrations.bring_up_to_date(
                env,
                lambda: 5,
                supported=FORMAT_VERSION + 2,
                migrations={first: step(b"one"), second: step(b"two", fails=True)},
            )
        assert migrations.read_format(env) == second
        with env.begin() as txn:
            assert txn.get(b"two") is None
        migrations.bring_up_to_date(
            env,
            lambda: 5,
            supported=FORMAT_VERSION + 2,
            migrations={first: step(b"one"), second: step(b"two")},
        )
        assert migrations.read_format(env) == FORMAT_VERSION + 2
    assert ran == [b"one", b"two", b"two"]


def test_every_older_format_has_a_migration():
    assert set(migrations.MIGRATIONS) == set(range(1, FORMAT_VERSION))


def test_files_that_are_no_store_are_refused_untouched(settings):
    directory = settings.directory
    directory.mkdir()
    data = directory / "data.mdb"
    data.write_bytes(b"something else " * 1000)
    before = data.read_bytes()
    with pytest.raises(Corrupt, match=r"data\.mdb: not a readable LMDB file"):
        open_store(settings)
    assert data.read_bytes() == before
    data.unlink()
    with lmdb.open(str(directory), lib_version=0) as env, env.begin(write=True) as txn:
        txn.put(b"somebody", b"else's")
    with pytest.raises(Corrupt, match="not a Pillion store"):
        open_store(settings)
