"""An index over restarts, rebuilds and erasures: what is kept, not believed, and gone."""

from __future__ import annotations

import logging
import pickle
import shutil
import threading
from dataclasses import replace

import numpy as np
import pytest
from pillion.domain.queries import SearchPath
from pillion.service import ServiceSettings, index_recall, index_snapshots, indexing
from pillion_storage.api import Batch, StoreFailed
from pillion_storage.index import snapshot as files
from pillion_storage.index.graph_state import layout_of
from pillion_storage.index.hnsw import EF_CONSTRUCTION, HnswIndex, M
from pillion_testing.fakes import CountingIds, FakeClock
from pillion_testing.service import ACME, DEAR_SCAN, add, lmdb_service, patch

DIMENSION = 8
FROM = 200


def vectors(count, seed=1):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(12, DIMENSION))
    rows = centres[rng.integers(0, 12, count)] + 0.2 * rng.normal(size=(count, DIMENSION))
    return rows.astype("<f4")


@pytest.fixture
def opened(tmp_path):
    """Opens services over one directory, one after the other; the last is closed at the end."""
    alive = []
    ids, clock = CountingIds(), FakeClock()

    def open_service(directory="data", *, sealed=True, index=True):
        for one in alive:
            one.close()
        where = tmp_path / directory
        made = lmdb_service(
            where,
            sealed=sealed,
            ids=ids,
            clock=clock,
            settings=ServiceSettings(
                index_from=FROM, costs=DEAR_SCAN, index_directory=where / "index" if index else None
            ),
        )
        alive[:] = [made]
        return made

    yield open_service
    for one in alive:
        one.close()


def fill(service, rows, *, start=0):
    """Add memories; return their ids."""
    ids = []
    for first in range(0, len(rows), 100):
        part = rows[first : first + 100]
        items = [
            add(f"memory {start + first + i}", vector=row.tobytes()) for i, row in enumerate(part)
        ]
        ids += [one.id for one in service.write(*items).results]
    return ids


def resident_of(service):
    return service.use_cases.searcher._residents.get(service.partition)


def ann_of(service):
    return resident_of(service).view.ann


def settled(service):
    """The index, once it has taken up every change and has nothing else to do either."""
    service.search(vector=vectors(1)[0].tobytes(), top_k=1)
    ann = ann_of(service)
    with ann._lock:
        assert ann._lock.wait_for(lambda: ann.lag == 0 and ann.idle, timeout=60)
    return ann


def nearest(service, query, count=5):
    return [hit.memory.text for hit in service.search(vector=query.tobytes(), top_k=count).hits]


def snapshot_path(service):
    return service.use_cases.searcher._residents._snapshots.of(ACME)._path


@pytest.fixture
def added(monkeypatch):
    """How many vectors were put into any index since the list was cleared."""
    counts: list[int] = []
    real = HnswIndex.add

    def counted(self, slots, rows):
        counts.append(len(slots))
        real(self, slots, rows)

    monkeypatch.setattr(HnswIndex, "add", counted)
    return counts


@pytest.mark.parametrize("sealed", [True, False])
def test_after_a_restart_only_what_changed_is_taken_up(opened, added, sealed):
    rows = vectors(400)
    service = opened(sealed=sealed)
    ids = fill(service, rows)
    ann = settled(service)
    assert ann.saved_revision > 0  # written once it was built, without being asked
    path = snapshot_path(service)
    assert path.exists()
    mode = path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777
    assert mode == (0o600, 0o700)
    # Fewer changes than are worth a snapshot; and they free slots, so the table is laid out anew.
    service.write(*(patch(one, vector=(-rows[0]).tobytes()) for one in ids[300:302]))
    with pytest.MonkeyPatch.context() as never:
        never.setattr(indexing, "CLOSING_SHARE", 2.0)
        settled(service)
        service = opened(sealed=sealed)
    fill(service, vectors(3, seed=5), start=400)
    added.clear()
    ann = settled(service)
    assert sum(added) == 5
    assert (ann.vectors, ann.lag, ann.revisions_behind) == (403, 0, 0)
    assert set(nearest(service, -rows[0], 2)) == {"memory 300", "memory 301"}
    for place in (0, 7, 299, 399):
        answer = service.search(vector=rows[place].tobytes(), top_k=1)
        assert answer.path is SearchPath.INDEX
        assert answer.hits[0].memory.text == f"memory {place}"


