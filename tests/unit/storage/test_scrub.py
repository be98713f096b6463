"""Scrubbing and compaction: kept bytes change where they stand, and nothing else does."""

from __future__ import annotations

import threading

import pytest
from pillion_storage.api import Batch, InvalidBatch, Partition, StoreFull, StoreSettings, Token
from pillion_storage.lmdb import open_store
from pillion_storage.lmdb.environment import COMPACTED
from pillion_storage.ram import open_store as open_ram
from pillion_storage.scrubbing import Compacts, KeptKind, ScrubReport, Scrubs
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.verify import verify

P = Partition("n", "t")
OTHER = Partition("n", "other")
MIRA, NOOR = b"tag-of-mira-0001", b"tag-of-noor-0001"
CANARY = b"canary-4f1d-sings"


def open_any(kind, folder):
    settings = StoreSettings(directory=folder / "store", size_bytes_initial=1 << 20)
    if kind == "ram":
        return open_ram(settings)
    if kind == "lmdb":
        return open_store(settings)
    seals = SealSettings(folder / "store" / "keys", FileMasterKey(folder / "master.key"))
    (folder / "store").mkdir(exist_ok=True)
    return open_sealed(open_store, settings, seals)


@pytest.fixture(params=["ram", "lmdb", "sealed"])
def kind(request):
    return request.param


@pytest.fixture
def store(kind, tmp_path):
    store = open_any(kind, tmp_path)
    yield store
    store.close()
    if kind != "ram":
        report = verify(tmp_path / "store")
        assert report.clean, report.findings


def put(store, key, value, *, owner=MIRA, token=None, partition=P):
    batch = Batch(puts={key: value}, owners={key: owner}, token=token)
    return store.commit(partition, batch).revision


def files(folder):
    return {path: path.read_bytes() for path in (folder / "store").rglob("*") if path.is_file()}


def holding(folder, what):
    return [path.name for path, data in files(folder).items() if what in data]


def retired(store, *owners):
    if not hasattr(store, "retire_owner"):
        return []
    return [one for owner in owners for one in store.retire_owner(P, owner)]


def test_what_is_scrubbed_was_never_there_and_everything_else_is_as_it_was(store):
    assert isinstance(store, Scrubs)
    first = put(store, b"a", CANARY, token=Token(b"t1", b"memo " + CANARY))
    second = put(store, b"a", CANARY + b" again")
    third = put(store, b"a", b"harmless")
    put(store, b"b", b"other", owner=NOOR)
    put(store, b"a", CANARY, partition=OTHER)
    before = {at: store.scan(P, b"", b"z", limit=10, at=at).rows for at in range(third + 2)}

    def change(kept):
        if kept.kind is KeptKind.VALUE and kept.data == CANARY:
            return b"rewritten"
        return None if CANARY in kept.data else kept.data

    store.scrub(P, change, key_ids=retired(store, MIRA))
    now = store.scan(P, b"", b"z", limit=10, at=first).rows
    assert [(row.key, row.version, row.value) for row in now] == [(b"a", first, b"rewritten")]
    assert store.read(P, [b"a"], at=second).entries == {}
    assert [one.version for one in store.versions(P, b"a")] == [first, third]
    for at in range(third, third + 2):
        assert store.scan(P, b"", b"z", limit=10, at=at).rows == before[at]
    assert store.find_token(P, b"t1").memo is None
    assert store.read(OTHER, [b"a"]).entries[b"a"].value == CANARY
    assert store.head(P).revision == third + 1


def test_a_live_value_is_never_dropped(store):
    put(store, b"a", CANARY)
    with pytest.raises(ValueError, match="live"):
        store.scrub(P, lambda _kept: None, key_ids=retired(store, MIRA))
    assert store.read(P, [b"a"]).entries[b"a"].value == CANARY


def test_nothing_is_passed_over_however_much_there_is(store):
    for number in range(30):
        keys = [b"%02d-%04d" % (number, one) for one in range(300)]
        puts = dict.fromkeys(keys, CANARY)
        store.commit(P, Batch(puts=puts, owners=dict.fromkeys(keys, MIRA)))
    store.commit(P, Batch(puts=dict.fromkeys(keys, b"x"), owners=dict.fromkeys(keys, MIRA)))
    seen = ScrubReport()
    seen = store.scrub(
        P,
        lambda kept: b"clean" if kept.data == CANARY else kept.data,
        key_ids=retired(store, MIRA),
    )
    assert seen.changed >= 9000
    left = []
    store.scrub(P, lambda kept: left.append(kept.data) or kept.data)
    assert CANARY not in left
    for at in (1, 30):  # long ended, and just ended
        page = store.scan(P, b"", b"z", limit=10_000, at=at)
        assert {row.value for row in page.rows} == {b"clean"}


