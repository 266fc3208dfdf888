"""The switches are well: cool, powered, and with air."""

import pytest

pytestmark = [pytest.mark.phase("fabric"), pytest.mark.passive]


@pytest.mark.fault("ib.switch.health")
def test_switch_is_cool(switch, fabric_limits, measure):
    """Hold the switch under its warning temperature."""
    measure("switch_temperature", switch.temperature_c, at_most=fabric_limits.switch_temperature)


@pytest.mark.fault("ib.switch.health")
def test_switch_has_power_and_air(switch):
    """Find power supplies that failed and fans that stand still."""
    wrong = [f"power supply {one}" for one in switch.failed_psus]
    wrong += [f"fan {one} stands still" for one in switch.stopped_fans]
    assert not wrong, f"{switch.name}: {'; '.join(wrong)}"
