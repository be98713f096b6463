"""The keyring's file: torn, flipped, cut, full disks, and one flush for many."""

from __future__ import annotations

import errno
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pillion_storage.api import Corrupt, Partition, StoreFailed, StoreFull
from pillion_storage.errors import KeyringUnusable, MasterKeyUnusable, NewerFormat
from pillion_storage.sealed import FileMasterKey, keyfile
from pillion_storage.sealed.keyring import Keyring
from pillion_storage.sealed.layout import HEADER_BYTES, NO_OWNER, RECORD_BYTES

P = Partition("n", "t")
MIRA, NOOR = b"m" * 16, b"n" * 16


class Ring:
    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "keys" / "keyring"
        self.master = FileMasterKey(folder / "master.key")
        self.opened = []

    def open(self, *, create=False, **options):
        ring = Keyring(self.folder / "keys", self.master, clock_us=lambda: 5, **options)
        self.opened.append(ring)
        ring.create() if create else ring.load()
        return ring

    def close(self):
        for ring in self.opened:
            ring.close()


@pytest.fixture
def ring(tmp_path):
    made = Ring(tmp_path)
    yield made
    made.close()


def key_of(keyring, owner, partition=P):
    tag = keyring.partition_tag(partition)
    lease = keyring.lease(tag, [owner], 1)
    lease.release()
    return lease.keys[owner]


def opens(keyring, key_id, sealed):
    return keyring.cipher(key_id).decrypt(bytes(12), sealed, None)


def sealed_by(found):
    key_id, cipher = found
    return key_id, cipher.encrypt(bytes(12), b"said", None)


def test_keys_are_there_again(ring):
    keyring = ring.open(create=True)
    made = [sealed_by(key_of(keyring, owner)) for owner in (MIRA, NOOR, NO_OWNER)]
    tag = keyring.partition_tag(P)
    secret = keyring.secret(tag)
    assert keyring.make_secret(tag) == secret
    assert len({key_id for key_id, _ in made}) == 3
    keyring.close()
    keyring = ring.open()
    assert all(opens(keyring, *one) == b"said" for one in made)
    assert keyring.secret(tag) == secret
    assert key_of(keyring, MIRA)[0] == made[0][0]


def test_neither_keys_nor_tags_are_in_the_file(ring):
    drawn = []

    def draw(count):
        drawn.append(os.urandom(count))
        return drawn[-1]

    keyring = ring.open(create=True, random_bytes=draw, secret_bytes=draw)
    key_of(keyring, keyring.owner_tag(keyring.partition_tag(P), b"owner-tag-of-mira"))
    data = ring.path.read_bytes()
    assert b"owner-tag" not in data
    keys = [one for one in drawn if len(one) == 32]
    assert len(keys) == 3  # the keyring's own, the data key, the secret
    assert not any(one in data for one in keys)


@pytest.mark.parametrize("torn", [1, RECORD_BYTES - 1, RECORD_BYTES, RECORD_BYTES * 3 + 7])
@pytest.mark.parametrize("filled", [True, False])
def test_a_torn_append_is_cut_off_and_the_next_one_takes_its_place(ring, torn, filled):
    keyring = ring.open(create=True)
    kept = sealed_by(key_of(keyring, MIRA))
    keyring.close()
    size = ring.path.stat().st_size
    tail = b"\x07" * torn if filled and torn < RECORD_BYTES else bytes(torn)
    with ring.path.open("ab") as file:
        file.write(tail)
    keyring = ring.open()
    assert ring.path.stat().st_size == size
    assert opens(keyring, *kept) == b"said"
    new = sealed_by(key_of(keyring, NOOR))
    keyring.close()
    keyring = ring.open()
    assert opens(keyring, *new) == b"said"


def test_any_flipped_bit_is_found(ring):
    keyring = ring.open(create=True)
    for owner in (MIRA, NOOR):
        key_of(keyring, owner)
    keyring.destroy([key_of(keyring, MIRA)[0]])
    key_of(keyring, b"o" * 16)
    keyring.close()
    data = ring.path.read_bytes()
    # Every byte of the fixed parts, and some of the header's long stretch of zeros.
    places = [*range(250), *range(250, HEADER_BYTES, 50), *range(HEADER_BYTES - 16, len(data))]
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        ring.path.write_bytes(changed)
        with pytest.raises((KeyringUnusable, MasterKeyUnusable, NewerFormat)):
            ring.open()
        ring.opened.pop().close()
        assert ring.path.read_bytes() == changed
    ring.path.write_bytes(data)
    ring.open()


