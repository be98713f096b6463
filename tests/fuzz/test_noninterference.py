"""What tenant A observes is the same, byte for byte, whatever tenant B holds and does.

Two worlds get the same calls of A under one clock, and A's ids come from a counter of its own. In
one world B does nothing; in the other B writes, searches, forgets and fills the same subjects and
words in between. Everything that A is told is compared: answers, errors, traces, scores, counts,
page tokens, watches, operations. Masked are only the timings in a trace, which are wall-clock.

Left out, for they speak of the whole server and only a role of operators asks for them: the store's
own numbers in GetStats.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.graph import Direction, Expansion, NeighborsQuery
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import Filter, SearchAnswer
from pillion.domain.scope import Partition, Subject
from pillion.domain.values import Value, ValueKind
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_storage.ram import open_store as open_ram
from pillion_testing.fakes import DAY, CountingIds, FakeClock
from pillion_testing.service import EVERYTHING, MIRA, Service, add, episode, floats

# A's name first. Prefixes, patterns, separators, endings, case, look-alikes, forms of one letter.
NAMES = [
    (Partition("n", "acme"), Partition("n", "acme2")),
    (Partition("n", "acme"), Partition("n", "acm")),
    (Partition("n", "%"), Partition("n", "acme")),
    (Partition("n", "a_c"), Partition("n", "abc")),
    (Partition("n", "a"), Partition("n", "a\0")),
    (Partition("n", "a/b"), Partition("n/a", "b")),
    (Partition("n", "Acme"), Partition("n", "acme")),
    (Partition("n", "acme"), Partition("n", "\u0430cme")),
    (Partition("n", "\u00e9"), Partition("n", "e\u0301")),
    (Partition("n", "\ufb01"), Partition("n", "fi")),
    (Partition("n", ".."), Partition("n", ".")),
    (Partition("n", "b"), Partition("nb", "b")),
]
WORDS = ["pear", "plum", "fig", "rare"]
NOOR = Subject("user", "noor")
CANARY = "canary-of-b-31e7"


class TwoCounters:
    """Ids of two counters, so that whoever makes more takes nothing from the other."""

    def __init__(self) -> None:
        self.ours, self.theirs = CountingIds(), CountingIds(9_000_000)
        self.now = self.ours

    def new_id(self):
        return self.now.new_id()


def said(answer):
    """What an answer says, as text, but for how long its steps took."""
    if isinstance(answer, SearchAnswer):
        timings = tuple((step, 0) for step, _ in answer.trace.timings)
        answer = replace(answer, trace=replace(answer.trace, timings=timings))
    return repr(answer)


def edge(subject):
    return Value(ValueKind.SUBJECT, subject)


VERBS = [
    *("add", "fact", "edge", "episode", "search", "recall", "list"),
    *("pages", "history", "get", "neighbors", "forget", "erase", "consolidate"),
    *("register", "watch", "stats", "wait", "operations", "error"),
]
STEPS = st.tuples(st.sampled_from(VERBS), st.sampled_from(WORDS), st.integers(0, 3))


class World:
    """One store with both tenants in it."""

    def __init__(self, folder, kind, names):
        self.ours, self.theirs = names
        self.clock, self.ids = FakeClock(), TwoCounters()
        settings = StoreSettings(
            directory=folder, clock_us=self.clock.now_us, random_bytes=lambda n: b"s" * n
        )
        store = {"ram": open_ram, "lmdb": open_lmdb}[kind](settings)
        self.service = Service(store, clock=self.clock, ids=self.ids).by_hand()

    def do(self, step, *, theirs=False):
        """Take a step as one of the tenants and return what it was told."""
        verb, word, number = step
        self.service.partition = self.theirs if theirs else self.ours
        self.ids.now = self.ids.theirs if theirs else self.ids.ours
        mark = f" {CANARY}" if theirs else ""
        try:
            return said(getattr(self, f"_{verb}")(word + mark, number))
        except PillionError as error:
            return repr((error.reason, str(error), error.violations, error.metadata))

    def _add(self, word, number):
        vector = floats(1, number, 0, 0, 0, 0, 0, 0)
        return self.service.write(add(f"{word} is {word}", vector=vector, labels=(word,)))

    def _fact(self, word, number):
        return self.service.put(word, attribute=f"a{number}")

    def _edge(self, word, number):
        self.service.put(edge(Subject("user", word)), attribute="knows")
        return self.service.put(word, attribute=f"a{number}", subject=Subject("user", word))

    def _episode(self, word, number):
        return self.service.write(episode(f"{word} {number}"))

    def _search(self, word, number):
        walk = Expansion() if number == 3 else None
        vector = floats(1, 1, 0, 0, 0, 0, 0, 0) if number % 2 else b""
        return self.service.search(word, vector=vector, include_trace=True, expansion=walk)

    def _recall(self, word, number):
        return self.service.recall(word, MIRA, token_budget=50 + 100 * number)

    def _list(self, word, number):
        return self.service.list(Filter(labels_any=frozenset({word})) if number else EVERYTHING)

    def _pages(self, word, number):
        first = self.service.list(page_size=2)
        rest = self.service.list(page_size=2, page_token=first.next_token)
        return (first, rest)

    def _history(self, word, number):
        ids = [one.id for one in self.service.listed()]
        return self.service.history(memory_id=ids[number % len(ids)]) if ids else word

    def _get(self, word, number):
        """Ask by an id that is the other's, if it has made any."""
        return self.service.get(CountingIds(9_000_000 + number).new_id())

    def _neighbors(self, word, number):
        query = NeighborsQuery(
            subjects=(MIRA,), direction=Direction.BOTH, expansion=Expansion(depth=1 + number % 3)
        )
        return self.service.use_cases.walker.neighbors(
            self.service.partition, query, self.service.patience
        )

    def _forget(self, word, number):
        mode = ForgetMode.EXPIRE
        return self.service.forget(mode, subject=Subject("user", word) if number else MIRA)

    def _erase(self, word, number):
        ids = [one.id for one in self.service.listed()][:number]
        return self.service.forget(ForgetMode.ERASE, ids=ids)

    def _consolidate(self, word, number):
        return self.service.consolidate()

    def _register(self, word, number):
        return (self.service.register(attribute=f"a{number}"), self.service.schemas())

    def _watch(self, word, number):
        return self.service.told(number)

    def _stats(self, word, number):
        return self.service.use_cases.statistics.statistics(self.service.partition).partitions

    def _wait(self, word, number):
        """Time is the world's: only A's steps move it."""
        if self.ids.now is self.ids.ours:
            self.clock.advance(number * DAY)

    def _operations(self, word, number):
        return self.service.use_cases.operations.page(
            self.service.partition, page_size=number, page_token=""
        )

    def _error(self, word, number):
        return self.service.write(add(word * 9000, kind=MemoryKind.SEMANTIC), request_id="x" * 999)


@pytest.mark.parametrize("kind", ["ram", "lmdb"])
def test_what_a_tenant_observes_is_independent_of_another(kind, tmp_path_factory):
    seen = set()

    @given(
        st.sampled_from(NAMES),
        st.booleans(),
        st.lists(st.tuples(STEPS, st.lists(STEPS, max_size=3)), min_size=3, max_size=12),
    )
    def law(names, swapped, plan):
        names = names[::-1] if swapped else names
        folder = tmp_path_factory.mktemp("worlds")
        worlds = [World(folder / name, kind, names) for name in ("quiet", "busy")]
        try:
            for ours, others in plan:
                for step in others:
                    worlds[1].do(step, theirs=True)
                alone, beside = (world.do(ours) for world in worlds)
                assert alone == beside, ours
                assert CANARY not in beside
                seen.add((ours[0], alone.startswith("(<Reason.")))
        finally:
            for world in worlds:
                world.service.close()

    law()
    answered = {verb for verb, refused in seen if not refused}
    assert {"add", "search", "recall", "list", "pages", "neighbors", "watch"} <= answered
