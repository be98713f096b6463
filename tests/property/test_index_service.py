"""Whatever happens to a partition, its index proposes everything that an exact scan would find.

Additions, new vectors, removals, rebuilds, orderly and sudden restarts, damaged snapshots and
erasures come in any order. The index is asked for so many neighbours that it may leave nothing
out; and what was erased is neither in its memory nor in its file.
"""

import pickle
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pillion_ranker as ranker
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pillion.service import indexing
from pillion.service.accesses import Accesses
from pillion.service.index_snapshots import IndexSnapshots
from pillion.service.partitions import KeySpaces
from pillion.service.resident import Resident
from pillion_storage.api import Batch
from pillion_testing.service import ACME, add, patch, ram_service

DIMENSION = 8
FROM = 20
EVERYTHING = 100_000
NEAREST = ranker.Profile(w_relevance=1.0, w_recency=0.0, w_importance=0.0, relevance_floor=-1.0)
ALL = ranker.Filter(statuses=0, exclude_flags=0)
SMALL = {"SNAPSHOT_CHANGES_MIN": 4, "WIPE_REST": 0.0}


class IndexOfAPartition(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def start(self, seed):
        self.draw = np.random.default_rng(seed)
        self.usual = {name: getattr(indexing, name) for name in SMALL}
        for name, value in SMALL.items():
            setattr(indexing, name, value)
        self.directory = Path(tempfile.mkdtemp())
        self.service = ram_service()
        self.ids = []
        self.add(FROM)
        self.snapshots = IndexSnapshots(self.service.store, self.directory / "index")
        self.resident = self.opened()

    def teardown(self):
        if hasattr(self, "resident"):
            self.resident.close()
            self.service.close()
            shutil.rmtree(self.directory)
            for name, value in self.usual.items():
                setattr(indexing, name, value)

    def opened(self):
        keys = KeySpaces(self.service.store).of(ACME)
        return Resident(
            self.service.store,
            ACME,
            keys,
            index_from=FROM,
            snapshots=self.snapshots,
            accesses=Accesses(),
        )

    def vector(self):
        return self.draw.normal(size=DIMENSION).astype("<f4").tobytes()

    def some(self, count):
        return [self.ids[i] for i in self.draw.permutation(len(self.ids))[:count]]

    def settled(self):
        self.resident.refresh()
        ann = self.resident.view.ann
        with ann._lock:
            assert ann._lock.wait_for(
                lambda: ann._thread is None or (ann.lag == 0 and ann.idle), timeout=60
            )
        return ann

    @property
    def file(self):
        return self.snapshots.of(ACME)._path

    @rule(count=st.integers(1, 12))
    def add(self, count):
        items = [add("said", vector=self.vector()) for _ in range(count)]
        self.ids += [one.id for one in self.service.write(*items).results]

    @rule(count=st.integers(1, 6))
    def move(self, count):
        moved = [patch(one, vector=self.vector()) for one in self.some(count)]
        if moved:
            self.service.write(*moved)

    @rule(count=st.integers(1, 12))
    def remove(self, count):
        gone = self.some(count)
        keys = [family + one.bytes for one in gone for family in (b"m", b"v")]
        self.service.store.commit(ACME, Batch(deletes=keys))
        self.ids = [one for one in self.ids if one not in gone]

    @rule()
    def settle(self):
        ann = self.settled()
        if ann._thread is not None:
            assert ann.vectors == len(self.ids)
            assert ann.covered == self.service.store.head(ACME).revision
            assert ann._index.unwiped == 0
            slots, held = ann._index._graph.vectors(ann._index.slots().tolist())
            if len(slots):
                np.testing.assert_allclose(
                    held, self.resident.view.table.vectors_of(slots), atol=1e-6
                )

    @rule()
    def rebuild(self):
        index = self.resident.view.ann._index
        if index is not None:
            index.scrub()

    @rule(orderly=st.booleans())
    def restart(self, orderly):
        if orderly:
            self.resident.close()
        else:
            self.resident.view.ann.stop()
        self.resident = self.opened()

    @rule(count=st.integers(1, 3))
    def die_with_changes(self, count):
        """The snapshot is older than the last changes, which are too few for another one."""
        self.settled()
        self.move(count)
        self.remove(1)
        self.restart(orderly=False)
        self.settle()

    @rule(place=st.floats(0, 1, exclude_max=True))
    def damage(self, place):
        if self.file.exists():
            data = bytearray(self.file.read_bytes())
            data[int(place * len(data))] ^= 1
            self.file.write_bytes(data)

    @rule()
    def erase(self):
        gone = self.some(3)
        if not gone:
            return
        ann = self.settled()
        table = self.resident.view.table
        stored = []
        for one in gone:
            slot = table.slots(np.frombuffer(one.bytes, np.uint8).reshape(1, 16))
            stored.append(table.vectors_of(slot)[0])
        keys = [family + one.bytes for one in gone for family in (b"m", b"v")]
        self.service.store.commit(ACME, Batch(deletes=keys))
        self.ids = [one for one in self.ids if one not in gone]
        revision = self.service.store.head(ACME).revision
        self.resident.refresh()
        self.snapshots.forget(ACME, revision)
        assert ann.wait_erased(revision, timeout_seconds=60)
        places = [self.file.read_bytes()] if self.file.exists() else []
        if ann._index is not None:
            places.append(pickle.dumps(ann._index._graph._index))
        for vector in stored:
            # The index scales vectors itself; the first components tell them apart well enough.
            near = [np.nextafter(vector[:2], side) for side in (-9, 9)] + [vector[:2]]
            for place in places:
                assert not any(one.astype("<f4").tobytes() in place for one in near)

    @invariant()
    def nothing_is_left_out(self):
        if not hasattr(self, "resident"):
            return
        self.resident.refresh()
        view = self.resident.view
        query = self.draw.normal(size=DIMENSION).astype(np.float32)
        proposed = view.ann.candidates(query, EVERYTHING, EVERYTHING)
        if proposed is None or not self.ids:
            return
        exact = view.table.search(query=query, now=0, profile=NEAREST, filter=ALL, k=20)
        assert len(exact) == min(20, len(self.ids))
        assert set(exact.slots.tolist()) <= set(proposed.slots.tolist())


TestIndexOfAPartition = IndexOfAPartition.TestCase
TestIndexOfAPartition.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
