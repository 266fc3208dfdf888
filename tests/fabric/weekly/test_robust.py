"""Robust statistics: a few bad values change nothing, and the worst of them is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.model.peer_statistics import compute_median_slope, compute_z_scores

OUTLIER = 3.5
values = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(st.lists(values, max_size=60))
def test_every_value_has_a_finite_score_and_equal_values_have_equal_ones(sample):
    found = dict(zip(sample, compute_z_scores(sample), strict=True))
    assert [found[value] for value in sample] == compute_z_scores(sample)


@given(values, st.integers(1, 50))
def test_where_all_are_equal_nobody_stands_out(value, count):
    assert compute_z_scores([value] * count) == [0.0] * count


@given(st.lists(st.floats(40, 50), min_size=12, max_size=60), st.integers(1, 3))
def test_a_few_hot_modules_stand_out_however_hot_the_others_of_them_are(sample, hot):
    spread = [*sample, 40.0, 45.0, 50.0]
    assert all(score > OUTLIER for score in compute_z_scores([*spread, *[500.0] * hot])[-hot:])


@given(st.floats(-100, 100), st.floats(-100, 100), st.integers(2, 50))
def test_the_slope_of_a_line_is_its_slope(rise, start, count):
    points = [(float(x), start + rise * x) for x in range(count)]
    assert abs(compute_median_slope(points) - rise) < 1e-6


def test_one_broken_reading_does_not_make_a_drift():
    points = [(float(x), 1.0) for x in range(10)]
    assert compute_median_slope([*points[:5], (5.0, 900.0), *points[6:]]) == 0.0


def test_fewer_than_two_points_have_no_slope():
    assert compute_median_slope([]) == compute_median_slope([(1.0, 2.0)]) == 0.0
