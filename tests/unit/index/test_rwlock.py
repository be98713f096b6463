"""The lock's promises: exclusion, company among readers, first come first served."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
from pillion_storage.index.rwlock import ReadWriteLock

PATIENCE_S = 10.0


def until(condition) -> None:
    """Wait for another thread to get somewhere; fails rather than hangs."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.001)


@contextmanager
def worker(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    yield thread
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_readers_share() -> None:
    lock = ReadWriteLock()
    both_inside = threading.Barrier(2, timeout=PATIENCE_S)

    def read() -> None:
        with lock.reading():
            both_inside.wait()

    with worker(read), lock.reading():
        both_inside.wait()  # breaks if the second reader had to wait for the first


def test_a_writer_excludes_everybody_else() -> None:
    """Two threads write a pair of numbers; readers and writers always see them equal."""
    lock = ReadWriteLock()
    pair = [0, 0]
    torn: list[tuple[int, int]] = []

    def write() -> None:
        for _ in range(500):
            with lock.writing():
                first = pair[0]
                time.sleep(0)  # invite the others in
                pair[0] = first + 1
                time.sleep(0)
                pair[1] += 1

    def read() -> None:
        for _ in range(500):
            with lock.reading():
                seen = pair[0], pair[1]
            if seen[0] != seen[1]:
                torn.append(seen)

    with worker(write), worker(write), worker(read), worker(read):
        pass
    assert pair == [1000, 1000]
    assert torn == []


def test_first_come_first_served() -> None:
    """A reader that comes after a waiting writer waits for it; readers behind it come together."""
    lock = ReadWriteLock()
    order: list[str] = []
    together = threading.Barrier(2, timeout=PATIENCE_S)

    def write() -> None:
        with lock.writing():
            order.append("writer")

    def read() -> None:
        with lock.reading():
            together.wait()
            order.append("reader")

    with lock.reading():
        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        until(lambda: lock.waiting == 1)
        readers = [threading.Thread(target=read, daemon=True) for _ in range(2)]
        for reader in readers:
            reader.start()
        until(lambda: lock.waiting == 3)
        assert order == []
    for thread in (writer, *readers):
        thread.join(PATIENCE_S)
    assert order == ["writer", "reader", "reader"]


def test_a_writer_is_not_starved_by_a_stream_of_readers() -> None:
    lock = ReadWriteLock()
    written = threading.Event()

    def read_on() -> None:
        while not written.is_set():
            with lock.reading():
                time.sleep(0.0005)

    def write() -> None:
        with lock.writing():
            written.set()

    with worker(read_on), worker(read_on), worker(read_on), worker(write):
        assert written.wait(PATIENCE_S)


@pytest.mark.parametrize("side", ["reading", "writing"])
def test_an_error_inside_lets_go(side: str) -> None:
    lock = ReadWriteLock()
    with pytest.raises(KeyError), getattr(lock, side)():
        raise KeyError
    with lock.writing():
        assert lock.waiting == 0


def test_an_interrupted_wait_leaves_no_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = ReadWriteLock()

    def interrupted(_predicate) -> None:
        raise KeyboardInterrupt

    with lock.writing():
        monkeypatch.setattr(lock._condition, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), lock.reading():
            pytest.fail("must not enter")
    monkeypatch.undo()
    with lock.writing():
        assert lock.waiting == 0
