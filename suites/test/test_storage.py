"""Local drives read at speed."""

import pytest

pytestmark = [pytest.mark.phase("test"), pytest.mark.active]


@pytest.mark.fault("nvme.slow")
def test_drive_reads_at_speed(nvme, node, limits, measure):
    """Hold the sequential read of every drive to its limit."""
    measure("nvme_read", node.active.nvme_read.drives[nvme.slot].mb_s, at_least=limits.nvme_read)