def test_a_feed_that_cannot_be_read_at_the_start_costs_a_build_and_nothing_else(
    opened, monkeypatch, caplog
):
    """The index's thread must outlive it: who else would ever build the index?"""
    rows = vectors(400)
    service = opened()
    fill(service, rows)
    settled(service)
    service = opened()
    fill(service, vectors(1, seed=5), start=400)

    def failing(self, revision, ids_max):
        with monkeypatch.context() as patched:
            patched.setattr(self, "_store", Feedless())
            return changed_since(self, revision, ids_max)

    class Feedless:
        def changes(self, *_, **__):
            raise StoreFailed("the disk is ill")

    changed_since = index_snapshots.PartitionSnapshots.changed_since
    monkeypatch.setattr(index_snapshots.PartitionSnapshots, "changed_since", failing)
    with caplog.at_level(logging.WARNING):
        ann = settled(service)
    assert "what changed since can't be read" in caplog.text
    assert (ann.vectors, ann.lag) == (401, 0)
    answer = service.search(vector=rows[7].tobytes(), top_k=1)
    assert (answer.path, answer.hits[0].memory.text) == (SearchPath.INDEX, "memory 7")


def test_closing_keeps_what_is_worth_it(opened, added):
    service = opened()
    fill(service, vectors(400))
    first = settled(service).saved_revision
    fill(service, vectors(4, seed=3))  # one percent
    settled(service)
    service = opened()
    added.clear()
    ann = settled(service)
    assert ann.saved_revision > first
    assert sum(added) == 0


def test_no_time_to_close_leaves_the_snapshot_before(opened, added):
    service = opened()
    fill(service, vectors(400))
    settled(service)
    fill(service, vectors(40, seed=3))
    ann = settled(service)
    before = snapshot_path(service).read_bytes()
    ann._clock = iter(range(100)).__next__  # a second goes by with each look
    ann.stop(save_within_seconds=1.0)
    assert snapshot_path(service).read_bytes() == before
    service = opened()
    added.clear()
    settled(service)
    assert sum(added) == 40


def test_a_save_that_a_stop_interrupts_is_made_in_the_time_that_is_left(opened, monkeypatch):
    service = opened()
    fill(service, vectors(300))
    ann = settled(service)
    fill(service, vectors(30, seed=2), start=300)
    before = settled(service).saved_revision
    write = files.write

    def stopped_meanwhile(path, made, seal, go_on):
        monkeypatch.setattr(files, "write", write)
        ann._stopping = True
        assert not go_on()
        return False

    monkeypatch.setattr(files, "write", stopped_meanwhile)
    ann._save(ann._index, lambda: not ann._stopping)
    assert ann.saved_revision == before
    ann.stop(save_within_seconds=60)
    assert ann.saved_revision == ann.covered > before


def test_an_index_that_was_replaced_does_not_write_over_its_successors_snapshot(opened):
    """A partition left memory, came back and was written to, before the first was written down."""
    service = opened()
    fill(service, vectors(300))
    old = settled(service)
    residents = service.use_cases.searcher._residents
    residents._loaded.clear()
    fill(service, vectors(300, seed=2), start=300)
    new = settled(service)
    assert new is not old
    new._save(new._index, lambda: True)
    old._unsaved = 10_000
    old._save(old._index, lambda: True)
    old.stop(save_within_seconds=60)
    assert new.saved_revision == new.covered > old.covered
    read = residents._snapshots.of(ACME).load(residents.get(ACME).view.space)
    assert read.manifest.live == 600


def test_without_a_directory_nothing_is_kept(opened, tmp_path):
    service = opened(index=False)
    fill(service, vectors(300))
    settled(service)
    service = opened(index=False)
    assert nearest(service, vectors(300)[5], 1) == ["memory 5"]
    assert not (tmp_path / "data" / "index").exists()


# --- what is not believed ------------------------------------------------------------------


def damaged(path, service):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_short(path, service):
    path.write_bytes(path.read_bytes()[:-1])


def of_a_newer_format(path, service):
    data = bytearray(path.read_bytes())
    data[9] += 1
    path.write_bytes(data)


def with_a_destroyed_key(path, service):
    store = service.store
    assert store.destroy_keys(store.retire_owner(ACME, index_snapshots.OWNER)) == 1


def past_the_feed(path, service):
    head = service.store.head(ACME).revision
    service.store.trim(ACME, history_before=head, feed_before=head + 1, tokens_before_us=0)
    service.one(add("later", vector=vectors(1)[0].tobytes()))


REFUSED = {
    damaged: "changed",
    cut_short: "cut short",
    of_a_newer_format: "format 2",
    with_a_destroyed_key: "destroyed",
    past_the_feed: "not kept",
}


@pytest.mark.parametrize("harm", REFUSED, ids=lambda one: one.__name__)
def test_what_is_wrong_with_a_snapshot_is_said_and_the_index_built_anew(
    opened, added, caplog, harm
):
    rows = vectors(300)
    service = opened()
    fill(service, rows)
    settled(service)
    with pytest.MonkeyPatch.context() as never:
        never.setattr(indexing, "CLOSING_SHARE", 2.0)
        path = snapshot_path(service)
        harm(path, service)
        added.clear()
        service = opened()
    with caplog.at_level(logging.WARNING, index_snapshots.__name__):
        ann = settled(service)
    (said,) = [one.getMessage() for one in caplog.records]
    assert "built anew" in said
    assert REFUSED[harm] in said
    assert sum(added) == ann.vectors >= 300
    assert nearest(service, rows[9], 1) == ["memory 9"]
    # And it is replaced by one that fits.
    added.clear()
    assert settled(opened()).vectors == ann.vectors
    assert sum(added) == 0


