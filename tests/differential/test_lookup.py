"""Get's short way answers what BatchGet answers, whatever was written in between.

BatchGet reads everything anew; Get keeps what it decoded. Both are asked after every step, so
that what was kept before a write meets what the write made of it.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import Source, SourceKind
from pillion.domain.mutations import ConflictPolicy
from pillion.domain.queries import ReadAt, Target
from pillion.domain.schemas import Cardinality
from pillion.domain.scope import Partition
from pillion.service.lookup import KEPT_MAX, Lookup
from pillion_testing.fakes import SECOND, START, uuid7
from pillion_testing.service import (
    add,
    confirm,
    key_of,
    lmdb_service,
    member_of,
    patch,
    put_fact,
    ram_service,
    retract,
)

KEYS = (key_of("home"), key_of("work"), member_of("a", "langs"), member_of("b", "langs"))
SET_AS_A_WHOLE = key_of("langs")
OTHER = Partition("production", "other")
SPAN = 6
INSTANTS = st.integers(0, SPAN)
WEAK = Source(SourceKind.INFERENCE)


def at(instant: int) -> int:
    return START + (instant - SPAN // 2) * SECOND


steps = st.one_of(
    st.tuples(
        st.just("put"),
        st.sampled_from(KEYS),
        st.sampled_from("ab"),
        INSTANTS,
        st.none() | INSTANTS,
        st.booleans(),
    ),
    st.tuples(st.just("expires"), st.sampled_from(KEYS), INSTANTS),
    st.tuples(st.just("retract"), st.sampled_from(KEYS), st.none() | INSTANTS),
    st.tuples(st.just("patch"), st.integers(0, 9)),
    st.tuples(st.just("confirm"), st.integers(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 9)),
    st.tuples(st.just("add")),
    st.tuples(st.just("elsewhere")),
    st.tuples(st.just("later")),
)


class Both:
    """Asks both ways and compares."""

    def __init__(self, service) -> None:
        self.service = service
        self.ids = []
        for partition in (service.partition, OTHER):
            service.register(attribute="langs", cardinality=Cardinality.SET, partition=partition)

    def take(self, name, *given) -> None:
        service = self.service
        chosen = None
        if self.ids and given and isinstance(given[0], int):
            chosen = self.ids[given[0] % len(self.ids)]
        match name:
            case "put":
                key, value, begin, end, weak = given
                mutation = put_fact(
                    value,
                    attribute=key.attribute,
                    valid_from=at(begin),
                    valid_to=at(end) if end is not None else None,
                    policy=ConflictPolicy.CORRECT,
                    **({"source": WEAK} if weak else {}),
                )
                self.ids.append(service.one(mutation).id)
            case "expires":
                key, end = given
                mutation = put_fact(
                    "short",
                    attribute=key.attribute,
                    expires_at=service.clock.now + (end + 1) * SECOND,
                    policy=ConflictPolicy.CORRECT,
                )
                self.ids.append(service.one(mutation).id)
            case "retract":
                key, end = given
                service.one(retract(key=key, valid_to=at(end) if end is not None else None))
            case "patch" if chosen:
                service.one(patch(chosen, labels=(str(service.revision),)))
            case "confirm" if chosen:
                service.one(confirm(chosen))
            case "forget" if chosen:
                service.forget(ids=(chosen,))
            case "add":
                self.ids.append(service.one(add("text")).id)
            case "elsewhere":
                service.one(add("theirs"), partition=OTHER)
            case "later":
                service.clock.advance()

    def compare(self) -> None:
        reads = [ReadAt(), *(ReadAt(as_of=at(instant)) for instant in range(-1, SPAN + 2))]
        targets = [Target(fact=key) for key in (*KEYS, SET_AS_A_WHOLE, member_of("a", "home"))]
        targets += [Target(memory_id=one) for one in (*self.ids, uuid7(77))]
        for read in reads:
            for target in targets:
                for partition in (self.service.partition, OTHER):
                    assert self.get(partition, target, read) == self.batch_get(
                        partition, target, read
                    )

    def get(self, partition, target, read):
        try:
            return self.service.use_cases.reader.get(
                partition, target, read, include_vector=False, deadline=self.service.patience
            )
        except PillionError as error:
            return None if error.reason is Reason.NOT_FOUND else str(error)

    def batch_get(self, partition, target, read):
        try:
            (found,), revision = self.service.use_cases.reader.batch_get(
                partition, (target,), read, include_vectors=False, deadline=self.service.patience
            )
        except PillionError as error:
            return str(error)
        return (found, revision) if found is not None else None


@settings(deadline=None, max_examples=30)
@given(st.lists(steps, max_size=12))
def test_both_ways_agree_after_every_step(taken):
    service = ram_service()
    try:
        both = Both(service)
        for step in taken:
            try:
                both.take(*step)
            except PillionError as refused:
                if refused.reason is Reason.INTERNAL:
                    raise
            both.compare()
    finally:
        service.close()


def test_both_ways_agree_over_lmdb(tmp_path):
    service = lmdb_service(tmp_path / "store")
    try:
        both = Both(service)
        home, work, *_ = KEYS
        for step in (
            ("put", home, "a", 1, None, False),
            ("put", home, "b", 3, None, False),
            ("put", home, "c", 2, None, True),
            ("put", work, "a", 5, None, False),
            ("expires", work, 0),
            ("later",),
            ("elsewhere",),
            ("later",),
            ("patch", 1),
            ("confirm", 2),
            ("retract", home, None),
            ("add",),
            ("forget", 5),
        ):
            both.take(*step)
            both.compare()
    finally:
        service.close()


@pytest.mark.parametrize("make", [ram_service, lmdb_service])
def test_now_is_after_everything_that_the_head_holds(make, tmp_path):
    """A write that lands while a Get looks up the time is either wholly in its answer or not."""
    service = make(tmp_path / "store") if make is lmdb_service else make()
    try:
        service.put("0")
        both = Both(service)
        first = both.get(service.partition, Target(fact=key_of()), ReadAt())
        versions = {"0": first[0].memory.fact_version}
        now_us, writing = service.clock.now_us, False

        def write_then_tell():
            nonlocal writing
            if not writing:
                writing = True
                service.clock.advance(1)
                value = str(len(versions))
                versions[value] = service.put(value).fact_version
                service.clock.advance(1)
                writing = False
            return now_us()

        service.clock.now_us = write_then_tell
        for _ in range(3):
            found, _ = both.get(service.partition, Target(fact=key_of()), ReadAt())
            assert found.memory.fact_version == versions[found.memory.value.data]
        assert len(versions) > 3
    finally:
        service.close()


def test_what_is_kept_is_bounded():
    service = ram_service()
    try:
        lookup = Lookup(service.store, service.clock, kept_max=3)
        ids = [service.put(attribute=f"a{number}").id for number in range(8)]
        keys = service.use_cases.reader._keys.of(service.partition)
        for _ in range(2):
            for number, one in enumerate(ids):
                by_id = lookup.by_id(service.partition, keys, one)
                by_fact = lookup.by_fact(service.partition, keys, key_of(f"a{number}"), None)
                assert by_id.found.memory.id == by_fact.found.memory.id == one
                assert max(len(lookup._kept), len(lookup._timelines)) <= 3
        assert KEPT_MAX > 3
    finally:
        service.close()
