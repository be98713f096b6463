"""The checker can fail: histories that no sound server makes are refused, good ones are not."""

from __future__ import annotations

import json

import pytest
from pillion_histories import checking


def read(call, end, revision, **rows):
    """A read of keys: each None, or (value, version)."""
    said = [row and {"value": row[0], "version": row[1]} for row in rows.values()]
    line = {"op": "read", "call": call, "return": end, "keys": list(rows), "rows": said}
    return line if revision is None else line | {"revision": revision}


def write(call, end, puts, outcome="ok", *, name=None, guards=None, **more):
    """A write of keys: each (value, condition), a condition being a word or a version."""
    line = {"op": "write", "id": name or f"at {call}", "call": call, "outcome": outcome, **more}
    line["puts"] = [
        {"key": key, "value": value, **condition(must)} for key, (value, must) in puts.items()
    ]
    line["guards"] = [{"key": key, **condition(must)} for key, must in (guards or {}).items()]
    if end is not None:
        line["return"] = end
    if outcome == "ok":
        line.setdefault("versions", [line["revision"]] * len(puts))
    return line


def condition(must):
    return {"must": must} if isinstance(must, str) else {"must": "version", "version": must}


def mismatch(current, index=0, reason="VERSION_MISMATCH", **more):
    return {"refusal": {"reason": reason, "index": index, "current": current, **more}}


def replay(call, end, name, revision, puts=1):
    line = {"op": "replay", "id": name, "call": call, "return": end, "outcome": "ok"}
    return line | {"revision": revision, "versions": [revision] * puts}


A1 = write(0, 10, {"x": ("a", "absent")}, revision=1)

GOOD = {
    "nothing there": [read(0, 1, None, x=None), read(2, 3, 0, x=None, y=None)],
    "a row, then its successor": [
        A1,
        read(11, 12, 1, x=("a", 1)),
        write(13, 14, {"x": ("b", 1)}, revision=2),
        read(15, 16, 2, x=("b", 2)),
    ],
    "a read beside a write sees either": [
        A1,
        write(20, 30, {"x": ("b", "any")}, revision=2),
        read(21, 22, 2, x=("b", 2)),
        read(21, 29, 1, x=("a", 1)),
    ],
    "one of two rivals is refused": [
        A1,
        write(20, 30, {"x": ("b", 1)}, revision=2),
        write(20, 30, {"x": ("c", 1)}, "refused", name="rival", **mismatch(2)),
    ],
    "create once": [
        A1,
        write(20, 30, {"x": ("c", "absent")}, "refused", **mismatch(1, reason="ALREADY_EXISTS")),
    ],
    "a batch is refused for its second key, then for its guard": [
        A1,
        write(20, 30, {"y": ("b", "any"), "x": ("c", 9)}, "refused", **mismatch(1, index=1)),
        write(
            31,
            32,
            {"x": ("c", 1)},
            "refused",
            guards={"y": "exists"},
            **mismatch(0, reason="NOT_FOUND", guard=True),
        ),
    ],
    "an unknown write takes effect late": [
        A1,
        write(20, None, {"x": ("b", 1)}, "unknown"),
        read(30, 31, 1, x=("a", 1)),
        read(40, 41, 2, x=("b", 2)),
    ],
    "an unknown write never takes effect": [
        A1,
        write(20, None, {"x": ("b", "any")}, "unknown"),
        write(30, 31, {"x": ("c", 1)}, revision=2),
        read(40, 41, 2, x=("c", 2)),
    ],
    "a write settled by a later retry took effect in between": [
        A1,
        write(20, 100, {"x": ("b", 1)}, name="settled", revision=2),
        read(30, 31, 2, x=("b", 2)),
        write(40, 41, {"x": ("c", 2)}, revision=3),
        replay(110, 111, "settled", 2),
    ],
    "a batch is seen whole": [
        write(0, 10, {"x": ("a", "absent"), "y": ("a", "absent")}, revision=1),
        read(11, 12, 1, x=("a", 1), y=("a", 1)),
    ],
    "failed for a reason that is none of the state's": [
        A1,
        write(20, 30, {"x": ("b", 1)}, "failed"),
        read(31, 32, 1, x=("a", 1)),
    ],
}

