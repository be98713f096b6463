"""Opening, probing, copying, forking and closing."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

import contextlib
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    NotSupported,
    StoreClosed,
    StoreForked,
    StoreLocked,
    StoreUnusable,
    Token,
)
from pillion_storage.testing.base import ConformanceBase, raises

if TYPE_CHECKING:
    from collections.abc import Callable


class LifecycleConformance(ConformanceBase):
    """``probe``, ``backup``, ``close`` and what survives them."""

    def calls(self) -> list[Callable[[], object]]:
        """Give one call of every method that needs an open store."""
        store, partition = self.store, self.partition
        return [
            lambda: store.read(partition, [b"a"]),
            lambda: store.scan(partition, b"", KEY_SPACE_END, limit=1),
            lambda: store.commit(partition, Batch()),
            lambda: store.submit(partition, Batch()),
            lambda: store.find_token(partition, b"t"),
            lambda: store.changes(partition, 0, limit=1),
            lambda: store.wait(partition, 0, 0.0),
            lambda: store.head(partition),
            lambda: store.revision_at(partition, 0),
            lambda: store.versions(partition, b"a"),
            lambda: store.purge(partition, [b"a"]),
            store.partitions,
            lambda: list(store.export(partition)),
            lambda: store.partition_secret(partition),
            lambda: store.trim(partition, history_before=0, feed_before=0, tokens_before_us=0),
            lambda: store.partition_stats(partition),
            store.stats,
            store.probe,
            lambda: store.backup(self.scratch / "copy"),
        ]

    def test_a_closed_store_refuses_everything_but_another_close(self) -> None:
        self.put(b"a", b"1")
        calls = self.calls()
        self.store.close()
        for call in calls:
            with raises(StoreClosed):
                call()
        self.store.close()

    def test_close_finishes_what_is_queued(self) -> None:
        futures = [
            self.store.submit(self.partition, Batch(puts={b"%d" % n: b""})) for n in range(100)
        ]
        self.store.close()
        assert all(future.done() and future.exception() is None for future in futures)

    def test_close_wakes_who_waits(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(self.store.wait, self.partition, 0, 60.0) for _ in range(4)]
            self.store.close()
            for future in waiting:
                # Either it was waiting already, or it came too late.
                with contextlib.suppress(StoreClosed):
                    assert future.result(30.0) is False

    def test_a_probe_passes_and_leaves_nothing_visible(self) -> None:
        self.store.probe()
        assert self.store.partitions() == []
        assert self.store.stats().live_keys == 0

    def test_a_forked_child_is_refused(self) -> None:
        self.put(b"a", b"1")
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of forking with threads around: that is what is checked here.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            refused = 0
            try:
                for call in [*self.calls(), self.store.close]:
                    with raises(StoreForked):
                        call()
                    refused += 1
            finally:
                os.write(writer, b"%d" % refused)
                os._exit(0)
        os.close(writer)
        told = os.read(reader, 10)
        os.close(reader)
        os.waitpid(child, 0)
        assert told == b"%d" % (len(self.calls()) + 1)
        assert self.put(b"a", b"2") == 2

    def test_what_was_committed_is_there_again_if_the_store_is_durable(self) -> None:
        self.done(Batch(puts={b"a": b"1"}, token=Token(b"t", b"memo"), note=b"n"))
        self.put(b"a", b"2")
        self.trim_feed()
        before = (self.rows(), self.store.stats().live_bytes, self.store.head(self.partition))
        secret = self.store.partition_secret(self.partition)
        self.reopen()
        if not self.store.features.durable:
            assert self.store.partitions() == []
            return
        after = (self.rows(), self.store.stats().live_bytes, self.store.head(self.partition))
        assert after == before
        assert self.value(b"a", at=1) == b"1"
        assert self.store.partition_secret(self.partition) == secret
        assert self.store.changes(self.partition, 1, limit=5).oldest_revision == 2
        assert self.put(b"b", b"3") == 3

    def trim_feed(self) -> None:
        self.store.trim(self.partition, history_before=0, feed_before=2, tokens_before_us=0)

    def test_a_store_that_is_not_shared_is_locked(self) -> None:
        if self.store.features.shared or not self.store.features.durable:
            self.open(self.settings).close()
            return
        with raises(StoreLocked) as caught:
            self.open(self.settings)
        assert isinstance(caught[0], StoreLocked)
        assert caught[0].pid == os.getpid()
        assert self.put(b"a", b"still works") == 1

    def test_a_backup_is_a_store_of_its_own(self) -> None:
        copy = self.scratch / "copy"
        self.put(b"a", b"1")
        if not self.store.features.backup:
            with raises(NotSupported):
                self.store.backup(copy)
            return
        self.put(b"a", b"2")
        self.store.backup(copy)
        with raises(StoreUnusable):
            self.store.backup(copy)
        self.put(b"a", b"3")
        restored = self.open(replace(self.settings, directory=copy))
        try:
            assert restored.head(self.partition).revision == 2
            assert restored.read(self.partition, [b"a"], at=1).entries[b"a"].value == b"1"
            assert restored.partition_secret(self.partition) == self.store.partition_secret(
                self.partition
            )
        finally:
            restored.close()
