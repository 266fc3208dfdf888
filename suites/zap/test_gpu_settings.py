"""GPUs have the modes, clocks and power limit of the spec."""

import pytest

pytestmark = [pytest.mark.phase("zap", "production"), pytest.mark.passive]


@pytest.mark.fault("host.config.drift")
def test_persistence_mode(gpu, spec):
    """Compare persistence mode with the spec: without it, jobs wait for the driver, and counters restart."""
    wanted = spec.gpu_settings.persistence
    assert len(gpu), "the driver shows nothing of the GPU"
    assert wanted is None or gpu.persistence == wanted, f"persistence mode is {_on_or_off(gpu.persistence)}"


@pytest.mark.fault("host.config.drift")
def test_ecc_mode(gpu, spec):
    """Compare ECC with the spec, now and after the next reset."""
    wanted, ecc = spec.gpu_settings.ecc, gpu.ecc
    assert wanted is None or ecc.enabled == wanted, f"ECC is {_on_or_off(ecc.enabled)}"
    assert wanted is None or ecc.pending == wanted, f"ECC will be {_on_or_off(ecc.pending)} after the next reset"


@pytest.mark.fault("host.config.drift")
def test_mig_mode(gpu, spec):
    """Compare the partitioning of the GPU (MIG) with the spec, now and after the next reset."""
    wanted, mig = spec.gpu_settings.mig, gpu.mig
    assert wanted is None or mig.enabled == wanted, f"MIG is {_on_or_off(mig.enabled)}"
    assert wanted is None or mig.pending == wanted, f"MIG will be {_on_or_off(mig.pending)} after the next reset"


@pytest.mark.fault("host.config.drift")
def test_compute_mode(gpu, spec, measure):
    """Compare the compute mode with the spec: in other modes than the default, the second rank of a job fails."""
    seen = gpu.compute_mode
    measure("compute_mode", seen, equals=spec.gpu_settings.compute_mode or seen)


@pytest.mark.fault("host.config.drift")
def test_application_clocks(gpu, spec, measure):
    """Compare the application clocks with the spec. If it says nothing, check that nobody lowered them."""
    wanted, clocks = spec.gpu_settings.application_clocks, gpu.clocks
    if wanted is None:
        measure("application_clock", clocks.application_mhz, at_least=clocks.application_default_mhz)
        return
    measure("graphics_mhz", clocks.application_mhz, equals=wanted.graphics_mhz, unit="MHz")
    measure("memory_mhz", clocks.application_memory_mhz, equals=wanted.memory_mhz, unit="MHz")


@pytest.mark.fault("host.config.drift")
def test_requested_power_limit(gpu, spec, measure):
    """Compare the requested power limit with the spec. If it says nothing, check that nobody lowered it."""
    wanted, seen = spec.gpu_settings.power_limit_w, gpu.power.requested_w
    if wanted is None:
        measure("power_limit", seen, at_least=gpu.power.default_w)
    else:
        measure("power_limit_w", seen, equals=wanted, unit="W")


def _on_or_off(state):
    return "on" if state else "off"
