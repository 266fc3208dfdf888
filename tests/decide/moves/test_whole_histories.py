"""Whole histories of a small fleet, in any order, and what must hold after every step of them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.decide.moves.fleet_histories import Histories, walk
from tests.decide.moves.planted_defects import ALL_DEFECTS, LEADS_TO, defective


def test_no_history_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=8, steps=25)


@pytest.mark.parametrize("defect", ALL_DEFECTS)
def test_a_planted_defect_does_not_survive_the_history_that_shows_it(new_paper, defect):
    said, machine = defective(defect)
    for kind in (Histories, machine):
        walked = kind(new_paper())
        walked.begin(states=["production"] * 10)
        with pytest.raises(AssertionError, match=said) if kind is machine else nullcontext():
            LEADS_TO[defect](walked)
            walked.teardown()
