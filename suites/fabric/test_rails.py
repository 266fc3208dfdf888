"""No rail is choked: what its leaves have for the nodes can leave."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.congestion")
def test_rail_is_not_congested(rail, fabric_limits, measure):
    """Find the leaf port of the rail that threw most packets away since the last scan."""
    port = max(rail.ports, key=lambda port: port.discards)
    measure("discards", port.discards, at_most=fabric_limits.discards, unit="count/h", place=port.place)
