"""A real conversation through the real server: imported, asked, and the evidence found.

The data is public but not ours to ship; without it these tests say so and are skipped.
"""

import json
import sys
from pathlib import Path

import pytest
from pillion_testing.servers import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.quality import locomo  # noqa: E402

DATA = locomo.find_data(None)
pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(
        DATA is None,
        reason="LoCoMo is neither at PILLION_LOCOMO nor at data/locomo/locomo10.json",
    ),
]
# Hashing alone found 33 % on this conversation when this was written; chance finds about 2 %.
RECALL_AT_10_MIN = 28.0


def test_questions_find_their_evidence_among_the_turns(tmp_path):
    sample = json.loads(DATA.read_text(encoding="utf-8"))[0]
    server = ServerProcess(tmp_path / "data")
    try:
        results = locomo.measure(f"unix:{server.ready['socket']}", [sample])
    finally:
        server.stop()
    assert results["turns"] == 419
    assert results["all"]["questions"] > 150
    assert results["all"]["recall_at_10"] >= RECALL_AT_10_MIN


def test_turns_and_gold_evidence_are_read_as_the_data_has_them():
    samples = json.loads(DATA.read_text(encoding="utf-8"))
    lines = [locomo.turns_of(sample["conversation"]) for sample in samples]
    questions = [
        question
        for sample, turns in zip(samples, lines, strict=True)
        for question in locomo.questions_of(sample, {one["external_ref"] for one in turns})
    ]
    assert sum(map(len, lines)) == 5882
    assert len(questions) == 1982
