"""Recall against a real server: golden contexts, the client's two halves, and the command line."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pillion_client import (
    AsyncClient,
    Client,
    InvalidArgument,
    RecallSection,
    Source,
    unconditional,
)
from pillion_testing.replay import Replay
from pillion_testing.servers import SECONDS, ServerProcess, environment

FOLDER = Path(__file__).parents[1] / "vectors" / "recall"
SCENARIOS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
SAID = Source("user_statement")
JUNE = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = ServerProcess(tmp_path_factory.mktemp("recall") / "d")
    yield running
    running.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_contexts_are_the_golden_ones(server, name):
    run = Replay(server.channel, SCENARIOS[name])
    differences = [
        f"step {number} ({step['note']}): {line}"
        for number, step in enumerate(SCENARIOS[name]["steps"])
        for line in run.step(step)
    ]
    assert differences == []


def test_the_golden_contexts_are_there():
    assert [one["name"] for one in SCENARIOS.values()] == list(SCENARIOS)
    texts = [
        step["answer"]["text"]
        for one in SCENARIOS.values()
        for step in one["steps"]
        if step["call"] == "Recall" and "answer" in step
    ]
    assert len(texts) >= 20
    assert sum(text is not None for text in texts) >= 15


def test_both_clients_and_the_command_line_tell_the_same(server):
    target = f"unix:{server.ready['socket']}"
    with Client(target, partition=("recall", "both")) as client:
        put = client.put_fact(
            "user:mira",
            "city",
            "Lisbon",
            source=SAID,
            precondition=unconditional,
            valid_from=JUNE,
        )
        client.put_fact(
            "user:jo", "city", "Rome", source=SAID, precondition=unconditional, valid_from=JUNE
        )
        found = client.recall(
            ["user:mira", "user:jo"],
            token_budget=30,
            section_budgets={"facts": 30},
            at_least_revision=put.revision + 1,
        )
        before = client.recall("user:mira", token_budget=30, exact_revision=0)
        with pytest.raises(InvalidArgument) as caught:
            client.recall([], token_budget=30)
    assert found.text == "# What is so\n- [since 2026-06-01] user:mira city: Lisbon"
    assert (found.tokens, found.tokens_estimated) == (24, True)
    assert found.revision > put.revision  # vectors that follow are commits too
    (line,) = found.lines
    assert (line.section, line.citation.memory_id) == (RecallSection.FACTS, put.only.id)
    assert (line.citation.valid_from, line.citation.valid_to) == (JUNE, None)
    assert [(one.section, one.reason) for one in found.omitted] == [("facts", "budget")]
    assert before.lines == ()
    assert [one.field for one in caught.value.field_violations] == ["subjects"]

    async def asked_by_the_other_half():
        async with AsyncClient(target, partition=("recall", "both")) as other:
            return await other.recall(["user:mira", "user:jo"], token_budget=30)

    other = asyncio.run(asked_by_the_other_half())
    assert dataclasses.replace(other, revision=found.revision) == found
    shown = pillion(target, "--json", "recall", "user:mira", "--also", "user:jo", "--budget", "30")
    document = json.loads(shown.stdout)
    assert document["text"] == found.text
    assert document["lines"][0]["citation"]["memory_id"] == put.only.id
    assert document["omitted"] == [dataclasses.asdict(found.omitted[0])]
    people = pillion(target, "recall", "user:mira", "--as-of", "2026-06-02T00:00:00Z")
    assert people.stdout == found.text + "\n"
    assert "about 24 of 1000 tokens, 1 lines, at revision " in people.stderr


def pillion(target, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "pillion.cli", "--target", target, *arguments],
        env=environment() | {"PILLION_NAMESPACE": "recall", "PILLION_TENANT": "both"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
