"""Drives say that they are well, and will be for a while (SMART)."""

import pytest

pytestmark = [pytest.mark.phase("seatrial", "production"), pytest.mark.passive]

# NVM Express Base Specification, SMART / Health Information, critical warning.
WARNINGS = {0: "spare is low", 1: "temperature", 2: "unreliable", 3: "read-only", 4: "backup of memory failed"}


@pytest.mark.fault("nvme.failing")
def test_drive_is_live(nvme, measure):
    """Expect the kernel to be in touch with the drive's controller."""
    measure("state", nvme.state, equals="live")


@pytest.mark.fault("nvme.failing")
def test_drive_warns_of_nothing(nvme):
    """Refuse a drive that warns."""
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
    """Hold what is left of the spare blocks to the limit, and to the drive's own."""
    measure("spare", nvme.smart.spare_percent, at_least=limits.nvme_spare)
    measure("spare", nvme.smart.spare_percent, at_least=nvme.smart.spare_threshold_percent)


@pytest.mark.fault("nvme.worn")
def test_drive_has_life_left(nvme, limits, measure):
    """Hold what is used of the drive's life to the limit."""
    measure("used", nvme.smart.used_percent, at_most=limits.nvme_used)


@pytest.mark.fault("nvme.worn")
def test_drive_temperature(nvme, limits, measure):
    """Hold the drive below its temperature."""
    measure("nvme_temperature", nvme.smart.temperature_c, at_most=limits.nvme_temperature)
