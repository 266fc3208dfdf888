"""A battery that was cut short goes on with the next unit: none is left out, and none is computed twice."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from assay.node.load.run import RunPlan, find_start, parse_after


def units(tests: list[str], after: str, count: int) -> list[tuple[int, str]]:
    """Return the first units of a run, as battery_run computes them."""
    seed, place = find_start(tests, RunPlan(1.0, 0, 0, (), parse_after(after)))
    order = ((later, test) for later in itertools.count(seed) for test in tests[place if later == seed else 0 :])
    return list(itertools.islice(order, count))


@given(st.lists(st.integers(0, 7), min_size=1, max_size=12), st.integers(1, 5))
def test_visits_cut_anywhere_compute_what_one_long_visit_computes(cuts: list[int], families: int) -> None:
    tests = [f"family{number}" for number in range(families)]
    done: list[tuple[int, str]] = []
    for cut in cuts:
        after = f"{done[-1][0]}:{done[-1][1]}" if done else ""
        done += units(tests, after, cut)
    assert done == units(tests, "", len(done))


def test_after_a_test_that_there_is_no_longer_the_next_seed_begins() -> None:
    assert units(["a", "b"], "3:gone", 1) == [(4, "a")]
