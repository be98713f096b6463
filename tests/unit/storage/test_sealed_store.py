"""A sealed store: nothing in plain on disk, nothing readable without its key, nothing misplaced."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import lmdb as engine
import pytest
from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    Committed,
    Conflict,
    Corrupt,
    InvalidBatch,
    OwnerKeys,
    Partition,
    StoreLocked,
    StoreSettings,
    StoreUnusable,
    Token,
)
from pillion_storage.errors import KeyringUnusable, MasterKeyUnusable
from pillion_storage.lmdb import open_store, records
from pillion_storage.lmdb.environment import open_databases
from pillion_storage.sealed import (
    FileMasterKey,
    SealSettings,
    open_sealed,
    opened_check,
    refuse_sealed,
)
from pillion_storage.sealed.envelope import MAGIC, OVERHEAD_BYTES
from pillion_storage.verify import verify

P = Partition("n", "t")
OTHER = Partition("n", "other")
MIRA, NOOR = b"tag-of-mira-0001", b"tag-of-noor-0001"
CANARY = b"canary-4f1d-sings"


class Place:
    """A directory with a store, its keyring and its master key."""

    def __init__(self, folder):
        self.folder = folder
        self.directory = folder / "store"
        self.directory.mkdir()
        self.keys = self.directory / "keys"
        self.keyring = self.keys / "keyring"
        self.master = FileMasterKey(folder / "master.key")
        self.settings = StoreSettings(directory=self.directory, size_bytes_initial=1 << 20)
        self.opened = []

    def open(self, **changes):
        master = changes.pop("master", self.master)
        keys = changes.pop("keys", self.keys)
        settings = replace(self.settings, **changes)
        store = open_sealed(open_store, settings, SealSettings(keys, master))
        self.opened.append(store)
        return store

    def plain(self):
        store = open_store(self.settings)
        self.opened.append(store)
        return store

    def bytes_on_disk(self, *, without=()):
        return {
            path: path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and path not in without
        }


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    for store in made.opened:
        store.close()


def done(store, batch, partition=P):
    outcome = store.commit(partition, batch)
    assert isinstance(outcome, Committed), outcome
    return outcome.revision


def value(store, key, at=None, partition=P):
    entry = store.read(partition, [key], at=at).entries.get(key)
    return None if entry is None else entry.value


def owned(puts, owner):
    return Batch(puts=puts, owners=dict.fromkeys(puts, owner))


def erase(store, owner, partition=P):
    return store.destroy_keys(store.retire_owner(partition, owner))


# --- at rest -----------------------------------------------------------------------------------


def test_no_value_memo_or_note_is_on_disk_in_plain(place):
    store = place.open()
    for round_ in range(3):  # the second round moves the first to the archive
        batch = owned({b"m1": CANARY * 20, b"v1": CANARY + bytes([round_])}, MIRA)
        done(store, replace(batch, token=Token(b"%d" % round_, CANARY), note=CANARY))
    done(store, Batch(puts={b"setting": CANARY}))
    store.probe()
    store.backup(place.folder / "copy")
    store.close()
    found = [path for path, data in place.bytes_on_disk().items() if CANARY in data]
    assert found == []


def test_the_same_writes_in_plain_are_found_by_that_search(place):
    store = place.plain()
    done(store, Batch(puts={b"m1": CANARY}, token=Token(b"1", CANARY), note=CANARY))
    store.close()
    assert any(CANARY in data for data in place.bytes_on_disk().values())


def test_the_partitions_secret_is_not_on_disk(place):
    store = place.open()
    secret = store.partition_secret(P)
    done(store, Batch(puts={b"a": b"1"}))
    store.close()
    assert not any(secret in data for data in place.bytes_on_disk().values())
    assert place.open().partition_secret(P) == secret


def test_equal_values_look_different(place):
    store = place.open()
    done(store, owned({b"a": CANARY, b"b": CANARY}, MIRA))
    rows = store._inner.read(P, [b"a", b"b"]).entries
    assert rows[b"a"].value != rows[b"b"].value
    assert len(rows[b"a"].value) == len(CANARY) + OVERHEAD_BYTES


def test_verify_is_clean_and_files_are_private(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    store.close()
    assert verify(place.directory).clean
    assert place.keyring.stat().st_mode & 0o777 == 0o600
    assert place.keys.stat().st_mode & 0o777 == 0o700
    assert (place.folder / "master.key").stat().st_mode & 0o777 == 0o600


# --- destroying a key --------------------------------------------------------------------------


def test_a_destroyed_owner_is_absent_at_every_revision_and_others_are_not(place):
    store = place.open()
    first = done(store, owned({b"m1": b"old", b"e1": b"said"}, MIRA))
    done(store, owned({b"m1": b"new"}, MIRA))
    done(store, owned({b"m2": b"hers"}, NOOR))
    done(store, replace(owned({b"m3": b"x"}, MIRA), token=Token(b"t", b"what was answered")))
    assert isinstance(store, OwnerKeys)
    assert erase(store, MIRA) == 1
    for at in (None, first, first + 1):
        assert value(store, b"m1", at) is None
        assert value(store, b"e1", at) is None
    assert store.versions(P, b"m1") == []
    assert value(store, b"m2") == b"hers"
    page = store.scan(P, b"", KEY_SPACE_END, limit=1)
    assert [row.key for row in page.rows] == [b"m2"]
    page = store.scan(P, b"", KEY_SPACE_END, limit=1, keys_only=True, reverse=True)
    assert [row.key for row in page.rows] == [b"m2"]
    assert store.find_token(P, b"t").memo is None
    assert store.look(P, lambda view: (view.get(b"m1"), view.last(b"", b"z").key)) == (None, b"m2")
    store.close()
    store = place.open()
    assert value(store, b"m1") is None
    assert value(store, b"m2") == b"hers"


def test_a_memo_of_two_owners_is_gone_with_either(place):
    store = place.open()
    batch = Batch(
        puts={b"a": b"1", b"b": b"2"}, owners={b"a": MIRA, b"b": NOOR}, token=Token(b"t", b"both")
    )
    done(store, batch)
    assert store.find_token(P, b"t").memo == b"both"
    assert store.commit(P, batch).memo == b"both"
    erase(store, NOOR)
    assert store.find_token(P, b"t").memo is None
    assert value(store, b"a") == b"1"


def test_a_copied_old_data_file_and_a_backup_have_nothing_of_it(place):
    store = place.open()
    done(store, owned({b"m1": CANARY}, MIRA))
    done(store, owned({b"m2": b"hers"}, NOOR))
    store.backup(place.folder / "backup")
    store.close()
    shutil.copy(place.directory / "data.mdb", place.folder / "old.mdb")
    store = place.open()
    erase(store, MIRA)
    store.close()
    for source in (place.folder / "old.mdb", place.folder / "backup" / "data.mdb"):
        shutil.copy(source, place.directory / "data.mdb")
        store = place.open()
        assert value(store, b"m1") is None
        assert value(store, b"m2") == b"hers"
        store.close()


def test_a_backup_does_not_open_without_the_live_keyring(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    copy = place.folder / "copy"
    store.backup(copy)
    assert [path.name for path in copy.iterdir()] == ["data.mdb"]
    with pytest.raises(KeyringUnusable, match="missing"):
        place.open(directory=copy, keys=copy / "keys")
    assert not (copy / "keys").exists() or not (copy / "keys" / "keyring").exists()


def test_an_owner_can_be_written_again_and_expected_absent(place):
    store = place.open()
    done(store, owned({b"m1": b"old"}, MIRA))
    erase(store, MIRA)
    again = replace(owned({b"m1": b"new"}, MIRA), expect={b"m1": 0})
    done(store, again)
    assert value(store, b"m1") == b"new"
    erase(store, MIRA)
    assert isinstance(store.submit(P, again).result(10), Committed)
    assert value(store, b"m1") == b"new"
    assert store.commit(P, again) == Conflict({b"m1": store.head(P).revision})
    erase(store, MIRA)
    expecting = Batch(expect={b"m1": 4})
    assert store.commit(P, expecting) == Conflict({b"m1": 0})


def test_what_was_destroyed_can_be_purged(place):
    store = place.open()
    done(store, owned({b"m1": b"old"}, MIRA))
    erase(store, MIRA)
    assert store.purge(P, [b"m1"]) == 1
    assert store._inner.read(P, [b"m1"]).entries == {}


def test_rewriting_under_a_new_key_keeps_what_is_to_stay(place):
    store = place.open()
    done(store, owned({b"gone": b"1", b"stays": b"2"}, MIRA))
    old = store.retire_owner(P, MIRA)
    assert store.retire_owner(P, MIRA) == old
    done(store, owned({b"stays": b"2"}, MIRA))
    assert store.destroy_keys(old) == 1
    assert store.destroy_keys(old) == 0
    assert value(store, b"gone") is None
    assert value(store, b"stays") == b"2"
    assert value(store, b"stays", at=1) is None


def test_destroying_while_the_owner_is_written_to_leaves_whole_values_or_none(place):
    store = place.open()
    stop = threading.Event()

    def write(thread):
        number = 0
        while not stop.is_set():
            number += 1
            done(store, owned({b"%d" % thread: b"%d" % number, b"x%d" % thread: b"x"}, MIRA))
        return number

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, thread) for thread in range(4)]
        for _ in range(10):
            erase(store, MIRA)
            for thread in range(4):
                got = value(store, b"%d" % thread)
                assert got is None or got.isdigit()
        stop.set()
        assert all(one.result(30) for one in writing)
    retired = store.retire_owner(P, MIRA)
    done(store, owned({b"last": b"1"}, MIRA))
    store.destroy_keys(retired)
    assert value(store, b"last") == b"1"


# --- tampering ---------------------------------------------------------------------------------


def rewrite_rows(place, change):
    """Change values of ``current`` as somebody who can edit the file would, checksums too."""
    env = engine.open(str(place.directory), max_dbs=16, lib_version=0)
    databases = open_databases(env, create=False)
    with env.begin(write=True) as txn:
        rows = {}
        for key, row in list(txn.cursor(databases.current)):
            entry = records.unpack_current(key, row)
            rows[key] = (entry.version, entry.value)
        for key, (version, data) in change(dict(rows)).items():
            if rows.get(key) != (version, data):
                txn.put(key, records.pack_current(key, version, data), db=databases.current)
    env.close()


@pytest.fixture
def written(place):
    store = place.open()
    done(store, owned({b"a": b"of a", b"b": b"of b", b"c": b"of c"}, MIRA))
    done(store, owned({b"a": b"of a too"}, MIRA), OTHER)
    store.close()
    return place


def test_every_flipped_bit_of_a_value_is_found(written):
    def flip(bit):
        def change(rows):
            for key, (version, data) in rows.items():
                if key.endswith(b"a") and key.startswith(mine):
                    changed = bytearray(data)
                    changed[bit // 8] ^= 1 << bit % 8
                    rows[key] = (version, bytes(changed))
            return rows

        return change

    store = written.open()
    bits = 8 * len(store._inner.read(P, [b"a"]).entries[b"a"].value)
    store.close()
    mine = None

    def number_of_mine(rows):
        nonlocal mine
        mine = min(key[:4] for key in rows if key.endswith(b"b"))
        return rows

    rewrite_rows(written, number_of_mine)
    for bit in range(0, bits, 7):
        rewrite_rows(written, flip(bit))
        store = written.open()
        with pytest.raises(Corrupt) as caught:
            value(store, b"a")
        assert caught.value.record
        assert value(store, b"b") == b"of b"
        store.close()
        rewrite_rows(written, flip(bit))
    store = written.open()
    assert value(store, b"a") == b"of a"


@pytest.mark.parametrize("other", ["key", "partition", "cut", "plain", "empty head"])
def test_a_value_of_another_place_or_none_at_all_is_refused(written, other):
    def change(rows):
        mine = min(key[:4] for key in rows if key.endswith(b"b"))
        theirs = next(key for key in rows if key.endswith(b"a") and key[:4] != mine)
        version, data = rows[mine + b"a"]
        rows[mine + b"a"] = {
            "key": rows[mine + b"b"],
            "partition": rows[theirs],
            "cut": (version, data[:-1]),
            "plain": (version, b"\x01forged"),
            "empty head": (version, MAGIC),
        }[other]
        return rows

    rewrite_rows(written, change)
    store = written.open()
    with pytest.raises(Corrupt, match=r"a|key"):
        value(store, b"a")
    with pytest.raises(Corrupt):
        store.scan(P, b"", KEY_SPACE_END, limit=10)
    assert value(store, b"b") == b"of b"


def test_the_archive_is_bound_too(place):
    store = place.open()
    done(store, owned({b"a": b"1", b"b": b"2"}, MIRA))
    done(store, owned({b"a": b"3", b"b": b"4"}, MIRA))
    store.close()
    env = engine.open(str(place.directory), max_dbs=16, lib_version=0)
    databases = open_databases(env, create=False)
    with env.begin(write=True) as txn:
        kept = [
            (key, records.unpack_archived(key, row))
            for key, row in list(txn.cursor(databases.archive))
        ]
        (one, first), (two, second) = kept
        for key, row in ((one, first._replace(value=second.value)), (two, second)):
            txn.put(key, records.pack_archived(key, row), db=databases.archive)
    env.close()
    store = place.open()
    with pytest.raises(Corrupt):
        value(store, b"a", at=1)
    with pytest.raises(Corrupt):
        store.versions(P, b"a")


# --- opening -----------------------------------------------------------------------------------


def test_a_sealed_store_is_not_opened_in_plain(place):
    place.open().close()
    store = place.plain()
    with pytest.raises(KeyringUnusable, match="encryption"):
        refuse_sealed(store)
    store.close()


def test_a_lost_keyring_is_never_replaced_by_a_new_one(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    store.close()
    kept = place.keyring.read_bytes()
    place.keyring.unlink()
    with pytest.raises(KeyringUnusable, match="missing"):
        place.open()
    assert not place.keyring.exists()
    place.keyring.write_bytes(kept)
    assert value(place.open(), b"a") == b"1"


def test_an_older_keyring_that_would_bring_keys_back_is_refused(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    store.close()
    old = place.keyring.read_bytes()
    store = place.open()
    erase(store, MIRA)
    store.close()
    place.keyring.write_bytes(old)
    with pytest.raises(KeyringUnusable, match="older"):
        place.open()


def test_a_keyring_that_lacks_a_key_says_so_and_hides_nothing(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    store.close()
    old = place.keyring.read_bytes()
    store = place.open()
    done(store, owned({b"b": b"2"}, NOOR))
    done(store, Batch(puts={b"c": b"3"}), OTHER)
    store.close()
    place.keyring.write_bytes(old)
    store = place.open()
    assert value(store, b"a") == b"1"
    with pytest.raises(Corrupt, match="newest"):
        value(store, b"b")
    with pytest.raises(Corrupt, match="newest"):
        store.partition_secret(OTHER)


def test_the_keyring_of_another_store_is_refused(place, tmp_path):
    done(place.open(), owned({b"a": b"1"}, MIRA))
    place.opened[-1].close()
    (tmp_path / "second").mkdir()
    second = Place(tmp_path / "second")
    second.master = place.master
    done(second.open(), owned({b"a": b"1"}, MIRA))
    second.opened[-1].close()
    shutil.copy(second.keyring, place.keyring)
    with pytest.raises(KeyringUnusable, match="not the one"):
        place.open()


def test_data_that_was_swapped_for_plain_data_is_refused(place):
    done(place.open(), owned({b"a": b"1"}, MIRA))
    place.opened[-1].close()
    (place.directory / "data.mdb").unlink()
    done(place.plain(), Batch(puts={b"a": b"forged"}))
    place.opened[-1].close()
    with pytest.raises(KeyringUnusable, match="other data"):
        place.open()


def test_the_wrong_master_key_is_refused_before_anything_is_written(place):
    done(place.open(), owned({b"a": b"1"}, MIRA))
    place.opened[-1].close()
    before = place.bytes_on_disk(without=(place.directory / "LOCK", place.keys / "LOCK"))
    wrong = FileMasterKey(place.folder / "wrong.key")
    wrong.wrap(bytes(32), b"")
    (place.folder / "wrong.key").rename(place.folder / "store-wrong.key")
    wrong = FileMasterKey(place.folder / "store-wrong.key")
    for master in (wrong, FileMasterKey(place.folder / "none.key")):
        with pytest.raises(MasterKeyUnusable):
            place.open(master=master)
    after = place.bytes_on_disk(without=(place.directory / "LOCK", place.keys / "LOCK"))
    after.pop(place.folder / "store-wrong.key")
    assert after == before
    assert not (place.folder / "none.key").exists()
    assert value(place.open(), b"a") == b"1"


def test_a_plain_store_is_sealed_from_now_on_and_stays_readable(place):
    store = place.plain()
    secret = store.partition_secret(P)
    done(store, Batch(puts={b"old": b"plain", b"both": b"\x02S\xff\xfe"}, token=Token(b"t", b"m")))
    store.close()
    store = place.open()
    assert store.partition_secret(P) == secret
    assert value(store, b"old") == b"plain"
    assert store.find_token(P, b"t").memo == b"m"
    done(store, owned({b"old": CANARY}, MIRA))
    done(store, Batch(puts={b"a": CANARY}), OTHER)
    assert value(store, b"old", at=1) == b"plain"
    assert store.partitions() == [OTHER, P]
    store.close()
    assert not any(CANARY in data for data in place.bytes_on_disk().values())

    def forge(rows):
        # A plain value of a later revision, and one in a partition that never was plain.
        for key, (version, _) in list(rows.items()):
            if key.endswith((b"old", b"a")) and version:
                rows[key] = (version, b"forged")
        return rows

    rewrite_rows(place, forge)
    store = place.open()
    with pytest.raises(Corrupt, match="not sealed"):
        value(store, b"old")
    with pytest.raises(Corrupt, match="not sealed"):
        value(store, b"a", partition=OTHER)
    assert value(store, b"both") == b"\x02S\xff\xfe"


def test_a_second_process_or_store_is_kept_out(place):
    place.open()
    with pytest.raises(StoreLocked):
        place.open()
    with pytest.raises(StoreLocked):
        place.open(directory=place.folder / "elsewhere")


def test_the_stores_own_partition_is_nobodys(place):
    store = place.open()
    books = Partition("\0pillion", "seals")
    for call in (
        lambda: store.read(books, [b"marker"]),
        lambda: store.head(books),
        lambda: store.commit(books, Batch()),
        lambda: store.partition_secret(books),
        lambda: store.purge(books, [b"marker"]),
    ):
        with pytest.raises(InvalidBatch):
            call()
    assert store.partitions() == []


def test_owners_are_checked_by_every_store(place):
    store = place.open()
    for batch in (
        Batch(puts={b"a": b""}, owners={b"b": MIRA}),
        Batch(puts={b"a": b""}, owners={b"a": b""}),
        Batch(puts={b"a": b""}, owners={b"a": bytes(65)}),
    ):
        with pytest.raises(InvalidBatch):
            store.commit(P, batch)


def test_another_master_key_takes_over(place):
    store = place.open()
    done(store, owned({b"a": b"1"}, MIRA))
    second = FileMasterKey(place.folder / "second.key")
    store.rotate_master(second)
    done(store, owned({b"b": b"2"}, NOOR))
    assert value(store, b"a") == b"1"
    secret = store.partition_secret(P)
    store.close()
    with pytest.raises(MasterKeyUnusable, match="not the one"):
        place.open()
    store = place.open(master=second)
    assert (value(store, b"a"), value(store, b"b")) == (b"1", b"2")
    assert store.partition_secret(P) == secret


def test_a_missing_folder_is_named(place):
    with pytest.raises(StoreUnusable):
        place.open(keys=place.folder / "no" / "such")


def test_verify_authenticates_each_value_when_it_has_the_keys(written):
    store = written.open()
    batch = replace(owned({b"a": b"new"}, MIRA), token=Token(b"t", b"memo"), note=b"note")
    done(store, batch)
    done(store, owned({b"z": b"hers"}, NOOR))
    erase(store, NOOR)
    store.close()

    def report():
        with opened_check(written.keys, written.master) as open_seals:
            return verify(written.directory, open_seals=open_seals)

    assert report().clean

    def swap(rows):
        mine = min(key[:4] for key in rows if key.endswith(b"b"))
        rows[mine + b"b"], rows[mine + b"c"] = rows[mine + b"c"], rows[mine + b"b"]
        return rows

    rewrite_rows(written, swap)
    assert verify(written.directory).clean  # nothing to be seen without the keys
    found = report().findings
    assert sorted(one.record[-2:] for one in found) == ["62", "63"]
    assert all("another place" in one.problem for one in found)
    with (
        pytest.raises(MasterKeyUnusable),
        opened_check(written.keys, FileMasterKey(written.folder / "none")),
    ):
        pass
