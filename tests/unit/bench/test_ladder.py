"""Looking for the knee: what is found is a rate that kept the bound, close to one that did not."""

from hypothesis import given
from hypothesis import strategies as st
from pillion.bench.ladder import Knee, Tried, climb


def served_up_to(limit):
    def attempt(rate):
        is_well = rate <= limit
        return Tried(rate, min(rate, limit), 0.001 if is_well else 9.0, 0, 0.0)

    return attempt


@given(st.floats(120, 50_000))
def test_the_knee_is_found_to_a_few_per_cent(limit):
    knee = Knee(bound=0.01, first=100.0, tries_max=60)
    best = climb(knee, served_up_to(limit))
    assert best is not None
    assert best.offered <= limit <= best.offered * 1.07


@given(st.floats(2, 99))
def test_a_knee_below_the_first_rate_is_found_too(limit):
    best = climb(Knee(bound=0.01, first=100.0, tries_max=60), served_up_to(limit))
    assert best is not None
    assert best.offered <= limit <= best.offered * 1.07


def test_none_is_found_where_nothing_is_served():
    assert climb(Knee(bound=0.01, first=100.0), served_up_to(0)) is None


@given(st.floats(1, 50_000), st.integers(1, 20))
def test_no_more_is_tried_than_allowed(limit, tries):
    knee = Knee(bound=0.01, first=100.0, tries_max=tries)
    climb(knee, served_up_to(limit))
    assert len(knee.tried) <= tries


def test_one_bad_round_is_not_the_knee():
    rounds = []

    def attempt(rate):
        rounds.append(rate)
        is_bad_second = len(rounds) == 2
        return Tried(rate, rate, 9.0 if rate > 1000 or is_bad_second else 0.001, 0, 0.0)

    best = climb(Knee(bound=0.01, first=100.0, tries_max=60), attempt)
    assert best is not None
    assert best.offered > 900


def test_a_rate_with_a_refusal_does_not_count():
    one = Tried(100.0, 99.0, 0.001, refused=1, client_late=0.0)
    assert not Knee(bound=0.01, first=100.0).is_kept(one)
