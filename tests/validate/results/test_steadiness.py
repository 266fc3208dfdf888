"""When a verdict flaps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.ledger.history.queries import MIN_FLAKY_TURNS, WINDOW_RUNS, count_flaky_turns

VERDICTS = st.lists(st.sampled_from(["pass", "fail"]), max_size=WINDOW_RUNS)


@given(VERDICTS)
def test_a_row_of_verdicts_turns_as_often_read_from_its_end(verdicts):
    assert count_flaky_turns(verdicts) == count_flaky_turns(verdicts[::-1])


@given(VERDICTS)
def test_what_flaps_turned_often_enough_and_at_most_twice_as_often_as_it_failed_or_passed(verdicts):
    turned = count_flaky_turns(verdicts)
    assert turned == 0 or MIN_FLAKY_TURNS <= turned <= 2 * min(verdicts.count("fail"), verdicts.count("pass"))


def test_what_broke_once_and_was_mended_once_does_not_flap():
    assert [count_flaky_turns(["pass", "fail", "pass"]), count_flaky_turns(["pass", "fail", "pass", "fail"])] == [0, 3]
