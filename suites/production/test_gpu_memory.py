"""GPU memory can still repair itself, and the driver asks for no recovery."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "test", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.memory.sram")
def test_sram_is_below_its_threshold(gpu):
    """Check that uncorrectable SRAM errors stay below the driver's threshold."""
    assert not gpu.ecc.sram_threshold_exceeded, "the driver's threshold of SRAM errors is exceeded"


@pytest.mark.fault("gpu.memory.sram")
def test_sram_errors(gpu, limits, measure, since_last_pass):
    """Count the uncorrectable SRAM errors since the last pass: row remapping cannot repair them."""
    errors = since_last_pass(gpu.ecc.aggregate.sram_uncorrected)
    measure("sram_uncorrected", errors, at_most=limits.ecc_sram_uncorrected, unit="count")


@pytest.mark.fault("gpu.memory.remap")
def test_banks_have_spare_rows(gpu, limits, measure):
    """Count the memory banks that have no spare row for remapping, or only few."""
    banks = gpu.remap.histogram
    measure("banks_without_spares", banks.none, at_most=limits.remap_banks_without_spares, unit="count")
    measure("banks_with_few_spares", banks.low, at_most=limits.remap_banks_with_few_spares, unit="count")


@pytest.mark.fault("gpu.bad-pages")
def test_bad_pages(gpu, limits, measure):
    """Count the pages of an AMD GPU's memory that its driver took away."""
    measure("bad_pages", gpu.bad_pages, at_most=limits.gpu_bad_pages, unit="count")


@pytest.mark.fault("gpu.inforom")
def test_inforom_is_valid(gpu):
    """Check that the InfoROM matches its checksums: it holds the GPU's own history."""
    assert gpu.inforom.valid, "the InfoROM is corrupted"


@pytest.mark.fault("gpu.recovery")
def test_no_recovery_is_asked_for(gpu, measure):
    """Check that the driver asks for no recovery action, such as a reset."""
    measure("recovery_action", gpu.recovery_action, equals="none")
