"""GPUs run as fast as they may: nothing in the node holds their clocks down."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.thermal")
def test_thermal_margin(gpu, limits, measure):
    """Keep a distance to the temperature at which the GPU slows down."""
    measure("thermal_margin", gpu.temperature.margin_c, at_least=limits.gpu_thermal_margin)


@pytest.mark.fault("gpu.thermal")
def test_time_slowed_by_heat(gpu, limits, measure, since_last_pass):
    """Add up for how long heat has slowed the GPU since the last pass, also between two looks."""
    seconds = since_last_pass(gpu.throttled.thermal_us) / 1e6
    measure("slowed_by_heat", seconds, at_most=limits.gpu_slowed_by_heat, unit="s")


@pytest.mark.fault("gpu.power-brake")
def test_power_brake_is_off(gpu):
    """Refuse a GPU that the node's power supply slows down: the fault is the box's, not the GPU's."""
    assert "hw_power_brake_slowdown" not in gpu.throttle, "the power brake is on"


@pytest.mark.fault("gpu.throttled")
def test_memory_clock(gpu, limits, measure):
    """Hold the memory to its full clock, from which its bandwidth follows."""
    share = 100 * gpu.clocks.memory_mhz / gpu.clocks.memory_max_mhz
    measure("memory_clock", share, at_least=limits.gpu_memory_clock_share, unit="%")


@pytest.mark.fault("host.config.drift")
def test_clocks_are_not_locked(gpu):
    """Refuse a GPU whose clocks somebody holds down."""
    assert "applications_clocks_setting" not in gpu.throttle, "the clocks are held down by a setting"
