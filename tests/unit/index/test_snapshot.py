"""Snapshots: what was written comes back; anything else is refused, and never crashes hnswlib."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion_storage.api import Partition, StoreSettings
from pillion_storage.index import HnswIndex, snapshot
from pillion_storage.index.graph_state import GraphState, SnapshotUnusable, layout_of
from pillion_storage.index.hnsw import EF_CONSTRUCTION, M
from pillion_storage.index.snapshot import Manifest, Snapshot
from pillion_storage.lmdb import open_store
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed

DIMENSION = 12
COUNT = 500
P = Partition("production", "acme")
OWNER = b"index"
LAYOUT = layout_of(DIMENSION, M, EF_CONSTRUCTION)


def unit_rows(count=COUNT, seed=1):
    rows = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def an_index():
    """500 vectors, some deleted and wiped, some deleted and not."""
    index, rows = HnswIndex(DIMENSION), unit_rows()
    index.add(np.arange(COUNT), rows)
    index.remove(range(40))
    index.wipe(20)
    return index, rows


def snapshot_of(index, **changed):
    state, slots, live = index.capture()
    ids = np.zeros((state.count, 16), np.uint8)
    ids[live, :4] = slots[live].astype("<u4").view(np.uint8).reshape(-1, 4)
    ids[live, 15] = 1
    manifest = Manifest(
        namespace=P.namespace,
        tenant=P.tenant,
        space=["test", "1", "f"],
        dimension=state.dimension,
        live=int(live.sum()),
        count=state.count,
        revision=7,
        recorded_at=123,
        hnswlib="0.8.0",
        max_level=state.max_level,
        entry=state.entry,
        layout=state.layout,
        upper_bytes=state.upper.nbytes,
        recall=[[10, 64, 0.98]],
    )
    return Snapshot(replace(manifest, **changed), ids, state)


def restored(read):
    live = read.ids.any(axis=1)
    slots = np.ascontiguousarray(read.ids[:, :4]).view("<u4")[:, 0]
    return HnswIndex.restored(read.state, slots, live)


def read_plain(path):
    return snapshot.read(path, LAYOUT, None, lambda _: None)


@pytest.fixture
def sealed(tmp_path):
    """A sealed store: it lends seals."""
    keys = tmp_path / "keys"
    store = open_sealed(
        open_store,
        StoreSettings(directory=tmp_path / "store", size_bytes_initial=1 << 20),
        SealSettings(keys, FileMasterKey(tmp_path / "master.key")),
    )
    yield store
    store.close()


def write_sealed(store, path, what):
    with store.sealing(P, OWNER) as seal:
        assert snapshot.write(path, what, seal)


def read_sealed(store, path, partition=P):
    return snapshot.read(
        path, LAYOUT, lambda data, place: store.open_part(partition, data, place), lambda _: None
    )


def test_what_was_written_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "PART_BYTES", 4096)  # many parts
    index, rows = an_index()
    path = tmp_path / "a.hnsw"
    made = snapshot_of(index)
    assert snapshot.write(path, made, None)
    assert path.stat().st_mode & 0o777 == 0o600
    read = read_plain(path)
    assert read.manifest == made.manifest
    again = restored(read)
    assert (again.live, again.deleted, again.unwiped) == (COUNT - 40, 40, 0)
    for row in rows[::7]:
        before, after = index.search(row, n=10, ef=50), again.search(row, n=10, ef=50)
        assert before.slots.tolist() == after.slots.tolist()
    # It goes on as an index: deleted places are used again, then it grows.
    again.add(np.arange(1000, 1000 + 2 * COUNT), unit_rows(2 * COUNT, seed=2))
    assert (again.live, again.deleted) == (3 * COUNT - 40, 0)
    assert again.search(unit_rows(9, seed=2)[8], n=1, ef=64).slots[0] == 1008


def test_no_file_is_no_snapshot(tmp_path):
    assert read_plain(tmp_path / "none.hnsw") is None


def test_removed_vectors_are_in_no_file(tmp_path):
    """Whether they were wiped in memory or not."""
    index, _ = an_index()
    stored = {i: index._graph.vectors([i])[1].tobytes() for i in (100, 101)}
    index.remove([100])
    assert index.unwiped
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(index), None)
    data = path.read_bytes()
    assert stored[101] in data
    assert stored[100] not in data


def test_nothing_of_a_sealed_file_is_plain(sealed, tmp_path):
    index, _ = an_index()
    path = tmp_path / "a.hnsw"
    write_sealed(sealed, path, snapshot_of(index))
    data = path.read_bytes()
    some = index._graph.vectors(list(range(100, 110)))[1]
    assert not any(row.tobytes()[:16] in data for row in some)
    assert b"acme" not in data
    assert restored(read_sealed(sealed, path)).live == index.live
    with pytest.raises(SnapshotUnusable, match="encrypted"):
        read_plain(path)
    with pytest.raises(SnapshotUnusable, match="another place"):
        read_sealed(sealed, path, Partition("production", "other"))


def test_a_plain_file_is_refused_where_it_must_be_sealed(sealed, tmp_path):
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    with pytest.raises(SnapshotUnusable, match="plain"):
        read_sealed(sealed, path)
    # And a part that only claims to be sealed.
    data = bytearray(path.read_bytes())
    data[10] = 1
    path.write_bytes(data)
    with pytest.raises(SnapshotUnusable, match="not sealed"):
        read_sealed(sealed, path)


def test_a_destroyed_key_ends_every_copy(sealed, tmp_path):
    path = tmp_path / "a.hnsw"
    what = snapshot_of(an_index()[0])
    write_sealed(sealed, path, what)
    assert sealed.destroy_keys(sealed.retire_owner(P, OWNER)) == 1
    with pytest.raises(SnapshotUnusable, match="destroyed"):
        read_sealed(sealed, path)
    write_sealed(sealed, path, what)  # under a new key
    assert read_sealed(sealed, path).manifest.revision == 7


def test_stopped_writing_leaves_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "PART_BYTES", 4096)
    index, _ = an_index()
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(index), None)
    asked = iter([True, True, False])
    assert not snapshot.write(path, snapshot_of(index, revision=8), None, lambda: next(asked))
    assert read_plain(path).manifest.revision == 7
    assert [one.name for one in tmp_path.iterdir()] == ["a.hnsw"]


def test_failed_writing_leaves_the_old_one(tmp_path, monkeypatch):
    index, _ = an_index()
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(index), None)

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        snapshot.write(path, snapshot_of(index, revision=8), None)
    assert read_plain(path).manifest.revision == 7
    assert [one.name for one in tmp_path.iterdir()] == ["a.hnsw"]


def test_a_snapshot_is_forgotten_with_its_draft(tmp_path):
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    (tmp_path / "a.hnsw.new").write_bytes(b"left by a kill")
    linked = tmp_path / "the same file"
    linked.hardlink_to(path)
    snapshot.forget(path)
    snapshot.forget(path)
    assert [one.name for one in tmp_path.iterdir()] == ["the same file"]
    assert not any(linked.read_bytes())


def test_another_dimension_or_setting_is_refused(tmp_path):
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    for layout in (layout_of(DIMENSION + 1, M, EF_CONSTRUCTION), layout_of(DIMENSION, 8, 100)):
        with pytest.raises(SnapshotUnusable, match="another build or setting"):
            snapshot.read(path, layout, None, lambda _: None)


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    data = bytearray(path.read_bytes())
    for found in (0, 2):
        data[8:10] = found.to_bytes(2, "big")
        path.write_bytes(data)
        with pytest.raises(SnapshotUnusable, match=f"format {found}"):
            read_plain(path)


def test_a_link_or_a_folder_is_refused(tmp_path):
    path = tmp_path / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "folder").mkdir()
    for name in ("link", "folder"):
        with pytest.raises(SnapshotUnusable):
            read_plain(tmp_path / name)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "a.hnsw"
    snapshot.write(path, snapshot_of(an_index()[0]), None)
    return path, path.read_bytes()


@settings(max_examples=150)
@given(st.data())
def test_any_damage_is_noticed(kept, data):
    """Flipped, cut, lengthened, or with a stretch from elsewhere in the file."""
    path, whole = kept
    damaged = bytearray(whole)
    how = data.draw(st.sampled_from(["flip", "cut", "lengthen", "move"]))
    place = data.draw(st.one_of(st.integers(0, 300), st.integers(0, len(whole) - 1)))
    if how == "flip":
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "cut":
        del damaged[place:]
    elif how == "lengthen":
        damaged += bytes(1 + place % 50)
    else:
        other = data.draw(st.integers(0, len(whole) - 100))
        damaged[place : place + 100] = whole[other : other + 100]
    if bytes(damaged) == whole:
        return
    path.write_bytes(damaged)
    with pytest.raises(SnapshotUnusable):
        read_plain(path)


@pytest.fixture(scope="module")
def sound():
    index = an_index()[0]
    return index.capture()


@settings(max_examples=200)
@given(st.data())
def test_no_state_makes_hnswlib_read_elsewhere(sound, data):
    """Whatever numbers stand in a state: it is refused, or every search of it ends well."""
    state, slots, live = sound
    changed = GraphState(
        count=state.count,
        max_level=state.max_level + data.draw(st.sampled_from([0, 0, 0, 1, -1])),
        entry=data.draw(st.sampled_from([state.entry, state.entry, 0, state.count, -1])),
        layout=state.layout,
        level0=state.level0.copy(),
        levels=state.levels.copy(),
        upper=state.upper.copy(),
    )
    number = st.sampled_from([0, 1, 17, 255])
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.integers(0, state.count - 1))
        changed.level0[row, data.draw(st.integers(0, 4 * (2 * M + 1)))] = data.draw(number)
    for _ in range(data.draw(st.integers(0, 2))):
        changed.upper[data.draw(st.integers(0, len(state.upper) - 1))] = data.draw(number)
    if data.draw(st.booleans()):
        changed.levels[data.draw(st.integers(0, state.count - 1))] = data.draw(
            st.sampled_from([0, 1, 2, -1, 2**31 - 1])
        )
    try:
        index = HnswIndex.restored(changed, slots, live)
    except SnapshotUnusable:
        return
    for row in unit_rows(20, seed=3):
        found = index.search(row, n=10, ef=100)
        assert set(found.slots.tolist()) <= set(slots[live].tolist())
    index.add([9000], unit_rows(1, seed=4))


def test_a_sound_state_is_accepted(sound):
    state, slots, live = sound
    assert HnswIndex.restored(state, slots, live).live == live.sum()
