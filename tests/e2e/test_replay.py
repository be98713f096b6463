"""The replay checklist against a real server, over its Unix socket and over TCP."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from pillion_testing.replay import Replay, at_path
from pillion_testing.servers import ServerProcess

FOLDER = Path(__file__).parents[1] / "vectors" / "replay"
SCENARIOS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


@pytest.fixture(scope="module")
def channels(tmp_path_factory):
    with ExitStack() as open_:
        server = ServerProcess(
            tmp_path_factory.mktemp("replay") / "d",
            *("--tcp", "127.0.0.1:0", "--allow-unauthenticated-tcp"),
        )
        open_.callback(server.stop)
        tcp = open_.enter_context(grpc.insecure_channel(server.ready["tcp"]))
        yield {"unix": server.channel, "tcp": tcp}


def replayed(channel, scenario):
    """What went wrong: a line for each difference, after the step that it was in."""
    run = Replay(channel, scenario)
    return [
        f"step {number} ({step.get('note', step['call'])}): {line}"
        for number, step in enumerate(scenario["steps"])
        for line in run.step(step)
    ]


@pytest.mark.parametrize("name", sorted(SCENARIOS))
@pytest.mark.parametrize("by", ["unix", "tcp"])
def test_every_answer_is_as_written(channels, by, name):
    assert replayed(channels[by], SCENARIOS[name]) == []


def test_the_checklist_is_long_enough_and_named_as_its_files():
    assert len(SCENARIOS) >= 12
    assert [one["name"] for one in SCENARIOS.values()] == list(SCENARIOS)
    for scenario in SCENARIOS.values():
        calls = [step["call"] for step in scenario["steps"]]
        assert "Write" in calls
        assert "History" in calls, scenario["name"]


def test_a_wrong_expectation_is_seen(channels):
    """The replay itself is tried: each expectation, made wrong, must be told."""
    scenario = SCENARIOS["deadline_moves_twice"]
    for number, step in enumerate(scenario["steps"]):
        for path in _leaves(step.get("answer", {})):
            changed = json.loads(json.dumps(scenario))
            *above, last = path
            part = changed["steps"][number]["answer"]
            for name in above:
                part = part[name]
            part[last] = "something else"
            assert replayed(channels["unix"], changed), (number, path)
            break  # one of each step: the comparison is the same for all


def _leaves(part, path=()):
    if isinstance(part, dict):
        for name, inner in part.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(part, list):
        for place, inner in enumerate(part):
            yield from _leaves(inner, (*path, place))
    else:
        yield path


def test_paths():
    assert at_path({"a": [{"b": 1}]}, "a[0].b") == 1
