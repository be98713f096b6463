"""The filter of most searches, spelled out, is the same as the general one."""

from __future__ import annotations

import itertools
from uuid import UUID

from pillion.domain.memory import (
    FOREVER,
    EndReason,
    Memory,
    MemoryKind,
    MemoryStatus,
    Source,
    SourceKind,
)
from pillion.domain.queries import PLAIN_FILTER, Filter
from pillion.domain.scope import Subject

NOW, AS_OF = 100, 50
SHARES = (0.0, -0.0, 0.5, 1.0)


def memory(**changes):
    return Memory(
        id=UUID(int=1),
        subject=Subject("user", "mira"),
        text="",
        source=Source(SourceKind.DOCUMENT),
        created_at=0,
        updated_at=0,
        **{"kind": MemoryKind.EPISODIC, "valid_from": 0} | changes,
    )


def one_at_a_time():
    """Memories that differ in one field, at and around every boundary."""
    yield memory()
    for at in (AS_OF - 1, AS_OF, AS_OF + 1, NOW):
        yield memory(valid_from=at)
        yield memory(valid_to=at)
    for at in (NOW - 1, NOW, NOW + 1, 0):
        yield memory(expires_at=at)
        yield memory(expired_at=at)
    for name, values in (
        ("context", ("", "work")),
        ("status", MemoryStatus),
        ("end_reason", EndReason),
        ("kind", MemoryKind),
        ("importance", SHARES),
        ("confidence", SHARES),
        ("retracted_at", (0, NOW, FOREVER)),
        ("closed_at", (0, NOW, FOREVER)),
        ("pinned", (True, False)),
        ("labels", ((), ("a",))),
        ("attribute", ("", "home")),
        ("session_id", ("", "s")),
        ("consolidated_into", (None, UUID(int=2))),
    ):
        for value in values:
            yield memory(**{name: value})


def test_the_plain_filter_spelled_out_is_the_general_one():
    seen = set()
    for one in one_at_a_time():
        admitted = PLAIN_FILTER.admits(one, AS_OF, NOW)
        assert PLAIN_FILTER.admits_all([one], AS_OF, NOW) is admitted, one
        seen.add(admitted)
    assert seen == {True, False}


def test_all_are_admitted_when_each_is():
    good, bad = memory(), memory(status=MemoryStatus.CANDIDATE)
    for filter_ in (PLAIN_FILTER, Filter(kinds=frozenset({MemoryKind.EPISODIC}))):
        for group in itertools.product((good, bad), repeat=3):
            assert filter_.admits_all(group, AS_OF, NOW) is (bad not in group)
        assert filter_.admits_all([], AS_OF, NOW)
