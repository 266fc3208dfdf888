"""The switches have power and air, and stay cool."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.switch.health")
def test_switch_is_cool(switch, fabric_limits, measure):
    """Compare the switch's temperature with its warning threshold."""
    measure("switch_temperature", switch.temperature_c, at_most=fabric_limits.switch_temperature)


@pytest.mark.fault("ib.switch.health")
def test_switch_has_power_and_air(switch):
    """Find power supplies that failed, and fans that do not turn."""
    wrong = [f"power supply {one}" for one in switch.failed_psus]
    wrong += [f"fan {one} stands still" for one in switch.stopped_fans]
    assert not wrong, f"{switch.name}: {'; '.join(wrong)}"
