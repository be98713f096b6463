"""A write that lost a race is told which part of it, about what, and what is there now."""

from __future__ import annotations

import pytest
from pillion.domain.errors import Reason
from pillion.domain.memory import MemoryKind
from pillion.domain.mutations import Guard
from pillion.domain.scope import Partition
from pillion_testing.fakes import START, uuid7
from pillion_testing.service import (
    EXISTS,
    add,
    close_item,
    confirm,
    episode,
    key_of,
    patch,
    put_fact,
    retract,
    version_is,
)

UNKNOWN = uuid7(99)

STALE_KINDS = {
    "put_fact": lambda *_: (put_fact("w", when=version_is(999)), "fact"),
    "patch_memory": lambda note, _: (patch(note, version_is(999), pinned=True), note),
    "confirm_memory": lambda note, _: (confirm(note, version_is(999)), note),
    "retract a memory": lambda note, _: (retract(note, when=version_is(999)), note),
    "retract a fact": lambda *_: (retract(key=key_of(), when=version_is(999)), "fact"),
    "close_open_item": lambda _, item: (close_item(item, when=version_is(999)), item),
}


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("kind", STALE_KINDS)
def test_a_stale_mutation_of_any_kind_says_which_what_and_how_stale(service, kind, place):
    row = service.put("v", valid_from=START - 9).id
    note = service.one(add("a")).id
    item = service.one(add("b", kind=MemoryKind.OPEN_ITEM)).id
    stale, about = STALE_KINDS[kind](note, item)
    versions = {"fact": service.get(row).fact_version}
    current = versions.get(about) or service.get(about).version
    good = [episode("e"), add("c"), put_fact("x", attribute="other")]
    with service.refuses(Reason.VERSION_MISMATCH) as caught:
        service.write(*good[:place], stale, *good[place:])
    assert caught.value.metadata == {
        "index": str(place),
        "key": "user:mira//deadline" if about == "fact" else str(about),
        "expected_version": "999",
        "current_version": str(current),
    }


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("of", ["memory", "fact", "absent memory", "absent fact"])
def test_a_stale_guard_says_which_what_and_how_stale(service, of, place):
    row = service.put("v", valid_from=START - 9)
    note = service.one(add("a"))
    target, key, current = {
        "memory": ({"memory_id": note.id}, str(note.id), note.version),
        "fact": ({"fact": key_of()}, "user:mira//deadline", row.fact_version),
        "absent memory": ({"memory_id": UNKNOWN}, str(UNKNOWN), 0),
        "absent fact": ({"fact": key_of("none")}, "user:mira//none", 0),
    }[of]
    guards = [Guard(EXISTS, fact=key_of()), Guard(EXISTS, memory_id=note.id)]
    guards.insert(place, Guard(version_is(999), **target))
    with service.refuses(Reason.VERSION_MISMATCH) as caught:
        service.write(put_fact("w"), guards=tuple(guards))
    assert caught.value.metadata == {
        "guard_index": str(place),
        "key": key,
        "expected_version": "999",
        "current_version": str(current),
    }


def test_another_tenants_records_are_absent_to_a_guard(service):
    """A guard names no partition: it is the call's, so it can tell nothing of another one."""
    theirs = service.one(add("a")).id
    service.put("v")
    service.partition = Partition("production", "umbrella")
    for target in ({"memory_id": theirs}, {"fact": key_of()}):
        for when, reason in (
            (EXISTS, Reason.NOT_FOUND),
            (version_is(1), Reason.VERSION_MISMATCH),
        ):
            with service.refuses(reason) as caught:
                service.write(add("b"), guards=(Guard(when, **target),))
            assert caught.value.metadata.get("current_version", "0") == "0"
