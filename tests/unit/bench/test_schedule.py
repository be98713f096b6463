"""When calls of the load bench are due: laws of a Poisson process, from a seed."""

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.bench.schedule import MIXES, Mix, Verb, poisson


@given(st.sampled_from(sorted(MIXES)), st.floats(1, 2000), st.integers(0, 2**31))
def test_calls_are_due_in_order_within_the_round_and_again_the_same(name, rate, seed):
    mix = MIXES[name]
    calls = list(poisson(mix, rate, 0.5, seed))
    assert calls == list(poisson(mix, rate, 0.5, seed))
    assert all(0 < one.at < 0.5 for one in calls)
    assert all(one.at < two.at for one, two in itertools.pairwise(calls))
    assert all(one.verb in mix.shares and 0 <= one.tenant < mix.tenants for one in calls)


@given(st.integers(0, 2**31))
def test_as_many_are_due_as_the_rate_says(seed):
    rate, seconds = 500.0, 20.0
    count = sum(1 for _ in poisson(MIXES["search"], rate, seconds, seed))
    # Six standard deviations of a Poisson count: one seed in 500 million is further off.
    assert abs(count - rate * seconds) < 6 * math.sqrt(rate * seconds)


def test_gaps_are_exponential():
    at = [one.at for one in poisson(MIXES["search"], 1000.0, 60.0, 7)]
    gaps = [two - one for one, two in itertools.pairwise(at)]
    # Of an exponential distribution, standard deviation and mean are the same, and 1 / e of all
    # gaps are longer than the mean. Evenly spaced calls would have no deviation at all.
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert deviation / mean == pytest.approx(1.0, abs=0.05)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(1 / math.e, abs=0.01)


def test_shares_and_the_hot_tenant_are_as_named():
    mix = MIXES["hot-tenant"]
    calls = list(poisson(mix, 2000.0, 30.0, 3))
    verbs = Counter(one.verb for one in calls)
    for verb, share in mix.shares.items():
        assert verbs[verb] / len(calls) == pytest.approx(share, abs=0.02)
    assert sum(one.tenant == 0 for one in calls) / len(calls) == pytest.approx(0.5, abs=0.02)
    assert len({one.tenant for one in calls}) == mix.tenants


@pytest.mark.parametrize(("rate", "seconds"), [(0, 1), (-1, 1), (1, 0), (float("nan"), 1)])
def test_a_rate_and_a_duration_are_above_0(rate, seconds):
    with pytest.raises(ValueError, match="above 0"):
        list(poisson(MIXES["search"], rate, seconds, 1))


def test_the_shares_of_every_mix_sum_to_1():
    for mix in MIXES.values():
        assert isinstance(mix, Mix)
        assert sum(mix.shares.values()) == pytest.approx(1.0)
        assert set(mix.shares) <= set(Verb)
