"""The planner's choice: laws over every situation, and the cases that it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.limits import RECALL_TARGET_DEFAULT, RESULTS_MAX
from pillion.domain.queries import SearchPath
from pillion.domain.search_plan import Costs, Situation, nearest_for, plan

# What a machine with AVX-512 measures at 384 dimensions, rounded.
USUAL = Costs(filter_row=0.4, prior_row=0.9, scan_row=12.0, score_row=65.0)
LARGE = Situation(
    rows=1_000_000,
    admitted=1_000_000,
    indexed=1_000_000,
    lag=0,
    top_k=10,
    recall_target=RECALL_TARGET_DEFAULT,
    effort=128,
)

nanoseconds = st.floats(0.01, 1e4)
costs = st.builds(
    Costs,
    filter_row=nanoseconds,
    prior_row=nanoseconds,
    scan_row=nanoseconds,
    score_row=nanoseconds,
)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    rows = draw(st.integers(0, 5_000_000))
    return Situation(
        rows=rows,
        admitted=draw(st.integers(0, rows)),
        indexed=draw(st.just(0) | st.integers(0, rows)),
        lag=draw(st.integers(0, 4096)),
        top_k=draw(st.integers(1, RESULTS_MAX)),
        recall_target=draw(st.floats(0.5, 1.0)),
        effort=draw(st.none() | st.integers(1, 4096)),
    )


@given(situations(), costs)
def test_the_cheaper_way_is_taken_and_the_inputs_are_shown(found: Situation, given: Costs) -> None:
    chosen = plan(found, given)
    assert (chosen.path is SearchPath.INDEX) == (chosen.index_ns < chosen.scan_ns)
    assert chosen.path in (SearchPath.INDEX, SearchPath.SCAN)
    assert chosen.situation == found
    assert chosen.effort >= chosen.nearest >= 1
    assert chosen == plan(found, given)


@given(situations(), costs)
def test_without_an_index_or_with_a_promise_it_cannot_keep_it_is_not_asked(
    found: Situation, given: Costs
) -> None:
    assert plan(replace(found, indexed=0), given).path is SearchPath.SCAN
    assert plan(replace(found, recall_target=1.0), given).path is SearchPath.SCAN
    assert plan(replace(found, effort=None), given).path is SearchPath.SCAN


@given(st.integers(0, 5_000_000), st.integers(1, RESULTS_MAX))
def test_more_are_asked_of_the_index_than_are_wanted(rows: int, top_k: int) -> None:
    asked = nearest_for(rows, top_k)
    assert asked > top_k
    assert asked <= nearest_for(2 * rows, top_k)
    assert asked <= nearest_for(rows, min(2 * top_k, RESULTS_MAX))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({}, SearchPath.INDEX),
        ({"rows": 100_000, "admitted": 100_000, "indexed": 100_000}, SearchPath.INDEX),
        ({"rows": 5_000, "admitted": 5_000, "indexed": 5_000}, SearchPath.SCAN),
        # A narrow filter: few of the nearest are admitted, so there would be no bar.
        ({"admitted": 1_000}, SearchPath.SCAN),
        ({"admitted": 0}, SearchPath.SCAN),
        ({"recall_target": 1.0}, SearchPath.SCAN),
        ({"indexed": 0}, SearchPath.SCAN),
        ({"effort": None}, SearchPath.SCAN),
    ],
)
def test_the_cases_that_it_is_for(changes: dict[str, int | float], path: SearchPath) -> None:
    assert plan(replace(LARGE, **changes), USUAL).path is path


def test_a_slow_index_is_left_alone() -> None:
    slow = replace(USUAL, score_row=1e6)
    assert plan(LARGE, slow).path is SearchPath.SCAN
