"""A full map or disk: refused clearly, reads go on, and it works again once there is room."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from pillion_storage.api import Batch, Committed, Partition, StoreFull
from pillion_storage.lmdb import open_store
from pillion_storage.verify import verify

P = Partition("n", "t")
VALUE = b"v" * 30_000


def fill(store):
    """Overwrite keys until the store is full; return the last version of each."""
    written = {}
    number = 0
    while True:
        number += 1
        key = b"%d" % (number % 5)
        try:
            outcome = store.commit(P, Batch(puts={key: VALUE}))
        except StoreFull:
            return written
        assert isinstance(outcome, Committed)
        written[key] = outcome.revision
        assert number < 10_000, "the limit is not kept"


@pytest.fixture
def small(settings):
    store = open_store(replace(settings, size_bytes_initial=1 << 18, size_bytes_max=4 << 20))
    yield store
    store.close()
    report = verify(settings.directory)
    assert report.clean, report.findings


def test_the_map_grows_up_to_its_limit_while_reads_go_on(small):
    small.commit(P, Batch(puts={b"a": b"1"}))
    finished = threading.Event()

    def read():
        count = 0
        while not finished.is_set() or not count:
            entry = small.read(P, [b"a"]).entries[b"a"]
            rows = small.scan(P, b"", b"\xff", limit=10).rows
            assert entry.value == b"1"
            assert rows[-1].key == b"a"
            count += 1
        return count

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        fill(small)
        finished.set()
        assert all(reader.result() for reader in readers)
    stats = small.stats()
    assert (1 << 18) < stats.size_bytes <= stats.size_bytes_max == 4 << 20


def test_a_full_store_reads_refuses_and_recovers_after_a_trim(small):
    written = fill(small)
    for _ in range(3):
        with pytest.raises(StoreFull, match="no space"):
            small.commit(P, Batch(puts={b"0": VALUE * 2}))
    read = small.read(P, written)
    assert {key: entry.version for key, entry in read.entries.items()} == written
    assert read.revision == max(written.values())
    small.trim(P, history_before=read.revision, feed_before=0, tokens_before_us=0)
    before = small.stats().size_bytes
    for _ in range(5):
        outcome = small.commit(P, Batch(puts={b"0": VALUE}))
        assert isinstance(outcome, Committed)
    assert small.stats().size_bytes == before  # freed pages are used, the file does not grow


def test_filling_and_trimming_can_go_on_for_ever(small):
    for _ in range(5):
        fill(small)
        head = small.head(P).revision
        small.trim(P, history_before=head, feed_before=head, tokens_before_us=0)
    # A trim may use the reserve; the reserve is not lent to anybody else.
    assert small.stats().size_bytes <= (4 << 20) + (1 << 20)


def test_only_the_batches_that_do_not_fit_are_refused(settings):
    store = open_store(replace(settings, size_bytes_initial=1 << 20, size_bytes_max=1 << 20))
    entered, release = threading.Event(), threading.Event()
    hold = store._writer.submit(lambda _: (entered.set(), release.wait(60.0)))
    entered.wait(60.0)
    small_ones = [store.submit(P, Batch(puts={b"s%d" % n: b"1"})) for n in range(3)]
    too_big = store.submit(P, Batch(puts={b"b%d" % n: b"v" * 60_000 for n in range(40)}))
    more = [store.submit(P, Batch(puts={b"m%d" % n: b"1"})) for n in range(3)]
    release.set()
    hold.result(60.0)
    with pytest.raises(StoreFull):
        too_big.result(60.0)
    revisions = [future.result(60.0).revision for future in [*small_ones, *more]]
    assert revisions == [1, 2, 3, 4, 5, 6]
    assert len(store.scan(P, b"", b"\xff", limit=99).rows) == 6
    store.close()
    assert verify(settings.directory).clean


def test_a_lowered_limit_keeps_the_data_readable(settings):
    store = open_store(settings)
    for number in range(100):
        store.commit(P, Batch(puts={b"%03d" % number: VALUE}))
    store.close()
    store = open_store(replace(settings, size_bytes_initial=1 << 18, size_bytes_max=1 << 20))
    assert len(store.scan(P, b"", b"\xff", limit=200).rows) == 100
    with pytest.raises(StoreFull):
        store.commit(P, Batch(puts={b"%d" % n: b"v" * 60_000 for n in range(60)}))
    store.close()


DISK_FULL = """
import resource, sys
from pathlib import Path
from pillion_storage.api import *
from pillion_storage.lmdb import open_store
from pillion_storage.verify import verify

# A file size limit makes the kernel refuse writes just as a full disk does (EFBIG for ENOSPC).
directory = Path(sys.argv[1])
partition = Partition("n", "t")
store = open_store(StoreSettings(directory=directory))
store.commit(partition, Batch(puts={b"a": b"1"}))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
refused = 0
for number in range(60):
    try:
        store.commit(partition, Batch(puts={b"%d" % number: b"v" * 60_000}))
    except StoreFull:
        refused += 1
        assert store.read(partition, [b"a"]).entries[b"a"].value == b"1"
assert refused > 30, refused
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
head = store.head(partition).revision
assert store.commit(partition, Batch(puts={b"b": b"v" * 60_000})).revision == head + 1
assert len(list(store.export(partition))) == head + 1
store.close()
assert verify(directory).clean
print("fine")
"""


def test_a_full_disk_refuses_writes_and_recovers(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DISK_FULL, tmp_path / "store"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr
