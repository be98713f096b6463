"""The books find what they are kept for: each kind of damage, made by hand."""

from __future__ import annotations

import copy

import pytest
from pillion_histories.accounts import audit
from pillion_histories.campaign import Readback


def write(name, outcome="ok", *, revision=None, attempts=1, **puts):
    line = {"op": "write", "partition": "p", "id": name, "outcome": outcome, "attempts": attempts}
    line["puts"] = [{"key": key, "value": value, "must": "any"} for key, value in puts.items()]
    if revision is not None:
        line |= {"revision": revision, "versions": [revision] * len(puts), "replayed": False}
    return line


def replay(name, revision, *, replayed=True, keys=1):
    line = {"op": "replay", "partition": "p", "id": name, "revision": revision}
    return line | {"versions": [revision] * keys, "replayed": replayed}


def refused(name):
    return {"op": "replay", "partition": "p", "id": name, "outcome": "refused"}


RECORDS = [
    write("one", revision=1, counter0="1"),
    write("two", revision=2, counter0="2", register0="a"),
    write("late", "unknown", register1="b"),
    write("never", "unknown", register1="c"),
    write("rival", "refused", counter0="2"),
    write("three", revision=4, attempts=3, register0="d"),
    replay("two", 2, keys=2),
]
TIMELINES = {
    "counter0": [(1, "1"), (2, "2")],
    "counter1": [],
    "register0": [(2, "a"), (4, "d")],
    "register1": [(3, "b")],
}


def books(records=RECORDS, *, head=4, touched=None, **changed):
    timelines = TIMELINES | changed
    seen = {key: [revision for revision, _ in rows] for key, rows in timelines.items()}
    return audit(records, [Readback("p", head, timelines, seen | (touched or {}))])


def test_books_that_balance():
    found = books()
    assert found.findings == {}
    assert found.increments == 2
    assert found.outcomes["unknown, took effect"] == 1


def with_record(at, **changed):
    records = copy.deepcopy(RECORDS)
    records[at] |= changed
    return records


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("acknowledged_lost", lambda: books(register0=[(2, "a")])),
        ("acknowledged_lost", lambda: books(register0=[(2, "a"), (3, "d")], register1=[])),
        ("lost_updates", lambda: books(counter0=[(1, "1"), (2, "1")])),
        ("lost_updates", lambda: books(counter0=[(2, "2")])),
        ("double_effects", lambda: books(register0=[(2, "a"), (4, "d"), (5, "d")], head=5)),
        ("double_effects", lambda: books(register1=[(3, "b"), (5, "b")], head=5)),
        ("double_effects", lambda: books(head=5)),
        ("double_effects", lambda: books([*RECORDS, replay("one", 3)])),
        ("double_effects", lambda: books([*RECORDS, replay("one", 1, replayed=False)])),
        ("double_effects", lambda: books([*RECORDS, refused("one")])),
        ("acknowledged_lost", lambda: books([*RECORDS, write("also", revision=4, register1="e")])),
        ("half_batches", lambda: books(counter0=[(1, "1")])),
        ("unasked", lambda: books(register1=[(3, "b"), (5, "z")], head=5)),
        ("unasked", lambda: books(touched={"register1": [3, 4]})),
        ("unasked", lambda: books(with_record(0, replayed=True))),
        (
            "unasked",
            lambda: books(with_record(5, outcome="refused", revision=None), register0=[(4, "d")]),
        ),
    ],
)
def test_damage_is_found(kind, found):
    assert kind in found().findings
