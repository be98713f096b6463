"""Tokens: a retry takes effect once and gets the first answer."""

# ruff: noqa: D102 -- the name of a check says what it checks

from __future__ import annotations

from dataclasses import replace

from pillion_storage.api import Batch, Committed, Conflict, InvalidBatch, Token
from pillion_storage.testing.base import ConformanceBase, raises


class TokenConformance(ConformanceBase):
    """``Batch.token``."""

    def test_a_retry_gets_the_first_answer_and_changes_nothing(self) -> None:
        self.clock.now_us = 7
        batch = Batch(puts={b"a": b"1"}, expect={b"a": 0}, token=Token(b"t", b"memo"))
        first = self.store.commit(self.partition, batch)
        assert first == Committed(1, 7, replayed=False, memo=b"memo")
        self.clock.now_us = 99
        self.put(b"a", b"2")
        retry = replace(batch, token=Token(b"t", b"another memo"))
        again = self.store.commit(self.partition, retry)
        assert again == Committed(1, 7, replayed=True, memo=b"memo")
        assert self.value(b"a") == b"2"
        assert self.store.head(self.partition).revision == 2

    def test_a_conflict_does_not_use_the_token_up(self) -> None:
        batch = Batch(puts={b"a": b"1"}, expect={b"a": 3}, token=Token(b"t"))
        assert isinstance(self.store.commit(self.partition, batch), Conflict)
        good = replace(batch, expect={})
        assert self.store.commit(self.partition, good) == Committed(
            1, self.clock.now_us, replayed=False, memo=b""
        )

    def test_a_token_belongs_to_its_partition(self) -> None:
        batch = Batch(puts={b"a": b"1"}, token=Token(b"t", b"mine"))
        self.store.commit(self.partition, batch)
        elsewhere = self.store.commit(self.other, batch)
        assert isinstance(elsewhere, Committed)
        assert not elsewhere.replayed

    def test_tokens_that_are_prefixes_of_one_another_are_different(self) -> None:
        for token in (b"t", b"t\0", b"t\0\0", b"t" * 64):
            outcome = self.store.commit(self.partition, Batch(token=Token(token)))
            assert isinstance(outcome, Committed)
            assert not outcome.replayed

    def test_two_uses_in_flight_take_effect_once(self) -> None:
        batch = Batch(puts={b"a": b"1"}, token=Token(b"t", b"memo"))
        futures = [self.store.submit(self.partition, batch) for _ in range(20)]
        outcomes = [future.result(60.0) for future in futures]
        assert {o.revision for o in outcomes if isinstance(o, Committed)} == {1}
        assert sum(not o.replayed for o in outcomes if isinstance(o, Committed)) == 1

    def test_the_oldest_token_is_forgotten_beyond_the_count(self) -> None:
        self.reopen(tokens_max=3)
        for token in (b"1", b"2", b"3", b"4", b"5"):
            self.store.commit(self.partition, Batch(token=Token(token)))
        assert self.store.partition_stats(self.partition).tokens == 3
        replayed = {}
        for token in (b"5", b"4", b"3", b"1"):
            outcome = self.store.commit(self.partition, Batch(token=Token(token)))
            assert isinstance(outcome, Committed)
            replayed[token] = outcome.replayed
        assert replayed == {b"5": True, b"4": True, b"3": True, b"1": False}

    def test_a_token_can_be_looked_up_without_committing(self) -> None:
        assert self.store.find_token(self.partition, b"t") is None
        assert self.store.partitions() == []
        self.put(b"a", b"1")
        assert self.store.find_token(self.partition, b"t") is None
        batch = Batch(puts={b"a": b"2"}, token=Token(b"t", b"memo"))
        first = self.store.commit(self.partition, batch)
        assert isinstance(first, Committed)
        assert self.store.find_token(self.partition, b"t") == replace(first, replayed=True)
        assert self.store.find_token(self.other, b"t") is None
        assert self.store.find_token(self.partition, b"t\0") is None
        for token in (b"", b"t" * (self.store.features.token_bytes_max + 1)):
            with raises(InvalidBatch):
                self.store.find_token(self.partition, token)
        assert self.store.head(self.partition).revision == 2