def test_records_taken_out_swapped_or_of_an_older_file_are_found(ring):
    keyring = ring.open(create=True)
    for owner in (MIRA, NOOR, b"o" * 16):
        key_of(keyring, owner)
    before = ring.path.read_bytes()
    keyring.destroy([key_of(keyring, MIRA)[0]])
    keyring.close()
    data = ring.path.read_bytes()
    head, body = data[:HEADER_BYTES], data[HEADER_BYTES:]
    records = [body[at : at + RECORD_BYTES] for at in range(0, len(body), RECORD_BYTES)]
    older = before[HEADER_BYTES : HEADER_BYTES + RECORD_BYTES]
    for broken in (
        records[1:],
        [records[1], records[0], *records[2:]],
        [*records, older],
        [*records, records[0]],
    ):
        ring.path.write_bytes(head + b"".join(broken))
        with pytest.raises(KeyringUnusable):
            ring.open()
        ring.opened.pop().close()


@pytest.mark.parametrize("size", [0, 7, HEADER_BYTES - 1])
def test_a_file_cut_within_the_header_is_no_keyring(ring, size):
    ring.open(create=True).close()
    os.truncate(ring.path, size)
    with pytest.raises(KeyringUnusable, match="cut short"):
        ring.open()
    assert ring.path.stat().st_size == size


def test_a_file_cut_between_records_lacks_keys_and_says_so(ring):
    keyring = ring.open(create=True)
    lost = sealed_by(key_of(keyring, MIRA))
    keyring.close()
    os.truncate(ring.path, HEADER_BYTES)
    keyring = ring.open()
    with pytest.raises(Corrupt, match="newest"):
        keyring.cipher(lost[0])


def test_a_destroyed_key_is_nowhere_in_the_file_or_in_memory(ring):
    keyring = ring.open(create=True)
    gone, stays = sealed_by(key_of(keyring, MIRA)), sealed_by(key_of(keyring, NOOR))
    with ring.path.open("rb") as old:
        assert keyring.destroy([gone[0], b"unknown!"]) == 1
        # The old file's bytes were overwritten before it was let go.
        assert not any(old.read())
    assert keyring.cipher(gone[0]) is None
    assert keyring.is_destroyed(gone[0])
    assert opens(keyring, *stays) == b"said"
    assert key_of(keyring, MIRA)[0] != gone[0]
    keyring.close()
    keyring = ring.open()
    assert keyring.cipher(gone[0]) is None
    assert opens(keyring, *stays) == b"said"
    assert not (ring.path.parent / "keyring.new").exists()


def test_many_destroyed_keys_stay_destroyed(ring):
    keyring = ring.open(create=True)
    tag = keyring.partition_tag(P)
    lease = keyring.lease(tag, [b"%016d" % n for n in range(35)], 1)
    lease.release()
    ids = [key_id for key_id, _ in lease.keys.values()]
    assert keyring.destroy(ids[:12]) == 12
    assert keyring.destroy(ids) == 23
    keyring.close()
    keyring = ring.open()
    assert all(keyring.cipher(key_id) is None for key_id in ids)
    assert keyring.has_destroyed(tag)


def test_a_held_key_is_not_destroyed_under_its_holder(ring):
    keyring = ring.open(create=True)
    lease = keyring.lease(keyring.partition_tag(P), [MIRA], 1)
    key_id = lease.keys[MIRA][0]
    with ThreadPoolExecutor(1) as pool:
        destroying = pool.submit(keyring.destroy, [key_id])
        while key_of(keyring, MIRA)[0] == key_id:  # until it is on its way
            pass
        assert not destroying.done()
        assert keyring.cipher(key_id) is not None
        lease.release()
        assert destroying.result(10) == 1
    assert keyring.cipher(key_id) is None


def test_a_worn_key_is_succeeded(ring):
    keyring = ring.open(create=True, seals_max=10)
    tag = keyring.partition_tag(P)
    ids = []
    for _ in range(5):
        lease = keyring.lease(tag, [MIRA], 4)
        lease.release()
        ids.append(lease.keys[MIRA][0])
    assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]
    assert sorted(keyring.keys_of(tag, MIRA)) == sorted(set(ids))
    keyring.close()
    assert key_of(ring.open(), MIRA)[0] == ids[4]


