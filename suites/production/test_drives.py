"""Drives report that they are healthy and have life left (SMART)."""

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
