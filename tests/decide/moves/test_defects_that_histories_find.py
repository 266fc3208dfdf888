"""Random histories find each defect that is planted in the decisions."""

from __future__ import annotations

import pytest

from tests.decide.moves.fleet_histories import walk
from tests.decide.moves.planted_defects import ALL_DEFECTS, defective


@pytest.mark.slow(minutes=2)
@pytest.mark.parametrize("defect", ALL_DEFECTS)
def test_a_planted_defect_is_found_by_histories_that_know_nothing_of_it(new_paper, defect):
    said, machine = defective(defect)
    with pytest.raises(AssertionError, match=said):
        walk(new_paper, examples=400, steps=25, machine=machine, derandomize=True)
