"""One random history, two stores: LMDB must answer everything as the reference does."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pillion_storage import lmdb, ram
from pillion_storage.api import (
    KEY_SPACE_END,
    Batch,
    Committed,
    Partition,
    StoreError,
    StoreSettings,
    Token,
)
from pillion_storage.recorded_clock import RecordedClock
from pillion_storage.testing import FakeClock
from pillion_storage.verify import verify

KEYS = [b"a", b"a\0", b"a\0\0", b"a\0\xff", b"a" * 480, b"b", b"\0", b"\xff" * 480]
PARTITIONS = [Partition("n", "one"), Partition("n", "two")]
TOKENS = [b"1", b"2", b"3"]

keys = st.sampled_from(KEYS)
partitions = st.sampled_from(PARTITIONS)
values = st.binary(max_size=8) | st.just(b"large" * 2000)


@st.composite
def _batches(draw):
    puts = draw(st.dictionaries(keys, values, max_size=4))
    token = draw(st.none() | st.sampled_from(TOKENS))
    return Batch(
        puts,
        draw(st.sets(keys, max_size=3)) - puts.keys(),
        draw(st.dictionaries(keys, st.integers(0, 12), max_size=1)),
        None if token is None else Token(token, b"memo of " + token),
        draw(st.binary(max_size=3)),
    )


batches = _batches()


def answer(call):
    """What a call returned, or what it raised: stores must agree on both."""
    try:
        return call()
    except StoreError as error:
        return type(error), str(error)


def scan_all(store, partition, at, limit, *, reverse):
    start, end, rows = b"", KEY_SPACE_END, []
    while True:
        page = store.scan(partition, start, end, limit=limit, reverse=reverse, at=at)
        rows += page.rows
        at = page.revision
        if page.next_start is None:
            return page.revision, rows
        start, end = (start, page.next_start) if reverse else (page.next_start, end)


class Pair:
    """Both stores, with equal clocks and secrets."""

    def __init__(self):
        self.scratch = Path(tempfile.mkdtemp(prefix="pillion-model-"))
        self.clock = FakeClock()
        self.settings = StoreSettings(
            directory=self.scratch / "store",
            size_bytes_initial=1 << 20,
            size_bytes_max=1 << 30,
            tokens_max=2,
            clock_us=self.clock,
            random_bytes=bytes,
        )
        self.reference = ram.open_store(self.settings)
        self.subject = lmdb.open_store(self.settings)

    def both(self, call):
        expected, found = answer(lambda: call(self.reference)), answer(lambda: call(self.subject))
        assert found == expected
        return found

    def reopen(self):
        self.subject.close()
        report = verify(self.scratch / "store")
        assert report.clean, report.findings
        self.subject = lmdb.open_store(self.settings)
        # What readers were told of recorded time binds a store while it is open, so the reference
        # forgets it where the other one does.
        self.reference._clock = RecordedClock(self.settings.clock_us)

    def check_everything(self):
        """Compare all that can be read, at every kept revision."""
        self.both(lambda s: s.partitions())
        for partition in PARTITIONS:
            head = self.both(lambda s, p=partition: s.head(p))
            self.both(lambda s, p=partition: s.partition_stats(p))
            oldest = self.reference.partition_stats(partition)
            for at in range(oldest.oldest_history - 1, head.revision + 2):
                self.both(lambda s, p=partition, a=at: s.read(p, KEYS, at=a))
                for reverse in (False, True):
                    self.both(
                        lambda s, p=partition, a=at, r=reverse: scan_all(s, p, a, 3, reverse=r)
                    )
            for after in range(oldest.oldest_change - 2, head.revision + 2):
                self.both(lambda s, p=partition, a=after: s.changes(p, a, limit=3))
            for key in KEYS:
                self.both(lambda s, p=partition, k=key: s.versions(p, k))
            for now in range(0, self.clock.now_us + 2, max(1, self.clock.now_us // 50)):
                self.both(lambda s, p=partition, n=now: s.revision_at(p, n))

    def close(self):
        self.reopen()  # verifies
        self.check_everything()
        self.subject.close()
        shutil.rmtree(self.scratch)


class StoreMachine(RuleBasedStateMachine):
    @initialize()
    def open(self):
        self.pair = Pair()
        self.pair.clock.now_us = 100

    @rule(partition=partitions, batch=batches)
    def commit(self, partition, batch):
        self.pair.both(lambda s: s.commit(partition, batch))

    @rule(partition=partitions, key=keys, value=values)
    def compare_and_set(self, partition, key, value):
        entry = self.pair.reference.read(partition, [key]).entries.get(key)
        expect = {key: 0 if entry is None else entry.version}
        outcome = self.pair.both(
            lambda s: s.commit(partition, Batch(puts={key: value}, expect=expect))
        )
        assert isinstance(outcome, Committed)

    @rule(step=st.integers(-30, 50))
    def move_clock(self, step):
        self.pair.clock.now_us = max(0, self.pair.clock.now_us + step)

    @rule(
        partition=partitions, start=keys, end=keys, limit=st.integers(1, 4), reverse=st.booleans()
    )
    def scan(self, partition, start, end, limit, reverse):
        self.pair.both(
            lambda s: s.scan(partition, start, end, limit=limit, reverse=reverse, keys_only=True)
        )

    @rule(
        partition=partitions,
        history=st.integers(0, 15),
        feed=st.integers(0, 15),
        tokens=st.integers(0, 200),
    )
    def trim(self, partition, history, feed, tokens):
        self.pair.both(
            lambda s: s.trim(
                partition, history_before=history, feed_before=feed, tokens_before_us=tokens
            )
        )

    @rule(partition=partitions, chosen=st.sets(keys, max_size=3))
    def purge(self, partition, chosen):
        self.pair.both(lambda s: s.purge(partition, chosen))

    @rule(partition=partitions)
    def secret(self, partition):
        self.pair.both(lambda s: s.partition_secret(partition))

    @rule()
    def reopen(self):
        self.pair.reopen()

    @rule()
    def check_everything(self):
        self.pair.check_everything()

    @precondition(lambda self: hasattr(self, "pair"))
    @invariant()
    def heads_agree(self):
        for partition in PARTITIONS:
            self.pair.both(lambda s, p=partition: s.head(p))

    def teardown(self):
        if hasattr(self, "pair"):
            self.pair.close()


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(
    max_examples=60,
    stateful_step_count=30,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("round_number", range(3))
def test_a_long_random_history(round_number):
    """Longer than Hypothesis goes: hundreds of commits, thousands of kept versions."""
    seed = random.randrange(2**32) if round_number else 1
    print(f"seed {seed}")  # noqa: T201 -- shown when the test fails
    choose = random.Random(seed)
    pair = Pair()
    try:
        for step in range(250):
            pair.clock.now_us += choose.randrange(-5, 20)
            partition = choose.choice(PARTITIONS)
            touched = choose.sample(KEYS, choose.randrange(1, 6))
            cut = choose.randrange(len(touched) + 1)
            puts = {key: choose.randbytes(choose.choice((0, 3, 5000))) for key in touched[:cut]}
            batch = Batch(puts, touched[cut:], token=Token(choose.choice(TOKENS), b"m"))
            if choose.random() < 0.8:
                batch = replace(batch, token=None)
            pair.both(lambda s, p=partition, b=batch: s.commit(p, b))
            if step % 60 == 59:
                head = pair.reference.head(partition).revision
                floor = choose.randrange(head + 1)
                pair.both(
                    lambda s, p=partition, f=floor: s.trim(
                        p, history_before=f, feed_before=f // 2, tokens_before_us=0
                    )
                )
                pair.reopen()
        pair.check_everything()
    finally:
        pair.close()
