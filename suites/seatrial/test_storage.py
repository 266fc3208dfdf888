"""Every local drive, NVMe, SATA or SAS, is present and has its size."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]


@pytest.mark.fault("nvme.missing")
def test_drive_answers(nvme):
    """Check that the drive in this slot answers."""
    assert nvme.answers, f"no drive answers as {nvme.slot}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("nvme.missing")
def test_drive_size(nvme, limits, measure):
    """Compare the drive's size with the limit."""
    measure("nvme_size", nvme.size_bytes / 1e9, at_least=limits.nvme_size, unit="GB")


@pytest.mark.fault("disk.missing")
def test_disk_answers(disk):
    """Check that the SATA or SAS drive answers."""
    assert disk.answers, f"no drive answers as {disk.slot}"


@pytest.mark.phase("seatrial")
@pytest.mark.fault("disk.missing")
def test_disk_size(disk, measure):
    """Compare the drive's size with the declared one."""
    measure("disk_size", disk.size_bytes / 1e9, at_least=disk.declared.size_gb, unit="GB")
