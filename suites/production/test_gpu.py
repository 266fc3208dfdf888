"""GPUs stay cool, run at full clocks, and lose no data."""

import pytest

pytestmark = [pytest.mark.phase("test", "production"), pytest.mark.passive]

# NVML's names of the reasons that mean trouble: no power cap under load, no idle GPU; the power brake is the box's.
TROUBLING = {
    "hw_slowdown",
    "hw_thermal_slowdown",
    "sw_thermal_slowdown",
    "board_limit",
    "reliability",
}


@pytest.mark.fault("gpu.thermal")
def test_gpu_temperature(gpu, limits, measure):
    """Compare the temperatures of the GPU and its memory with their limits."""
    measure("gpu_temperature", gpu.temperature.gpu_c, at_most=limits.gpu_temperature)
    measure("memory_temperature", gpu.temperature.memory_c, at_most=limits.memory_temperature)


@pytest.mark.fault("gpu.throttled")
def test_gpu_is_not_throttled(gpu):
    """Check that the GPU does not slow itself down because of heat or reliability."""
    reasons = sorted(TROUBLING & set(gpu.throttle))
    assert not reasons, f"throttled: {', '.join(reasons)}"


@pytest.mark.fault("gpu.throttled")
def test_power_limit(gpu, limits, measure):
    """Check that the full power limit is in force."""
    measure("power_limit", gpu.power.limit_w, at_least=limits.gpu_power_limit)


@pytest.mark.fault("gpu.memory.uncorrectable")
def test_no_uncorrectable_memory_errors(gpu, limits, measure, since_last_pass):
    """Count the uncorrectable memory errors since the last pass."""
    measure("uncorrected", since_last_pass(gpu.ecc.volatile.uncorrected), at_most=limits.ecc_uncorrected, unit="count")


@pytest.mark.fault("gpu.memory.remap")
def test_corrected_memory_errors(gpu, limits, measure):
    """Compare the corrected memory errors, since boot and over the GPU's life, with those of a healthy GPU."""
    measure("corrected", gpu.ecc.volatile.corrected, at_most=limits.ecc_corrected, unit="count")
    measure("corrected_ever", gpu.ecc.aggregate.corrected, at_most=limits.ecc_aggregate_corrected, unit="count")


@pytest.mark.fault("gpu.pcie.degraded")
def test_pcie_replays(gpu, limits, measure, since_last_pass):
    """Count the PCIe replays since the last pass; what came before the first one is of the GPU's whole life."""
    measure("pcie_replays", since_last_pass(gpu.pcie.replays, lifetime=True), at_most=limits.pcie_replays, unit="count")
