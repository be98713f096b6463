"""A real conversation through the real server: imported, asked, and the evidence found.

The data is public but not ours to ship; without it these tests say so and are skipped.
"""

import sys
from pathlib import Path

import pytest
from pillion_testing.servers import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.quality import conversations, locomo  # noqa: E402

DATA = conversations.find_data(None)
pytestmark = [
    pytest.mark.data,
    pytest.mark.slow,
    pytest.mark.skipif(
        DATA is None,
        reason="LoCoMo is neither at PILLION_LOCOMO nor at data/locomo/locomo10.json",
    ),
]
# Words and hashed vectors found 75 % on this conversation when this was written; hashing
# alone 33 %, chance about 2 %.
RECALL_AT_10_MIN = 70.0


def test_questions_find_their_evidence_among_the_turns(tmp_path):
    server = ServerProcess(tmp_path / "data")
    try:
        measured = locomo.Measured(
            f"unix:{server.ready['socket']}", conversations.conversations(DATA, 1)
        )
        measured.run(by_the_default_profile)
    finally:
        server.stop()
    found = locomo.score(measured.rankings["default"])
    assert found["questions"] > 150, found
    assert found["recall_at_10"] >= RECALL_AT_10_MIN, found


def by_the_default_profile(client, partition, text):
    hits = client.search(text, top_k=20, partition=partition).hits
    return {"default": [hit.memory.source.episode_id for hit in hits]}


def test_turns_and_gold_evidence_are_read_as_the_data_has_them():
    read = conversations.conversations(DATA, 10)
    assert len(read[0].turns) == 419
    assert sum(len(one.turns) for one in read) == 5882
    assert sum(len(one.questions) for one in read) == 1982
