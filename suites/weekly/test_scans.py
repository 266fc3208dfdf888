"""The fabric was looked at often enough for a week to say anything."""

import pytest

pytestmark = [pytest.mark.phase("weekly"), pytest.mark.passive]


@pytest.mark.fault("telemetry.lost")
def test_no_day_goes_by_without_a_scan(fabric_week, fabric_limits, measure):
    """Find the longest time without a scan that counted and was read whole."""
    measure("scan_gap", fabric_week.gap_h, at_most=fabric_limits.scan_gap, unit="h")
