"""As test_whole_histories.py, but many more histories, and longer ones."""

from __future__ import annotations

import pytest

from tests.decide.moves.fleet_histories import walk


@pytest.mark.slow(minutes=2)
def test_no_history_out_of_thousands_breaks_what_must_hold(new_paper):
    walk(new_paper, examples=200, steps=50)
