"""``pillion demo`` plays its trace through a real server, and would see a wrong answer."""

import json
import os
import subprocess
import sys

import pytest
from pillion.cli.demo_story import Story
from pillion.cli.private_server import private_server
from pillion_client import Client


@pytest.fixture(scope="module")
def target():
    with private_server() as running:
        yield running


def demo(tmp_path, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PILLION_")}
    command = [sys.executable, "-m", "pillion.cli", "demo", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )


def test_the_demo_answers_as_the_mission_says_and_can_be_repeated(target, tmp_path):
    runs = [demo(tmp_path, "--target", target, "--json") for _ in range(2)]
    played = [json.loads(run.stdout) for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert played[0]["tenant"] != played[1]["tenant"]
    steps = {step["name"]: step for step in played[0]["steps"]}
    assert "2026-06-30 from e2" in steps["now"]["result"]
    assert "2026-07-15 from e1" in steps["on_2_june"]["result"]
    assert "2026-08-01 from e0" in steps["on_31_may"]["result"]
    assert steps["on_31_may"]["result"].endswith("to 2026-06-01T09:00:00Z")
    assert "(e1)" in steps["pile_of_notes"]["result"]
    assert steps["stale_write"]["result"].startswith("refused")
    assert all(step["right"] and step["checks"] for step in steps.values())


def test_without_a_server_the_demo_starts_its_own(tmp_path):
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Every answer is right" in done.stdout
    assert "starting one for the demo" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_was_asked_for_must_be_there(tmp_path):
    done = demo(tmp_path, "--target", "unix:nowhere.sock", "--json")
    assert done.returncode == 3
    assert "no server" in json.loads(done.stdout)["error"]["message"]


class Forgetful(Client):
    """A client of a pile of notes: whatever is asked, it answers with the newest arrival."""

    def get_fact(self, subject, attribute, context="", **options):
        options.pop("as_of", None)
        return max(self.list(attributes=[attribute], validity="any"), key=lambda row: row.version)


def test_the_demo_notices_wrong_answers(target):
    with Forgetful(target, partition=("default", f"wrong-{os.getpid()}")) as client:
        steps = {step.name: step.is_right for step in Story(client).play()}
    assert not steps["on_2_june"]
    assert not steps["now"]
