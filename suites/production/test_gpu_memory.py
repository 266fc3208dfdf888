"""GPU memory has something left to mend itself with, and the driver asks for nothing."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "test", "production"), pytest.mark.passive]


@pytest.mark.fault("gpu.memory.sram")
def test_sram_is_below_its_threshold(gpu):
    """Refuse a GPU whose SRAM gave more uncorrectable errors than the driver bears."""
    assert not gpu.ecc.sram_threshold_exceeded, "the driver's threshold of SRAM errors is exceeded"


@pytest.mark.fault("gpu.memory.sram")
def test_sram_errors(gpu, limits, measure, since_last_pass):
    """Count the uncorrectable errors in SRAM since the last pass: no row can be remapped for these."""
    errors = since_last_pass(gpu.ecc.aggregate.sram_uncorrected)
    measure("sram_uncorrected", errors, at_most=limits.ecc_sram_uncorrected, unit="count")


@pytest.mark.fault("gpu.memory.remap")
def test_banks_have_spare_rows(gpu, limits, measure):
    """Count the memory banks with no row left to remap to, and those with few."""
    banks = gpu.remap.histogram
    measure("banks_without_spares", banks.none, at_most=limits.remap_banks_without_spares, unit="count")
    measure("banks_with_few_spares", banks.low, at_most=limits.remap_banks_with_few_spares, unit="count")


@pytest.mark.fault("gpu.inforom")
def test_inforom_is_valid(gpu):
    """Refuse a GPU whose InfoROM does not match its checksums: it keeps the GPU's own history."""
    assert gpu.inforom.valid, "the InfoROM is corrupted"


@pytest.mark.fault("gpu.recovery")
def test_no_recovery_is_asked_for(gpu, measure):
    """Do what the driver asks to have done with a GPU: nothing."""
    measure("recovery_action", gpu.recovery_action, equals="none")