def refusals(service, caplog):
    with caplog.at_level(logging.WARNING, index_snapshots.__name__):
        settled(service)
    return " ".join(one.getMessage() for one in caplog.records)


@pytest.mark.parametrize("sealed", [True, False])
def test_a_snapshot_of_another_history_is_not_used(opened, tmp_path, caplog, sealed):
    """A backup is restored, and other things happen from there on, up to the same revision."""
    rows = vectors(300)
    service = opened(sealed=sealed)
    fill(service, rows[:299])
    settled(service)
    service.close()
    shutil.copytree(tmp_path / "data", tmp_path / "restored")
    service = opened(sealed=sealed)
    with pytest.MonkeyPatch.context() as always:
        always.setattr(indexing, "CLOSING_SHARE", 0.0)
        fill(service, rows[299:])
        newer = snapshot_path(service)
        settled(service)
        service = opened("restored", sealed=sealed)
    service.clock.advance(1_000_000)
    fill(service, -rows[299:])
    shutil.copy(newer, snapshot_path(service))
    assert "not one of this store" in refusals(service, caplog)
    assert nearest(service, -rows[299], 1) == ["memory 0"]


def test_a_snapshot_that_is_newer_than_the_store_is_not_used(opened, tmp_path, caplog):
    service = opened()
    fill(service, vectors(250))
    settled(service)
    service.close()
    shutil.copytree(tmp_path / "data", tmp_path / "restored")
    with pytest.MonkeyPatch.context() as always:
        always.setattr(indexing, "CLOSING_SHARE", 0.0)
        service = opened()
        fill(service, vectors(9, seed=2))
        settled(service)
        newer = snapshot_path(service)
        service = opened("restored")
    shutil.copy(newer, snapshot_path(service))
    assert "not one of this store" in refusals(service, caplog)


def rewritten(path, change):
    """Write a plain snapshot again, with something else in it."""
    kept = files.read(path, layout_of(DIMENSION, M, EF_CONSTRUCTION), None, lambda _: None)
    files.write(path, change(kept), None)


def test_a_snapshot_with_other_content_than_its_revision_is_not_used(opened, caplog):
    """Plain, and sound by its digests: then the partition itself tells."""
    service = opened(sealed=False)
    fill(service, vectors(300))
    settled(service)
    path = snapshot_path(service)
    whole = path.read_bytes()

    def fewer(kept):
        ids = kept.ids.copy()
        gone = np.zeros(len(ids), np.bool_)
        gone[5] = True
        ids[gone] = 0
        kept.state.discard(gone)
        manifest = replace(kept.manifest, live=kept.manifest.live - 1)
        return files.Snapshot(manifest, ids, kept.state)

    def stranger(kept):
        ids = kept.ids.copy()
        ids[5] = 7
        return files.Snapshot(kept.manifest, ids, kept.state)

    def swapped(kept):
        ids = kept.ids[::-1].copy()
        return files.Snapshot(kept.manifest, ids, kept.state)

    def miscounted(kept):
        return files.Snapshot(replace(kept.manifest, live=299), kept.ids, kept.state)

    for change, told in (
        (fewer, "lacks memories"),
        (stranger, "has memories"),
        (swapped, "other vectors"),
        (miscounted, "as many vectors"),
    ):
        caplog.clear()
        path.write_bytes(whole)
        rewritten(path, change)
        with pytest.MonkeyPatch.context() as never:
            never.setattr(indexing, "CLOSING_SHARE", 2.0)
            service = opened(sealed=False)
        assert told in refusals(service, caplog)


# --- erasure -------------------------------------------------------------------------------


def in_memory(ann) -> bytes:
    """Everything that hnswlib would save of the index."""
    return pickle.dumps(ann._index._graph._index)


def stored_bytes(service, memory_id):
    """The bytes of a memory's vector as the index has them."""
    view = resident_of(service).view
    ids = np.frombuffer(memory_id.bytes, np.uint8).reshape(1, 16)
    return view.ann._index._graph.vectors(view.table.slots(ids).tolist())[1].tobytes()


def erase(service, memory_id):
    """What an erasure does to a memory's own records: they are deleted, in one commit."""
    service.store.commit(ACME, Batch(deletes=[b"m" + memory_id.bytes, b"v" + memory_id.bytes]))
    return service.store.head(ACME).revision