def test_few_keys_are_kept_in_memory_and_all_can_be_had(ring):
    keyring = ring.open(create=True, ciphers_max=2)
    made = [sealed_by(key_of(keyring, b"%016d" % number)) for number in range(9)]
    for one in made + made[::-1]:
        assert opens(keyring, *one) == b"said"
    assert len(keyring._ciphers._young) + len(keyring._ciphers._old) <= 4


def test_those_who_wait_share_a_flush(ring, monkeypatch):
    keyring = ring.open(create=True)
    key_of(keyring, MIRA)
    flushes, gate, inside = [], threading.Event(), threading.Event()
    flush = os.fdatasync

    def slow(fd):
        flushes.append(fd)
        inside.set()
        gate.wait(30)
        flush(fd)

    monkeypatch.setattr(keyfile.os, "fdatasync", slow)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(key_of, keyring, b"first-----------")
        inside.wait(30)
        others = [pool.submit(key_of, keyring, b"%016d" % number) for number in range(8)]
        while keyring._collecting is None or len(keyring._collecting.records) < 8:
            pass
        assert not any(one.done() for one in (first, *others))
        gate.set()
        ids = {one.result(30)[0] for one in (first, *others)}
    assert len(ids) == 9
    assert len(flushes) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_failed_append_gives_no_key(ring, monkeypatch, number):
    keyring = ring.open(create=True)
    kept = sealed_by(key_of(keyring, MIRA))
    size = ring.path.stat().st_size

    def fail(fd, data, at):
        os.pwrite(fd, bytes(data)[:60], at)  # half a record
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        broken.setattr(keyfile, "_write", fail)
        with pytest.raises(StoreFull if number == errno.ENOSPC else StoreFailed):
            key_of(keyring, NOOR)
    assert opens(keyring, *kept) == b"said"
    if number == errno.ENOSPC:
        assert ring.path.stat().st_size == size
        kept_too = sealed_by(key_of(keyring, NOOR))
        keyring.close()
        assert opens(ring.open(), *kept_too) == b"said"
    else:
        with pytest.raises(StoreFailed):
            key_of(keyring, NOOR)
        keyring.close()
        assert opens(ring.open(), *kept) == b"said"


def test_a_failed_rewriting_destroys_nothing(ring, monkeypatch):
    keyring = ring.open(create=True)
    kept = sealed_by(key_of(keyring, MIRA))

    def fail(fd, data, at):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as broken:
        broken.setattr(keyfile, "_write", fail)
        with pytest.raises(StoreFull):
            keyring.destroy([kept[0]])
    assert opens(keyring, *kept) == b"said"
    assert key_of(keyring, MIRA)[0] == kept[0]
    assert not (ring.path.parent / "keyring.new").exists()
    keyring.close()
    assert opens(ring.open(), *kept) == b"said"


def test_rotating_while_keys_are_made_and_used(ring):
    keyring = ring.open(create=True)
    made = [sealed_by(key_of(keyring, b"%016d" % number)) for number in range(20)]
    stop = threading.Event()

    def make(thread):
        own = []
        while not stop.is_set() or not own:
            own.append(sealed_by(key_of(keyring, b"%08d%08d" % (thread, len(own)))))
            assert opens(keyring, *own[0]) == b"said"
        return own

    with ThreadPoolExecutor(3) as pool:
        making = [pool.submit(make, thread) for thread in range(3)]
        masters = [FileMasterKey(ring.folder / f"master-{number}.key") for number in range(5)]
        for master in masters:
            keyring.rotate(master)
        stop.set()
        for one in making:
            made += one.result(30)
    keyring.close()
    with pytest.raises(MasterKeyUnusable):
        ring.open()
    ring.opened.pop().close()
    ring.master = masters[-1]
    keyring = ring.open()
    assert all(opens(keyring, *one) == b"said" for one in made)


def test_a_newer_format_is_refused(ring):
    ring.open(create=True).close()
    data = bytearray(ring.path.read_bytes())
    data[8:10] = (2).to_bytes(2, "big")
    ring.path.write_bytes(data)
    with pytest.raises(NewerFormat):
        ring.open()