def test_writers_meanwhile_lose_nothing_and_hide_nothing(kind, store):
    for number in range(2000):
        if number % 200 == 0:
            keys = [b"%04d" % one for one in range(number, number + 200)]
            store.commit(
                P, Batch(puts=dict.fromkeys(keys, CANARY), owners=dict.fromkeys(keys, MIRA))
            )
    doomed = retired(store, MIRA)
    stop, written = threading.Event(), []

    def write():
        while not stop.is_set():
            written.append(put(store, b"%04d" % (len(written) % 2000), b"fresh"))

    thread = threading.Thread(target=write)
    thread.start()
    store.scrub(P, lambda kept: b"clean" if kept.data == CANARY else kept.data, key_ids=doomed)
    stop.set()
    thread.join()
    values = set()
    store.scrub(P, lambda kept: values.add(kept.data) or kept.data)
    for at in (10, store.head(P).revision):
        values |= {row.value for row in store.scan(P, b"", b"z", limit=10_000, at=at).rows}
    assert values <= {b"clean", b"fresh"}
    if doomed:
        assert store.destroy_keys(doomed) == len(doomed)
        assert len(store.scan(P, b"", b"z", limit=10_000, at=10).rows) == 2000


def test_a_memo_of_several_owners_is_sealed_again(tmp_path):
    store = open_any("sealed", tmp_path)
    keys = {b"m": MIRA, b"n": NOOR}
    store.commit(P, Batch(puts=dict.fromkeys(keys, b"v"), owners=keys, token=Token(b"t", b"memo")))
    doomed = store.retire_owner(P, MIRA)
    store.scrub(P, lambda kept: kept.data, key_ids=doomed)
    store.destroy_keys(doomed)
    assert store.destroyed_on_disk(doomed)
    assert store.find_token(P, b"t").memo == b"memo"
    assert store.read(P, [b"m", b"n"]).entries.keys() == {b"m", b"n"}
    store.close()


def test_what_stays_is_never_sealed_with_a_key_that_goes(tmp_path):
    store = open_any("sealed", tmp_path)
    put(store, b"a", b"v")
    put(store, b"b", b"v", owner=NOOR)
    doomed = store.retire_owner(P, MIRA)
    assert store.sealed_with(P, doomed) == [b"a"]
    store.close()
    store = open_any("sealed", tmp_path)  # which forgets that it was retired
    with pytest.raises(InvalidBatch):
        store.scrub(P, lambda kept: kept.data, key_ids=doomed)
    assert store.retire_owner(P, MIRA) == doomed
    store.scrub(P, lambda kept: kept.data, key_ids=doomed)
    assert store.sealed_with(P, doomed) == []
    store.close()


def test_buried_keys_can_never_be_used(tmp_path):
    store = open_any("sealed", tmp_path)
    put(store, b"a", b"v")
    assert not store.destroyed_on_disk([b"unknown!"])
    store.bury_keys(P, [b"unknown!", *store.retire_owner(P, MIRA)])
    assert store.destroyed_on_disk([b"unknown!"])
    assert store.read(P, [b"a"]).entries == {}
    store.close()
    store = open_any("sealed", tmp_path)
    assert store.destroyed_on_disk([b"unknown!"])
    store.close()


def test_a_compacted_file_has_nothing_of_what_was_deleted(tmp_path):
    store = open_any("lmdb", tmp_path)
    keys = [b"%04d" % one for one in range(500)]
    store.commit(P, Batch(puts={key: CANARY + key * 50 for key in keys}))
    for number in range(50):
        put(store, b"old", b"%d" % number)
    put(store, b"kept", b"stays " * 100)
    store.commit(P, Batch(deletes=keys))
    store.purge(P, keys)
    assert holding(tmp_path, CANARY) == ["data.mdb"]
    assert isinstance(store, Compacts)
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            answers.append(store.read(P, [b"kept"]).entries[b"kept"].value)

    readers = [threading.Thread(target=ask) for _ in range(3)]
    for one in readers:
        one.start()
    size = store.compact()
    put(store, b"after", b"1")
    stop.set()
    for one in readers:
        one.join()
    assert set(answers) == {b"stays " * 100}
    assert size > 0
    assert holding(tmp_path, CANARY) == []
    assert store.read(P, [b"after"]).entries
    assert len(store.versions(P, b"old")) == 50
    store.close()
    report = verify(tmp_path / "store")
    assert report.clean, report.findings
    store = open_any("lmdb", tmp_path)
    assert store.read(P, [b"kept"]).entries[b"kept"].value == b"stays " * 100
    store.close()


def test_a_compaction_without_space_changes_nothing(tmp_path, monkeypatch):
    store = open_any("lmdb", tmp_path)
    put(store, b"a", b"v")

    def full(_path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store._environment, "_copy_compacted", full)
    with pytest.raises(StoreFull):
        store.compact()
    assert store.read(P, [b"a"]).entries
    put(store, b"b", b"v")
    store.close()


def test_what_a_cut_short_compaction_left_is_wiped_at_the_next_start(tmp_path):
    open_any("lmdb", tmp_path).close()
    (tmp_path / "store" / COMPACTED).write_bytes(CANARY)
    open_any("lmdb", tmp_path).close()
    assert not (tmp_path / "store" / COMPACTED).exists()


def test_a_key_of_very_many_versions_leaves_no_finding_once_it_is_purged(tmp_path):
    store = open_any("lmdb", tmp_path)
    for number in range(300):
        store.commit(P, Batch(puts={b"h": b"%d" % number, b"other": b"1"}))
    store.commit(P, Batch(deletes=[b"h"]))
    store.purge(P, [b"h"])
    store.close()
    report = verify(tmp_path / "store")
    assert report.clean, report.findings
