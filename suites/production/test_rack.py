"""What no single node shows: the air in front of a rack."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("inlet.out-of-range")
def test_rack_breathes_evenly(rack, limits, measure):
    """Compare the warmest inlet of a rack with its coolest: hot air that comes round shows as a difference."""
    inlets = [node.bmc.sensor.inlet_c for node in rack.nodes]
    measure("inlet_spread", max(inlets) - min(inlets), at_most=limits.inlet_spread, unit="°C")
