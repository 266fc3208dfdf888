"""The fabric was scanned often enough to judge a week."""

import pytest

pytestmark = [pytest.mark.phase("weekly"), pytest.mark.passive]


@pytest.mark.fault("telemetry.lost")
def test_no_day_goes_by_without_a_scan(fabric_week, fabric_limits, measure):
    """Find the longest time without a complete scan that has counters."""
    measure("scan_gap", fabric_week.gap_h, at_most=fabric_limits.scan_gap, unit="h")