def test_an_erased_vector_is_nowhere(opened):
    """Neither in the index's memory, nor in a snapshot of before or after, whoever kept a copy."""
    rows = vectors(300)
    service = opened()
    ids = fill(service, rows)
    ann = settled(service)
    patched = stored_bytes(service, ids[8])
    service.one(patch(ids[8], vector=rows[20].tobytes()))  # a vector that was replaced counts too
    settled(service)
    gone, kept = stored_bytes(service, ids[7]), stored_bytes(service, ids[9])
    assert gone in in_memory(ann)
    assert kept in in_memory(ann)
    path = snapshot_path(service)
    copy = path.read_bytes()

    revision = erase(service, ids[7])
    resident_of(service).refresh()
    snapshots = service.use_cases.searcher._residents._snapshots
    keys = snapshots.forget(ACME, revision)
    assert not path.exists()
    assert service.store.destroy_keys(keys) == 1
    assert ann.wait_erased(revision, timeout_seconds=60)
    memory = in_memory(ann)
    assert gone not in memory
    assert patched not in memory
    assert kept in memory

    # It is written anew at once. And the copy of before, put in its place, opens no more.
    settled(service)
    assert path.exists()
    path.write_bytes(copy)
    assert snapshots.of(ACME).load(resident_of(service).view.space) is None
    # The next one is without it.
    ann._unsaved = 10_000
    fill(service, vectors(1, seed=8))
    settled(service)
    read = snapshots.of(ACME).load(resident_of(service).view.space)
    assert read.manifest.revision >= revision
    assert gone not in read.state.level0.tobytes()
    assert kept in read.state.level0.tobytes()
    assert snapshots.forget(ACME, revision) != keys  # may be called again


def test_no_snapshot_of_before_an_erasure_is_written_after_it(opened):
    """The graph was about to be captured as it was before the commit that erases."""
    service = opened()
    ids = fill(service, vectors(300))
    ann = settled(service)
    index, snapshots = ann._index, service.use_cases.searcher._residents._snapshots
    revision = erase(service, ids[7])  # the partition has not noted it
    snapshots.forget(ACME, revision)
    ann._save(index, lambda: True)
    assert not snapshot_path(service).exists()
    assert not ann.wait_erased(revision, timeout_seconds=0)
    service.search(vector=vectors(1)[0].tobytes())
    assert ann.wait_erased(revision, timeout_seconds=60)
    ann._unsaved = 10_000
    fill(service, vectors(1, seed=8))
    settled(service)
    assert snapshot_path(service).exists()


# --- rebuilds ------------------------------------------------------------------------------


def test_reads_go_on_during_a_rebuild_and_it_loses_nothing(opened, monkeypatch):
    rows = vectors(400)
    service = opened()
    ids = fill(service, rows)
    ann = settled(service)
    building, go_on = threading.Event(), threading.Event()
    scrub = HnswIndex.scrub

    def held(self, proceed):
        building.set()
        assert go_on.wait(60)
        return scrub(self, proceed)

    monkeypatch.setattr(HnswIndex, "scrub", held)
    graph = ann._index._graph
    try:
        for one in ids[:200]:
            erase(service, one)
        service.search(vector=rows[0].tobytes())
        assert building.wait(60)
        # Reads use the old graph; changes are taken up beside the rebuild, not after it.
        fill(service, rows[:1], start=900)
        answer = service.search(vector=rows[0].tobytes(), top_k=1)
        assert answer.path is SearchPath.INDEX
        assert answer.hits[0].memory.text == "memory 900"
        with ann._lock:
            assert ann._lock.wait_for(lambda: ann.lag == 0, timeout=60)
        assert ann._index._graph is graph
        assert ann.revisions_behind == 0
    finally:
        go_on.set()
    ann = settled(service)
    assert ann._index._graph is not graph
    assert (ann.vectors, ann._index.deleted) == (201, 0)
    assert nearest(service, rows[0], 1) == ["memory 900"]
    assert set(nearest(service, rows[1], 200)).isdisjoint({f"memory {i}" for i in range(200)})


# --- effort --------------------------------------------------------------------------------


def test_the_effort_is_measured_and_kept_over_a_restart(opened):
    service = opened()
    fill(service, vectors(600))
    with pytest.MonkeyPatch.context() as always:
        always.setattr(indexing, "CLOSING_SHARE", 0.0)
        ann = settled(service)
        assert ann._recall is not None
        effort = ann.effort_for(0.95, 10)
        assert effort in index_recall.EFFORTS
        assert ann.effort_for(0.95, 500) >= 500
        rows = ann._recall.rows()
        fill(service, vectors(1, seed=4))
        service.search(vector=vectors(1)[0].tobytes())
        service = opened()
    ann = settled(service)
    assert ann._recall.rows() == rows
    assert ann.effort_for(0.95, 10) == effort
