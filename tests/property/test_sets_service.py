"""A set is one timeline a member: as if each were an attribute of its own with one value.

Two services are told the same things: one has a set, the other an attribute for each member.
"""

from __future__ import annotations

import random as random_module
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError
from pillion.domain.memory import Source, SourceKind
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.queries import ReadAt
from pillion.domain.schemas import Cardinality
from pillion_testing.fakes import SECOND, START
from pillion_testing.service import (
    Service,
    confirm,
    key_of,
    lmdb_service,
    member_of,
    put_fact,
    ram_service,
    refusal,
    restore,
    retract,
)

MEMBERS = "abc"
SPAN = 8
PROBES = range(-1, SPAN + 4)
KINDS = [
    SourceKind.USER_STATEMENT,
    SourceKind.DOCUMENT,
    SourceKind.USER_CONFIRMATION,
    SourceKind.INFERENCE,
]
VERBS = [
    *["put"] * 6,
    *["retract"] * 2,
    *["never", "restore", "confirm", "forget", "forget_id", "together"],
]
STEPS = st.tuples(
    st.sampled_from(VERBS),
    st.sampled_from(MEMBERS),
    st.integers(0, SPAN),
    st.none() | st.integers(1, 4),
    st.sampled_from(KINDS),
    st.integers(0, 99),
)


def at(instant: int) -> int:
    return START + (instant - 100) * SECOND


class Told:
    """One of the services, and how it names a member."""

    def __init__(self, service: Service, *, a_set: bool) -> None:
        self.service = service
        self.a_set = a_set
        self.ids = []
        # Both register something, so that their revisions are the same.
        service.register(
            attribute="speaks", cardinality=Cardinality.SET if a_set else Cardinality.ONE
        )

    def attribute(self, value: str) -> str:
        return "speaks" if self.a_set else f"speaks_{value}"

    def key(self, value: str):
        return member_of(value, "speaks") if self.a_set else key_of(self.attribute(value))

    def put(self, value, instant, length, kind):
        return put_fact(
            value,
            attribute=self.attribute(value),
            text=value,
            valid_from=at(instant),
            valid_to=at(instant + length) if length is not None else None,
            policy=ConflictPolicy.PREFER_SOURCE,
            source=Source(kind),
        )

    def take(self, step):
        """Take a step and return what it answered: results, a count, or why not."""
        verb, value, instant, length, kind, number = step
        service = self.service
        service.clock.advance()
        chosen = self.ids[number % len(self.ids)] if self.ids else None
        mutations = []
        match verb:
            case "put":
                mutations = [self.put(value, instant, length, kind)]
            case "together":
                mutations = [self.put(one, instant, length, kind) for one in MEMBERS]
            case "retract":
                mutations = [retract(key=self.key(value), valid_to=at(instant))]
            case "never" if chosen:
                mutations = [retract(chosen, valid_to=at(-50))]
            case "restore" if chosen:
                mutations = [restore(chosen)]
            case "confirm" if chosen:
                mutations = [confirm(chosen)]
            case "forget":
                mode = ForgetMode.EXPIRE if number % 2 else ForgetMode.RETRACT
                return service.forget(mode, fact=self.key(value)).memories
            case "forget_id" if chosen:
                return service.forget(ids=(chosen,)).memories
        if not mutations:
            return None
        made = []
        error = refusal(lambda: made.extend(service.write(*mutations).results))
        if verb in ("put", "together"):
            self.ids += [one.id for one in made]
        return error.reason if error is not None else [self.plain(one) for one in made]

    @staticmethod
    def plain(result):
        return replace(result, fact_version=0)

    def rows(self, revision):
        """What holds at each probe, by member."""
        read = {} if revision is None else {"exact_revision": revision}
        return [
            self.bare(self.service.current(self.key(value), as_of=at(probe), **read))
            for value in MEMBERS
            for probe in PROBES
        ]

    def histories(self):
        """What was ever recorded, by member."""
        told = []
        for value in MEMBERS:
            try:
                entries, _, _ = self.service.history(self.key(value), page_size=1000)
            except PillionError as error:
                told.append(error.reason)
                continue
            told.append([replace(one, memory=self.bare(one.memory)) for one in entries])
        return told

    @staticmethod
    def bare(memory):
        """A memory without what names its attribute."""
        if memory is None:
            return None
        return replace(memory, attribute="speaks", schema_version=0, in_set=False, fact_version=0)


def compare(first: Service, second: Service, steps) -> None:
    pair = Told(first, a_set=True), Told(second, a_set=False)
    seen = {}
    for step in steps:
        answers = [one.take(step) for one in pair]
        assert answers[0] == answers[1], step
        assert first.revision == second.revision
        shown = pair[0].rows(None)
        assert shown == pair[1].rows(None)
        assert pair[0].histories() == pair[1].histories()
        seen[first.revision] = [row.id if row else None for row in pair[0].rows(first.revision)]
    for revision, ids in seen.items():
        assert [row.id if row else None for row in pair[0].rows(revision)] == ids
    entries, token, _ = (
        first.history(key_of("speaks"), page_size=1000, read=ReadAt())
        if any(isinstance(one, list) for one in pair[0].histories())
        else ([], "", 0)
    )
    assert token == ""
    assert len(entries) == sum(len(one) for one in pair[0].histories() if isinstance(one, list))


@given(st.lists(STEPS, max_size=10))
def test_a_set_is_a_timeline_a_member(steps):
    first, second = ram_service(), ram_service()
    try:
        compare(first, second, steps)
    finally:
        first.close()
        second.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_long_history_of_a_set_on_both_stores(seed, tmp_path):
    random = random_module.Random(seed)
    steps = [
        (
            random.choice(VERBS),
            random.choice(MEMBERS),
            random.randint(0, SPAN),
            random.choice([None, None, 1, 3]),
            random.choice(KINDS),
            random.randint(0, 99),
        )
        for _ in range(25)
    ]
    first, second = lmdb_service(tmp_path), ram_service()
    try:
        compare(first, second, steps)
    finally:
        first.close()
        second.close()