BAD = {
    "a lost update: two writers of one version": [
        A1,
        write(20, 30, {"x": ("b", 1)}, revision=2),
        write(20, 30, {"x": ("c", 1)}, name="rival", revision=3),
    ],
    "a stale read": [
        A1,
        write(20, 30, {"x": ("b", 1)}, revision=2),
        read(31, 32, 1, x=("a", 1)),
    ],
    "a stale read of which no revision is known": [A1, read(31, 32, None, x=None)],
    "an old row with the version of a new one": [
        A1,
        write(20, 30, {"x": ("b", 1)}, revision=2),
        read(31, 32, 2, x=("a", 2)),
    ],
    "an acknowledged write is missing": [A1, read(20, 21, 0, x=None)],
    "a retry takes effect twice": [
        A1,
        write(20, 60, {"x": ("b", "any")}, name="again", revision=4),
        read(30, 31, 2, x=("b", 2)),
        write(40, 41, {"x": ("c", 2)}, revision=3),
        read(70, 71, 4, x=("b", 4)),
    ],
    "a retry says another revision": [
        write(0, 10, {"x": ("a", "any")}, name="r", revision=1),
        write(11, 12, {"y": ("b", "any")}, revision=2),
        replay(20, 21, "r", 2),
    ],
    "a write that was answered is refused when it is sent again": [
        A1,
        replay(20, 21, "at 0", 1) | {"outcome": "refused"} | mismatch(1),
    ],
    "half a batch": [
        write(0, 10, {"x": ("a", "absent"), "y": ("a", "absent")}, revision=1),
        read(11, 12, 1, x=("a", 1), y=None),
    ],
    "half an unknown batch": [
        write(0, None, {"x": ("a", "any"), "y": ("a", "any")}, "unknown"),
        read(11, 12, 1, x=("a", 1), y=None),
    ],
    "two revisions in one read": [
        A1,
        write(11, 12, {"y": ("a", "absent")}, revision=2),
        write(13, 14, {"x": ("b", 1)}, revision=3),
        read(11, 20, 3, x=("a", 1), y=("a", 2)),
    ],
    "an unknown write takes effect, is overwritten, and comes back": [
        A1,
        write(20, None, {"x": ("b", "any")}, "unknown"),
        read(30, 31, 2, x=("b", 2)),
        write(32, 33, {"x": ("c", 2)}, revision=3),
        read(40, 41, 4, x=("b", 4)),
    ],
    "an unknown write takes effect before it was sent": [
        A1,
        read(15, 16, 2, x=("b", 2)),
        write(20, None, {"x": ("b", "any")}, "unknown"),
    ],
    "a refused write takes effect": [
        A1,
        write(20, 30, {"x": ("b", 9)}, "refused", **mismatch(1)),
        read(31, 32, 2, x=("b", 2)),
    ],
    "refused though its version was the current one": [
        A1,
        write(20, 30, {"x": ("b", 1)}, "refused", **mismatch(2)),
    ],
    "refused with a version that never was": [
        A1,
        write(20, 30, {"x": ("b", 9)}, "refused", **mismatch(5)),
    ],
    "created twice": [A1, write(20, 30, {"x": ("b", "absent")}, revision=2)],
    "a guard is passed over": [
        A1,
        write(20, 30, {"y": ("b", "any")}, guards={"x": 9}, revision=2),
    ],
    "a revision goes back": [
        write(0, 10, {"x": ("a", "any")}, revision=2),
        write(11, 20, {"y": ("a", "any")}, revision=1),
    ],
    "a revision that nobody made": [A1, write(20, 30, {"x": ("b", "any")}, revision=3)],
    "a value that nobody wrote": [A1, read(20, 21, 1, x=("z", 1))],
}


def verdict(checker, tmp_path, lines):
    path = tmp_path / "history.jsonl"
    whole = [{"partition": "p", "process": at, **line} for at, line in enumerate(lines)]
    path.write_text("".join(json.dumps(line) + "\n" for line in whole))
    return checking.check(checker, [path])


@pytest.mark.parametrize("name", GOOD)
def test_good_histories_are_accepted(checker, tmp_path, name):
    found = verdict(checker, tmp_path, GOOD[name])
    assert found["linearizable"], found
    assert found["operations"] == len(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_bad_histories_are_refused(checker, tmp_path, name):
    found = verdict(checker, tmp_path, BAD[name])
    assert not found["linearizable"]
    assert found["failures"][0]["partition"] == "p"


def test_partitions_are_told_apart(checker, tmp_path):
    elsewhere = [line | {"partition": "q"} for line in BAD["a stale read"]]
    found = verdict(checker, tmp_path, [*GOOD["create once"], *elsewhere])
    assert [one["partition"] for one in found["failures"]] == ["q"]
    assert found["partitions"] == 2


@pytest.mark.parametrize(
    "lines",
    [
        [write(0, 1, {"x": ("a", "any")}, name="r", revision=1)] * 2,
        [replay(0, 1, "unheard", 1)],
        [write(0, None, {"x": ("a", "any")}, revision=1)],
    ],
)
def test_what_is_no_history_is_refused_as_such(checker, tmp_path, lines):
    with pytest.raises(RuntimeError, match="checker: p"):
        verdict(checker, tmp_path, lines)
