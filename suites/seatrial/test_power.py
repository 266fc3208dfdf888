"""The power supply works, and air moves."""

import pytest

pytestmark = [pytest.mark.phase("seatrial"), pytest.mark.passive]


@pytest.mark.fault("psu.failed")
def test_power_supply(psu):
    """Check that no bay is empty and every power supply is healthy."""
    assert psu.answers, "the bay is empty"
    assert psu.health == "OK", f"health is {psu.health}"


@pytest.mark.fault("psu.failed")
def test_input_voltage(psu, limits, measure):
    """Compare the input voltage with its limits."""
    measure("input_voltage", psu.input_v, at_least=limits.psu_input_low, at_most=limits.psu_input_high)


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("fan.failed")
def test_fans_turn(node, spec, limits, measure):
    """Count the fans, and compare the speed of the slowest with its limit."""
    measure("fans", len(node.fans), at_least=spec.fans)
    for fan in node.fans:
        assert fan.health == "OK", f"fan{fan.slot} is {fan.health}"
    measure("slowest_fan", min(fan.rpm for fan in node.fans), at_least=limits.fan_speed)


@pytest.mark.phase("seatrial", "production")
@pytest.mark.fault("inlet.out-of-range")
def test_inlet_temperature(bmc, limits, measure):
    """Compare the temperature of the incoming air with its limits."""
    measure("inlet", bmc.sensor.inlet_c, at_least=limits.inlet_temperature_low, at_most=limits.inlet_temperature)
