"""Local drives read at full speed."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("nvme.slow")
def test_drive_reads_at_speed(nvme, node, limits, measure):
    """Compare the sequential read speed of every drive with its limit."""
    measure("nvme_read", node.active.nvme_read.drives[nvme.slot].mb_s, at_least=limits.nvme_read)
