"""Whole histories of a small fleet, in any order, and what must hold after every step of them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from lifecycle.fleet_histories import Histories
from lifecycle.planted_defects import ALL_DEFECTS, LEADS_TO, defective

ALL = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None, phases=[Phase.generate])


def walk(new_paper, examples, steps, machine=Histories, **more):
    chosen = settings(ALL, max_examples=examples, stateful_step_count=steps, **more)
    run_state_machine_as_test(lambda: machine(new_paper()), settings=chosen)


def test_no_history_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=15, steps=25)


@pytest.mark.slow
def test_no_history_out_of_thousands_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=200, steps=50)


@pytest.mark.parametrize("defect", ALL_DEFECTS)
def test_a_planted_defect_does_not_survive_the_history_that_shows_it(new_paper, defect):
    said, machine = defective(defect)
    for kind in (Histories, machine):
        walked = kind(new_paper())
        walked.begin(states=["production"] * 10)
        with pytest.raises(AssertionError, match=said) if kind is machine else nullcontext():
            LEADS_TO[defect](walked)
            walked.teardown()


@pytest.mark.slow
@pytest.mark.parametrize("defect", ALL_DEFECTS)
def test_a_planted_defect_is_found_by_histories_that_know_nothing_of_it(new_paper, defect):
    said, machine = defective(defect)
    with pytest.raises(AssertionError, match=said):
        walk(new_paper, examples=400, steps=25, machine=machine, derandomize=True)
