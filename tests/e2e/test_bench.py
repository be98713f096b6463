"""``pillion bench`` as a person runs it: real servers, real client processes."""

import base64
import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "pillion.cli", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("mix", ["read-heavy", "hot-tenant"])
def test_every_call_of_a_mix_is_answered_rightly(mix, tmp_path):
    histograms = tmp_path / "latencies"
    done = bench(
        *("--mix", mix, "--rates", "40,80", "--seconds", "1", "--memories", "200", "--json"),
        *("--histograms", str(histograms)),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for side in ("pillion", "echo"):
        assert [one["rate"] for one in found[side]["rounds"]] == [40, 80]
        for one in found[side]["rounds"]:
            assert (one["errors"], one["wrong"]) == ({}, 0)
            assert one["answered_per_second"] == one["due"] > 10
            assert 0 < one["latency_ms"]["p50"] <= one["latency_ms"]["max"]
    assert set(found["pillion"]["rounds"][1]["latency_ms_by_verb"]) == {"search", "get", "write"}
    assert found["flush_ms"]["p50"] > 0
    lines = histograms.read_text().splitlines()
    assert len(lines) == 12
    for line in lines:
        name, text = line.split("\t")
        assert name.split()[0] in {"pillion", "echo"}
        assert base64.b64decode(text)


def test_people_get_a_table():
    done = bench("--rates", "50", "--seconds", "0.5", "--memories", "50")
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines[1:3]] == [["50", "pillion"], ["50", "echo"]]


@pytest.mark.parametrize(
    "arguments",
    [("--mix", "nothing"), ("--rates", "fast"), ("--rates", "-3"), ("--seconds", "0")],
)
def test_a_wrong_command_line_says_so(arguments):
    done = bench(*arguments)
    assert done.returncode == 2
    assert done.stderr.strip()
