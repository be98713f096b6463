"""kill -9 while an index snapshot is written: what is there afterwards is whole, old or new.

Run as a program, this file keeps one snapshot, and is killed at a named step of writing the next.
"""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pillion_storage.index import HnswIndex, snapshot
from pillion_storage.index.graph_state import layout_of
from pillion_storage.index.hnsw import EF_CONSTRUCTION, M

DIMENSION = 16
COUNT = 400
# Where to be killed: (function of the module, before or after it, its how-manieth call), and
# which revision is found afterwards.
POINTS = {
    "the draft is there": ("_write_part", "before", 1, 1),
    "the header is written": ("_write_part", "after", 1, 1),
    "half of the parts are written": ("_write_part", "after", 12, 1),
    "written, not flushed": ("os.fsync", "before", 1, 1),
    "flushed, not in place": ("os.fsync", "after", 1, 1),
    "in place, the folder not flushed": ("sync_directory", "before", 1, 2),
}


def write(path, revision):
    index = HnswIndex(DIMENSION)
    rows = np.random.default_rng(revision).normal(size=(COUNT, DIMENSION)).astype(np.float32)
    index.add(np.arange(COUNT), rows)
    state, _, _ = index.capture()
    ids = np.full((COUNT, 16), revision, np.uint8)
    manifest = snapshot.Manifest(
        namespace="crash",
        tenant="index",
        space=["test", "1", ""],
        dimension=DIMENSION,
        live=COUNT,
        count=COUNT,
        revision=revision,
        recorded_at=revision,
        hnswlib="0.8.0",
        max_level=state.max_level,
        entry=state.entry,
        layout=state.layout,
        upper_bytes=state.upper.nbytes,
    )
    assert snapshot.write(path, snapshot.Snapshot(manifest, ids, state), None)


def run_to(point, path):
    snapshot.PART_BYTES = 4096  # some thirty parts
    write(path, 1)
    name, when, times, _ = POINTS[point]
    owner = snapshot.os if name.startswith("os.") else snapshot
    name = name.removeprefix("os.")
    real = getattr(owner, name)
    left = [times]

    def killed(*args, **options):
        left[0] -= 1
        if when == "after" or left[0]:
            real(*args, **options)
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)
    write(path, 2)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_each_step(tmp_path, monkeypatch, point):
    path = tmp_path / "a.hnsw"
    killed = subprocess.run([sys.executable, __file__, str(path), point], check=False)
    assert killed.returncode == -signal.SIGKILL
    monkeypatch.setattr(snapshot, "PART_BYTES", 4096)
    layout = layout_of(DIMENSION, M, EF_CONSTRUCTION)
    read = snapshot.read(path, layout, None, lambda _: None)
    wanted = POINTS[point][3]
    assert read.manifest.revision == wanted
    assert (read.ids == wanted).all()
    assert HnswIndex.restored(read.state, np.arange(COUNT), read.ids.any(axis=1)).live == COUNT
    # The next one is written over what was left, and nothing else lies about.
    again = snapshot.Snapshot(replace(read.manifest, revision=3), read.ids, read.state)
    assert snapshot.write(path, again, None)
    assert snapshot.read(path, layout, None, lambda _: None).manifest.revision == 3
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


if __name__ == "__main__":
    run_to(sys.argv[2], Path(sys.argv[1]))
    sys.exit("was not killed")
