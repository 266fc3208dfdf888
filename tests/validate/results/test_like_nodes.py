"""A part is compared with those of like nodes: what is unlike them is told, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.validate.results.distribution import NodeKind, PartValue, ValueLimit, describe_values, draw_bars

KIND = NodeKind("hgx-h100", "hgx-h100-2026-10", "570.172.08")
LOW_IS_BAD, HIGH_IS_BAD, NO_LIMIT = (
    ValueLimit(10, None, "x.yaml:3"),
    ValueLimit(None, 90, ""),
    ValueLimit(None, None, ""),
)
NUMBERS = st.floats(-1e6, 1e6)


def parts(values, limit=LOW_IS_BAD, before=None):
    return [
        PartValue(f"p/n{number}/gpu0", f"n{number}", "2026-11-21", value, limit, before and before[number], value)
        for number, value in enumerate(values)
    ]


def describe(values, limit=LOW_IS_BAD, **more):
    return describe_values("c", "speed", "GB/s", KIND, parts(values, limit), **more)


SPREAD = [100.0 + number / 10 for number in range(20)]


def test_a_slow_part_is_told_with_its_peers_and_a_fast_one_is_not():
    one = describe([*SPREAD, 60.0, 140.0])
    (outlier,) = one.outliers
    assert outlier.part.value == 60
    assert outlier.reason.startswith("speed 60 GB/s, where the median of 22 parts on like nodes is 100.95: ")
    assert outlier.reason.endswith("deviations below")


@pytest.mark.parametrize(("limit", "found"), [(HIGH_IS_BAD, [140.0]), (NO_LIMIT, [60.0, 140.0]), (LOW_IS_BAD, [60.0])])
def test_the_limit_says_which_side_is_worse(limit, found):
    assert sorted(outlier.part.value for outlier in describe([*SPREAD, 60.0, 140.0], limit).outliers) == found


def test_too_few_peers_have_no_outlier():
    assert describe([100, 100.1, 99.9, 100.2, 10]).outliers == ()


def test_noise_among_equal_values_is_no_outlier():
    assert describe([100.0] * 50 + [99.5]).outliers == ()
    assert len(describe([100.0] * 50 + [50.0]).outliers) == 1


@given(st.lists(NUMBERS, min_size=1, max_size=60))
def test_every_value_is_in_one_bar_and_levels_are_in_order(values):
    one = describe(values)
    assert sum(one.bars) == one.parts == len(values)
    assert list(one.levels) == sorted(one.levels)
    assert (one.levels[0], one.levels[-1]) == (min(values), max(values))


@given(st.lists(NUMBERS, min_size=8, max_size=40), st.sampled_from([LOW_IS_BAD, HIGH_IS_BAD, NO_LIMIT]))
def test_an_outlier_is_on_the_worse_side_and_never_in_the_middle_half(values, limit):
    assume(max(values) > min(values))
    one = describe(values, limit)
    for outlier in one.outliers:
        value = outlier.part.value
        assert value < one.levels[2] if limit is LOW_IS_BAD else value > one.levels[2] if limit is HIGH_IS_BAD else True
        assert not one.levels[1] < value < one.levels[3]


def test_specs_are_compared_on_the_parts_that_both_measured():
    values, before = [90.0] * 8 + [1.0], [100.0] * 8 + [None]
    one = describe_values("c", "speed", "", KIND, parts(values, before=before), specs=("aaa", "bbb"))
    assert one.change is not None
    assert (one.change.before, one.change.after, one.change.parts, one.change.share) == (100, 90, 8, -0.1)


@given(st.lists(st.integers(0, 9), max_size=30))
def test_what_was_counted_is_never_blank(counts):
    assert [block == " " for block in draw_bars(counts)] == [count == 0 for count in counts]
