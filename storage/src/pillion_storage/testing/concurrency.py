"""Concurrency: no lost update, no torn read, order within a thread."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from pillion_storage.api import Batch, Committed, Conflict
from pillion_storage.testing.base import ConformanceBase

_THREADS = 16
_ROUNDS = 25


class ConcurrencyConformance(ConformanceBase):
    """Many threads at once."""

    def test_concurrent_increments_all_count(self) -> None:
        start = threading.Barrier(_THREADS)

        def increment() -> None:
            start.wait()
            for _ in range(_ROUNDS):
                outcome: Committed | Conflict = Conflict({})
                while isinstance(outcome, Conflict):
                    entry = self.store.read(self.partition, [b"n"]).entries.get(b"n")
                    version, number = (0, 0) if entry is None else (entry.version, int(entry.value))
                    batch = Batch(puts={b"n": b"%d" % (number + 1)}, expect={b"n": version})
                    outcome = self.store.commit(self.partition, batch)

        with ThreadPoolExecutor(_THREADS) as pool:
            for future in [pool.submit(increment) for _ in range(_THREADS)]:
                future.result()
        assert self.value(b"n") == b"%d" % (_THREADS * _ROUNDS)
        assert self.store.head(self.partition).revision == _THREADS * _ROUNDS

    def test_a_read_never_sees_half_a_batch(self) -> None:
        keys = [b"%02d" % number for number in range(20)]
        finished = threading.Event()

        def watch() -> int:
            reads = 0
            while True:
                last = finished.is_set()
                read = self.store.read(self.partition, keys)
                assert len({entry.value for entry in read.entries.values()}) <= 1
                assert {e.version for e in read.entries.values()} <= {read.revision}
                rows = self.store.scan(self.partition, b"", b"\xff", limit=100).rows
                assert len({row.value for row in rows}) <= 1
                reads += 1
                if last:
                    return reads

        with ThreadPoolExecutor(3) as pool:
            watchers = [pool.submit(watch) for _ in range(2)]
            for number in range(100):
                self.done(Batch(puts=dict.fromkeys(keys, b"%d" % number)))
            finished.set()
            assert all(watcher.result() > 0 for watcher in watchers)

    def test_submissions_of_one_thread_apply_in_order(self) -> None:
        futures = [
            self.store.submit(self.partition, Batch(puts={b"last": b"%d" % number}))
            for number in range(200)
        ]
        revisions = []
        for future in futures:
            outcome = future.result(60.0)
            assert isinstance(outcome, Committed)
            revisions.append(outcome.revision)
        assert revisions == list(range(1, 201))
        assert self.value(b"last") == b"199"

    def test_a_conflicting_batch_does_not_disturb_its_neighbours(self) -> None:
        futures = []
        for number in range(60):
            expect = {b"absent": 1} if number % 3 == 0 else {}
            batch = Batch(puts={b"%02d" % number: b""}, expect=expect)
            futures.append(self.store.submit(self.partition, batch))
        outcomes = [future.result(60.0) for future in futures]
        assert [isinstance(o, Conflict) for o in outcomes] == [n % 3 == 0 for n in range(60)]
        assert len(self.rows(limit=100)) == 40
        assert self.store.head(self.partition).revision == 40

    def test_what_was_acknowledged_is_read_by_everybody(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            for number in range(50):
                revision = self.put(b"a", b"%d" % number)
                seen = [pool.submit(self.store.head, self.partition) for _ in range(4)]
                assert all(future.result().revision >= revision for future in seen)
                assert pool.submit(self.value, b"a").result() == b"%d" % number
