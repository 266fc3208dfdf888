"""No rail is congested: its leaves can send all that they have for the nodes."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.congestion")
def test_rail_is_not_congested(rail, fabric_limits, measure):
    """Check the leaf port of the rail that discarded most packets since the last scan."""
    port = max(rail.ports, key=lambda port: port.discards)
    measure("discards", port.discards, at_most=fabric_limits.discards, unit="count/h", place=port.place)
