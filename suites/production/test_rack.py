"""Checks of a whole rack: the air in front of it."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("inlet.out-of-range")
def test_rack_breathes_evenly(rack, limits, measure):
    """Compare the warmest inlet of a rack with its coolest: a difference shows that hot air flows back to the front."""
    inlets = [node.bmc.sensor.inlet_c for node in rack.nodes]
    measure("inlet_spread", max(inlets) - min(inlets), at_most=limits.inlet_spread, unit="°C")
