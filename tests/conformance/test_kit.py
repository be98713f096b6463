"""The kit itself: each kind of broken store fails it, and a store that declares less passes."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from pillion_storage.api import (
    Committed,
    Conflict,
    Head,
    HistoryGone,
    NotSupported,
    ReadResult,
)
from pillion_storage.ram.store import RamStore
from pillion_storage.testing import StoreConformance, failures


def conformance_of(store_class):
    class Subject(StoreConformance):
        def open(self, settings):
            return store_class(settings)

    return Subject


class IgnoresExpectations(RamStore):
    def commit(self, partition, batch):
        return super().commit(partition, replace(batch, expect={}))


class AppliesHalfOfAConflict(RamStore):
    def commit(self, partition, batch):
        outcome = super().commit(partition, batch)
        if isinstance(outcome, Conflict) and batch.puts:
            key = min(batch.puts)
            super().commit(partition, replace(batch, puts={key: b""}, deletes=(), expect={}))
        return outcome


class ChecksThenActs(RamStore):
    """Loses updates: another thread gets in between the check and the write."""

    def commit(self, partition, batch):
        found = self.read(partition, list(batch.expect)).entries
        now = {key: found[key].version if key in found else 0 for key in batch.expect}
        failed = {key: now[key] for key, version in batch.expect.items() if now[key] != version}
        if failed:
            return Conflict(failed)
        threading.Event().wait(0.0001)  # lets the others run
        return super().commit(partition, replace(batch, expect={}))


class ForgetsTokens(RamStore):
    def commit(self, partition, batch):
        outcome = super().commit(partition, replace(batch, token=None))
        memo = batch.token.memo if batch.token else None
        return replace(outcome, memo=memo) if isinstance(outcome, Committed) else outcome


class ReadsThePresentForThePast(RamStore):
    def read(self, partition, keys, *, at=None):
        found = super().read(partition, keys)
        return found if at is None else ReadResult(at, found.entries)


class ScansPastTheEnd(RamStore):
    def scan(self, partition, start, end, **options):
        return super().scan(partition, start, end + b"\0" if len(end) < 481 else end, **options)


class MovesTimeBack(RamStore):
    def commit(self, partition, batch):
        outcome = super().commit(partition, batch)
        if isinstance(outcome, Committed) and not outcome.replayed:
            return replace(outcome, recorded_at=self._settings.clock_us())
        return outcome


class MixesTenants(RamStore):
    def scan(self, partition, start, end, **options):
        theirs = super().partitions()
        return super().scan(theirs[0] if theirs else partition, start, end, **options)


class PurgesNothing(RamStore):
    def purge(self, partition, keys):
        super().purge(partition, [])
        return len(set(keys))


class TrimsWithoutSayingSo(RamStore):
    def read(self, partition, keys, *, at=None):
        try:
            return super().read(partition, keys, at=at)
        except HistoryGone:
            return ReadResult(at or 0, {})


class StaysOpen(RamStore):
    def close(self):
        pass


class IgnoresBounds(RamStore):
    def commit(self, partition, batch):
        return super().commit(partition, replace(batch, note=batch.note[:100]))


class WakesNobody(RamStore):
    def wait(self, partition, after_revision, timeout_seconds):
        return False


class ForgetsTheHead(RamStore):
    def head(self, partition):
        super().head(partition)
        return Head(0, 0)


@pytest.mark.parametrize(
    "broken",
    [
        IgnoresExpectations,
        AppliesHalfOfAConflict,
        ChecksThenActs,
        ForgetsTokens,
        ReadsThePresentForThePast,
        ScansPastTheEnd,
        MovesTimeBack,
        MixesTenants,
        PurgesNothing,
        TrimsWithoutSayingSo,
        StaysOpen,
        IgnoresBounds,
        WakesNobody,
        ForgetsTheHead,
    ],
)
def test_a_broken_store_fails(broken):
    assert failures(conformance_of(broken), first_only=True)


def test_the_reference_passes_without_a_test_runner():
    assert failures(conformance_of(RamStore)) == {}


class DeclaresTooMuch(RamStore):
    @property
    def features(self):
        return replace(super().features, durable=True, backup=True)


def test_declaring_what_is_not_there_fails():
    failed = failures(conformance_of(DeclaresTooMuch))
    assert "test_a_backup_is_a_store_of_its_own" in failed
    assert "test_what_was_committed_is_there_again_if_the_store_is_durable" in failed


class DeclaresTooLittle(RamStore):
    @property
    def features(self):
        return replace(super().features, history=False)

    def backup(self, destination):
        destination.mkdir()


def test_doing_what_is_not_declared_fails():
    failed = failures(conformance_of(DeclaresTooLittle))
    assert "test_a_backup_is_a_store_of_its_own" in failed
    assert "test_without_history_older_reads_are_refused" in failed


class WithoutHistory(RamStore):
    """Less than the reference, and says so."""

    @property
    def features(self):
        return replace(super().features, history=False)

    def _refuse_the_past(self, partition, at):
        head = self.head(partition).revision
        if at is not None and 0 <= at < head:
            raise NotSupported("no history")

    def read(self, partition, keys, *, at=None):
        self._refuse_the_past(partition, at)
        return super().read(partition, keys, at=at)


def test_a_store_without_history_is_not_held_to_it():
    failed = failures(conformance_of(WithoutHistory))
    assert not any("every_revision_are_exact" in name for name in failed)
    assert "test_without_history_older_reads_are_refused" not in failed
