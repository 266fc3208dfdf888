"""Every local drive is present and has its size."""

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
