"""Drives report that they are healthy and have life left (SMART). Disks are SATA or SAS drives."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]

# NVM Express Base Specification, SMART / Health Information, critical warning.
WARNINGS = {0: "spare is low", 1: "temperature", 2: "unreliable", 3: "read-only", 4: "backup of memory failed"}


@pytest.mark.fault("nvme.failing")
def test_drive_is_live(nvme, measure):
    """Check that the kernel reaches the drive's controller."""
    measure("state", nvme.state, equals="live")


@pytest.mark.fault("nvme.failing")
def test_drive_warns_of_nothing(nvme):
    """Check that the drive reports no warning."""
    warning = nvme.smart.critical_warning
    said = [what for bit, what in WARNINGS.items() if warning >> bit & 1]
    assert not warning, f"the drive warns ({warning:#x}): {', '.join(said)}"


@pytest.mark.fault("nvme.failing")
def test_drive_loses_no_data(nvme, limits, measure, since_last_pass):
    """Count the media errors since the last pass."""
    errors = since_last_pass(nvme.smart.media_errors)
    measure("media_errors", errors, at_most=limits.nvme_media_errors, unit="count")


@pytest.mark.fault("nvme.worn")
def test_drive_has_spare_blocks(nvme, limits, measure):
    """Compare the remaining spare blocks with the limit, and with the drive's own threshold."""
    measure("spare", nvme.smart.spare_percent, at_least=limits.nvme_spare)
    measure("spare", nvme.smart.spare_percent, at_least=nvme.smart.spare_threshold_percent)


@pytest.mark.fault("nvme.worn")
def test_drive_has_life_left(nvme, limits, measure):
    """Compare the used share of the drive's life with the limit."""
    measure("used", nvme.smart.used_percent, at_most=limits.nvme_used)


@pytest.mark.fault("nvme.worn")
def test_drive_temperature(nvme, limits, measure):
    """Compare the drive's temperature with its limit."""
    measure("nvme_temperature", nvme.smart.temperature_c, at_most=limits.nvme_temperature)


@pytest.mark.fault("disk.failing")
def test_disk_expects_no_failure(disk):
    """Check that the drive's own assessment of its health is good."""
    assert disk.smart.passed, "the drive says that it fails, or soon will"


@pytest.mark.fault("disk.failing")
def test_disk_can_read_every_sector(disk, limits, measure):
    """Count the sectors that wait to be replaced, since they could not be read."""
    measure("smart_pending", disk.smart.pending, at_most=limits.disk_pending, unit="count")


@pytest.mark.fault("disk.failing")
def test_disk_finds_no_lost_sector(disk, limits, measure):
    """Count the sectors that the drive's own scan could not correct."""
    measure("smart_uncorrectable", disk.smart.uncorrectable, at_most=limits.disk_uncorrectable, unit="count")


@pytest.mark.fault("disk.failing")
def test_disk_loses_no_data(disk, limits, measure, since_last_pass):
    """Count what the drive could not read or write, with all its corrections, since the last pass."""
    lost = since_last_pass(disk.smart.uncorrected, lifetime=True)
    measure("smart_uncorrected", lost, at_most=limits.disk_uncorrected, unit="count")


@pytest.mark.fault("disk.worn")
def test_disk_replaced_few_sectors(disk, limits, measure):
    """Count the sectors that the drive replaced in its life: of SAS, its grown defects."""
    measure("smart_reallocated", disk.smart.reallocated, at_most=limits.disk_reallocated, unit="count")


@pytest.mark.fault("disk.worn")
def test_disk_has_life_left(disk, limits, measure):
    """Compare the used share of the drive's life with the limit."""
    measure("used", disk.smart.used_percent, at_most=limits.disk_used)


@pytest.mark.fault("disk.worn")
def test_disk_temperature(disk, limits, measure):
    """Compare the drive's temperature with its limit."""
    measure("disk_temperature", disk.smart.temperature_c, at_most=limits.disk_temperature)


@pytest.mark.fault("disk.link.errors")
def test_disk_link_is_clean(disk, limits, measure, since_last_pass):
    """Count the transfers of a SATA drive that arrived damaged, since the last pass."""
    damaged = since_last_pass(disk.smart.crc_errors, lifetime=True)
    measure("smart_crc_errors", damaged, at_most=limits.disk_crc_errors, unit="count")


@pytest.mark.fault("disk.link.errors")
def test_disk_has_few_other_errors(disk, limits, measure, since_last_pass):
    """Count the errors of a SAS drive that are not of its medium, since the last pass."""
    errors = since_last_pass(disk.smart.non_medium_errors, lifetime=True)
    measure("smart_non_medium_errors", errors, at_most=limits.disk_non_medium_errors, unit="count")
