"""The benchmark's pairs by words alone: what is grouped is right, lookalikes are left alone.

With vectors more is found; benchmarks/quality/updated_statements.py measures that.
"""

import importlib.util
import random
import sys
from pathlib import Path

import pytest
from pillion.domain.grouping import states_the_same, wording

DATA = Path(__file__).parents[3] / "benchmarks" / "quality" / "statements.py"
SEED = 20261130


@pytest.fixture(scope="module")
def statements():
    spec = importlib.util.spec_from_file_location("benchmark_statements", DATA)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def same(older, newer, question=None):
    asked = wording(question) if question else None
    return states_the_same(wording(older), wording(newer), asked, None, None)


@pytest.mark.parametrize("odd", [False, True])
def test_updates_are_found_and_lookalikes_are_not(statements, odd):
    found = statements.pairs(SEED, odd=odd)
    updates = [pair for pair in found if pair.same]
    lookalikes = [pair for pair in found if not pair.same]
    assert len(updates) == 120
    assert len(lookalikes) == 64
    assert not [one for one in lookalikes if same(one.older, one.newer, one.question)]
    share = sum(same(one.older, one.newer, one.question) for one in updates) / len(updates)
    assert share >= 0.3, "words alone find a good part; vectors find the most of the rest"


@pytest.mark.parametrize("odd", [False, True])
def test_statements_of_different_topics_are_not_one_thing(statements, odd):
    chance = random.Random(SEED)
    told = [(text, pair.topic) for pair in statements.pairs(SEED, odd=odd)
            for text in (pair.older, pair.newer)]  # fmt: skip
    wrong = []
    for _ in range(3000):
        (one, topic), (other, another) = chance.sample(told, 2)
        if topic != another and same(one, other):
            wrong.append((one, other))
    assert len(wrong) <= 15, wrong
