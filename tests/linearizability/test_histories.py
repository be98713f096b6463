"""Many processes at work on a server under kill -9: nothing is lost, doubled or out of order.

This is the short form; `make histories` is the long one, whose result is kept.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
from pillion_histories import checking
from pillion_histories.accounts import Books, audit, read_histories
from pillion_histories.campaign import Campaign
from pillion_storage.verify import verify

KILLS = 12
PROCESSES = 4

pytestmark = pytest.mark.slow


@dataclass
class Run:
    campaign: Campaign
    books: Books
    same_at_last: bool


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    seed = random.randrange(2**32)
    print(f"seed {seed}")  # noqa: T201 -- shown when a test fails
    campaign = Campaign(tmp_path_factory.mktemp("histories"), seed=seed, processes=PROCESSES)
    try:
        campaign.round(KILLS)
        same = campaign.end()
    finally:
        campaign.server.close()
    return Run(campaign, audit(read_histories(campaign.histories), campaign.readbacks), same)


def test_no_update_is_lost_none_is_doubled_and_what_was_acknowledged_is_there(run):
    assert run.books.findings == {}
    assert run.same_at_last, "another kill and start changed what is read"
    assert run.campaign.counts.kills > KILLS
    assert run.books.increments > 0
    assert verify(run.campaign.directory / "data").findings == []


def test_the_history_is_linearizable(run, checker):
    found = checking.check(checker, run.campaign.histories)
    assert found["linearizable"], found["failures"]
    assert found["partitions"] == len(run.campaign.readbacks)
