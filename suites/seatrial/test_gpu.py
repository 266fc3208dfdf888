"""Every GPU of the spec is present, is the right model, and has all its connections."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.missing")
def test_gpu_count(node, spec, measure):
    """Count the GPUs that answer."""
    measure("gpus", len(node.gpus), equals=spec.gpus.count)


@pytest.mark.fault("gpu.missing")
def test_gpu_answers(gpu):
    """Check that the GPU in this slot answers."""
    assert gpu.answers, f"nothing answers at {gpu.declared.pci[int(gpu.slot[3:])]}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_gpu_model(gpu, spec, measure):
    """Compare the GPU's model with the spec."""
    measure("model", gpu.name, equals=spec.gpus.model)


@pytest.mark.fault("gpu.pcie.degraded")
def test_pcie_link(gpu, limits, measure):
    """Check that the PCIe link runs at full width and generation."""
    measure("pcie_width", gpu.pcie.width, at_least=limits.pcie_width, unit="lanes")
    measure("pcie_generation", gpu.pcie.generation, at_least=limits.pcie_generation, unit="generation")


@pytest.mark.fault("gpu.nvlink.down")
def test_nvlinks_are_up(gpu, limits, measure):
    """Count the NVLinks that are up."""
    measure("nvlinks_up", gpu.nvlink.up, at_least=limits.nvlink_links, unit="links")


@pytest.mark.phase("seatrial")
@pytest.mark.fault("host.config.drift")
def test_ecc_is_enabled(gpu):
    """Check that the GPU computes with ECC."""
    assert gpu.ecc.enabled, "ECC is off"


@pytest.mark.fault("gpu.memory.remap")
def test_no_row_remap_is_due(gpu, limits, measure):
    """Check that no row waits to be remapped, that no remapping failed, and that few rows are remapped."""
    assert not gpu.remap.failed, "a row could not be remapped"
    assert not gpu.remap.pending, "a row waits to be remapped at the next reset"
    measure("rows_remapped_early", gpu.remap.correctable, at_most=limits.remap_correctable, unit="rows")
    measure("rows_remapped", gpu.remap.uncorrectable, at_most=limits.remap_uncorrectable, unit="rows")
