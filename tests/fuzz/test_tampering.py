"""A byte changed in a file of a closed store is found, refused, or changes nothing that is read.

Verify goes first, as it is told to: a page that is broken could crash the engine. Whatever verify
lets pass is opened and every record read, at every revision. Never another value; but there is one
gap, and the test holds it to its size: the engine keeps its newest state and the one before in the
file's two first pages and goes by the older where the newer is broken, so a byte changed there can
take back the last commit, whole, and nothing says so.
"""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion_storage.api import KEY_SPACE_END, Batch, Partition, StoreSettings
from pillion_storage.errors import StoreError
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_storage.verify import verify

P, OTHER = Partition("n", "t"), Partition("n", "other")
OWNER = b"tag-of-mira-0001"
COMMITS = 6
FIRST_PAGES = 8191


def opened(folder, *, sealed):
    """The store in a folder, plain or sealed."""
    settings = StoreSettings(directory=folder, size_bytes_initial=1 << 20)
    if not sealed:
        return open_store(settings)
    keys = folder / "keys"
    return open_sealed(open_store, settings, SealSettings(keys, FileMasterKey(keys / "master.key")))


def everything(store):
    """All that can be read: each partition's rows at each of its revisions."""
    return {
        (partition, at): [
            (row.key, row.value)
            for row in store.scan(partition, b"", KEY_SPACE_END, limit=99, at=at).rows
        ]
        for partition in (P, OTHER)
        for at in range(COMMITS + 1)
        if at <= store.head(partition).revision
    }


def outcome(folder, *, sealed):
    """What a damaged directory says: that it is damaged, or all that it holds."""
    try:
        if not verify(folder).clean:
            return "found"
        store = opened(folder, sealed=sealed)
    except StoreError:
        return "refused"
    try:
        return everything(store)
    except StoreError:
        return "refused"
    finally:
        store.close()


@pytest.mark.parametrize("sealed", [False, True])
def test_a_changed_byte_changes_no_value(sealed, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    store = opened(whole, sealed=sealed)
    before_last = {}
    for number in range(COMMITS):
        puts = {b"a": b"value %d" % number, b"b%d" % number: b"x" * 700 * number}
        for partition in (P, OTHER):
            before_last = everything(store)
            store.commit(partition, Batch(puts=puts, owners=dict.fromkeys(puts, OWNER)))
    told = everything(store)
    store.close()
    assert outcome(whole, sealed=sealed) == told
    names = ["data.mdb", *(["keys/keyring", "keys/master.key"] if sealed else [])]
    seen = set()

    @given(st.data())
    def law(data):
        name = data.draw(st.sampled_from(names))
        size = (whole / name).stat().st_size
        # The engine's two first pages say which state is the newest.
        last = data.draw(st.sampled_from([size - 1, min(size - 1, FIRST_PAGES)]))
        at, bit = data.draw(st.integers(0, last)), data.draw(st.integers(0, 7))
        cut = data.draw(st.integers(0, 7)) == 0
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(whole, copy)
        content = bytearray((copy / name).read_bytes())
        if cut:
            del content[at:]
        else:
            content[at] ^= 1 << bit
        (copy / name).write_bytes(content)
        said = outcome(copy, sealed=sealed)
        rolled_back = name == "data.mdb" and at <= FIRST_PAGES and said == before_last
        assert isinstance(said, str) or said == told or rolled_back, (name, at, bit, cut)
        seen.add(said if isinstance(said, str) else "unharmed")

    law()
    assert seen & {"found", "refused"}
