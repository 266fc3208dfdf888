"""GPUs run as fast as they can: nothing in the node slows their clocks."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.thermal")
def test_thermal_margin(gpu, limits, measure):
    """Compare the distance to the temperature at which the GPU slows down with its limit."""
    measure("thermal_margin", gpu.temperature.margin_c, at_least=limits.gpu_thermal_margin)


@pytest.mark.fault("gpu.thermal")
def test_time_slowed_by_heat(gpu, limits, measure, since_last_pass):
    """Add up how long heat slowed the GPU since the last pass, including the time between two readings."""
    seconds = since_last_pass(gpu.throttled.thermal_us) / 1e6
    measure("slowed_by_heat", seconds, at_most=limits.gpu_slowed_by_heat, unit="s")


@pytest.mark.fault("gpu.power-brake")
def test_power_brake_is_off(gpu):
    """Check that the node's power supply does not slow the GPU: that is a fault of the node, not of the GPU."""
    assert "hw_power_brake_slowdown" not in gpu.throttle, "the power brake is on"


@pytest.mark.fault("gpu.throttled")
def test_memory_clock(gpu, limits, measure):
    """Compare the memory clock with its maximum: memory bandwidth depends on it."""
    share = 100 * gpu.clocks.memory_mhz / gpu.clocks.memory_max_mhz
    measure("memory_clock", share, at_least=limits.gpu_memory_clock_share, unit="%")


@pytest.mark.fault("host.config.drift")
def test_clocks_are_not_locked(gpu):
    """Check that no setting limits the GPU's clocks."""
    assert "applications_clocks_setting" not in gpu.throttle, "the clocks are held down by a setting"
